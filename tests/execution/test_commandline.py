"""Command lines taken apart."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.execution.commandline import LONGEST_LINE, simple_commands


def words(line: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in simple_commands(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a b; c && d || e | f & g", [["a", "b"], ["c"], ["d"], ["e"], ["f"], ["g"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ('a "b\\"c" \'d"e\'', [["a", 'b"c', 'd"e']]),
        ("a >b 2>>c <d e", [["a", "e"]]),
        ("a &>b e 3<&1", [["a", "e"]]),
        ("a <<EOF b\nnot a command\nEOF\nc", [["a", "b"], ["c"]]),
        ("a <<'X' <<Y\n1\nX\n2\nY\nc", [["a"], ["c"]]),
        ("a <<-X\n\t1\n\tX\nc", [["a"], ["c"]]),
        ("a <<<b c", [["a", "c"]]),
        ("a # b; c\nd", [["a"], ["d"]]),
        ("a#b", [["a#b"]]),
        ("if a; then b; else c; fi", [["a"], ["b"], ["c"], ["fi"]]),
        ("for x in a b; do c; done", [["c"], ["done"]]),
        ("{ a; }", [["a"], ["}"]]),
        ("(a; b)", [["a"], ["b"]]),
        ("X=1 Y='2' a Z=3", [["a", "Z=3"]]),
        ("a \\\n b", [["a", "b"]]),
        ("f() { a; }", [["f"], ["a"], ["}"]]),
        ("a |& b", [["a"], ["b"]]),
    ],
)
def test_simple_commands_are_found(line: str, expected: list[list[str]]) -> None:
    assert words(line) == expected


@pytest.mark.parametrize(
    ("line", "inner"),
    [
        ("a $(b c)", ["b c"]),
        ("a `b c`", ["b c"]),
        ('a "x $(b "$(c)") y"', ['b "$(c)"']),
        ("a <(b) >(c)", ["b", "c"]),
        ("X=$(b) a", ["b"]),
        ("a > $(b)", ["b"]),
        ("a '$(b)'", []),
        ("a $(( 1 + 2 ))", ["( 1 + 2 )"]),
    ],
)
def test_command_lines_in_substitutions_are_found(line: str, inner: list[str]) -> None:
    assert [text for command in simple_commands(line) for text in command.substitutions] == inner


@pytest.mark.parametrize(
    ("word", "is_plain"), [("$x", False), ("'$x'", True), ('"$x"', False), ('"5$"', True), ("`x`", False)]
)
def test_what_a_shell_would_expand_is_marked(word: str, is_plain: bool) -> None:
    assert simple_commands(f"a {word}")[0].words[1].is_plain is is_plain


@pytest.mark.parametrize("line", ["a 'b", 'a "b', "a $(b", "a `b", "a ${b", "x" * (LONGEST_LINE + 1), 'a "$(' * 9000])
def test_what_does_not_end_is_no_command(line: str) -> None:
    assert simple_commands(line) == ()


def test_operators_say_what_comes_next() -> None:
    assert [command.ended_by for command in simple_commands("a && b | c\nd")] == ["&&", "|", "\n", ""]


@given(st.lists(st.text(min_size=1, max_size=20).filter(lambda text: "\x00" not in text), min_size=1, max_size=6))
def test_quoted_words_come_back_as_they_were(texts: list[str]) -> None:
    line = "run " + shlex.join(texts)
    assert words(line) == [["run", *texts]]


@given(st.text(alphabet="ab '\"\\$(){}`;|&<>#=\n\t0-", max_size=200))
def test_places_of_words_lie_in_the_line_in_order(line: str) -> None:
    at = 0
    for command in simple_commands(line):
        for word in command.words:
            assert at <= word.start < word.end <= len(line)
            at = word.end
