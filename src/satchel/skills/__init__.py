"""The domain: what a skill is, how dialects read one, and everything that needs no disk.

``inline`` is imported when it is first used, so that importing one module does not import them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel.skills.plain import inline

__all__ = ["inline"]


def __getattr__(name: str) -> object:
    if name != "inline":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from satchel.skills.plain import inline

    globals()[name] = inline
    return inline
