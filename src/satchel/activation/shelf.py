"""The catalogue of one session: asked of its registry once, looked up by name, offered to a model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from satchel.activation.registry import FilesystemSkillRegistry, entries_of, look_again
from satchel.activation.reply import refused
from satchel.activation.trust import Trust, may_be_listed
from satchel.errors import SetupError
from satchel.ports.skills import SkillEntry, SkillRegistry
from satchel.skills.dialect import Dialect
from satchel.skills.model import Skill
from satchel.skills.names import similar_names

logger = logging.getLogger("satchel.activation")


class Shelf:
    """What a registry has. Everything is found by name, however many skills there are.

    Unless ``lists_all``, a model is told only of what ``trust`` lets in without asking anybody.
    """

    def __init__(self, registry: SkillRegistry, dialect: Dialect, trust: Trust, *, lists_all: bool) -> None:
        self.registry = registry
        self._trust = trust
        self._lists_all = lists_all
        self._listed: frozenset[str] | None = None
        self._is_folded = dialect.lookup == "folded"
        self._entries: dict[str, SkillEntry] | None = None
        self._folded: dict[str, str] = {}
        if isinstance(registry, FilesystemSkillRegistry):
            self._take(registry.entries())

    async def known(self) -> Mapping[str, SkillEntry]:
        """The entries by name. Raises ``RefusedError`` IO_ERROR when the registry fails; it is then asked again."""
        entries = self._entries
        if entries is None:
            found, failure = await entries_of(self.registry)
            if found is None:
                reason = f"the registry {failure}"
                raise refused("", "IO_ERROR", "the catalog of skills cannot be read.", reason=reason)
            entries = self._take(found)
        return entries

    async def decide_what_is_listed(self) -> None:
        """Asks the disk about trust beforehand, so that ``offered`` need not."""
        entries = await self.known()
        if not self._lists_all and self._listed is None:
            self._listed = await asyncio.to_thread(may_be_listed, entries.values(), self._trust)

    async def forget(self) -> None:
        """Asks again next time; directories are read again now."""
        await look_again(self.registry)
        self._entries = self._listed = None

    async def find(self, name: str) -> SkillEntry | None:
        """The entry of that name; letter case counts where the dialect says so."""
        entries = await self.known()
        return entries.get(name) or entries.get(self._folded.get(name.casefold(), ""))

    async def siblings(self, name: str, *, for_model: bool) -> tuple[str, ...]:
        """Names that may have been meant; a model is told of none that it may not have."""
        names = [
            entry.name
            for entry in (await self.known()).values()
            if entry.skill is not None and (not for_model or entry.skill.flags.model_invocable)
        ]
        return await asyncio.to_thread(similar_names, name, names)

    def offered(self) -> tuple[Skill, ...]:
        """What a model is told of, by name.

        Raises:
            SetupError: "setting-invalid" before the registry has been asked.
        """
        if self._entries is None:
            raise SetupError(
                "setting-invalid", "The skills are not known yet.", hint="Call `await session.discover()` first."
            )
        usable = [entry for entry in self._entries.values() if entry.skill and entry.skill.flags.model_invocable]
        if self._lists_all:
            names = frozenset(entry.name for entry in usable)
        elif self._listed is not None:
            names = self._listed
        else:
            names = self._listed = may_be_listed(usable, self._trust)
        left_out = [entry for entry in usable if entry.name not in names]
        if left_out:
            way = f"satchel trust add {left_out[0].dir}"
            if self._trust.approvals is None:
                way = "give the session a permission hook, Trust(trusted_roots=...) or Trust(approvals=...)"
            logger.warning(
                "%d skills from roots that are not trusted are not offered, %s for one; to change that: %s",
                len(left_out),
                left_out[0].name,
                way,
            )
        listed = (entry.skill for entry in usable if entry.skill and entry.name in names)
        return tuple(sorted(listed, key=lambda skill: skill.name))

    def _take(self, found: Iterable[SkillEntry]) -> Mapping[str, SkillEntry]:
        entries: dict[str, SkillEntry] = {}
        for entry in found:
            entries.setdefault(entry.name, entry)
        self._entries = entries
        self._folded = {name.casefold(): name for name in reversed(entries)} if self._is_folded else {}
        return entries
