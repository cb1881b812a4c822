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
