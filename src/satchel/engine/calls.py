"""Answering the calls that are ours: bounded, together, in call order, never raising for what a model got wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import replace

from satchel.chat.arguments import replayable, settle
from satchel.chat.messages import Json, ToolUse
from satchel.chat.request import ToolSpec
from satchel.engine.events import SkillLoaded, ToolFinished, ToolProgress, ToolStarted
from satchel.engine.host import ToolHost
from satchel.engine.limits import LoopLimits
from satchel.skills.oneline import one_line
from satchel.tools.base import Progress, ToolCall, ToolContext, ToolResult, failure

CallEvent = ToolStarted | ToolProgress | ToolFinished | SkillLoaded

MAX_REFUSED = 56
"""Most calls beyond the limit of a round that are answered one by one; further ones are dropped with one sentence."""
MAX_ARGUMENTS_CHARS = 256 * 1024
"""Arguments of a call to us that are longer are not read."""
_MAX_INLINE_CHARS = 4 * 1024
_MAX_UNREAD_CHARS = 1024
_REASON_CHARS = 500


class OwnCalls:
    """The tools of ours in one turn: which are declared, which have failed too often, and how calls are answered.

    ``withdrawn`` names tools that are never declared (the client declared them itself); ``client`` names the
    client's tools, for the answer to a call that nobody declared.
    """

    def __init__(
        self,
        hosts: Sequence[ToolHost],
        limits: LoopLimits,
        *,
        agent: str,
        withdrawn: Collection[str],
        client: Collection[str],
    ) -> None:
        self._hosts = tuple(hosts)
        self._limits = limits
        self._agent = agent
        self._client = tuple(client)
        self._never = frozenset(withdrawn)
        self._failed: dict[str, int] = {}
        self._repeated: dict[tuple[str, str], int] = {}
        self._broken: set[str] = set()
        self.uses: tuple[ToolUse, ...] = ()
        self.results: tuple[ToolResult, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Every name that is ours to answer, also those that failed too often: the model must be told."""
        declared = (spec.name for spec in self._all_specs())
        return frozenset((*declared, *self._undeclared()))

    def specs(self) -> tuple[ToolSpec, ...]:
        """What to declare in the next round."""
        return tuple(spec for spec in self._all_specs() if spec.name not in self._broken)

    def _all_specs(self) -> tuple[ToolSpec, ...]:
        return tuple(spec for host in self._hosts for spec in host.specs() if spec.name not in self._never)

    def _undeclared(self) -> frozenset[str]:
        never = {name.casefold() for name in self._never}
        return frozenset(name for host in self._hosts for name in host.undeclared() if name.casefold() not in never)

    async def answer(
        self, uses: Sequence[ToolUse], *, round_number: int, at_most: int | None = None
    ) -> AsyncGenerator[CallEvent, None]:
        """Runs the calls together and says what happens; ``at_most`` lowers how many are run.

        ``results`` then holds one result a call, in call order, and ``uses`` the calls as later rounds send them:
        with arguments that are one JSON object, without those that were too many even to be refused.
        """
        limit = self._limits.max_calls_per_round
        allowed = limit if at_most is None else min(at_most, limit)
        answered = uses[: allowed + MAX_REFUSED]
        queue: asyncio.Queue[CallEvent | None] = asyncio.Queue()
        declared = {spec.name for spec in self.specs()}
        # Before the first one starts, so that a host that takes its calls one by one gets them in their order.
        read = [await _settled(use.arguments, is_over=position >= allowed) for position, use in enumerate(answered)]

        async def one(position: int, use: ToolUse) -> tuple[ToolUse, ToolResult]:
            refusal = None if position < allowed else _too_many(allowed, is_one_asked=allowed < limit)
            arguments, replay = read[position]
            try:
                result = await self._run(use, arguments, declared, round_number, queue, refusal=refusal)
            finally:
                queue.put_nowait(None)
            return replace(use, arguments=replay), result

        tasks = [asyncio.create_task(one(position, use)) for position, use in enumerate(answered)]
        try:
            running = len(tasks)
            while running:
                event = await queue.get()
                if event is None:
                    running -= 1
                else:
                    yield event
            done = [task.result() for task in tasks]
            self.uses = tuple(use for use, _ in done)
            self.results = tuple(self._charge(use, result) for use, result in done)
            if len(answered) < len(uses):
                last = self.results[-1]
                note = f"\n{len(uses) - len(answered)} further calls after this one were dropped."
                self.results = (*self.results[:-1], replace(last, text=last.text + note))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(
        self,
        use: ToolUse,
        arguments: dict[str, Json] | None,
        declared: Collection[str],
        number: int,
        queue: asyncio.Queue[CallEvent | None],
        *,
        refusal: ToolResult | None,
    ) -> ToolResult:
        queue.put_nowait(
            ToolStarted(
                agent=self._agent,
                round=number,
                call_id=use.call_id,
                name=use.name,
                skill=_text(arguments, "skill"),
                path=_text(arguments, "path"),
            )
        )
        began = time.monotonic()
        if refusal is not None:
            result = refusal
        elif use.name not in declared and use.name not in self._undeclared():
            result = self._unknown(use.name, declared)
        elif len(use.arguments) > MAX_ARGUMENTS_CHARS:
            result = failure(
                "arguments-unreadable", f"the arguments of {use.name} are longer than {MAX_ARGUMENTS_CHARS} characters."
            )
        elif arguments is None:
            result = failure("arguments-unreadable", f"the arguments of {use.name} are not one JSON object.")
        else:
            result = await self._ask_host(use, arguments, number, queue)
        if result.loaded is not None:
            queue.put_nowait(
                SkillLoaded(
                    agent=self._agent, round=number, ref=result.loaded, how=result.how, bytes=result.loaded_bytes
                )
            )
        queue.put_nowait(
            ToolFinished(
                agent=self._agent,
                round=number,
                call_id=use.call_id,
                name=use.name,
                ok=result.ok,
                skill=result.skill,
                path=result.path,
                code=result.code,
                duration_s=time.monotonic() - began,
                files=result.files,
                run=result.run,
                not_kept=result.not_kept,
                command=result.command,
                exit_code=result.exit_code,
                reason=(result.reason or _reason(result))[:_REASON_CHARS],
            )
        )
        return result

    async def _ask_host(
        self, use: ToolUse, arguments: dict[str, Json], number: int, queue: asyncio.Queue[CallEvent | None]
    ) -> ToolResult:
        def report(progress: Progress) -> None:
            queue.put_nowait(
                ToolProgress(
                    agent=self._agent,
                    round=number,
                    call_id=use.call_id,
                    phase=progress.phase,
                    detail=progress.detail,
                    files=progress.files,
                    run=progress.run,
                )
            )

        host = next(
            host
            for host in self._hosts
            if use.name in host.undeclared() or any(spec.name == use.name for spec in host.specs())
        )
        call = ToolCall(call_id=use.call_id, name=use.name, arguments=arguments)
        return await host.call(call, ToolContext(agent=self._agent, round=number, report=report))

    def _unknown(self, name: str, declared: Collection[str]) -> ToolResult:
        names = sorted({*declared, *self._client})
        listed = f" Available tools: {', '.join(names)}." if names else " Answer without tools."
        if name in self._broken:
            return failure("tool-withdrawn", f'the tool "{name}" is no longer available in this turn.{listed}')
        for host in self._hosts:
            advice = host.advise_unknown(name)
            if advice:
                return failure("unknown-tool", advice)
        return failure("unknown-tool", f'there is no tool called "{name}".{listed}')

    def _charge(self, use: ToolUse, result: ToolResult) -> ToolResult:
        """Counts a failure; a tool that has failed too often says so and is no longer declared."""
        if result.ok or not result.is_charged or result.code == "too-many-calls":
            return result
        same = self._repeated[use.name, use.arguments] = self._repeated.get((use.name, use.arguments), 0) + 1
        if same > 1:
            result = replace(result, text=f"{result.text}\nThis very call has now failed {same} times.")
        failed = self._failed[use.name] = self._failed.get(use.name, 0) + 1
        if failed != self._limits.max_failures_per_tool or use.name not in self.names:
            return result
        self._broken.add(use.name)
        note = f"\n{use.name} has failed {failed} times and is no longer available. Answer with what you have."
        return replace(result, text=result.text + note)


def _too_many(allowed: int, *, is_one_asked: bool) -> ToolResult:
    if is_one_asked:
        return failure(
            "too-many-calls", "one tool call at a time: this one was not answered. Repeat it by itself if needed."
        )
    return failure(
        "too-many-calls",
        f"too many tool calls in one turn: only the first {allowed} were answered. Repeat this one if needed.",
    )


async def _settled(text: str, *, is_over: bool) -> tuple[dict[str, Json] | None, str]:
    """A call's arguments as ``settle`` gives them, read once and never for long; those of a refused call are unread."""
    if is_over:
        return None, replayable(text) if len(text) <= _MAX_UNREAD_CHARS else "{}"
    if len(text) > MAX_ARGUMENTS_CHARS:
        return None, "{}"
    return settle(text) if len(text) <= _MAX_INLINE_CHARS else await asyncio.to_thread(settle, text)


def _reason(result: ToolResult) -> str:
    """The first line of what the model is told of a failure; "" of a program that failed without a word."""
    told = "" if result.ok or result.exit_code is not None else result.text.removeprefix("Error: ").strip()
    return one_line(told.partition("\n")[0])


def _text(arguments: dict[str, Json] | None, key: str) -> str:
    value = (arguments or {}).get(key)
    return value if isinstance(value, str) else ""
