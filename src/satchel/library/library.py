"""The live handle over directories of skills. What it hands out never changes; ``reload`` makes a new catalogue."""

# ruff: noqa: PTH100 - see the walk.

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from satchel.errors import SetupError, SkillError
from satchel.library.disabled import Disabled, Reading
from satchel.library.open import body_page, load, read_manifest, read_page
from satchel.library.walk import Place, find_skills
from satchel.skills.catalog import Catalog
from satchel.skills.collide import Candidate, in_namespace, namespaces, settle, share_a_name
from satchel.skills.dialect import Dialect, Limits
from satchel.skills.dialects import PORTABLE, find_dialect
from satchel.skills.files import is_manifest
from satchel.skills.manifest import parse_head
from satchel.skills.model import Diagnostic, LoadedSkill, Page, Skill, SkillRef
from satchel.skills.names import near_names
from satchel.skills.oneline import one_line
from satchel.skills.plain import SOURCE as INLINE

PAGE_BYTES = 48 * 1024
_LONGEST_HEAD = 64 * 1024

StrPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    catalog: Catalog
    places: Mapping[str, Place]
    """By ``Skill.location``, those of shadowed skills among them."""
    inline: tuple[LoadedSkill, ...]
    roots: tuple[str, ...]
    """Canonical, those that exist."""
    given: Mapping[str, int]
    """The first place of each canonical root among those that were given."""


class Library:
    """Skills below ``roots``, read in one ``dialect``. Safe to use from several threads.

    A skill that cannot be used is a finding in ``diagnostics``, never an exception, and never hides a usable one.
    ``disabled`` are names, or absolute paths of single skills (their directory or SKILL.md); such a skill is left out
    before anything else is decided, and an entry that matches nothing is a finding. ``limits`` take the place of the
    dialect's.

    ``inline`` are skills that were made by ``satchel.inline``. They stand in front of the first root, in their order,
    as if they were a root of their own; where the dialect gives every root a namespace, theirs is "inline". Neither the
    dialect nor its limits judge them again.

    Raises:
        SetupError: "setting-invalid" for a dialect that is not known, or a skill of a directory in ``inline``.
    """

    label = "directory"

    def __init__(
        self,
        roots: StrPath | Iterable[StrPath],
        *,
        dialect: str | Dialect = PORTABLE,
        disabled: StrPath | Collection[StrPath] = (),
        inline: Iterable[LoadedSkill] = (),
        limits: Limits | None = None,
    ) -> None:
        row = find_dialect(dialect)
        left_out = [disabled] if isinstance(disabled, (str, os.PathLike)) else disabled
        given = [roots] if isinstance(roots, (str, os.PathLike)) else list(roots)
        self.roots = tuple(os.path.abspath(root) for root in given)
        self.dialect = row if limits is None else replace(row, limits=limits)
        self._disabled = Disabled(left_out, row)
        self._inline = tuple(inline)
        for item in self._inline:
            if item.location:
                hint = "Name its directory, or one above it, as a root."
                raise SetupError("setting-invalid", f'The skill "{item.name}" was not made in a program.', hint=hint)
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
        skills = self._state.catalog.skills
        return next((skill for skill in skills if skill.location and skill.location in places), None)

    def root_of(self, skill: Skill) -> str:
        """The canonical root that a skill of the present catalogue was found below; "" for one without a file.

        Raises:
            SkillError: "skill-not-found".
        """
        state = self._state
        _, home = self._find(skill)
        return state.roots[home.root] if isinstance(home, Place) else ""

    def root_index(self, skill: Skill) -> int:
        """Which of ``roots`` a skill of the present catalogue was found below; -1 for one without a file.

        Raises:
            SkillError: "skill-not-found".
        """
        root = self.root_of(skill)
        return self._state.given.get(root, 0) if root else -1

    def load(self, skill: str | SkillRef | Skill) -> LoadedSkill:
        """Body and files, as they are on disk now. A ``Skill`` of the catalogue also tells which of one name is meant.

        Raises:
            SkillError: "skill-not-found", or "skill-invalid" when the files have become unusable.
        """
        known, home = self._find(skill)
        if isinstance(home, Place):
            return load(home, self.dialect, self.label, known=known)
        return replace(home, skill=known)

    def read(self, skill: str | SkillRef | Skill, path: str, offset: int = 0, *, max_bytes: int = PAGE_BYTES) -> Page:
        """At most ``max_bytes`` of a bundled text file; "" and "SKILL.md" name the skill's own file.

        A skill without a file has its body there, and nothing else.

        Raises:
            SkillError: "skill-not-found", also when the skill was deleted since it was found.
            PathError: the path is refused, leads to nothing readable, or ``offset`` lies past the end.
        """
        _, home = self._find(skill)
        if isinstance(home, Place):
            return read_page(home, path, offset=offset, max_bytes=max_bytes)
        return body_page(home, path, offset=offset, max_bytes=max_bytes)

    def reload(self) -> Catalog:
        """Reads everything again and returns the new catalogue. Catalogues handed out before stay as they are."""
        self._state = self._scan()
        return self._state.catalog

    def _find(self, skill: str | SkillRef | Skill) -> tuple[Skill, Place | LoadedSkill]:
        state = self._state
        if isinstance(skill, Skill):
            home = _home(state, skill)
            if home is not None:
                return skill, home
        name = skill if isinstance(skill, str) else skill.name
        known = state.catalog.get(name)
        home = None if known is None else _home(state, known)
        if known is None or home is None:
            near = near_names(name, (other.name for other in state.catalog.skills))
            hint = f"Did you mean {', '.join(near)}?" if near else "List the skills to see their names."
            raise SkillError("skill-not-found", f'There is no skill called "{one_line(name)[:80]}".', hint=hint)
        return known, home

    def _scan(self) -> _State:
        read = [Reading(item, item.skill, item.diagnostics) for item in self._inline]
        heads: list[bytes] = []
        dialect, label = self.dialect, self.label

        def visit(place: Place, data: bytes | None) -> None:
            directory = place.directory
            if data is None:
                manifest, data, _ = read_manifest(place, dialect, label)
                read.append(Reading(place, manifest.skill, manifest.diagnostics))
            else:
                skill, noticed = parse_head(
                    data,
                    directory=directory.rpartition(os.sep)[2],
                    dialect=dialect,
                    path=place.path,
                    location=directory,
                    source=label,
                )
                read.append(Reading(place, skill, noticed))
            heads.append(_head(data))

        found = find_skills(self.roots, dialect, disabled=self._disabled.directories, visit=visit)
        if dialect.collision == "namespace":
            read = _in_namespaces(read, found.roots)
        diagnostics = list(found.diagnostics)
        if self._disabled:
            read, diagnostics = self._disabled.leave_out(found, read, self.roots)
        skills: list[Skill] = []
        places: dict[str, Place] = {}
        inline: list[LoadedSkill] = []
        for home, skill, noticed, namespace in read:
            if noticed:
                diagnostics += noticed
            if skill is not None:
                if namespace:
                    skill = in_namespace(skill, namespace)  # noqa: PLW2901
                skills.append(skill)
                if isinstance(home, Place):
                    places[home.directory] = home
                else:
                    inline.append(replace(home, skill=skill))
        if share_a_name(skills, dialect):
            candidates = (Candidate(skill, places[skill.location].path if skill.location else "") for skill in skills)
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
        return _State(
            catalog=catalog, places=places, inline=tuple(inline), roots=found.roots, given=_positions(self.roots)
        )


def discover(
    roots: StrPath | Iterable[StrPath],
    *,
    dialect: str | Dialect = PORTABLE,
    disabled: StrPath | Collection[StrPath] = (),
    inline: Iterable[LoadedSkill] = (),
    limits: Limits | None = None,
) -> Library:
    """Finds the skills below ``roots``, in order of precedence, as ``dialect`` (a row or its id) finds and reads them.

    ``disabled`` are names or absolute paths of skills to leave out. ``inline`` are skills of ``satchel.inline``; they
    come before every root. ``limits`` take the place of the dialect's; ``replace(row.limits, skills=100)`` changes one.

    Raises:
        SetupError: "setting-invalid", as ``Library`` says.
    """
    return Library(roots, dialect=dialect, disabled=disabled, inline=inline, limits=limits)


def _positions(roots: Iterable[str]) -> dict[str, int]:
    """The first place of each canonical root; one that is not a possible path has none."""
    found: dict[str, int] = {}
    for index, root in enumerate(roots):
        if "\0" not in root:
            found.setdefault(os.path.realpath(root), index)
    return found


def _home(state: _State, skill: Skill) -> Place | LoadedSkill | None:
    """Where a record was read from. Of several inline skills with its name, the one that it equals, else the first."""
    if skill.location:
        return state.places.get(skill.location)
    named = [item for item in state.inline if item.name == skill.name]
    return next((item for item in named if item.skill == skill), named[0] if named else None)


def _in_namespaces(read: list[Reading], roots: tuple[str, ...]) -> list[Reading]:
    """Everything that was read, each with its root's namespace; inline skills have one of their own."""
    has_inline = any(not isinstance(item.home, Place) for item in read)
    names = namespaces((INLINE, *roots) if has_inline else roots)
    first = int(has_inline)
    return [
        item._replace(namespace=names[first + item.home.root] if isinstance(item.home, Place) else names[0])
        for item in read
    ]


def _head(data: bytes) -> bytes:
    """What tells one SKILL.md from another for a catalogue, which holds nothing of its body."""
    end = data.find(b"\n---\n", 3, _LONGEST_HEAD)
    return data[:end] if end > 0 else hashlib.sha256(data).digest()
