"""The engine's front: a model client, an origin of skills and the limits, ready to run turns."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.messages import Message
from satchel.chat.request import ChatRequest
from satchel.context.block import Block
from satchel.context.budget import tokens
from satchel.context.mentioned import attach
from satchel.engine.events import Notice, SkillLoaded, TurnStarted
from satchel.engine.followup import FollowUps, Restored, without_orphans
from satchel.engine.host import ToolHost
from satchel.engine.inline import InlineSource
from satchel.engine.limits import LoopLimits
from satchel.engine.pinned import PinnedSkills
from satchel.engine.prompt import (
    SEARCH_TOOLS,
    Mentions,
    Reach,
    block_for,
    mentions,
    reach,
    unknown_mentions,
    with_block,
    with_named,
    without,
)
from satchel.engine.request import TurnRequest
from satchel.engine.turn import Turn, TurnPlan
from satchel.errors import RequestError, SkillError
from satchel.execution.lease import unhindered
from satchel.execution.workbench import Execution, Workbench
from satchel.ports.execution import Confinement
from satchel.ports.models import ModelClient
from satchel.ports.skills import Rescans, SkillSource
from satchel.skills.catalog import Catalog
from satchel.skills.model import LoadedSkill, SkillRef
from satchel.tools.bench import CODE_TOOLS
from satchel.tools.files_block import files_block


@dataclass(frozen=True, slots=True, kw_only=True)
class HostContext:
    """What the hosts of one turn are made from."""

    request: TurnRequest
    source: SkillSource
    reach: Reach
    capabilities: ModelCapabilities
    workbench: Workbench | None = None


HostFactory = Callable[[HostContext], Sequence[ToolHost] | Awaitable[Sequence[ToolHost]]]


class Runtime:
    """Runs turns. ``source`` is None when skills are off; ``hosts`` makes the tool hosts of one turn.

    ``execution`` is what may run for models, None when nothing may.

    ``default_model`` is asked for when a request names no model. ``discovery`` False forbids advertising skills that
    were not selected, whatever a request says.
    """

    def __init__(
        self,
        *,
        models: ModelClient,
        source: SkillSource | None = None,
        hosts: HostFactory = lambda context: (),  # noqa: ARG005
        limits: LoopLimits = LoopLimits(),
        default_model: str = "",
        discovery: bool = True,
        execution: Execution | None = None,
    ) -> None:
        self.models = models
        self.source = source
        self._make_hosts = hosts
        self._limits = limits
        self._default_model = default_model
        self.discovery = discovery
        self.execution = execution
        self._catalog: Catalog | None = None
        self._rescan = asyncio.Lock()
        self._followups = FollowUps()

    async def catalog(self) -> Catalog:
        """The present catalogue; empty when skills are off."""
        if self.source is None:
            return Catalog()
        fresh = await self.source.scan(since=self._catalog.revision if self._catalog else None)
        if fresh is not None:
            self._catalog = fresh
        return self._catalog if self._catalog is not None else Catalog()

    async def rescan(self) -> Catalog:
        """The catalogue after another look at where the skills come from. Running turns keep theirs."""
        if isinstance(self.source, Rescans):
            # One at a time: an older look that ends later would take the place of a newer one.
            async with self._rescan:
                await self.source.rescan()
        return await self.catalog()

    @asynccontextmanager
    async def turn(self, request: TurnRequest) -> AsyncGenerator[Turn, None]:
        """``async with runtime.turn(request) as turn: async for event in turn``.

        Entering raises ``RequestError`` for skills that do not exist. Leaving stops the model and every tool before
        it returns; the caller's cancellation cannot cut that short.
        """
        request = self._settled(request)
        own_bench = None
        if request.workbench is None:
            own_bench = await self.open_workbench(request)
            request = replace(request, workbench=own_bench)
        try:
            turn = Turn(self.models, await self._plan(request), self._limits)
            try:
                yield turn
            finally:
                await unhindered(turn.aclose())
        finally:
            if own_bench is not None:
                await unhindered(own_bench.aclose())

    async def open_workbench(self, request: TurnRequest) -> Workbench | None:
        """One for the conversation that ``request`` belongs to, None where nothing may run in its turns.

        ``aclose`` is the caller's. Raises ``SandboxError`` when there is no room for a workspace.
        """
        if self.execution is None or self.source is None or self._settled(request).skills.is_off:
            return None
        return await self.execution.open(request.principal.id)

    async def aclose(self) -> None:
        """Releases the model client."""
        await self.models.aclose()

    def _settled(self, request: TurnRequest) -> TurnRequest:
        chat = request.chat if request.chat.model else replace(request.chat, model=self._default_model)
        selection = replace(request.skills, discovery=request.skills.discovery and self.discovery)
        return replace(request, chat=chat, skills=selection)

    async def _plan(self, request: TurnRequest) -> TurnPlan:
        chat = request.chat
        capabilities = await self.models.capabilities(chat.model, chat.caller)
        if chat.tools and not capabilities.client_tools:
            raise RequestError(
                "invalid-request",
                f'The model "{chat.model}" cannot call tools, so a request may not declare any.',
                hint="Leave tools out, or ask another model.",
                data={"field": "tools"},
            )
        turn_id = f"turn_{secrets.token_hex(8)}"
        if self.source is None and (request.skills.names or request.skills.inline):
            raise RequestError(
                "invalid-request",
                "Skills are turned off here.",
                hint="Start without --no-skills.",
                data={"field": "skills"},
            )
        if self.source is None or request.skills.is_off:
            restored = self._followups.restore(request, chat.messages)
            return TurnPlan(
                request=request,
                messages=restored.messages,
                capabilities=capabilities,
                hosts=(),
                started=TurnStarted(agent=request.agent, turn_id=turn_id, model=chat.model),
                opening=tuple(_unmatched(request, restored)),
                keep=partial(self._followups.keep, request, restored.answers),
            )
        pinned = request.pinned or PinnedSkills(await self.catalog())
        catalog = pinned.catalog
        open_to = reach(catalog, request.skills)
        source = InlineSource(request.skills.inline, self.source) if request.skills.inline else self.source
        forbids_calls = chat.tool_choice is not None and chat.tool_choice.mode == "none"
        may_call = capabilities.tools != "none" and not forbids_calls
        named = Mentions()
        if not (capabilities.tools == "guided" and may_call):  # which is led to what a message names
            named = mentions(chat.messages, catalog, open_to, request.skills)
            open_to = with_named(open_to, named)
        hosts: tuple[ToolHost, ...] = ()
        if may_call and (open_to.reachable or request.workbench is not None):
            context = HostContext(
                request=request,
                source=source,
                reach=open_to,
                capabilities=capabilities,
                workbench=request.workbench,
            )
            made = self._make_hosts(context)
            hosts = tuple(await made if isinstance(made, Awaitable) else made)
        own = {spec.name for host in hosts for spec in host.specs()}
        theirs = {name.casefold() for name in chat.tool_names}
        collided = {name for name in own if name.casefold() in theirs}
        withdrawn = collided | without(collided)
        loaded = [await pinned.load(skill.ref, source) for skill in open_to.selected]
        block = block_for(loaded, open_to.others, capabilities=capabilities, own_tools=own - withdrawn)
        if block is None or not block.omitted:
            withdrawn |= SEARCH_TOOLS
        files = files_block(own - withdrawn) if capabilities.tools != "guided" else ""
        if files:
            text = "\n\n".join(part for part in (block.text if block else "", files) if part)
            block = replace(block or Block(), text=text, tokens=tokens(text))
        sizes = {item.name: item for item in loaded}
        inlined = block.inlined if block else ()
        opening: list[Notice | SkillLoaded] = [
            Notice(
                agent=request.agent,
                code="tool-name-collision",
                message=f"The client declares its own tool {name}; it replaces ours for this request.",
            )
            for name in sorted(collided)
        ]
        if block and block.omitted:
            opening.append(
                Notice(
                    agent=request.agent, code="catalog-cut", message=f"{block.omitted} skills did not fit the block."
                )
            )
        opening += [
            SkillLoaded(agent=request.agent, ref=sizes[name].skill.ref, how="inlined", bytes=sizes[name].manifest_bytes)
            for name in inlined
        ]
        messages, told = await self._with_named(
            request, lambda ref: pinned.load(ref, source), named, inlined, capabilities
        )
        restored = self._followups.restore(request, messages)
        is_code = not CODE_TOOLS.isdisjoint(own - withdrawn)
        return TurnPlan(
            request=replace(request, chat=self._for_code(chat)) if is_code else request,
            messages=with_block(without_orphans(chat, restored.messages), block, capabilities),
            capabilities=capabilities,
            hosts=hosts,
            started=TurnStarted(
                agent=request.agent,
                turn_id=turn_id,
                model=chat.model,
                offered=tuple(skill.name for skill in open_to.reachable),
                selected=tuple(skill.name for skill in open_to.selected),
                catalog_revision=catalog.revision,
                prompt_block_tokens=block.tokens if block else 0,
                confinement=_holds(self.execution) if request.workbench else None,
            ),
            withdrawn=frozenset(withdrawn),
            is_barred=forbids_calls and bool(open_to.reachable),
            opening=(*opening, *told, *_unmatched(request, restored)),
            keep=partial(self._followups.keep, request, restored.answers),
        )

    def _for_code(self, chat: ChatRequest) -> ChatRequest:
        """A client's own temperature stays."""
        temperature = chat.sampling.temperature
        if temperature is None and self.execution is not None:
            temperature = self.execution.options.temperature
        return replace(chat, sampling=replace(chat.sampling, is_code=True, temperature=temperature))

    async def _with_named(
        self,
        request: TurnRequest,
        load: Callable[[SkillRef], Awaitable[LoadedSkill]],
        named: Mentions,
        inlined: Collection[str],
        capabilities: ModelCapabilities,
    ) -> tuple[tuple[Message, ...], list[Notice | SkillLoaded]]:
        """The request's messages with the instructions of the skills that they name, and what there is to say of it."""
        told: list[Notice | SkillLoaded] = [
            Notice(agent=request.agent, code="mention-unknown", message=said) for said in unknown_mentions(named)
        ]
        bodies: dict[int, list[LoadedSkill]] = {}
        missing: dict[str, str] = {}
        for index, skills in named.by_message.items():
            for skill in skills:
                if skill.name in inlined:
                    continue
                try:
                    bodies.setdefault(index, []).append(await load(skill.ref))
                except SkillError as error:
                    missing[skill.name] = error.message
        messages, attached = attach(request.chat.messages, bodies, context_tokens=capabilities.context_tokens)
        there = {loaded.name for loaded in attached}
        for loaded in (loaded for items in bodies.values() for loaded in items if loaded.name not in there):
            missing[loaded.name] = "Its instructions are too long to be added to the message."
        told += [
            Notice(agent=request.agent, code="mention-not-loaded", message=f"${name}: {reason}")
            for name, reason in missing.items()
        ]
        told += [
            SkillLoaded(agent=request.agent, ref=loaded.skill.ref, how="mentioned", bytes=loaded.manifest_bytes)
            for loaded in attached
        ]
        return messages, told


def _holds(execution: Execution | None) -> Confinement | None:
    """What confines what runs in a turn, None where nothing runs."""
    return execution.executor.confinement if execution and execution.executor.can_run else None


def _unmatched(request: TurnRequest, restored: Restored) -> Iterator[Notice]:
    if not restored.is_matched:
        yield Notice(
            agent=request.agent,
            code="continuation-unmatched",
            message="The continuation is unknown here, too old, or of another conversation; earlier reads are gone.",
        )
