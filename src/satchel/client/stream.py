"""One answer while it comes: an async iterator of the engine's events that ends up knowing the whole answer."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

from satchel.client.records import Delivery, SkillsChatResponse, SkillToolInvocation
from satchel.client.server import ServerEvents
from satchel.engine.events import (
    ROOT,
    ProseJoiner,
    ReasoningDelta,
    SkillLoaded,
    TextDelta,
    ToolFinished,
    TurnDone,
    TurnEvent,
)


class SkillsChatStream:
    """The events of ``satchel.events``, the last of them ``TurnDone``; the same whoever runs the loop.

    Fails with one ``SatchelError`` out of the iterator.
    """

    def __init__(self, turn: AsyncIterator[TurnEvent], delivery: Delivery, server: ServerEvents | None) -> None:
        self._turn = turn
        self._server = server
        self._waiting: deque[TurnEvent] = deque()
        self._joiner = ProseJoiner()
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._skills: dict[str, None] = {}
        self._invocations: list[SkillToolInvocation] = []
        self._done: TurnDone | None = None
        self.delivery: Delivery = delivery

    def __aiter__(self) -> AsyncIterator[TurnEvent]:
        return self

    async def __anext__(self) -> TurnEvent:
        while not self._waiting:
            event = await anext(self._turn)
            self._waiting.extend(self._server.feed(event) if self._server else (event,))
        event = self._waiting.popleft()
        self._note(event)
        return event

    @property
    def response(self) -> SkillsChatResponse:
        """The whole answer. Raises ``RuntimeError`` before the last event."""
        done = self._done
        if done is None:
            raise RuntimeError("the answer is not complete yet")
        return SkillsChatResponse(
            content="".join(self._text),
            reasoning="".join(self._reasoning),
            tool_calls=done.client_calls,
            skill_invocations=tuple(self._invocations),
            skills=tuple(self._skills),
            rounds=done.rounds,
            usage=done.usage,
            usage_by_round=done.usage_by_round,
            transcript=done.transcript,
            finish=done.finish,
            delivery=self.delivery,
            continuation=done.continuation if self.delivery == "server" else "",
            files=done.files,
            run=done.run,
            not_kept=done.not_kept,
        )

    def _note(self, event: TurnEvent) -> None:
        match event:
            case TextDelta() if event.agent == ROOT:
                self._text.append(self._joiner.feed(event))
            case ReasoningDelta() if event.agent == ROOT:
                self._reasoning.append(event.text)
            case SkillLoaded(ref=ref):
                self._skills[ref.name] = None
            case ToolFinished():
                self._invocations.append(_invocation(event))
            case TurnDone() if event.agent == ROOT:
                self._done = event
            case _:
                pass


def _invocation(event: ToolFinished) -> SkillToolInvocation:
    return SkillToolInvocation(
        round=event.round,
        agent=event.agent,
        tool=event.name,
        skill=event.skill,
        path=event.path,
        ok=event.ok,
        code=event.code,
        files=event.files,
        run=event.run,
        not_kept=event.not_kept,
    )
