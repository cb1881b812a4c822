"""Globs over paths with forward slashes: ``*`` and ``?`` stay inside a segment, ``**`` as a segment crosses them."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=1024)
def glob_pattern(glob: str) -> re.Pattern[str]:
    """The glob as an expression for ``fullmatch``, in any letter case. ``**/`` stands for no segment too.

    ``[...]`` and ``{a,b}`` are text.
    """
    parts = glob.replace("\\", "/").split("/")
    pieces: list[str] = []
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        if part == "**":
            # At the end it must be something; in front of more it may be nothing.
            pieces.append(".+" if is_last else "(?:[^/]*/)*")
        else:
            text = "".join({"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char) for char in part)
            pieces.append(text if is_last else text + "/")
    return re.compile("".join(pieces), re.IGNORECASE | re.DOTALL)


def matches_glob(path: str, glob: str) -> bool:
    """Whether the whole path is what the glob describes."""
    return glob_pattern(glob).fullmatch(path.replace("\\", "/")) is not None


def matches_any(path: str, globs: tuple[str, ...]) -> bool:
    """Whether some glob describes the whole path."""
    return bool(globs) and _any_pattern(globs).fullmatch(path.replace("\\", "/")) is not None


@lru_cache(maxsize=64)
def _any_pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{glob_pattern(glob).pattern})" for glob in globs), re.IGNORECASE | re.DOTALL)
