from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.activation.trust import SENSITIVE
from satchel.skills.globs import matches_any, matches_glob


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "src/deep/a.py", True),
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("src/**", "src2/a", False),
        ("**/x/**/y", "a/x/y", True),
        ("**/x/**/y", "x/b/c/y", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("A/B", "a/b", True),
        ("a\\b", "a/b", True),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("a.b", "axb", False),
        ("", "", True),
    ],
)
def test_globs(glob: str, path: str, matches: bool) -> None:
    assert matches_glob(path, glob) is matches


@given(st.text(alphabet="ab./*?\\[{|(", max_size=12), st.lists(st.text(alphabet="ab./*?[{|(", max_size=8), max_size=4))
def test_several_globs_at_once_are_each_of_them(path: str, globs: list[str]) -> None:
    for tried in (tuple(globs), SENSITIVE):
        assert matches_any(path, tried) is any(matches_glob(path, glob) for glob in tried)


def every_way(path: str, glob: str) -> bool:
    """What the glob means, tried in every way there is."""
    text = glob.replace("**/", "\0").replace("**", "\1")
    meant = {"\0": "(?:[^/]*/)*", "\1": ".+", "*": "[^/]*", "?": "[^/]"}
    return re.fullmatch("".join(meant.get(char, char) for char in text), path) is not None


PART = st.text("ab*?", max_size=3).filter(lambda part: "**" not in part)


@given(
    st.lists(PART | st.just("**"), min_size=1, max_size=6).map("/".join),
    st.lists(st.text("ab", max_size=3), min_size=1, max_size=5).map("/".join),
)
@settings(max_examples=600)
def test_a_glob_matches_what_any_way_of_reading_it_matches(glob: str, path: str) -> None:
    assert matches_glob(path, glob) is every_way(path, glob)


@pytest.mark.parametrize(
    ("glob", "path"),
    [("*a" * 100 + "b", "a" * 4000), ("**/" * 100 + "b", "a/" * 2000), ("**/a*a/" * 100 + "b", "aaa/" * 1000)],
)
def test_no_glob_of_a_skill_holds_up_a_session(glob: str, path: str) -> None:
    # With an expression that tries every way this does not end.
    assert not matches_glob(path, glob)
