"""Skills with their bodies from directories that hold one folder for each (seed 004, section 5.6)."""

# ruff: noqa: PTH118 - see the walk.

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from satchel.errors import SkillError
from satchel.library.library import Library, StrPath
from satchel.skills.diagnostics import RULES
from satchel.skills.dialect import Dialect, Limits
from satchel.skills.dialects import find_dialect
from satchel.skills.model import MANIFEST, Diagnostic, LoadedSkill, Skill


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSkills:
    """The ``skills`` that could be loaded, by name, and the ``errors`` of the others, each with its path."""

    skills: tuple[LoadedSkill, ...] = ()
    errors: tuple[Diagnostic, ...] = ()


def load_skills_dir(
    path: StrPath, dialect: str | Dialect = "portable", *, limits: Limits | None = None
) -> LoadedSkills:
    """Every ``path/<folder>/SKILL.md``, one level deep. One that does not load is an error beside the others.

    Raises:
        SetupError: "setting-invalid" for a dialect that is not known.
    """
    return load_skills_dirs([path], dialect, limits=limits)


def load_skills_dirs(
    paths: Iterable[StrPath],
    dialect: str | Dialect = "portable",
    *,
    collision: Literal["first", "last", "namespace"] = "last",
    limits: Limits | None = None,
) -> LoadedSkills:
    """The same over several directories, each looked at once.

    Of two skills with one name the ``last`` or the ``first`` counts, or, with "namespace", both are called
    ``directory:name``. That is how the directories stand to each other, so the dialect's own rule does not count. A
    directory that is not there is an error.

    Raises:
        SetupError: "setting-invalid" for a dialect that is not known.
    """
    row = find_dialect(dialect)
    row = replace(
        row,
        min_depth=1,
        max_depth=1,
        nested="stop",
        collision=collision,
        refuses=(row.refuses | {"root-missing"}) - {"name-shadowed"},
        ignores=row.ignores - {"root-missing"},
    )
    library = Library(paths, dialect=row, limits=limits)
    errors = [item for item in library.diagnostics if item.severity == "error"]
    loaded: list[LoadedSkill] = []
    for skill in library.skills:
        try:
            loaded.append(library.load(skill))
        except SkillError as error:
            errors.append(_changed(skill, error))
    return LoadedSkills(skills=tuple(loaded), errors=tuple(errors))


def _changed(skill: Skill, error: SkillError) -> Diagnostic:
    """What is wrong with a skill that was fine when it was found, a moment before."""
    rule = "manifest-unreadable"
    path = os.path.join(skill.location, MANIFEST)
    return Diagnostic(rule=rule, severity=RULES[rule].severity, path=path, message=error.message, hint=error.hint)
