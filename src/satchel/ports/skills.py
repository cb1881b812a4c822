"""Where skills come from."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from satchel.skills.catalog import Catalog
from satchel.skills.model import LoadedSkill, Page, SkillRef


class SkillSource(Protocol):
    """An origin of skills. ``label`` names it in ``SkillRef.source`` and for people.

    ``may_shadow`` is False for an origin whose skills must never hide another origin's skill of the same name.
    """

    @property
    def label(self) -> str: ...

    @property
    def may_shadow(self) -> bool: ...

    async def scan(self, *, since: str | None = None) -> Catalog | None:
        """The skills of this origin, or None when nothing changed since that ``Catalog.revision``."""
        ...

    async def load(self, ref: SkillRef) -> LoadedSkill:
        """Body and file index. Raises ``SkillError`` when the skill is gone or no longer valid."""
        ...

    async def read(self, ref: SkillRef, path: str, *, offset: int = 0, max_bytes: int) -> Page:
        """At most ``max_bytes`` of one bundled file from byte ``offset``. Raises ``PathError``."""
        ...


@runtime_checkable
class Rescans(Protocol):
    """A source that can be told to look again at where its skills come from; the next ``scan`` answers with those."""

    async def rescan(self) -> Catalog: ...
