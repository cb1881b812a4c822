"""Lines of a file with their numbers, the same in everything that a model is shown of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence

EXCERPT_CHARS = 2000
_EXCERPT_LINE = 200
_PREFIX = re.compile(r"[ \t]*\d+(?:\t|:|[ ]*\|[ ]?)")


def line_count(lines: Sequence[str]) -> int:
    """How many lines there are: what follows the last newline of a file is none when it is empty."""
    return len(lines) - 1 if lines and not lines[-1] else len(lines)


def numbered(lines: Sequence[str], start: int, stop: int, *, line_chars: int = _EXCERPT_LINE) -> str:
    """The lines with indexes ``start`` to ``stop``, numbered from one, each cut at ``line_chars`` characters.

    A bar stands behind the number so that nobody takes it for a part of the line.
    """
    return "\n".join(f"{index + 1:>5} | {clipped(lines[index], line_chars)}" for index in range(start, stop))


def excerpt(lines: Sequence[str], start: int, stop: int) -> str:
    """``numbered`` within the file, cut behind the line that reaches ``EXCERPT_CHARS`` characters."""
    shown: list[str] = []
    left = EXCERPT_CHARS
    for index in range(max(0, start), min(stop, line_count(lines))):
        shown.append(numbered(lines, index, index + 1))
        left -= len(shown[-1])
        if left <= 0:
            break
    return "\n".join(shown)


def clipped(line: str, limit: int) -> str:
    """At most ``limit`` characters of a line, with a mark that names how many follow. Bytes that are no text show."""
    shown = line.rstrip("\r").encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return shown if len(shown) <= limit else f"{shown[:limit]} [... {len(shown) - limit} more characters]"


def without_number(line: str) -> str | None:
    """The line without a number that a listing put in front of it; None when there is none."""
    match = _PREFIX.match(line)
    return line[match.end() :] if match else None
