"""The published JSON shapes of skills, one function each."""

from __future__ import annotations

from collections import Counter

from satchel.skills.model import LoadedSkill, Skill


def skill_view(loaded: LoadedSkill) -> dict[str, object]:
    """``{"name","description","dir","source","kind_counts","bytes","warnings","shadowed"}``."""
    skill = loaded.skill
    return {
        "name": skill.name,
        "description": skill.description,
        "dir": skill.location,
        "source": skill.ref.source,
        "kind_counts": dict(sorted(Counter(file.kind for file in loaded.files).items())),
        "bytes": loaded.manifest_bytes + sum(file.bytes for file in loaded.files if file.kind != "manifest"),
        "warnings": [item.to_dict() for item in skill.diagnostics],
        "shadowed": list(skill.shadowed),
    }


def full_view(loaded: LoadedSkill) -> dict[str, object]:
    """The same, and ``"frontmatter"``, ``"allowed_tools"``, ``"files"`` and ``"body"``."""
    return {
        **skill_view(loaded),
        "frontmatter": dict(loaded.skill.frontmatter),
        "allowed_tools": list(loaded.skill.allowed_tools),
        "files": [
            {"path": file.path, "kind": file.kind, "bytes": file.bytes, "text": file.is_text} for file in loaded.files
        ],
        "body": loaded.body,
    }


def cost_tokens(skill: Skill) -> int:
    """What the skill's line in a catalogue costs, in tokens of four bytes."""
    from satchel.context.budget import tokens

    return tokens(f"- {skill.name}: {skill.summary}\n")
