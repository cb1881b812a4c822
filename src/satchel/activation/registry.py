"""Registries of skills: over directories, over a source, and several as one with precedence."""

# ruff: noqa: PTH119 - paths are strings here, as in the walk

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TypeGuard, cast
from weakref import WeakValueDictionary

from satchel.activation.permission import contained
from satchel.errors import SetupError, SkillError
from satchel.library import Library
from satchel.library.library import StrPath
from satchel.ports.skills import Rescans, SkillEntry, SkillRegistry, SkillSource
from satchel.skills.catalog import Catalog
from satchel.skills.dialect import Dialect
from satchel.skills.dialects import PORTABLE
from satchel.skills.files import is_manifest
from satchel.skills.model import Diagnostic, LoadedSkill, Page, Skill, SkillRef
from satchel.skills.oneline import one_line

logger = logging.getLogger("satchel.activation")

Skills = Library | SkillRegistry | SkillSource | StrPath
"""What a session takes its skills from."""

_OTHERS = frozenset({"name-shadowed", "frontmatter-missing"})
"""Errors about a folder that do not make it a broken skill: it lost its name, or is none at all."""


_MOST_TOLD = 20
_TOLD: WeakValueDictionary[int, Catalog] = WeakValueDictionary()
"""Catalogues whose broken skills are in the log: many sessions may stand over one library."""


class FilesystemSkillRegistry:
    """The skills below ``roots``, in order of precedence, or of a ``Library`` (seed 000, sections 5 and 10).

    ``discover`` answers from memory; ``rescan`` reads the directories again. Skills that cannot be used are named in
    the log, once for each reading.
    """

    def __init__(self, roots: Library | StrPath | Iterable[StrPath], *, dialect: str | Dialect = PORTABLE) -> None:
        self.library = roots if isinstance(roots, Library) else Library(roots, dialect=dialect)
        self._seen: Catalog | None = None
        self._entries: tuple[SkillEntry, ...] = ()

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories, absolute."""
        return self.library.roots

    def entries(self) -> tuple[SkillEntry, ...]:
        """The catalogue, and after it the folders whose skill cannot be used, by the name of their folder."""
        catalog = self.library.catalog
        if catalog is not self._seen:
            good = {skill.name: self._entry(skill) for skill in reversed(catalog.skills)}
            taken = {skill.location for skill in catalog.skills}
            broken = _broken(catalog.diagnostics, taken)
            if _TOLD.get(id(catalog)) is not catalog:
                _TOLD[id(catalog)] = catalog
                _tell(broken.values())
            rest = (item for name, item in broken.items() if name not in good)
            self._entries = (*(good[name] for name in sorted(good)), *rest)
            self._seen = catalog
        return self._entries

    async def discover(self) -> Sequence[SkillEntry]:
        return self.entries() if self.library.catalog is self._seen else await asyncio.to_thread(self.entries)

    async def rescan(self) -> None:
        """Reads the directories again."""
        await asyncio.to_thread(self.library.reload)

    async def load(self, name: str) -> LoadedSkill | None:
        return await asyncio.to_thread(self.load_now, name)

    def load_now(self, name: str) -> LoadedSkill | None:
        """The same in the calling thread."""
        try:
            return self.library.load(self.library.get(name) or name)
        except SkillError as error:
            if error.code == "skill-not-found":
                return None
            raise

    def _entry(self, skill: Skill) -> SkillEntry:
        if not skill.location:
            # The host made it, and need not be protected from it.
            return SkillEntry(name=skill.name, skill=replace(skill, trusted=True), root_index=-1)
        root, index = self.library.root_of(skill), self.library.root_index(skill)
        return SkillEntry(name=skill.name, skill=skill, root_index=index, root=root)


class SourceRegistry:
    """The skills of a source, which guards its own files. ``rescan`` lets it look again, where it can."""

    def __init__(self, source: SkillSource) -> None:
        self.source = source
        self._catalog = Catalog()

    async def rescan(self) -> None:
        if isinstance(self.source, Rescans):
            await self.source.rescan()

    async def discover(self) -> Sequence[SkillEntry]:
        found = await self.source.scan()
        self._catalog = found or self._catalog
        return [SkillEntry(name=skill.name, skill=skill, root=skill.location) for skill in self._catalog.skills]

    async def load(self, name: str) -> LoadedSkill | None:
        skill = self._catalog.get(name)
        return None if skill is None else await self.source.load(skill.ref)

    async def read(self, name: str, path: str, *, offset: int = 0, max_bytes: int) -> Page:
        """A page of one of the skill's files, as the source gives it. Raises ``SkillError``, ``PathError``."""
        skill = self._catalog.get(name)
        ref = SkillRef(source=self.source.label, name=name) if skill is None else skill.ref
        return await self.source.read(ref, path, offset=offset, max_bytes=max_bytes)


class MemorySkillRegistry:
    """Skills that a program made itself (``satchel.inline``), by name. They are its own, and trusted.

    Give it behind directories, and a skill on disk comes before one of the same name here; looking at the directories
    again leaves these as they are (seed 003). What is registered after a session has looked is seen when it looks
    again.

    Raises:
        SetupError: "setting-invalid" for a skill from a directory.
    """

    def __init__(self, skills: Iterable[LoadedSkill] = ()) -> None:
        self._skills: dict[str, LoadedSkill] = {}
        self.register(*skills)

    def register(self, *skills: LoadedSkill) -> None:
        """Adds skills; one of a name that is there already takes its place.

        Raises:
            SetupError: "setting-invalid" for a skill from a directory; none is then added.
        """
        for skill in skills:
            if skill.location:
                hint = "Name its directory, or one above it, as a root."
                raise SetupError("setting-invalid", f'The skill "{skill.name}" was not made in a program.', hint=hint)
        self._skills |= {skill.name: skill for skill in skills}

    def unregister(self, name: str) -> bool:
        """Takes a skill out; False when there is none of that name."""
        return self._skills.pop(name, None) is not None

    async def discover(self) -> Sequence[SkillEntry]:
        return [
            SkillEntry(name=name, skill=replace(item.skill, trusted=True), root_index=-1)
            for name, item in sorted(self._skills.items())
        ]

    async def load(self, name: str) -> LoadedSkill | None:
        return self._skills.get(name)


class CompositeSkillRegistry:
    """Several registries as one: the first that has a usable skill of a name gives it, the others are shadowed.

    A registry that fails has no skills, with a warning in the log; it never stops the others.
    """

    def __init__(self, registries: Iterable[SkillRegistry]) -> None:
        self._registries = tuple(registries)
        self._owners: dict[str, SkillRegistry] = {}

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories of those that have any."""
        return tuple(root for registry in self._registries for root in roots_of(registry))

    async def rescan(self) -> None:
        """Lets those look again that can."""
        for registry in self._registries:
            await look_again(registry)

    async def discover(self) -> Sequence[SkillEntry]:
        merged: dict[str, SkillEntry] = {}
        owners: dict[str, SkillRegistry] = {}
        offset = 0
        for registry in self._registries:
            entries, failure = await entries_of(registry)
            if entries is None:
                logger.warning("a registry of skills %s; it is left out", failure)
                entries = ()
            count = max(1, len(roots_of(registry)))
            for entry in entries:
                known = merged.get(entry.name)
                if known is None or (known.skill is None and entry.skill is not None):
                    merged[entry.name] = replace(entry, root_index=offset + max(0, entry.root_index))
                    owners[entry.name] = registry
                elif known.skill is not None and entry.skill is not None:
                    lost = (*known.skill.shadowed, entry.dir or "(no directory)", *entry.skill.shadowed)
                    merged[entry.name] = replace(known, skill=replace(known.skill, shadowed=lost))
            offset += max(count, 1 + max((entry.root_index for entry in entries), default=0))
        self._owners = owners
        return tuple(merged[name] for name in sorted(merged))

    def owner(self, name: str) -> SkillRegistry | None:
        """Which of them has the skill of that name, as far as ``discover`` saw."""
        return self._owners.get(name)

    async def load(self, name: str) -> LoadedSkill | None:
        owner = self.owner(name)
        return None if owner is None else await owner.load(name)


async def entries_of(registry: SkillRegistry) -> tuple[Sequence[SkillEntry] | None, str]:
    """``(catalogue, "")``, or None and what went wrong. A registry is foreign code, whatever its types say."""
    return await contained(partial(_entries, registry))


async def _entries(registry: SkillRegistry) -> Sequence[SkillEntry]:
    found = cast("tuple[object, ...]", tuple(await registry.discover()))
    entries = [item for item in found if isinstance(item, SkillEntry) and isinstance(cast("object", item.name), str)]
    if len(entries) < len(found):
        raise TypeError("not all of these are entries")
    return entries


async def look_again(registry: SkillRegistry) -> None:
    """Lets a registry of ours look at its skills again; any other is simply asked anew."""
    if isinstance(registry, (FilesystemSkillRegistry, SourceRegistry, CompositeSkillRegistry)):
        _, failure = await contained(registry.rescan)
        if failure:
            logger.warning("skills could not be looked for again: %s", failure)


def open_registry(skills: Skills | Iterable[Skills], *, dialect: str | Dialect) -> SkillRegistry:
    """One registry over whatever is given, in order of precedence; neighbouring directories become one library.

    Raises:
        SetupError: "setting-invalid" for something that is none of these, or an unknown dialect.
    """
    if isinstance(skills, (str, os.PathLike, Library)) or _is_registry(skills) or _is_source(skills):
        given: list[Skills] = [skills]
    elif isinstance(skills, Iterable):
        given = list(skills)
    else:
        given = [skills]
    registries: list[SkillRegistry] = []
    paths: list[StrPath] = []
    for item in given:
        if isinstance(item, (str, os.PathLike)):
            paths.append(item)
            continue
        if paths:
            registries.append(FilesystemSkillRegistry(paths, dialect=dialect))
            paths = []
        registries.append(_registry(item))
    if paths or not registries:
        registries.append(FilesystemSkillRegistry(paths, dialect=dialect))
    return registries[0] if len(registries) == 1 else CompositeSkillRegistry(registries)


def roots_of(registry: SkillRegistry) -> tuple[str, ...]:
    """The directories that the registry says its skills lie in, () when it says none."""
    given: object = getattr(registry, "roots", ())
    paths = cast("Sequence[object]", given) if isinstance(given, (tuple, list)) else ()
    return tuple(path for path in paths if isinstance(path, str))


def _registry(item: object) -> SkillRegistry:
    if isinstance(item, Library):
        return FilesystemSkillRegistry(item)
    if _is_registry(item):
        return item
    if _is_source(item):
        return SourceRegistry(item)
    raise SetupError(
        "setting-invalid",
        f"Skills cannot be taken from a {type(item).__name__}.",
        hint="Give directories, a Library, or an object with discover() and load(name).",
    )


def _is_registry(item: object) -> TypeGuard[SkillRegistry]:
    return callable(getattr(item, "discover", None)) and callable(getattr(item, "load", None))


def _is_source(item: object) -> TypeGuard[SkillSource]:
    return callable(getattr(item, "scan", None)) and callable(getattr(item, "load", None))


def _tell(broken: Collection[SkillEntry]) -> None:
    """Warns of skills that cannot be used."""
    for entry in islice(broken, _MOST_TOLD):
        found = min(entry.diagnostics, key=lambda item: item.severity != "error")
        where = f" (line {found.line})" if found.line else ""
        logger.warning("the skill in %s cannot be used: %s%s", one_line(entry.dir), one_line(found.message), where)
    if len(broken) > _MOST_TOLD:
        logger.warning("%d more skills cannot be used", len(broken) - _MOST_TOLD)


def _broken(diagnostics: Iterable[Diagnostic], taken: set[str]) -> dict[str, SkillEntry]:
    """Folders that hold a skill which cannot be used, by the name of the folder, with all errors about each."""
    found: dict[str, list[Diagnostic]] = {}
    for item in diagnostics:
        is_about_skill = item.severity == "error" or item.rule in {"symlink-outside", "symlink-dangling"}
        if is_about_skill and item.rule not in _OTHERS:
            folder, last = os.path.split(item.path)
            directory = folder if is_manifest(last) else item.path
            if directory not in taken:
                found.setdefault(directory, []).append(item)
    entries: dict[str, SkillEntry] = {}
    for directory, items in found.items():
        name = os.path.basename(directory)
        entries.setdefault(name, SkillEntry(name=name, skill=None, location=directory, diagnostics=tuple(items)))
    return entries
