"""What decides which skills are seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillsOptions:
    """``dirs`` are scanned in order of precedence; empty means the conventional ones (``library.roots``).

    ``enabled`` False turns the feature off. ``discovery`` advertises skills that were not selected.
    ``dialect`` is the id of a row in ``satchel.skills.dialects``.
    """

    dirs: tuple[str, ...] = ()
    enabled: bool = True
    discovery: bool = True
    dialect: str = "portable"
    disabled: tuple[str, ...] = ()
