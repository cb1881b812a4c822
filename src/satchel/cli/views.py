"""The published JSON shapes of skills, one function each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from satchel.pathguard import is_inside

if TYPE_CHECKING:
    from satchel.skills.model import LoadedSkill, Skill, SkillFile


def skill_view(loaded: LoadedSkill, roots: Iterable[str]) -> dict[str, object]:
    """``{"name","description","dir","root","kind_counts","bytes","warnings","shadowed"}``.

    ``root`` is the one of ``roots`` that the skill lies below, "" when there is none. ``bytes`` are those of all files.
    """
    skill = loaded.skill
    return {
        "name": skill.name,
        "description": skill.description,
        "dir": skill.location,
        "root": next((root for root in roots if _lies_below(skill.location, root)), ""),
        "kind_counts": dict(sorted(Counter(file.kind for file in loaded.files).items())),
        "bytes": loaded.manifest_bytes + sum(file.bytes for file in loaded.files if file.kind != "manifest"),
        "warnings": [item.to_dict() for item in skill.diagnostics],
        "shadowed": list(skill.shadowed),
    }


def full_view(loaded: LoadedSkill, roots: Iterable[str]) -> dict[str, object]:
    """The same, and ``"frontmatter"``, ``"body"`` and ``"files"``."""
    return {
        **skill_view(loaded, roots),
        "frontmatter": dict(loaded.skill.frontmatter),
        "body": loaded.body,
        "files": [file_view(file) for file in loaded.files],
    }


def file_view(file: SkillFile) -> dict[str, object]:
    """``{"path","kind","bytes","text"}``."""
    return {"path": file.path, "kind": file.kind, "bytes": file.bytes, "text": file.is_text}


def cost_tokens(skill: Skill) -> int:
    """What the skill's line in a catalogue costs, in tokens of four bytes."""
    from satchel.context.budget import tokens

    return tokens(f"- {skill.name}: {skill.summary}\n")


def _lies_below(location: str, root: str) -> bool:
    return is_inside(location, os.path.realpath(root))
