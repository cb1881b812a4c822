"""The live handle over directories of skills. What it hands out never changes; ``reload`` makes a new catalogue."""

# ruff: noqa: PTH100, PTH117, PTH118, PTH119, PTH120 - see the walk.

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from satchel.errors import SkillError
from satchel.library.open import load, read_manifest, read_page
from satchel.library.walk import Place, find_skills
from satchel.skills.catalog import Catalog
from satchel.skills.diagnostics import finding, judge
from satchel.skills.dialect import Dialect
from satchel.skills.dialects import PORTABLE
from satchel.skills.files import is_manifest
from satchel.skills.model import Diagnostic, LoadedSkill, Page, Skill, SkillRef
from satchel.skills.names import near_names
from satchel.skills.oneline import one_line

PAGE_BYTES = 48 * 1024

StrPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    catalog: Catalog
    places: Mapping[str, Place]


@dataclass(slots=True)
class _Scan:
    """One name may have one skill: the first one found keeps it."""

    winners: dict[str, Skill] = field(default_factory=dict[str, Skill])
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])


class Library:
    """Skills below ``roots``, read in one ``dialect``. Safe to use from several threads.

    A skill that cannot be used is a finding in ``diagnostics``, never an exception, and never hides a usable one.
    ``disabled`` are names, or absolute directories of single skills.
    """

    label = "directory"

    def __init__(
        self, roots: Iterable[StrPath], *, dialect: Dialect = PORTABLE, disabled: Collection[str] = ()
    ) -> None:
        given = [roots] if isinstance(roots, (str, os.PathLike)) else list(roots)
        self.roots = tuple(os.path.abspath(root) for root in given)
        self.dialect = dialect
        self._disabled_names = frozenset(name.strip().casefold() for name in disabled if not os.path.isabs(name))
        self._disabled_paths = frozenset(_directory_of(path) for path in disabled if os.path.isabs(path))
        self._state = self._scan()

    @property
    def catalog(self) -> Catalog:
        """The present catalogue."""
        return self._state.catalog

    @property
    def skills(self) -> tuple[Skill, ...]:
        """Every usable skill, sorted by name."""
        return self._state.catalog.skills

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything that was found wrong: roots, broken skills, collisions and what usable skills tolerate."""
        return self._state.catalog.diagnostics

    def get(self, name: str) -> Skill | None:
        """The skill of that name, or None."""
        return self._state.catalog.get(name)

    def load(self, skill: str | SkillRef) -> LoadedSkill:
        """Body and files, as they are on disk now.

        Raises:
            SkillError: "skill-not-found", or "skill-invalid" when the files have become unusable.
        """
        known, place = self._find(skill)
        return load(place, self.dialect, self.label, known=known)

    def read(self, skill: str | SkillRef, path: str, *, offset: int = 0, max_bytes: int = PAGE_BYTES) -> Page:
        """At most ``max_bytes`` of a bundled text file; "" and "SKILL.md" name the skill's own file.

        Raises:
            SkillError: "skill-not-found".
            PathError: the path is refused, leads to nothing readable, or ``offset`` lies past the end.
        """
        _, place = self._find(skill)
        return read_page(place, path, offset=offset, max_bytes=max_bytes)

    def reload(self) -> Catalog:
        """Reads everything again and returns the new catalogue. Catalogues handed out before stay as they are."""
        self._state = self._scan()
        return self._state.catalog

    def _find(self, skill: str | SkillRef) -> tuple[Skill, Place]:
        state = self._state
        name = skill if isinstance(skill, str) else skill.name
        known = state.catalog.get(name)
        if known is None:
            near = near_names(name, (other.name for other in state.catalog.skills))
            hint = f"Did you mean {', '.join(near)}?" if near else "List the skills to see their names."
            raise SkillError("skill-not-found", f'There is no skill called "{one_line(name)[:80]}".', hint=hint)
        return known, state.places[known.name.casefold()]

    def _scan(self) -> _State:
        found = find_skills(self.roots, self.dialect, disabled=self._disabled_paths)
        scan = _Scan(diagnostics=list(found.diagnostics))
        revision = hashlib.sha256()
        for diagnostic in found.diagnostics:
            revision.update(f"{diagnostic.rule}\0{diagnostic.path}\0".encode("utf-8", "surrogatepass"))
        for place in found.places:
            manifest, data, _ = read_manifest(place, self.dialect, self.label)
            revision.update(f"{place.directory}\0{len(data)}\0".encode("utf-8", "surrogatepass"))
            revision.update(data)
            if manifest.skill is None or manifest.skill.name.casefold() not in self._disabled_names:
                scan.diagnostics.extend(manifest.diagnostics)
                if manifest.skill is not None:
                    self._register(scan, manifest.skill, place)
        catalog = Catalog(
            revision=revision.hexdigest(),
            skills=tuple(scan.winners.values()),
            diagnostics=tuple(scan.diagnostics),
        )
        return _State(catalog=catalog, places=scan.places)

    def _register(self, scan: _Scan, skill: Skill, place: Place) -> None:
        key = skill.name.casefold()
        winner = scan.winners.get(key)
        if winner is None:
            scan.winners[key] = skill
            scan.places[key] = place
            return
        message = f'"{skill.name}" is already provided by {winner.location}, which takes precedence.'
        path = os.path.join(place.directory, place.manifest)
        shadowed = judge(finding("name-shadowed", path, message), self.dialect)
        if shadowed is not None:
            scan.diagnostics.append(shadowed)
        scan.winners[key] = replace(winner, shadowed=(*winner.shadowed, skill.location))


def discover(roots: Iterable[StrPath], *, dialect: Dialect = PORTABLE, disabled: Collection[str] = ()) -> Library:
    """Finds the skills below ``roots``; of two with one name the one in the earlier root counts."""
    return Library(roots, dialect=dialect, disabled=disabled)


def _directory_of(path: str) -> str:
    try:
        real = os.path.realpath(path)
    except ValueError:
        return path  # no directory can have that name
    return os.path.dirname(real) if is_manifest(os.path.basename(real)) else real
