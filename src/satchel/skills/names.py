"""Skill names: which are legal, and how others become legal."""

from __future__ import annotations

import re

_LEGAL = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_OTHER = re.compile(r"[^a-z0-9]+")


def is_legal_name(name: str, limit: int = 64) -> bool:
    """Whether ``name`` is 1 to ``limit`` characters of a-z, 0-9 and single inner hyphens."""
    return len(name) <= limit and _LEGAL.fullmatch(name) is not None


def normalize_name(text: str, limit: int = 64) -> str:
    """The legal name that is nearest to ``text``, "" when there is none. ``My PDF Tool`` gives ``my-pdf-tool``."""
    return _OTHER.sub("-", text.lower()).strip("-")[:limit].rstrip("-")
