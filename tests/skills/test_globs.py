from __future__ import annotations

import pytest

from satchel.skills.globs import matches_glob


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
