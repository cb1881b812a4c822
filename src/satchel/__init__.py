"""Satchel gives any chat model Agent Skills: folders with a SKILL.md, found, offered, read and run.

Names are imported when they are first used, so that ``import satchel`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel import errors
    from satchel.client import SkillsChatClient, SkillsChatRequest, SkillsChatResponse
    from satchel.context.block import BlockOptions, render_block
    from satchel.context.listings import Listing, available_skills, format_skill_listing, render_section, slash_menu
    from satchel.engine import events
    from satchel.errors import SatchelError
    from satchel.library import Library, discover, load_skill
    from satchel.library.checking import check
    from satchel.skills.catalog import Catalog
    from satchel.skills.dialect import Dialect
    from satchel.skills.model import Diagnostic, LoadedSkill, Page, Skill
    from satchel.skills.plain import inline
    from satchel.skills.substitute import Rendered, substitute, substitute_skill
    from satchel.sync import run_sync

    __version__: str

__all__ = [
    "BlockOptions",
    "Catalog",
    "Diagnostic",
    "Dialect",
    "Library",
    "Listing",
    "LoadedSkill",
    "Page",
    "Rendered",
    "SatchelError",
    "Skill",
    "SkillsChatClient",
    "SkillsChatRequest",
    "SkillsChatResponse",
    "__version__",
    "available_skills",
    "check",
    "discover",
    "errors",
    "events",
    "format_skill_listing",
    "inline",
    "load_skill",
    "render_block",
    "render_section",
    "run_sync",
    "slash_menu",
    "substitute",
    "substitute_skill",
]

_HOMES = {
    "BlockOptions": "satchel.context.block",
    "Catalog": "satchel.skills.catalog",
    "Diagnostic": "satchel.skills.model",
    "Dialect": "satchel.skills.dialect",
    "Library": "satchel.library",
    "Listing": "satchel.context.listings",
    "LoadedSkill": "satchel.skills.model",
    "Page": "satchel.skills.model",
    "Rendered": "satchel.skills.substitute",
    "SatchelError": "satchel.errors",
    "Skill": "satchel.skills.model",
    "SkillsChatClient": "satchel.client",
    "SkillsChatRequest": "satchel.client",
    "SkillsChatResponse": "satchel.client",
    "available_skills": "satchel.context.listings",
    "check": "satchel.library.checking",
    "discover": "satchel.library",
    "format_skill_listing": "satchel.context.listings",
    "inline": "satchel.skills.plain",
    "load_skill": "satchel.library",
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
