"""Directories of skills as an origin for the engine: a ``Library`` whose disk work leaves the loop alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from satchel.library import Library
from satchel.skills.catalog import Catalog
from satchel.skills.model import LoadedSkill, Page, SkillRef


class DirectorySource:
    """The skills of a library. ``scan`` answers from memory; ``rescan`` looks at the disk again."""

    label = Library.label
    may_shadow = True

    def __init__(self, library: Library) -> None:
        self.library = library

    async def scan(self, *, since: str | None = None) -> Catalog | None:
        catalog = self.library.catalog
        return None if since == catalog.revision else catalog

    async def rescan(self) -> Catalog:
        """Reads the directories again; the next ``scan`` answers with what was found."""
        return await asyncio.to_thread(self.library.reload)

    async def load(self, ref: SkillRef) -> LoadedSkill:
        return await asyncio.to_thread(self.library.load, ref)

    async def read(self, ref: SkillRef, path: str, *, offset: int = 0, max_bytes: int) -> Page:
        return await asyncio.to_thread(self.library.read, ref, path, offset=offset, max_bytes=max_bytes)

    @asynccontextmanager
    async def directory(self, ref: SkillRef) -> AsyncGenerator[str]:
        """Where the skill lies. Nothing of ours moves it; whoever removes a skill of an upload does that on its own."""
        yield (await self.load(ref)).location
