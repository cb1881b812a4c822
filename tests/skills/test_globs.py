from __future__ import annotations

import pytest
from hypothesis import given
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
