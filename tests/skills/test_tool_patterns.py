from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from satchel.skills.shellwords import MAX_COMMAND, simple_command
from satchel.skills.tool_patterns import allows_call, forbids_call


def runs(pattern: str, command: object, **more: object) -> bool:
    return allows_call([pattern], "bash", {"command": command, **more})


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("Bash(git log:*)", "git log"),
        ("Bash(git log:*)", "git log --oneline -5"),
        ("Bash(git log:*)", "  git   log  a..b "),
        ("Bash(git log:*)", "git log --author='A; B' --format=\"%h %s\""),
        ("Bash(git log:*)", "git log -- src/a,b.py"),
        ("Bash(git log *)", "git log -1"),
        ("Bash(git log *)", "git log"),
        ("Bash(git status)", "git status"),
        ("Bash(git:*)", "git push"),
        ("Bash(npm run test:unit:*)", "npm run test:unit --ci"),
        ("Bash(npm run test*)", "npm run test-all"),
        ("Bash(git * main)", "git merge main"),
        ("Bash(./gradlew:*)", "./gradlew test"),
        ("Bash", "anything; at all > x"),
        ("Bash(*)", "anything | at all"),
        ("bash(git:*)", "git log"),
        ("Shell(git:*)", "git log"),
    ],
)
def test_a_call_that_certainly_matches(pattern: str, command: str) -> None:
    assert runs(pattern, command)
    assert runs(pattern, command, timeout_ms=5, description="x")


HOSTILE = (
    "git log; rm -rf x",
    "git log;rm x",
    "git log && x",
    "git log || x",
    "git log | sh",
    "git log |& sh",
    "git log & x",
    "git log &",
    "git log $(x)",
    "git log `x`",
    "git log ${x}",
    "git log $x",
    "git log $'a'",
    'git log $"a"',
    'git log "$(x)"',
    'git log "`x`"',
    'git log "a\\"; x"',
    "git log > x",
    "git log >> x",
    "git log 2>&1",
    "git log < x",
    "git log <(x)",
    "git log << EOF",
    "git log <<< x",
    "git log\nx",
    "git log\r\nx",
    "git log\tx",
    "git log \\\nx",
    "git\\ log x",
    "git log \x00x",
    "git log \x0bx",
    "git log *",
    "git log ?",
    "git log [ab]",
    "git log {a,b}",
    "git log ~",
    "git log # x",
    "git log !x",
    'git log "!x"',
    "git log ^x",
    "git log (x)",
    "git log =x",
    "git log 'a",
    'git log "a',
    "git log \u00a0x",
    "git\u00a0log x",
    "git log \u2028x",
    "GIT_DIR=x git log",
    "GIT_PAGER=x git log",
    "env GIT_PAGER=x git log",
    "sudo git log",
    "time git log",
    "command git log",
    "'git' log",
    "g'i't log",
    '"git" log',
    "(git log)",
    "{ git log; }",
    "! git log",
    "gitlog",
    "git logx",
    "git -c x log",
    "git",
    "",
    " ",
    "git log " + "x" * MAX_COMMAND,
)


@pytest.mark.parametrize("command", HOSTILE)
def test_what_cannot_be_proved_is_refused(command: str) -> None:
    assert not runs("Bash(git log:*)", command)
    is_told = simple_command(command) is not None
    assert is_told or forbids_call(["Bash(git log:*)"], "bash", {"command": command})


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": 7},
        {"command": None},
        {"command": ["git", "log"]},
        {"command": "git log", "env": {"GIT_PAGER": "x"}},
        {"command": "git log", "input": "x"},
        {"command": "git log", "args": ["; x"]},
        {"cmd": "git log"},
    ],
)
def test_a_call_of_another_form_is_refused(arguments: dict[str, object]) -> None:
    assert not allows_call(["Bash(git log:*)"], "bash", arguments)
    assert forbids_call(["Bash(git log:*)"], "bash", arguments)
    assert allows_call(["Bash"], "bash", arguments)


@pytest.mark.parametrize(
    ("pattern", "tool", "matches"),
    [
        ("Read", "Read", True),
        ("Read", "read", True),
        ("Read", "ReadAll", False),
        ("Read(*)", "Read", True),
        ("Read(src/**)", "Read", False),
        ("Read*", "ReadAll", True),
        ("*", "anything", True),
        ("*", "any thing", False),
        ("mcp__x__*", "mcp__x__search", True),
        ("mcp__x__*", "mcp__x__search_all", True),
        ("mcp__x__*", "mcp__x__evil__search", False),
        ("mcp__x__*", "mcp__xy__search", False),
        ("mcp__x__*", "MCP__X__search", False),
        ("mcp__x__search", "mcp__x__search", True),
        ("mcp__x__search", "mcp__X__search", False),
        ("mcp__x", "mcp__x__search", True),
        ("mcp__x", "mcp__x__evil__search", False),
        ("mcp__x", "mcp__xy__search", False),
        ("mcp__*", "mcp__x__search", True),
        ("github.create_pr", "github.create_pr", True),
        ("github.create_pr", "githubxcreate_pr", False),
        ("Bash(git:*)", "Read", False),
        ("Read)", "Read", False),
        ("(Read)", "Read", False),
        ("", "Read", False),
    ],
)
def test_names_of_tools(pattern: str, tool: str, matches: bool) -> None:
    assert allows_call([pattern], tool, {"path": "src/a"}) is matches


@pytest.mark.parametrize(
    "pattern", ["Bash()", "Bash(:*)", "Bash( )", "Bash(git log", "Bash(git log:*:*)", "Bash(git 'log':*)"]
)
def test_a_pattern_without_a_meaning_matches_nothing(pattern: str) -> None:
    assert not runs(pattern, "git log")
    assert not runs(pattern, "")


def test_what_is_forbidden_is_forbidden_in_doubt() -> None:
    assert forbids_call(["Bash(rm:*)"], "shell", {"command": "rm -rf x"})
    assert forbids_call(["Bash(rm:*)"], "shell", {"command": "git log; rm -rf x"})
    assert not forbids_call(["Bash(rm:*)"], "shell", {"command": "git log"})
    for command in ("/bin/rm -rf x", "env rm x", "sudo rm x", "sh -c 'rm x'", "/usr/bin/env rm x"):
        assert forbids_call(["Bash(rm:*)"], "shell", {"command": command})
    for pattern in ("Bash(*rm*)", "Bash()", "Bash(:*)", "Bash(rm", "(", "Bash(* -rf *)"):
        assert forbids_call([pattern], "shell", {"command": "/opt/rm -rf x"})
    assert not forbids_call(["Bash(*rm*)"], "shell", {"command": "git log"})
    assert forbids_call(["Read(secrets/**)"], "Read", {"path": "src/a"})
    assert not forbids_call(["Read(secrets/**)"], "Write", {"path": "src/a"})


@pytest.mark.parametrize(
    ("pattern", "command", "forbidden"),
    [
        ("git push:*", "git -C /repo push", True),
        ("git push:*", "git --no-pager -C /repo push --force", True),
        ("git push:*", "git commit -m push", False),
        ("git push:*", "git log push", False),
        ("git push --force:*", "git push origin --force", True),
        ("git push --force:*", "git push --forc", True),
        ("git push --force:*", "git push -u origin main", False),
        ("rm -rf:*", "rm -fr x", True),
        ("rm -rf:*", "rm -r x -f", True),
        ("rm -rf:*", "rm --recursive --force x", True),
        ("rm -rf:*", "rm -f x", False),
        ("rm -rf:*", "cp -rf x y", False),
        ("git status", "git -C x status", True),
        ("git status", "git status -s", False),
        ("rm:*", "git -c 'alias.x=!rm -rf y' x", True),
        ("rm:*", "git switch -c new", False),
        ("rm:*", "python3.11 -c 'import shutil; shutil.rmtree(1)'", True),
        ("rm:*", "python3 build.py", False),
        ("rm:*", "perl -pe 'unlink 1'", True),
        ("rm:*", "node --eval=x", True),
        ("rm:*", "ssh host rm -rf x", True),
        ("rm:*", "flock lock rm x", True),
        ("rm:*", "awk 'BEGIN { system(1) }'", True),
    ],
)
def test_what_is_forbidden_is_so_with_options_anywhere_and_behind_programs_that_run_others(
    pattern: str, command: str, *, forbidden: bool
) -> None:
    assert forbids_call([f"Bash({pattern})"], "bash", {"command": command}) is forbidden


@pytest.mark.parametrize(
    ("pattern", "tool"),
    [
        ("mcp__x__*", "mcp__x__repo__delete"),
        ("mcp__x", "mcp__x__repo__delete"),
        ("mcp__x", "MCP__X__delete"),
        ("mcp__x__*", "mcp__x__delete/file"),
        ("write*", "write file"),
        ("write_*", "write_\u00e9"),
        ("write*", "write\n"),
    ],
)
def test_a_name_that_may_be_meant_is_forbidden_and_not_allowed(pattern: str, tool: str) -> None:
    assert forbids_call([pattern], tool, {})
    assert not allows_call([pattern], tool, {})


def test_a_letter_that_only_folds_to_one_is_another_letter() -> None:
    assert not allows_call(["Task"], "ta\u017fk", {})
    assert not forbids_call(["mcp__x"], "mcp__xy__z", {})


@pytest.mark.parametrize(
    ("pattern", "tool", "command"),
    [
        (f"Bash({'*a' * 200}b)", "bash", "a" * 15_000),
        (f"Bash({'*a' * 200}b:*)", "bash", "a" * 15_000),
        (f"{'*a' * 200}b", "a" * 15_000, "x"),
        (f"mcp__x__{'*a' * 200}b", "mcp__x__" + "a" * 15_000, "x"),
    ],
)
def test_no_pattern_of_a_skill_holds_up_a_session(pattern: str, tool: str, command: str) -> None:
    # With an expression that tries every way this does not end.
    assert not allows_call([pattern], tool, {"command": command})
    assert not forbids_call([pattern], tool, {"command": command})


PIECES = st.sampled_from(
    [
        "git",
        "log",
        "x",
        "-a",
        "--b=c",
        "a,b",
        " ",
        "  ",
        "\t",
        "\n",
        "\r",
        ";",
        "&",
        "&&",
        "|",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        "<<",
        "$",
        "$(",
        "${",
        "`",
        "'",
        '"',
        "\\",
        "*",
        "?",
        "[",
        "]",
        "~",
        "#",
        "!",
        "^",
        "=",
        "%",
        "@",
        ":",
        "+",
        "é",
        "\xa0",
        "A=b",
    ]
)
PLAIN = st.sampled_from(
    [
        "x",
        "-a",
        "--b=c",
        "a,b",
        "@",
        "'a; b'",
        '"a | b"',
        "'$(x)'",
        '"x > y"',
        "''",
        '""',
        "'\\'",
        "é'é'",
        "'\"'",
        '"\'"',
    ]
)
CERTAIN = st.lists(PLAIN | st.just(" "), max_size=10).map("".join).map("git log ".__add__)
COMMANDS = st.lists(PIECES, max_size=12).map("".join).map("git log ".__add__)


@given(COMMANDS | CERTAIN)
@example("git log 'a b' \"c\"d")
@settings(max_examples=600)
def test_words_that_are_told_are_those_of_a_posix_reader_without_any_operator(command: str) -> None:
    words = simple_command(command)
    if words is None:
        return
    assert list(words) == shlex.split(command, comments=True)
    quoteless = "".join(part for index, part in enumerate(command.replace('"', "'").split("'")) if index % 2 == 0)
    if '"' not in command or "'" not in command:
        assert not set(quoteless) & set(";&|<>()$`\\*?[]{}~#!^\n\r\t")


@given(st.text(max_size=40))
@settings(max_examples=400)
def test_no_text_makes_the_reader_fail_and_nothing_told_holds_a_control_character(text: str) -> None:
    words = simple_command(text)
    if words is not None:
        assert words[0].isascii()
        assert all(ord(char) >= 32 for word in words for char in word)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_a_real_shell_runs_exactly_the_words_that_are_told(tmp_path: Path) -> None:
    """The commands are made of harmless pieces alone; no program can be found, and ``git`` only writes what it gets."""
    told: list[tuple[str, tuple[str, ...]]] = []

    @given(COMMANDS | CERTAIN)
    @settings(max_examples=800, database=None, derandomize=True)
    def collect(command: str) -> None:
        words = simple_command(command)
        if words is not None and words[0] == "git":
            told.append((command, words))

    collect()
    chosen = list(dict(told).items())
    assert len(chosen) > 100
    script = 'git() { printf \'%s\\0\' "$#" "$@"; }\n' + "".join(
        f"{command}\nprintf 'next\\0'\n" for command, _ in chosen
    )
    ended = subprocess.run(
        [str(shutil.which("bash")), "--norc", "--noprofile", "-s"],
        input=script.encode(),
        cwd=tmp_path,
        env={"PATH": str(tmp_path / "nothing"), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr == b""
    said = ended.stdout.decode().split("next\0")[:-1]
    expected = ["".join(f"{part}\0" for part in (len(words) - 1, *words[1:])) for _, words in chosen]
    assert said == expected
    assert list(tmp_path.iterdir()) == []
