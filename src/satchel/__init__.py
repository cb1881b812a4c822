"""Satchel gives any chat model Agent Skills: folders with a SKILL.md, found, offered, read and run.

Names are imported when they are first used, so that ``import satchel`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel import errors
    from satchel.context.block import BlockOptions, render_block
    from satchel.errors import SatchelError
    from satchel.library import Library, discover, load_skill
    from satchel.skills.catalog import Catalog
    from satchel.skills.dialect import Dialect
    from satchel.skills.model import Diagnostic, LoadedSkill, Skill

    __version__: str

__all__ = [
    "BlockOptions",
    "Catalog",
    "Diagnostic",
    "Dialect",
    "Library",
    "LoadedSkill",
    "SatchelError",
    "Skill",
    "__version__",
    "discover",
    "errors",
    "load_skill",
    "render_block",
]

_HOMES = {
    "BlockOptions": "satchel.context.block",
    "Catalog": "satchel.skills.catalog",
    "Diagnostic": "satchel.skills.model",
    "Dialect": "satchel.skills.dialect",
    "Library": "satchel.library",
    "LoadedSkill": "satchel.skills.model",
    "SatchelError": "satchel.errors",
    "Skill": "satchel.skills.model",
    "discover": "satchel.library",
    "load_skill": "satchel.library",
    "render_block": "satchel.context.block",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("satchel")
    elif name == "errors":
        value = import_module("satchel.errors")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
