"""Globs over paths with forward slashes: ``*`` and ``?`` stay inside a segment, ``**`` as a segment crosses them.

Skills bring globs, so none may take long. A ``*`` or ``**`` takes as little as it can and never tries anew: what stands
between two of them is looked for where it comes first, and only what is behind the last must reach the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache


def star_pattern(text: str, star: str, literal: Callable[[str], str] = re.escape) -> str:
    """A regular expression for ``text``, whose ``*`` stand for any number of ``star``; ``literal`` writes the rest.

    Matching takes time in proportion to the text, however many stars there are.
    """
    first, *others = text.split("*")
    if not others:
        return literal(first)
    between = "".join(f"(?>(?:{star})*?{literal(piece)})" for piece in others[:-1] if piece)
    return f"{literal(first)}{between}(?:{star})*{literal(others[-1])}"


@lru_cache(maxsize=1024)
def glob_pattern(glob: str) -> re.Pattern[str]:
    """The glob as an expression for ``fullmatch``, in any letter case. ``**/`` stands for no segment too.

    ``[...]`` and ``{a,b}`` are text.
    """
    *folders, last = glob.replace("\\", "/").split("/")
    pieces: list[str] = []
    block: list[str] = []
    is_deep = False
    for part in folders:
        if part != "**":
            block.append(star_pattern(part, "[^/]", _segment) + "/")
            continue
        if block:
            pieces.append(_deep("".join(block)) if is_deep else "".join(block))
            block = []
        is_deep = True
    # At the end it must be something; in front of more it may be nothing.
    block.append(".+" if last == "**" else star_pattern(last, "[^/]", _segment))
    pieces.append("(?:[^/]*/)*" * is_deep + "".join(block))
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


def _segment(text: str) -> str:
    return "[^/]".join(map(re.escape, text.split("?")))


def _deep(block: str) -> str:
    return f"(?>(?:[^/]*/)*?{block})"
