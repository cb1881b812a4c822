from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.execution.attempts import MAX_REMEMBERED, Attempts, repeat_warning
from satchel.execution.benign import benign_reason

ANSWERS = [
    "grep x f", "egrep x f", "fgrep x f", "zgrep x f", "rg x", "/usr/bin/grep x f", "/bin/grep x f", "git grep x",
    "git -C sub grep x", "diff a b", "diff -u a b 2>&1", "cmp a b", "git diff --quiet", "git diff --exit-code -- f",
    "git --no-pager diff --quiet", "test -f x", "[ -f x ]", "[[ -f x ]]", "LC_ALL=C grep x f", "which nosuch",
    "command -v nosuch", "cat f | grep x", "cat f | sort | grep x", "true; grep x f", "true\ngrep x f\n", "a || grep x f",
    "cd d && grep x f", "cd d && ls && test -f x", "grep 'a && exit' f", "grep x f;", "grep x f # && false",
    "diff <(sort a) <(sort b)", "(cd d; grep x f)", "grep ';' f", "pgrep -f server",
]  # fmt: skip
FAILURES = [
    "false", "python x.py", "cat f", "ls nowhere", "git diff", "git status", "git log --exit-code", "find . -name x",
    "grep x f | python y.py", "grep x f | head", "grep x f; false", "make test && grep x f", "./run.sh && test -f out",
    "python x.py && diff a b", "! grep x f", "! test -f x", "cd d; ! grep x f", "grep x f && false",
    "set -e; false; grep x f", "set -o pipefail; false | grep x", "set -euo pipefail\nfalse\ngrep x f", "exit 1; grep x f",
    "if grep x f; then false; fi", "for i in 1; do grep x f; done", "grep x f &", "echo 'grep x f'; false",
    "trap 'exit 1' EXIT; grep x f", "x=$(false) && grep x f", "cat <<EOF\ngrep x\nEOF", "mygrep x f", "grepx", "sudo grep x",
    "cd d 2>/dev/null && grep x f", 'cd "$(mktemp -d)" && grep x f', "'gr'ep\n[", "grep 'unclosed", "$TOOL x", "", "f() { grep x; }; f",
    "(false) && grep x f", "(cd d; false) && test -f x", "grep() { false; }; grep x f", "function grep { false; }; grep x f",
]  # fmt: skip


@pytest.mark.parametrize("command", ANSWERS)
def test_an_answer_is_no_failure(command: str) -> None:
    assert "not a failure" in benign_reason(command, 1)


@pytest.mark.parametrize("command", FAILURES)
def test_a_failure_is_never_called_an_answer(command: str) -> None:
    if command == "'gr'ep\n[":
        assert benign_reason(command, 1)  # the last line is the test, whatever stands before it
        return
    assert benign_reason(command, 1) == ""


@pytest.mark.parametrize("code", [None, 0, 2, 3, 126, 127, 128, 129, 137, 255])
@pytest.mark.parametrize("command", ["grep x f", "diff a b", "[ -f x ]"])
def test_only_exit_code_one_is_an_answer(command: str, code: int | None) -> None:
    assert benign_reason(command, code) == ""


def test_a_word_on_stderr_may_be_another_commands_failure() -> None:
    assert benign_reason("cd d && grep x f", 1, stderr="bash: line 1: cd: d: No such file or directory") == ""
    assert benign_reason("python x.py | grep OK", 1, stderr="Traceback ...") == ""
    assert benign_reason("python x.py; grep OK f", 1, stderr="Traceback ...") == ""
    assert benign_reason("git diff --no-index a missing", 1, stderr="error: Could not access 'missing'") == ""
    assert benign_reason("git diff --no-index a b", 1) != ""
    assert benign_reason("grep -r x .", 1, stderr="grep: ./a: Permission denied") != ""


@settings(deadline=None)
@given(st.text(alphabet="grepdiff x|&;()<>!\"'`$\n\\#{}[]", max_size=60), st.integers(0, 3))
def test_no_text_breaks_it(command: str, code: int) -> None:
    assert isinstance(benign_reason(command, code), str)


@settings(deadline=None)
@given(st.text(alphabet="ab \t\n", min_size=1, max_size=20), st.integers(2, 9))
def test_commands_that_differ_in_blanks_are_the_same(command: str, times: int) -> None:
    attempts = Attempts()
    counts = [attempts.record(command if number % 2 else " ".join(command), failed=True) for number in range(times)]
    assert counts == list(range(1, times + 1))
    assert repeat_warning(counts[0]) == ""
    assert f"failed {times} times" in repeat_warning(counts[-1])


def test_a_success_a_changed_file_and_another_command_start_afresh() -> None:
    attempts = Attempts()
    assert attempts.record("a", failed=True) == 1
    assert attempts.record("A", failed=True) == 1
    assert attempts.record("a", failed=False) == 0
    assert attempts.record("a", failed=True) == 1
    attempts.forget()
    assert attempts.record("a", failed=True) == 1


def test_two_hundred_are_remembered() -> None:
    attempts = Attempts()
    for number in range(MAX_REMEMBERED):
        assert attempts.record(f"c{number}", failed=True) == 1
    assert attempts.record("c0", failed=True) == 2
    assert attempts.record("one more", failed=True) == 1
    assert attempts.record("c0", failed=True) == 1
