"""A registry of skills as the origin that a runtime reads from."""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import replace
from functools import partial

from satchel.activation.permission import contained
from satchel.activation.registry import (
    CompositeSkillRegistry,
    FilesystemSkillRegistry,
    SourceRegistry,
    entries_of,
    look_again,
)
from satchel.errors import SatchelError, SkillError, StoreError
from satchel.library.open import body_page, read_page
from satchel.library.walk import Place
from satchel.ports.skills import SkillRegistry
from satchel.skills.catalog import Catalog
from satchel.skills.model import LoadedSkill, Page, SkillRef
from satchel.skills.oneline import one_line


class RegistrySource:
    """The usable skills of a registry. It is asked for its catalogue once, and again at ``rescan``.

    Files of a skill come from its directory, through the path guard; one without a directory has its body alone.
    Nobody is asked for permission: whoever wants that gives the registry to a ``SkillSession``.
    """

    label = "registry"
    may_shadow = True

    def __init__(self, registry: SkillRegistry) -> None:
        self._registry = registry
        self._catalog: Catalog | None = None

    async def scan(self, *, since: str | None = None) -> Catalog | None:
        """Raises ``StoreError`` "store-unavailable" when the registry fails; it is then asked again next time."""
        catalog = self._catalog
        if catalog is None:
            entries, failure = await entries_of(self._registry)
            if entries is None:
                raise StoreError(
                    "store-unavailable", f"The catalogue of skills cannot be read: the registry {failure}."
                )
            named = {entry.name: entry.skill for entry in reversed(entries) if entry.skill is not None}
            skills = tuple(replace(item, ref=replace(item.ref, name=name)) for name, item in named.items())
            # Everything that a catalogue holds is in there, and a registry has no shorter word for its state.
            revision = hashlib.sha256(repr(sorted(map(repr, skills))).encode("utf-8", "replace")).hexdigest()
            catalog = self._catalog = Catalog(revision=revision, skills=skills)
        return None if since == catalog.revision else catalog

    async def rescan(self) -> Catalog:
        await look_again(self._registry)
        self._catalog = None
        return await self.scan() or Catalog()

    async def load(self, ref: SkillRef) -> LoadedSkill:
        loaded, failure = await contained(partial(_asked, self._registry, ref.name))
        if isinstance(loaded, LoadedSkill):
            return replace(loaded, skill=replace(loaded.skill, ref=replace(loaded.ref, name=ref.name)))
        if isinstance(loaded, SatchelError):
            raise loaded
        name = one_line(ref.name)[:80]
        if failure:
            raise SkillError("skill-invalid", f'The skill "{name}" cannot be read: its registry {failure}.')
        hint = "List the skills to see their names."
        raise SkillError("skill-not-found", f'There is no skill called "{name}".', hint=hint)

    async def read(self, ref: SkillRef, path: str, *, offset: int = 0, max_bytes: int) -> Page:
        registry = self._registry
        while isinstance(registry, CompositeSkillRegistry) and (owner := registry.owner(ref.name)) is not None:
            registry = owner
        if isinstance(registry, SourceRegistry):
            return await registry.read(ref.name, path, offset=offset, max_bytes=max_bytes)
        if isinstance(registry, FilesystemSkillRegistry):
            library = registry.library
            skill = library.get(ref.name) or ref.name
            return await asyncio.to_thread(library.read, skill, path, offset, max_bytes=max_bytes)
        loaded = await self.load(ref)
        if not loaded.location:
            return body_page(loaded, path, offset=offset, max_bytes=max_bytes)
        place = Place(directory=await asyncio.to_thread(os.path.realpath, loaded.location))
        return await asyncio.to_thread(read_page, place, path, offset=offset, max_bytes=max_bytes)


async def _asked(registry: SkillRegistry, name: str) -> LoadedSkill | SatchelError | None:
    try:
        return await registry.load(name)
    except SatchelError as error:
        return error
