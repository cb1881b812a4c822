"""An immutable snapshot of skills: all lookup stands here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Literal

from satchel.skills.model import Diagnostic, Skill
from satchel.skills.rank import Ranking, mentioned

_ORDER = attrgetter("ref.name", "location")
_RANKED = 5


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """Skills sorted by name and place (code points), with what was found wrong while collecting them.

    ``lookup`` is ``Dialect.lookup``; of several skills with one name, the first in this order answers to it.
    ``revision`` is another one whenever a frontmatter, a place or a finding here is another. It does not cover what is
    not held here: a change in a body or a bundled file alone need not show in it. Instances never change, so readers
    need no lock.
    """

    revision: str = ""
    skills: tuple[Skill, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = field(default=())
    lookup: Literal["exact", "folded"] = "folded"

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.skills, key=_ORDER))
        object.__setattr__(self, "skills", ordered)

    @cached_property
    def _by_name(self) -> dict[str, Skill]:
        """The skills by their names; made at the first look-up."""
        is_exact = self.lookup == "exact"
        table: dict[str, Skill] = {}
        for skill in self.skills:
            name = skill.ref.name
            table.setdefault(name if is_exact else name.casefold(), skill)
        return table

    @cached_property
    def _by_alias(self) -> dict[str, Skill]:
        """What else leads to a skill; made at the first look-up of something that is no name."""
        table: dict[str, Skill] = {}
        for aliases in (_declared, _folder):
            owners: dict[str, list[Skill]] = {}
            for skill in self.skills:
                owners.setdefault(aliases(skill).casefold(), []).append(skill)
            for alias, skills in owners.items():
                if alias and len(skills) == 1:
                    table.setdefault(alias, skills[0])
        return table

    def get(self, name: str) -> Skill | None:
        """The skill of that name, or None.

        Where ``lookup`` is "folded", letter case and blanks around the name do not count; the name that the file
        declares and the directory's name lead to a skill too, when they are nobody's name and lead to one skill only.
        """
        if self.lookup == "exact":
            return self._by_name.get(name)
        wanted = name.strip().casefold()
        return self._by_name.get(wanted) or self._by_alias.get(wanted)

    def pick(self, names: Iterable[str]) -> tuple[tuple[Skill, ...], tuple[str, ...]]:
        """``(found, unknown)``: the named skills sorted by name and each once, and the names that no skill has."""
        found: dict[str, Skill] = {}
        unknown: list[str] = []
        for name in names:
            skill = self.get(name)
            if skill is not None:
                found[skill.name] = skill
            elif name not in unknown:
                unknown.append(name)
        return tuple(found[key] for key in sorted(found)), tuple(unknown)

    @cached_property
    def _ranking(self) -> Ranking:
        """The index over names and descriptions; made at the first search, the same whoever makes it."""
        return Ranking((skill.name, skill.summary) for skill in self.skills)

    def rank(self, text: str, *, limit: int = _RANKED, min_score: float = 0.0) -> tuple[tuple[Skill, float], ...]:
        """At most ``limit`` skills that ``text`` may be about, with their scores, the best first.

        Empty for a text that matches nothing. ``limit`` 0 or less is the default; ``min_score`` above 0 then leaves out
        those below it.
        """
        found = self._ranking.search(text, limit if limit > 0 else _RANKED)
        return tuple((self.skills[position], score) for position, score in found if score >= min_score)

    def mentions(self, text: str) -> tuple[Skill, ...]:
        """The skills that ``text`` names as ``$name``, in order of mention, each once."""
        found = (self.get(name) for name in mentioned(text))
        return tuple({skill.ref.name: skill for skill in found if skill is not None}.values())

    @property
    def offered(self) -> tuple[Skill, ...]:
        """What a model may be told about: every skill that it may invoke by itself."""
        return tuple(skill for skill in self.skills if skill.flags.model_invocable)


def _declared(skill: Skill) -> str:
    return skill.text("name")


def _folder(skill: Skill) -> str:
    return skill.location.replace("\\", "/").rstrip("/").rpartition("/")[2]
