"""Several skills of one name: what a dialect makes of them. Only skills that can be used get here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from satchel.skills.diagnostics import finding, judge
from satchel.skills.dialect import Dialect
from satchel.skills.model import Diagnostic, Skill
from satchel.skills.names import normalize_name


class Candidate(NamedTuple):
    """A usable skill and the path of its SKILL.md."""

    skill: Skill
    path: str


def name_key(name: str, dialect: Dialect) -> str:
    """What two names must have in common to be one name."""
    return name if dialect.lookup == "exact" else name.strip().casefold()


def namespaces(roots: Sequence[str]) -> tuple[str, ...]:
    """A namespace for each of the canonical ``roots``: its last name, numbered from the second one called so."""
    names: list[str] = []
    for root in roots:
        last = normalize_name(root.replace("\\", "/").rstrip("/").rpartition("/")[2]) or "root"
        name, number = last, 1
        while name in names:
            number += 1
            name = f"{last}-{number}"
        names.append(name)
    return tuple(names)


def in_namespace(skill: Skill, namespace: str) -> Skill:
    """The skill under the name ``namespace:name``."""
    return replace(skill, ref=replace(skill.ref, name=f"{namespace}:{skill.name}"))


def share_a_name(skills: Sequence[Skill], dialect: Dialect) -> bool:
    """Whether ``settle`` would find anything to do."""
    if dialect.lookup == "exact":
        names = {skill.ref.name for skill in skills}
    else:
        names = {skill.ref.name.strip().casefold() for skill in skills}
    return len(names) < len(skills)


def settle(candidates: Iterable[Candidate], dialect: Dialect) -> tuple[tuple[Skill, ...], tuple[Diagnostic, ...]]:
    """``(the skills that count, a finding for each that does not)`` of candidates in the order of their roots.

    The skill that keeps a name lists the directories of the others in ``shadowed``. Paths and directories of skills
    without a file are "".
    """
    if dialect.collision == "all":
        return tuple(candidate.skill for candidate in candidates), ()
    owners: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        owners.setdefault(name_key(candidate.skill.name, dialect), []).append(candidate)
    skills: list[Skill] = []
    findings: list[Diagnostic] = []
    keeps_last = dialect.collision == "last"
    for same in owners.values():
        winner = same[-1 if keeps_last else 0]
        if len(same) == 1:
            skills.append(winner.skill)
            continue
        losers = same[:-1] if keeps_last else same[1:]
        shadowed = tuple(loser.skill.location for loser in losers if loser.skill.location)
        skills.append(replace(winner.skill, shadowed=shadowed))
        where = winner.skill.location or "a skill without a file"
        for loser in losers:
            message = f'"{loser.skill.name}" is already provided by {where}, which takes precedence.'
            found = judge(finding("name-shadowed", loser.path, message), dialect)
            if found is not None:
                findings.append(found)
    return tuple(skills), tuple(findings)
