"""What a model sees: the block of skills, its budgets and its place, and parts for programs that assemble prompts.

``Assembler`` and ``Blocklist`` (seed 004) know nothing of each other. Names are imported when they are first used, so
that importing one module does not import them all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel.context.assembler import Assembler, Compiled
    from satchel.context.blocklist import Blocklist, ToolCheck

__all__ = ["Assembler", "Blocklist", "Compiled", "ToolCheck"]

_HOMES = {"Assembler": "assembler", "Blocklist": "blocklist", "Compiled": "assembler", "ToolCheck": "blocklist"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"satchel.context.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
