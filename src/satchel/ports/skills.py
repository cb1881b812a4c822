"""Where skills come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from satchel.skills.catalog import Catalog
from satchel.skills.fields import YamlValue
from satchel.skills.model import Diagnostic, LoadedSkill, Page, Skill, SkillRef


class SkillSource(Protocol):
    """An origin of skills. ``label`` names it in ``SkillRef.source`` and for people.

    ``may_shadow`` is False for an origin whose skills must never hide another origin's skill of the same name.
    """

    @property
    def label(self) -> str: ...

    @property
    def may_shadow(self) -> bool: ...

    async def scan(self, *, since: str | None = None) -> Catalog | None:
        """The skills of this origin, or None when nothing changed since that ``Catalog.revision``."""
        ...

    async def load(self, ref: SkillRef) -> LoadedSkill:
        """Body and file index. Raises ``SkillError`` when the skill is gone or no longer valid."""
        ...

    async def read(self, ref: SkillRef, path: str, *, offset: int = 0, max_bytes: int) -> Page:
        """At most ``max_bytes`` of one bundled file from byte ``offset``. Raises ``PathError``."""
        ...


@runtime_checkable
class Rescans(Protocol):
    """A source that can be told to look again at where its skills come from; the next ``scan`` answers with those."""

    async def rescan(self) -> Catalog: ...


@runtime_checkable
class HasDirectories(Protocol):
    """A source whose skills lie in directories of this host, so that their scripts can run where they are."""

    def directory(self, ref: SkillRef) -> AbstractAsyncContextManager[str]:
        """The skill's canonical directory, which stays as long as the block; "" for a skill that has none.

        Nobody writes there. Entering raises ``SkillError`` when the skill is gone.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillEntry:
    """One line of a registry's catalogue (seed 000, section 10).

    ``skill`` is None for a skill that was found and cannot be used; ``diagnostics`` then say why, and ``location`` is
    where it lies. ``root_index`` is the place of its root among the registry's, -1 for a skill that the host made
    itself; ``root`` is the directory that the skill must not leave, "" when the registry names none.
    """

    name: str
    skill: Skill | None
    root_index: int = 0
    root: str = ""
    location: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def description(self) -> str:
        """The author's text, "" for a skill that cannot be used."""
        return self.skill.description if self.skill else ""

    @property
    def dir(self) -> str:
        """The skill's directory, "" for one without a file."""
        return self.skill.location if self.skill else self.location

    @property
    def frontmatter(self) -> Mapping[str, YamlValue]:
        """Every field as written."""
        return self.skill.frontmatter if self.skill else {}


class SkillRegistry(Protocol):
    """Skills by name, for a session. Whatever it raises is told as a skill that cannot be read."""

    async def discover(self) -> Sequence[SkillEntry]:
        """The catalogue, each name once. Asked once a session, and again at ``SkillSession.reload``."""
        ...

    async def load(self, name: str) -> LoadedSkill | None:
        """The skill as it is now, None when it is gone. Asked at every activation."""
        ...
