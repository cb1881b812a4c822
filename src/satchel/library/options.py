"""What decides which skills are seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillsOptions:
    """``dirs`` are scanned in order of precedence; empty means the conventional ones (``library.roots``).

    ``enabled`` False turns the feature off. ``discovery`` advertises skills that were not selected.
    ``dialect`` is the id of a row in ``satchel.skills.dialects``. ``disabled`` are names, or absolute paths of skills.
    ``max_skills``, ``max_files``, ``max_skill_bytes`` and ``max_manifest_bytes`` replace the row's ceilings; None keeps
    them.
    """

    dirs: tuple[str, ...] = ()
    enabled: bool = True
    discovery: bool = True
    dialect: str = "portable"
    disabled: tuple[str, ...] = ()
    max_skills: int | None = None
    max_files: int | None = None
    max_skill_bytes: int | None = None
    max_manifest_bytes: int | None = None
