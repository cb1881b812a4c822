"""The live handle over directories of skills. What it hands out never changes; ``reload`` makes a new catalogue."""

# ruff: noqa: PTH100, PTH117, PTH119, PTH120 - see the walk.

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from satchel.errors import SkillError
from satchel.library.open import load, read_manifest, read_page
from satchel.library.walk import Place, find_skills
from satchel.skills.catalog import Catalog
from satchel.skills.collide import Candidate, in_namespace, name_key, namespaces, settle, share_a_name
from satchel.skills.dialect import Dialect, Limits
from satchel.skills.dialects import PORTABLE, find_dialect
from satchel.skills.files import is_manifest
from satchel.skills.manifest import parse_head
from satchel.skills.model import Diagnostic, LoadedSkill, Page, Skill, SkillRef
from satchel.skills.names import near_names
from satchel.skills.oneline import one_line

PAGE_BYTES = 48 * 1024
_LONGEST_HEAD = 64 * 1024

StrPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    catalog: Catalog
    places: Mapping[str, Place]
    """By ``Skill.location``, those of shadowed skills among them."""
    roots: tuple[str, ...]


class Library:
    """Skills below ``roots``, read in one ``dialect``. Safe to use from several threads.

    A skill that cannot be used is a finding in ``diagnostics``, never an exception, and never hides a usable one.
    ``disabled`` are names, or absolute paths of single skills (their directory or SKILL.md); such a skill is left out
    before anything else is decided. ``limits`` take the place of the dialect's.
    """

    label = "directory"

    def __init__(
        self,
        roots: StrPath | Iterable[StrPath],
        *,
        dialect: str | Dialect = PORTABLE,
        disabled: str | Collection[str] = (),
        limits: Limits | None = None,
    ) -> None:
        row = find_dialect(dialect)
        left_out = [disabled] if isinstance(disabled, str) else disabled
        given = [roots] if isinstance(roots, (str, os.PathLike)) else list(roots)
        self.roots = tuple(os.path.abspath(root) for root in given)
        self.dialect = row if limits is None else replace(row, limits=limits)
        self._disabled_names = frozenset(name_key(name, row) for name in left_out if not os.path.isabs(name))
        self._disabled_paths = frozenset(_directory_of(path) for path in left_out if os.path.isabs(path))
        self._state = self._scan()

    @property
    def catalog(self) -> Catalog:
        """The present catalogue."""
        return self._state.catalog

    @property
    def skills(self) -> tuple[Skill, ...]:
        """Every usable skill that keeps its name, sorted by name and place."""
        return self._state.catalog.skills

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything that was found wrong: roots, broken skills, collisions and what usable skills tolerate."""
        return self._state.catalog.diagnostics

    def get(self, name: str) -> Skill | None:
        """The skill of that name, or None."""
        return self._state.catalog.get(name)

    def at(self, path: StrPath) -> Skill | None:
        """The skill whose directory or SKILL.md is exactly ``path``, absolute, in the present catalogue; else None."""
        wanted = os.fspath(path)
        folder, last = os.path.split(wanted)
        places = {wanted, folder} if is_manifest(last) else {wanted}
        return next((skill for skill in self._state.catalog.skills if skill.location in places), None)

    def root_of(self, skill: Skill) -> str:
        """The canonical root that a skill of the present catalogue was found below.

        Raises:
            SkillError: "skill-not-found".
        """
        state = self._state
        _, place = self._find(skill)
        return state.roots[place.root]

    def load(self, skill: str | SkillRef | Skill) -> LoadedSkill:
        """Body and files, as they are on disk now. A ``Skill`` of the catalogue also tells which of one name is meant.

        Raises:
            SkillError: "skill-not-found", or "skill-invalid" when the files have become unusable.
        """
        known, place = self._find(skill)
        return load(place, self.dialect, self.label, known=known)

    def read(self, skill: str | SkillRef | Skill, path: str, offset: int = 0, *, max_bytes: int = PAGE_BYTES) -> Page:
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

    def _find(self, skill: str | SkillRef | Skill) -> tuple[Skill, Place]:
        state = self._state
        if isinstance(skill, Skill):
            place = state.places.get(skill.location)
            if place is not None:
                return skill, place
        name = skill if isinstance(skill, str) else skill.name
        known = state.catalog.get(name)
        if known is None:
            near = near_names(name, (other.name for other in state.catalog.skills))
            hint = f"Did you mean {', '.join(near)}?" if near else "List the skills to see their names."
            raise SkillError("skill-not-found", f'There is no skill called "{one_line(name)[:80]}".', hint=hint)
        return known, state.places[known.location]

    def _scan(self) -> _State:
        read: list[tuple[Place, Skill | None, tuple[Diagnostic, ...]]] = []
        heads: list[bytes] = []
        dialect, label = self.dialect, self.label

        def visit(place: Place, data: bytes | None) -> None:
            directory = place.directory
            if data is None:
                manifest, data, _ = read_manifest(place, dialect, label)
                read.append((place, manifest.skill, manifest.diagnostics))
            else:
                skill, noticed = parse_head(
                    data,
                    directory=directory.rpartition(os.sep)[2],
                    dialect=dialect,
                    path=place.path,
                    location=directory,
                    source=label,
                )
                read.append((place, skill, noticed))
            heads.append(_head(data))

        found = find_skills(self.roots, dialect, disabled=self._disabled_paths, visit=visit)
        prefixes = namespaces(found.roots) if dialect.collision == "namespace" else ()
        diagnostics = list(found.diagnostics)
        skills: list[Skill] = []
        places: dict[str, Place] = {}
        for place, skill, noticed in read:
            if skill is not None and (prefixes or self._disabled_names):
                if self._is_disabled(skill):
                    continue
                if prefixes:
                    skill = in_namespace(skill, prefixes[place.root])  # noqa: PLW2901
                    if self._is_disabled(skill):
                        continue
            if noticed:
                diagnostics += noticed
            if skill is not None:
                skills.append(skill)
                places[place.directory] = place
        if share_a_name(skills, dialect):
            candidates = (Candidate(skill, places[skill.location].path) for skill in skills)
            settled, collisions = settle(candidates, dialect)
            skills = list(settled)
            diagnostics += collisions
        revision = hashlib.sha256("\0".join(places).encode("utf-8", "surrogatepass"))
        for diagnostic in diagnostics:
            revision.update(
                f"\0{diagnostic.rule}\0{diagnostic.path}\0{diagnostic.line}".encode("utf-8", "surrogatepass")
            )
        revision.update(b"\0".join(heads))
        catalog = Catalog(
            revision=revision.hexdigest(),
            skills=tuple(skills),
            diagnostics=tuple(diagnostics),
            lookup=dialect.lookup,
        )
        return _State(catalog=catalog, places=places, roots=found.roots)

    def _is_disabled(self, skill: Skill) -> bool:
        return bool(self._disabled_names) and name_key(skill.name, self.dialect) in self._disabled_names


def discover(
    roots: StrPath | Iterable[StrPath],
    *,
    dialect: str | Dialect = PORTABLE,
    disabled: str | Collection[str] = (),
    limits: Limits | None = None,
) -> Library:
    """Finds the skills below ``roots``, in order of precedence, as ``dialect`` (a row or its id) finds and reads them.

    ``disabled`` are names or absolute paths of skills to leave out. ``limits`` take the place of the dialect's;
    ``replace(row.limits, skills=100)`` changes one.
    """
    return Library(roots, dialect=dialect, disabled=disabled, limits=limits)


def _head(data: bytes) -> bytes:
    """What tells one SKILL.md from another for a catalogue, which holds nothing of its body."""
    end = data.find(b"\n---\n", 3, _LONGEST_HEAD)
    return data[:end] if end > 0 else hashlib.sha256(data).digest()


def _directory_of(path: str) -> str:
    try:
        real = os.path.realpath(path)
    except ValueError:
        return path  # no directory can have that name
    return os.path.dirname(real) if is_manifest(os.path.basename(real)) else real
