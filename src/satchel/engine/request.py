"""What a face asks of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from satchel.chat.request import ChatRequest
from satchel.engine.events import ROOT
from satchel.engine.pinned import PinnedSkills
from satchel.execution.workbench import Workbench
from satchel.library.inline import InlineSkill


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """On whose behalf a turn runs. ``id`` is "local" on one's own machine."""

    id: str = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSelection:
    """Which skills a turn may reach.

    ``names`` are selected by the caller. With ``discovery`` the rest of the catalogue is advertised too. ``inline``
    skills come with the request: they are selected, and hide a skill of the catalogue that has the same name.
    """

    names: tuple[str, ...] = ()
    discovery: bool = True
    inline: tuple[InlineSkill, ...] = ()

    @property
    def is_off(self) -> bool:
        """Whether the turn has nothing to do with skills."""
        return not self.names and not self.discovery and not self.inline


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """One request until its answer.

    ``workbench`` is the conversation's own; without it the turn gets one of its own, where programs may run at all, and
    it is gone with the turn.
    ``deadline_s`` bounds the whole turn in seconds; None leaves it open. ``continuation`` is the token of an earlier
    ``TurnDone``, "" for none. ``pinned`` are the skills of the conversation that this turn goes on with; without it the
    turn takes the present ones.
    """

    chat: ChatRequest
    skills: SkillSelection = SkillSelection()
    principal: Principal = Principal()
    agent: str = ROOT
    workbench: Workbench | None = None
    deadline_s: float | None = None
    continuation: str = ""
    pinned: PinnedSkills | None = None
