"""One turn: generate, answer our own calls, generate again, until the model answers or a bound is reached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.events import Finish, ModelDone, Usage
from satchel.chat.messages import Message, Reasoning, Text, ToolOutput, ToolUse, message
from satchel.chat.request import ChatRequest, ToolPolicy, ToolSpec
from satchel.context.budget import tokens
from satchel.engine.calls import OwnCalls
from satchel.engine.events import (
    CallDelta,
    Notice,
    ReasoningDelta,
    RoundFinished,
    SkillLoaded,
    TextDelta,
    TurnDone,
    TurnEvent,
    TurnStarted,
)
from satchel.engine.host import ToolHost
from satchel.engine.limits import LoopLimits
from satchel.engine.request import TurnRequest
from satchel.engine.round import Partition, Round
from satchel.errors import UpstreamError
from satchel.ports.models import ModelClient
from satchel.tools.base import ToolContext, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlan:
    """All that is decided before the first round. ``messages`` carry the block; ``opening`` are the first events.

    ``withdrawn`` names tools of ours that the client declared itself: the client's win.
    """

    request: TurnRequest
    messages: tuple[Message, ...]
    capabilities: ModelCapabilities
    hosts: tuple[ToolHost, ...]
    started: TurnStarted
    withdrawn: frozenset[str] = frozenset()
    opening: tuple[Notice | SkillLoaded, ...] = ()


class Turn:
    """An async iterator of ``TurnEvent``. Made by ``Runtime.turn``, whose block closes it."""

    def __init__(self, models: ModelClient, plan: TurnPlan, limits: LoopLimits) -> None:
        self._models = models
        self._plan = plan
        self._limits = limits
        self._agent = plan.request.agent
        self._messages: list[Message] = list(plan.messages)
        self._usage: list[Usage] = []
        self._spent = 0
        self._own = OwnCalls(
            plan.hosts,
            limits,
            agent=self._agent,
            withdrawn=plan.withdrawn,
            client=[tool.name for tool in plan.request.chat.tools],
        )
        self._events = self._run()
        limit = plan.request.deadline_s
        self._deadline = None if limit is None else asyncio.get_running_loop().time() + limit

    def __aiter__(self) -> AsyncIterator[TurnEvent]:
        return self

    async def __anext__(self) -> TurnEvent:
        if self._deadline is None:
            return await anext(self._events)
        # The timeout is opened and closed within one step, so none stays open while the caller holds an event.
        try:
            async with asyncio.timeout_at(self._deadline):
                return await anext(self._events)
        except TimeoutError:
            raise UpstreamError(
                "upstream-timeout",
                f"The turn was not finished within {self._plan.request.deadline_s:g} s.",
                retryable=True,
            ) from None

    def first_request(self) -> ChatRequest:
        """What the first round asks the model, block and tools included; says so without asking."""
        return self._chat(1, self._own.specs())

    async def aclose(self) -> None:
        """Stops the model, then the hosts. Idempotent."""
        try:
            await self._events.aclose()
        finally:
            for host in self._plan.hosts:
                await host.aclose()

    async def _run(self) -> AsyncGenerator[TurnEvent, None]:
        number = 0
        while True:
            number += 1
            is_last = number > self._limits.max_rounds
            specs = () if is_last else self._own.specs()
            partition = Partition.of(self._own.names, [tool.name for tool in self._plan.request.chat.tools])
            held: list[TextDelta | ReasoningDelta | CallDelta] | None = (
                [] if any(host.holds_answer() for host in self._plan.hosts) else None
            )
            current = Round(self._models, self._chat(number, specs), partition, agent=self._agent, number=number)
            async with current:
                if number == 1:
                    # Only now has the model server taken the request: a refusal comes before any event.
                    yield self._plan.started
                    for opening in self._plan.opening:
                        yield opening
                async with aclosing(current.events()) as events:
                    async for event in events:
                        if held is None:
                            yield event
                        else:
                            held.append(event)
            done = replace(current.done, message=self._replayable(partition.spelled(current.done.message)))
            self._account(done)
            yield RoundFinished(agent=self._agent, round=number, finish=done.finish, usage=done.usage)
            ours, theirs = partition.split(done.message.tool_uses)

            if not ours and not theirs and not is_last:
                context = ToolContext(agent=self._agent, round=number)
                added = [item for host in self._plan.hosts for item in await host.before_answer(context)]
                if added:
                    self._messages += [done.message, *added]
                    continue
            for event in held or ():
                yield event
            if not ours:
                self._messages.append(done.message)
                if is_last and not theirs and not done.message.text.strip():
                    yield self._out_of_rounds(number, after="")
                yield self._done(number, "tool_calls" if theirs else done.finish, theirs, hit_limit=is_last)
                return
            if is_last:
                self._messages.append(_without_calls(done.message, keep=theirs))
                yield self._out_of_rounds(number, after=done.message.text)
                yield self._done(number, "tool_calls" if theirs else "stop", theirs, hit_limit=True)
                return

            async with aclosing(self._own.answer(ours, round_number=number)) as events:
                async for event in events:
                    yield event
            self._record(_replayed(done.message, theirs, self._own.uses), self._own.uses, self._own.results)
            if theirs:
                yield self._done(number, "tool_calls", theirs)
                return
            if self._remaining() == 0:
                yield self._done(number, "length", ())
                return
            if number == self._limits.max_rounds:
                self._messages.append(message("user", _LIMIT_NOTE.format(rounds=number)))

    # -- one request upstream -------------------------------------------------------------------------------------

    def _chat(self, number: int, specs: Sequence[ToolSpec]) -> ChatRequest:
        asked = self._plan.request.chat
        tools = (*asked.tools, *specs)
        policy = asked.tool_choice
        if number > 1 and policy is not None and policy.mode in {"required", "named"}:
            # A forced call in every round would never end.
            policy = ToolPolicy() if tools else None
        if not tools and self._plan.hosts:
            policy = None
        return replace(
            asked, messages=tuple(self._messages), tools=tools, tool_choice=policy, max_tokens=self._remaining()
        )

    def _remaining(self) -> int | None:
        budget = self._plan.request.chat.max_tokens
        return None if budget is None else max(0, budget - self._spent)

    def _account(self, done: ModelDone) -> None:
        self._usage.append(done.usage or Usage())
        # Servers that report nothing are charged by the usual estimate, so that a budget still ends.
        written = done.message.text + "".join(use.arguments for use in done.message.tool_uses)
        self._spent += done.usage.completion_tokens if done.usage else tokens(written)

    # -- the transcript ----------------------------------------------------------------------------------------------

    def _replayable(self, said: Message) -> Message:
        if self._plan.capabilities.reasoning_replay != "drop":
            return said
        return replace(said, parts=tuple(part for part in said.parts if not isinstance(part, Reasoning)))

    def _record(self, said: Message, ours: Sequence[ToolUse], results: Sequence[ToolResult]) -> None:
        if not self._plan.capabilities.tool_role:
            # The chat template would drop calls and results without a word, so both become prose.
            told = "\n\n".join(
                f"Result of your {use.name} call:\n{result.text}" for use, result in zip(ours, results, strict=True)
            )
            self._messages += [_without_calls(said, keep=()), message("user", told)]
            return
        self._messages.append(said)
        self._messages += [
            Message(
                role="tool",
                parts=(ToolOutput(call_id=use.call_id, name=use.name, text=result.text, is_error=not result.ok),),
            )
            for use, result in zip(ours, results, strict=True)
        ]

    # -- the end --------------------------------------------------------------------------------------------------

    def _out_of_rounds(self, number: int, *, after: str) -> TextDelta:
        gap = "\n\n" if after.strip() else ""
        text = gap + _OUT_OF_ROUNDS.format(rounds=self._limits.max_rounds)
        last = self._messages[-1]
        self._messages[-1] = replace(last, parts=(*last.parts, Text(text=text)))
        return TextDelta(agent=self._agent, round=number, text=text)

    def _done(self, number: int, finish: Finish, theirs: tuple[ToolUse, ...], *, hit_limit: bool = False) -> TurnDone:
        return TurnDone(
            agent=self._agent,
            round=number,
            finish=finish,
            usage=sum(self._usage, Usage()),
            usage_by_round=tuple(self._usage),
            rounds=number,
            hit_round_limit=hit_limit,
            client_calls=theirs,
            transcript=tuple(self._messages[len(self._plan.messages) :]),
        )


_LIMIT_NOTE = (
    "You have used all {rounds} rounds of tool calls for this answer. Answer now using what you have already read, "
    "and say which part you could not check."
)
_OUT_OF_ROUNDS = (
    "[This answer ran out of its tool-call budget of {rounds} rounds before it was finished; "
    "some of it could not be checked.]"
)


def _replayed(said: Message, theirs: Sequence[ToolUse], ours: Sequence[ToolUse]) -> Message:
    """The assistant's turn as later rounds send it: the calls of ours as they were answered, in their places."""
    client, answered = set(map(id, theirs)), iter(ours)
    parts = [
        next(answered, None) if isinstance(part, ToolUse) and id(part) not in client else part for part in said.parts
    ]
    return replace(said, parts=tuple(part for part in parts if part is not None))


def _without_calls(said: Message, *, keep: Sequence[ToolUse]) -> Message:
    kept = {use.call_id for use in keep}
    parts = tuple(part for part in said.parts if not isinstance(part, ToolUse) or part.call_id in kept)
    return replace(said, parts=parts)
