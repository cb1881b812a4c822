"""Has one conversation with a model: over a session and its ``skill`` tool, or in one arm of the catalogue."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from satchel.activation.enforce import ToolPolicy as CallPolicy
from satchel.activation.session import SkillSession
from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.messages import Message, message
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy
from satchel.engine.events import TurnStarted
from satchel.engine.host import ToolHost
from satchel.engine.limits import LoopLimits
from satchel.engine.request import SkillSelection, TurnRequest
from satchel.engine.runtime import HostContext
from satchel.engine.turn import Turn, TurnPlan
from satchel.evals.host import SessionHost
from satchel.evals.scenario import Scenario
from satchel.evals.shell import GuardedShell, open_shell
from satchel.evals.transcript import Listener, Recorder, Transcript
from satchel.execution.workbench import Execution
from satchel.library import Library, discover
from satchel.ports.models import ModelClient
from satchel.wiring.client import local_runtime
from satchel.wiring.sources import skill_hosts

Arm = Literal["control", "selected", "discovery"]
ARMS: tuple[Arm, ...] = ("control", "selected", "discovery")
"""Without skills; with the skill selected; with the catalogue alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The model that is asked. ``temperature`` None leaves it to the model server."""

    models: ModelClient
    model: str = ""
    temperature: float | None = None

    async def capabilities(self) -> ModelCapabilities:
        """What it can carry. Raises ``UpstreamError``."""
        return await self.models.capabilities(self.model)

    def request(self, messages: tuple[Message, ...], *, force: str = "") -> ChatRequest:
        """One generation of it."""
        return ChatRequest(
            model=self.model,
            messages=messages,
            tool_choice=ToolPolicy(mode="named", name=force) if force else None,
            sampling=Sampling(temperature=self.temperature),
        )


async def converse(asked: Asked, scenario: Scenario, root: Path, execution: Execution | None = None) -> Transcript:
    """One case of a scenario over a session. ``execution`` runs the commands of its shell, where it has one.

    Raises ``SatchelError`` when the model fails, or when the shell cannot be made ready.
    """
    if scenario.shell is None or execution is None:
        return await _converse(asked, scenario, root, None)
    async with open_shell(scenario.shell, execution.executor, root) as shell:
        return await _converse(asked, scenario, root, shell)


async def _converse(asked: Asked, scenario: Scenario, root: Path, shell: GuardedShell | None) -> Transcript:
    capabilities = await asked.capabilities()
    library = await asyncio.to_thread(discover, [root])
    session = SkillSession(
        library,
        permission=(lambda _: "allow") if scenario.permission == "allow" else None,
        tool_policy=CallPolicy(hook=shell.hook if shell else None),
    )
    told = str(session.system_message()["content"])
    messages = (message("system", told),) if told else ()
    seen = Transcript()
    host = SessionHost(session, shell)
    for say in scenario.cases[0].say:
        force = say.force if capabilities.tools == "guided" else ""
        host.offers_choices = not force
        messages = (*messages, message("user", say.text))
        added = await _turn(asked, messages, capabilities=capabilities, host=host, force=force, seen=seen)
        messages = (*messages, *added)
    seen.active = tuple(skill.name for skill in session.active)
    if shell is not None:
        seen.asked, seen.ran = shell.asked, shell.ran
    return seen


async def _turn(
    asked: Asked,
    messages: tuple[Message, ...],
    *,
    capabilities: ModelCapabilities,
    host: ToolHost,
    force: str,
    seen: Transcript,
) -> tuple[Message, ...]:
    recorder, listener = Recorder(host), Listener(seen)
    chat = asked.request(messages, force=force)
    plan = TurnPlan(
        request=TurnRequest(chat=chat),
        messages=messages,
        capabilities=capabilities,
        hosts=(recorder,),
        started=TurnStarted(turn_id="", model=chat.model),
    )
    turn = Turn(asked.models, plan, LoopLimits())
    try:
        async for event in turn:
            listener.hear(event)
    finally:
        await turn.aclose()
    return listener.close(recorder.kept)


async def ask_in_arm(
    asked: Asked,
    library: Library,
    arm: Arm,
    text: str,
    skills: tuple[str, ...],
    *,
    execution: Execution | None = None,
) -> Transcript:
    """One question in one arm; ``skills`` are those that the arm "selected" selects. Raises ``SatchelError``.

    With ``execution`` the scripts of skills may run.
    """
    recorders: list[Recorder] = []

    async def hosts(context: HostContext) -> tuple[ToolHost, ...]:
        made = [Recorder(host) for host in await skill_hosts(context)]
        recorders.extend(made)
        return tuple(made)

    selection = {
        "control": SkillSelection(discovery=False),
        "selected": SkillSelection(names=skills, discovery=False),
        "discovery": SkillSelection(),
    }[arm]
    runtime = local_runtime(asked.models, library, limits=LoopLimits(), hosts=hosts, execution=execution)
    seen = Transcript()
    listener = Listener(seen)
    request = TurnRequest(chat=asked.request((message("user", text),)), skills=selection)
    async with runtime.turn(request) as turn:
        async for event in turn:
            listener.hear(event)
    listener.close({call_id: kept for recorder in recorders for call_id, kept in recorder.kept.items()})
    return seen
