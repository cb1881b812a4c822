"""Which skills a conversation has, turn by turn: what users and files ask for, what a text may be about (seed 003).

A session holds the active skills and judges every activation. What stands here decides who asks for one, and what a
model is told of: few candidates a turn instead of the whole list.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

from satchel.activation.calls import answers, read_calls
from satchel.activation.permission import called, contained
from satchel.activation.reply import Activation
from satchel.activation.schema import Shape, instructions
from satchel.activation.session import SkillSession
from satchel.chat.messages import Json
from satchel.errors import SetupError
from satchel.ports.skills import SkillEntry
from satchel.skills.keywords import KeywordRanking
from satchel.skills.model import Skill
from satchel.skills.paths import match_paths

logger = logging.getLogger("satchel.activation")

Policy = Literal["off", "auto", "manual-only"]
_POLICIES = ("off", "auto", "manual-only")

Resolver = Callable[[str, Sequence[Skill]], Iterable[Skill] | Awaitable[Iterable[Skill]]]
"""``(the user's text, skills)`` to the skills that it may be about, the best first. A plain one runs in a thread."""

MAX_CANDIDATES = 3
_NOT_OFFERED = "Error [DISABLED]: skills are not for a model to start here.\nHint: Go on without them."


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSkills:
    """What a turn begins with.

    ``command`` is what became of the user's ``/name``, None when the text was none. ``activated`` is what became of the
    skills whose files are at hand, refusals among them. ``candidates`` are proposed to the model.
    """

    command: Activation | None = None
    activated: tuple[Activation, ...] = ()
    candidates: tuple[Skill, ...] = ()


class SkillTurns:
    """The skills of one conversation, chosen turn by turn.

    ``policy``: "auto" proposes candidates and lets the model activate them; with "manual-only" users and the program
    activate, and the model is told only of what is active; "off" does nothing at all. At most ``max_candidates`` are
    proposed in a turn: first those whose ``paths`` match the files at hand, then those that ``resolver`` finds. Without
    one, these are the skills that share most words with the text. A resolver that raises, or takes longer than
    ``resolver_timeout_s``, has found none.

    A session with ``bodies="system"`` has its active skills in ``system_message``, too.

    Raises:
        SetupError: "setting-invalid" for another policy.
    """

    def __init__(
        self,
        session: SkillSession,
        *,
        policy: Policy = "auto",
        max_candidates: int = MAX_CANDIDATES,
        resolver: Resolver | None = None,
        resolver_timeout_s: float = 30.0,
    ) -> None:
        if policy not in _POLICIES:
            hint = f"Known are {', '.join(_POLICIES)}."
            raise SetupError("setting-invalid", f'There is no policy "{policy}".', hint=hint)
        self.session = session
        self.policy: Policy = policy
        self._max_candidates = max(0, max_candidates)
        self._resolver = resolver
        self._timeout_s = resolver_timeout_s
        self._candidates: tuple[Skill, ...] = ()
        self._offered: tuple[Skill, ...] | None = None
        self._ranking: KeywordRanking | None = None
        self._tried: set[str] = set()

    async def begin(self, text: str, *, files: Iterable[str] = ()) -> TurnSkills:
        """Takes what a user wrote, and the ``files`` at hand, relative to the project.

        In a dialect that activates by ``paths``, a skill whose files are at hand is asked for as a model would ask for
        it, once; after a refusal again only when ``refresh`` was called.

        Raises:
            StoreError: "store-unavailable" when the session's registry fails.
        """
        self._candidates = ()
        if self.policy == "off":
            return TurnSkills()
        since = self.session.turn
        begun: TurnSkills | None = None
        try:
            begun = await self._begun(text, files)
            return begun
        finally:
            if begun is None:
                self.session.untold(since)

    async def _begun(self, text: str, files: Iterable[str]) -> TurnSkills:
        command = await self.session.invoke(text)
        if self.policy == "manual-only":
            return TurnSkills(command=command)
        offered = await self._known()
        matches = match_paths(offered, files, self.session.dialect)
        activated = [await self.session.activate(skill.name) for skill in self._untried(matches.activated)]
        found = await self._resolved(text, self._inactive(offered))
        proposed = {skill.name: skill for skill in (*self._inactive(matches.proposed), *found)}
        self._candidates = tuple(proposed.values())[: self._max_candidates]
        return TurnSkills(command=command, activated=tuple(activated), candidates=self._candidates)

    def system_message(self) -> dict[str, Json] | None:
        """A system message for the next generation: what is active, then what is proposed; None when nothing is.

        A call to the tool changes it, so it is asked for anew before every generation.
        """
        if self.policy == "off":
            return None
        active = self.session.active_message() or {}
        candidates = self._inactive(self._candidates)
        proposed = instructions(candidates, dialect=self.session.dialect, bodies=self.session.bodies)
        text = "\n\n".join(part for part in (str(active.get("content", "")), proposed) if part)
        return {"role": "system", "content": text} if text else None

    def tools(self, shape: Shape = "openai") -> list[dict[str, Json]]:
        """The session's tool; [] unless the model may activate skills."""
        return self.session.tools(shape) if self.policy == "auto" else []

    async def answer(self, calls: object) -> list[Json]:
        """The session's answer to a round of calls; a refusal of each unless the model may activate skills."""
        if self.policy == "auto":
            return await self.session.answer(calls)
        return answers((call, _NOT_OFFERED, False) for call in read_calls(calls))

    async def refresh(self) -> tuple[SkillEntry, ...]:
        """Looks for skills again. Active ones stay, and so do those that a program registered."""
        entries = await self.session.reload()
        self._offered = self._ranking = None
        self._tried.clear()
        return entries

    async def _known(self) -> tuple[Skill, ...]:
        if self._offered is None:
            await self.session.discover()
            self._offered = self.session.offered
        return self._offered

    def _inactive(self, skills: Iterable[Skill]) -> list[Skill]:
        active = {skill.name for skill in self.session.active}
        return [skill for skill in skills if skill.name not in active]

    def _untried(self, skills: Iterable[Skill]) -> list[Skill]:
        fresh = [skill for skill in self._inactive(skills) if skill.name not in self._tried]
        self._tried |= {skill.name for skill in fresh}
        return fresh

    async def _resolved(self, text: str, skills: Sequence[Skill]) -> list[Skill]:
        """What the resolver finds among ``skills``, and nothing else that it may have returned."""
        found, failure = await contained(partial(self._asked, text, skills), self._timeout_s)
        if failure:
            logger.warning("the resolver of skills %s; no skill is proposed for the text", failure)
        names = {skill.name: skill for skill in skills}
        given = (getattr(item, "name", None) for item in found or ())
        return [names[name] for name in given if isinstance(name, str) and name in names]

    async def _asked(self, text: str, skills: Sequence[Skill]) -> list[object]:
        if self._resolver is None:
            if self._ranking is None:
                self._ranking = await asyncio.to_thread(KeywordRanking, self._offered or ())
            return [skill for skill, _ in self._ranking.search(text)]
        return list(cast("Iterable[object]", await called(self._resolver, text, skills)))
