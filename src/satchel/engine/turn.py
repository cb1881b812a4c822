"""One turn: generate, answer our own calls, generate again, until the model answers or a bound is reached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from satchel.chat.allowed import with_allowed
from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.events import Finish, ModelDone, Usage
from satchel.chat.messages import Extra, Message, Reasoning, Text, ToolOutput, ToolUse, message
from satchel.chat.opaque import open_calls, says_nothing
from satchel.chat.request import ChatRequest, ToolPolicy, ToolSpec
from satchel.context.budget import tokens
from satchel.engine.calls import OwnCalls
from satchel.engine.events import (
    CallDelta,
    Notice,
    ProseJoiner,
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
from satchel.execution.workbench import Collected
from satchel.ports.models import ModelClient
from satchel.tools.base import ToolContext

Keep = Callable[[str, tuple[ToolUse, ...], tuple[Message, ...]], str]
"""Given the text and the calls that the client saw and the messages that were added: the continuation."""


def _keep_nothing(text: str, calls: tuple[ToolUse, ...], transcript: tuple[Message, ...]) -> str:
    del text, calls, transcript
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlan:
    """All that is decided before the first round. ``messages`` carry the block; ``opening`` are the first events.

    ``withdrawn`` names tools of ours that are not declared: the client has one of that name, which wins, or there is
    nothing for them to do. With ``is_barred`` the request forbids calls, also those that the turn could answer: one to
    a name that the client does not declare is then a slip of the model, and none of the client's.
    """

    request: TurnRequest
    messages: tuple[Message, ...]
    capabilities: ModelCapabilities
    hosts: tuple[ToolHost, ...]
    started: TurnStarted
    withdrawn: frozenset[str] = frozenset()
    is_barred: bool = False
    opening: tuple[Notice | SkillLoaded, ...] = ()
    keep: Keep = _keep_nothing


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
        self._prose = ProseJoiner()
        self._shown: list[str] = []
        self._was_urged = False
        self._extra: Extra = {}
        self._own = OwnCalls(
            plan.hosts,
            limits,
            agent=self._agent,
            withdrawn=plan.withdrawn,
            client=plan.request.chat.tool_names,
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
        async with aclosing(self._rounds()) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    self._shown.append(self._prose.feed(event))
                yield event

    async def _rounds(self) -> AsyncGenerator[TurnEvent, None]:
        number = 0
        while True:
            number += 1
            is_last = number > self._limits.max_rounds
            specs = () if is_last else self._own.specs()
            partition = Partition.of(
                self._own.names, self._plan.request.chat.tool_names, is_barred=self._plan.is_barred
            )
            one_call = self._plan.request.chat.one_call and not partition.is_passthrough
            held: list[TextDelta | ReasoningDelta | CallDelta] | None = (
                [] if any(host.holds_answer() for host in self._plan.hosts) else None
            )
            current = self._round(number, specs, partition, one_call=one_call)
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
            done = current.done
            said = self._without_reasoning(done.message)
            self._account(done)
            yield RoundFinished(agent=self._agent, round=number, finish=done.finish, usage=done.usage)
            ours, theirs = partition.split(said.tool_uses)
            if one_call:
                theirs = tuple(use for use in theirs if use is said.tool_uses[0])
                ours = tuple(use for use in said.tool_uses if use not in theirs)

            # Calls that are no functions go to the client with the message, and no round may come before its answer.
            is_handed = bool(theirs or open_calls(said))
            if not ours and not is_handed and not is_last and await self._is_asked_again(number, done, said):
                continue
            for event in held or ():
                yield event
            if not ours or is_last or self._plan.is_barred:
                self._messages.append(_without_calls(said, keep=theirs))
                if is_last and (ours or (not theirs and says_nothing(said))):
                    yield self._added(number, _OUT_OF_ROUNDS.format(rounds=self._limits.max_rounds))
                elif not theirs and ours and says_nothing(said):
                    yield self._added(number, _BARRED)
                elif not theirs and self._is_mute(done, number):
                    yield self._added(number, _MUTE)
                finish: Finish = "tool_calls" if is_handed else "stop" if ours else done.finish
                yield await self._done(number, finish, theirs, hit_limit=is_last)
                return

            at_most = (0 if is_handed else 1) if one_call else None
            async with aclosing(self._own.answer(ours, round_number=number, at_most=at_most)) as events:
                async for event in events:
                    yield event
            self._record(_replayed(said, theirs, self._own.uses), theirs)
            if is_handed:
                yield await self._done(number, "tool_calls", theirs)
                return
            if self._remaining() == 0:
                yield await self._done(number, "length", ())
                return
            if number == self._limits.max_rounds:
                self._tell(_LIMIT_NOTE.format(rounds=number))

    async def _is_asked_again(self, number: int, done: ModelDone, said: Message) -> bool:
        """Whether the model has to say something else before this answer may go out; then it has been told so."""
        context = ToolContext(agent=self._agent, round=number)
        added = [item for host in self._plan.hosts for item in await host.before_answer(context)]
        if added:
            self._messages += [said, *added]
            return True
        if self._was_urged or not self._is_mute(done, number) or self._remaining() == 0:
            return False
        self._was_urged = True
        self._tell(_URGE)
        return True

    def _is_mute(self, done: ModelDone, number: int) -> bool:
        """Whether the model ended without a word after an earlier round of this turn gave it what it asked for."""
        return number > 1 and done.finish == "stop" and says_nothing(done.message)

    # -- one request upstream -------------------------------------------------------------------------------------

    def _round(self, number: int, specs: Sequence[ToolSpec], partition: Partition, *, one_call: bool) -> Round:
        return Round(
            self._models,
            self._chat(number, specs),
            partition,
            agent=self._agent,
            number=number,
            taken=(use.call_id for said in self._messages for use in said.tool_uses),
            one_call=one_call,
        )

    def _chat(self, number: int, specs: Sequence[ToolSpec]) -> ChatRequest:
        asked = self._plan.request.chat
        tools = (*asked.tools, *specs)
        policy = asked.tool_choice
        if number > 1 and policy is not None and policy.mode in {"required", "named"}:
            # A forced call in every round would never end.
            policy = ToolPolicy()
        chat = replace(
            asked, messages=tuple(self._messages), tools=tools, tool_choice=policy, max_tokens=self._remaining()
        )
        if policy is not None and policy.mode in {"auto", "required"}:
            mode = "auto" if policy.mode == "auto" else "required"
            chat = with_allowed(chat, (spec.name for spec in specs), mode=mode)
        declares = tools or any(fields.get("tools") for fields in asked.extra.values())
        return chat if declares or not self._plan.hosts else _without_tool_settings(chat)

    def _remaining(self) -> int | None:
        budget = self._plan.request.chat.max_tokens
        return None if budget is None else max(0, budget - self._spent)

    def _account(self, done: ModelDone) -> None:
        self._usage.append(done.usage or Usage())
        self._extra = done.extra
        # Servers that report nothing are charged by the usual estimate, so that a budget still ends.
        written = done.message.text + "".join(use.arguments for use in done.message.tool_uses)
        self._spent += done.usage.completion_tokens if done.usage else tokens(written)

    # -- the transcript ----------------------------------------------------------------------------------------------

    def _without_reasoning(self, said: Message) -> Message:
        """The assistant's message with the reasoning that goes back upstream, and no other."""
        replay = self._plan.capabilities.reasoning_replay
        if replay == "text":
            return said
        kept = (
            part
            for part in said.parts
            if not isinstance(part, Reasoning) or (replay == "opaque" and part.opaque is not None)
        )
        return replace(said, parts=tuple(kept))

    def _record(self, said: Message, theirs: tuple[ToolUse, ...]) -> None:
        ours, results = self._own.uses, self._own.results
        if not self._plan.capabilities.tool_role:
            # The chat template would drop calls and results without a word, so both become prose.
            told = "\n\n".join(
                f"Result of your {use.name} call:\n{result.text}" for use, result in zip(ours, results, strict=True)
            )
            self._messages += [_without_calls(said, keep=theirs), message("user", told)]
            return
        self._messages.append(said)
        self._messages += [
            Message(
                role="tool",
                parts=(ToolOutput(call_id=use.call_id, name=use.name, text=result.text, is_error=not result.ok),),
            )
            for use, result in zip(ours, results, strict=True)
        ]

    def _tell(self, text: str) -> None:
        """Says something to the model. Two user's messages in a row would be refused by strict templates."""
        last = self._messages[-1]
        if last.role == "user" and len(self._messages) > len(self._plan.messages):
            self._messages[-1] = replace(last, parts=(*last.parts, Text(text=f"\n\n{text}")))
        else:
            self._messages.append(message("user", text))

    # -- the end --------------------------------------------------------------------------------------------------

    def _added(self, number: int, text: str) -> TextDelta:
        """A sentence of ours at the end of the answer, in the transcript too."""
        last = self._messages[-1]
        shown = f"\n\n{text}" if last.text.strip() else text
        self._messages[-1] = replace(last, parts=(*last.parts, Text(text=shown)))
        return TextDelta(agent=self._agent, round=number, text=shown)

    async def _done(
        self, number: int, finish: Finish, theirs: tuple[ToolUse, ...], *, hit_limit: bool = False
    ) -> TurnDone:
        transcript = tuple(self._messages[len(self._plan.messages) :])
        bench = self._plan.request.workbench
        made = await bench.collect() if bench else Collected()
        return TurnDone(
            agent=self._agent,
            round=number,
            finish=finish,
            usage=sum(self._usage, Usage()),
            usage_by_round=tuple(self._usage),
            rounds=number,
            hit_round_limit=hit_limit,
            client_calls=theirs,
            transcript=transcript,
            continuation=self._plan.keep("".join(self._shown), theirs, transcript),
            extra=self._extra,
            files=made.files,
            not_kept=made.not_kept,
            run=bench.shelf_id if bench and (made.files or made.not_kept) else "",
        )


_LIMIT_NOTE = (
    "You have used all {rounds} rounds of tool calls for this answer. Answer now using what you have already read, "
    "and say which part you could not check."
)
_OUT_OF_ROUNDS = (
    "[This answer ran out of its tool-call budget of {rounds} rounds before it was finished; "
    "some of it could not be checked.]"
)
_URGE = "Your last reply was empty. Answer now, using what you have read."
_MUTE = "[The model gave no answer after its tool calls.]"
_BARRED = "[The model called a tool although this request forbids it, and gave no answer.]"
_TOOL_SETTINGS = frozenset({"tool_choice", "parallel_tool_calls"})


def _without_tool_settings(chat: ChatRequest) -> ChatRequest:
    """Servers refuse settings about tools in a request that declares none."""
    extra = {
        format_: {key: value for key, value in fields.items() if key not in _TOOL_SETTINGS}
        for format_, fields in chat.extra.items()
    }
    return replace(chat, tool_choice=None, one_call=False, extra=extra)


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
