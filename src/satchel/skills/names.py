"""Skill names: which are legal, how others become legal, and which one was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_LEGAL = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_OTHER = re.compile(r"[^a-z0-9]+")


def is_legal_name(name: str, limit: int = 64) -> bool:
    """Whether ``name`` is 1 to ``limit`` characters of a-z, 0-9 and single inner hyphens."""
    return len(name) <= limit and _LEGAL.fullmatch(name) is not None


def normalize_name(text: str, limit: int = 64) -> str:
    """The legal name that is nearest to ``text``, "" when there is none. ``My PDF Tool`` gives ``my-pdf-tool``."""
    return _OTHER.sub("-", text.lower()).strip("-")[:limit].rstrip("-")


_NEAR = 3
_LONGEST = 64


def near_names(wanted: str, names: Iterable[str], limit: int = _NEAR) -> tuple[str, ...]:
    """At most ``limit`` of ``names`` that somebody who wrote ``wanted`` may have meant, the likeliest first."""
    said = wanted.strip().casefold()[:_LONGEST]
    if not said:
        return ()
    known = {name.casefold(): name for name in names}
    starts = [name for name in known if name.startswith(said)]
    alike = difflib.get_close_matches(said, known, n=limit)
    holds = [name for name in known if len(said) >= _NEAR and said in name]
    return tuple(known[name] for name in dict.fromkeys((*starts, *alike, *holds)))[:limit]


def similar_names(wanted: str, names: Iterable[str], *, limit: int = _NEAR, threshold: float = 0.6) -> tuple[str, ...]:
    """At most ``limit`` of ``names``, by how few letters must change: 1 minus the Levenshtein distance over the length.

    Names below ``threshold`` are left out; of equals the first comes first (seed 000, section 3.3).
    """
    said = wanted[:_LONGEST]
    scored: list[tuple[float, str]] = []
    for name in names:
        longest = max(len(said), len(name))
        most = int(longest * (1 - threshold) + 1e-9)
        if abs(len(said) - len(name)) <= most and (distance := _distance(said, name)) <= most:
            scored.append((distance / longest if longest else 0.0, name))
    scored.sort(key=lambda item: item[0])
    return tuple(name for _, name in scored[:limit])


def _distance(left: str, right: str) -> int:
    """The Levenshtein distance: a column of the table is two numbers of one bit a row, after Myers and Hyyro."""
    if not left:
        return len(right)
    places: dict[str, int] = {}
    for index, char in enumerate(left):
        places[char] = places.get(char, 0) | 1 << index
    last, full = 1 << len(left) - 1, (1 << len(left)) - 1
    rises, falls, distance = full, 0, len(left)
    for char in right:
        here = places.get(char, 0) | falls
        level = (((here & rises) + rises) ^ rises) | here
        up, down = falls | ~(level | rises) & full, rises & level
        distance += bool(up & last) - bool(down & last)
        up = (up << 1 | 1) & full
        rises, falls = (down << 1 & full) | ~(level | up) & full, up & level
    return distance
