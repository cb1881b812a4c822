"""One turn of a session: claimed before it begins, kept when it is complete, forgotten when it is not."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from satchel.chat.messages import Message, Part, Reasoning, Text
from satchel.engine.events import ProseJoiner, ReasoningDelta, TextDelta, TurnDone, TurnEvent
from satchel.engine.pinned import PinnedSkills
from satchel.engine.runtime import Runtime
from satchel.gateway.native.request import ChatCall
from satchel.gateway.native.wire import NEW
from satchel.gateway.sessions import Session, Sessions


class SessionTurn:
    """The next turn of the session that ``call`` names, or the first one of a new session.

    ``is_lost`` tells, once the block of ``open`` was left, that a complete turn could not be kept.
    """

    def __init__(self, runtime: Runtime, sessions: Sessions, call: ChatCall) -> None:
        self.session_id = sessions.new_id() if call.session == NEW else call.session
        self.is_lost = False
        self._runtime = runtime
        self._sessions = sessions
        self._call = call

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[AsyncIterator[TurnEvent]]:
        """``async with turn.open() as events``, as with ``Runtime.turn``.

        When the block is left without an error after a complete turn, the session has grown by that turn; else it is
        what it was. Either way it is free for its next turn as soon as the block is left, and programs of a turn that
        was left early have ended. Entering raises what ``Sessions.claim``, ``ChatCall.turn_of``,
        ``Runtime.open_workbench`` and ``Runtime.turn`` raise.
        """
        call = self._call
        async with self._sessions.claim(call.owner, self.session_id, is_new=call.session == NEW) as claim:
            session = claim.session or await self._begun()
            request = call.turn_of(session)
            if claim.bench is None:
                claim.bench = await self._runtime.open_workbench(request)
            request = replace(request, workbench=claim.bench)
            async with self._runtime.turn(request) as events:
                heard = _Heard(events, request.agent)
                yield heard
            if heard.done is not None:
                grown = session.after(request, call.chat.messages, heard.done, heard.answer(heard.done))
                self.is_lost = not claim.keep(grown)

    async def _begun(self) -> Session:
        return Session(
            id=self.session_id,
            created=int(time.time()),
            skills=self._call.skills,
            pinned=PinnedSkills(await self._runtime.catalog()),
        )


class _Heard:
    """Hands events on, and keeps of them what the client is told."""

    def __init__(self, events: AsyncIterator[TurnEvent], agent: str) -> None:
        self.done: TurnDone | None = None
        self._events = events
        self._agent = agent
        self._joiner = ProseJoiner()
        self._text: list[str] = []
        self._reasoning: list[str] = []

    def __aiter__(self) -> AsyncIterator[TurnEvent]:
        return self

    async def __anext__(self) -> TurnEvent:
        event = await anext(self._events)
        if event.agent == self._agent:
            match event:
                case TextDelta():
                    self._text.append(self._joiner.feed(event))
                case ReasoningDelta(text=text):
                    self._reasoning.append(text)
                case TurnDone():
                    self.done = event
                case _:
                    pass
        return event

    def answer(self, done: TurnDone) -> Message:
        """The turn as one message of the assistant."""
        reasoning, text = "".join(self._reasoning), "".join(self._text)
        parts: list[Part] = [Reasoning(text=reasoning)] if reasoning else []
        if text or not done.client_calls:
            parts.append(Text(text=text))
        return Message(role="assistant", parts=(*parts, *done.client_calls))
