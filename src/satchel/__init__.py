"""Satchel gives any chat model Agent Skills: folders with a SKILL.md, found, offered, read and run.

Names are imported when they are first used, so that ``import satchel`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel import errors
    from satchel.activation.enforce import ToolPolicy
    from satchel.activation.permission import Decision, PermissionRequest, ToolRequest
    from satchel.activation.registry import FilesystemSkillRegistry, MemorySkillRegistry
    from satchel.activation.reply import Activation
    from satchel.activation.session import SkillSession
    from satchel.activation.trust import Trust
    from satchel.activation.turns import SkillTurns, TurnSkills
    from satchel.client import SkillsChatClient, SkillsChatRequest, SkillsChatResponse
    from satchel.context.block import BlockOptions, render_block
    from satchel.context.listings import Listing, available_skills, format_skill_listing, render_section, slash_menu
    from satchel.engine import events
    from satchel.errors import SatchelError
    from satchel.execution.artifacts import Artifacts
    from satchel.execution.options import ExecutionOptions, InstallOptions
    from satchel.execution.saving import Saved
    from satchel.execution.workbench import Execution
    from satchel.library import Library, discover, load_skill
    from satchel.library.checking import check
    from satchel.library.folders import load_skills_dir, load_skills_dirs
    from satchel.skills.catalog import Catalog
    from satchel.skills.dialect import Dialect
    from satchel.skills.model import Diagnostic, LoadedSkill, Page, Skill
    from satchel.skills.plain import inline
    from satchel.skills.substitute import Rendered, substitute, substitute_skill
    from satchel.stores.jsonl import JsonlAudit
    from satchel.sync import run_sync

    __version__: str

__all__ = [
    "Activation",
    "Artifacts",
    "BlockOptions",
    "Catalog",
    "Decision",
    "Diagnostic",
    "Dialect",
    "Execution",
    "ExecutionOptions",
    "FilesystemSkillRegistry",
    "InstallOptions",
    "JsonlAudit",
    "Library",
    "Listing",
    "LoadedSkill",
    "MemorySkillRegistry",
    "Page",
    "PermissionRequest",
    "Rendered",
    "SatchelError",
    "Saved",
    "Skill",
    "SkillSession",
    "SkillTurns",
    "SkillsChatClient",
    "SkillsChatRequest",
    "SkillsChatResponse",
    "ToolPolicy",
    "ToolRequest",
    "Trust",
    "TurnSkills",
    "__version__",
    "available_skills",
    "check",
    "discover",
    "errors",
    "events",
    "format_skill_listing",
    "inline",
    "load_skill",
    "load_skills_dir",
    "load_skills_dirs",
    "render_block",
    "render_section",
    "run_sync",
    "slash_menu",
    "substitute",
    "substitute_skill",
]

_HOMES = {
    "Activation": "satchel.activation.reply",
    "Artifacts": "satchel.execution.artifacts",
    "BlockOptions": "satchel.context.block",
    "Catalog": "satchel.skills.catalog",
    "Decision": "satchel.activation.permission",
    "Diagnostic": "satchel.skills.model",
    "Dialect": "satchel.skills.dialect",
    "Execution": "satchel.execution.workbench",
    "ExecutionOptions": "satchel.execution.options",
    "FilesystemSkillRegistry": "satchel.activation.registry",
    "InstallOptions": "satchel.execution.options",
    "JsonlAudit": "satchel.stores.jsonl",
    "Library": "satchel.library",
    "Listing": "satchel.context.listings",
    "LoadedSkill": "satchel.skills.model",
    "MemorySkillRegistry": "satchel.activation.registry",
    "Page": "satchel.skills.model",
    "PermissionRequest": "satchel.activation.permission",
    "Rendered": "satchel.skills.substitute",
    "SatchelError": "satchel.errors",
    "Saved": "satchel.execution.saving",
    "Skill": "satchel.skills.model",
    "SkillsChatClient": "satchel.client",
    "SkillsChatRequest": "satchel.client",
    "SkillsChatResponse": "satchel.client",
    "SkillSession": "satchel.activation.session",
    "SkillTurns": "satchel.activation.turns",
    "ToolPolicy": "satchel.activation.enforce",
    "ToolRequest": "satchel.activation.permission",
    "Trust": "satchel.activation.trust",
    "TurnSkills": "satchel.activation.turns",
    "available_skills": "satchel.context.listings",
    "check": "satchel.library.checking",
    "discover": "satchel.library",
    "format_skill_listing": "satchel.context.listings",
    "inline": "satchel.skills.plain",
    "load_skill": "satchel.library",
    "load_skills_dir": "satchel.library.folders",
    "load_skills_dirs": "satchel.library.folders",
    "render_block": "satchel.context.block",
    "render_section": "satchel.context.listings",
    "run_sync": "satchel.sync",
    "slash_menu": "satchel.context.listings",
    "substitute": "satchel.skills.substitute",
    "substitute_skill": "satchel.skills.substitute",
}

_MODULES = {"errors": "satchel.errors", "events": "satchel.engine.events"}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("satchel")
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
