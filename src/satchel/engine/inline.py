"""Skills that came with a request, in front of the origin of all others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from satchel.library.inline import InlineSkill
from satchel.ports.skills import HasDirectories, SkillSource
from satchel.skills.catalog import Catalog
from satchel.skills.model import LoadedSkill, Page, SkillRef


class InlineSource:
    """A ``SkillSource`` for one turn: what the request brought is answered from memory, the rest by ``base``."""

    def __init__(self, inline: Sequence[InlineSkill], base: SkillSource) -> None:
        self._inline = {skill.loaded.skill.ref: skill for skill in inline}
        self._base = base

    @property
    def label(self) -> str:
        return self._base.label

    @property
    def may_shadow(self) -> bool:
        return self._base.may_shadow

    async def scan(self, *, since: str | None = None) -> Catalog | None:
        return await self._base.scan(since=since)

    async def load(self, ref: SkillRef) -> LoadedSkill:
        inline = self._inline.get(ref)
        return inline.loaded if inline else await self._base.load(ref)

    async def read(self, ref: SkillRef, path: str, *, offset: int = 0, max_bytes: int) -> Page:
        inline = self._inline.get(ref)
        if inline is not None:
            return inline.read(path, offset=offset, max_bytes=max_bytes)
        return await self._base.read(ref, path, offset=offset, max_bytes=max_bytes)

    @asynccontextmanager
    async def directory(self, ref: SkillRef) -> AsyncGenerator[str]:
        """That of the base; what the request brought has none."""
        if ref in self._inline or not isinstance(self._base, HasDirectories):
            yield ""
            return
        async with self._base.directory(ref) as found:
            yield found
