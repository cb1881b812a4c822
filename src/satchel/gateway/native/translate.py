"""A turn's events into the frames of a stream or into one answer; sessions and models into bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from satchel.chat.capabilities import ModelInfo
from satchel.chat.codec.openai_chat import encode_message, encode_usage
from satchel.chat.messages import ToolUse
from satchel.engine.events import (
    CallDelta,
    Notice,
    ProseJoiner,
    ReasoningDelta,
    SkillLoaded,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnDone,
    TurnEvent,
    TurnStarted,
)
from satchel.errors import SatchelError
from satchel.gateway.body import encode_json
from satchel.gateway.extension import MOST_FILES, produced
from satchel.gateway.failures import told
from satchel.gateway.fields import UNNAMED
from satchel.gateway.native.conversation import SessionTurn
from satchel.gateway.native.wire import OfferedModelBody, SessionBody
from satchel.gateway.sessions import Session

Frame = dict[str, object]

_LAST = ("tool_calls", "usage", "finish", "continuation", "files", "run", "not_kept")
_LOST = Notice(
    code="session-not-kept",
    message="The session was deleted, or has become larger than what is kept: it cannot be gone on with.",
)


def model_body(info: ModelInfo) -> OfferedModelBody:
    """One entry of the model list."""
    return OfferedModelBody(
        id=info.id,
        owned_by=info.owned_by or "satchel",
        created=info.created,
        context_tokens=info.context_tokens,
    )


def session_body(session: Session) -> SessionBody:
    """A session as its client knows it."""
    return SessionBody(
        session=session.id,
        created=session.created,
        turns=session.turns,
        model=session.model,
        skills=list(session.skills.names),
        skills_discovery=session.skills.discovery,
        messages=[encoded for item in session.shown for encoded in encode_message(item)],
    )


class _Answer:
    """What both forms of an answer share: each event as a frame, the text as clients see it, and the end."""

    def __init__(self, agent: str, held: SessionTurn | None) -> None:
        self._agent = agent
        self._held = held
        self._joiner = ProseJoiner()
        self._started: dict[tuple[str, str], ToolStarted] = {}
        self._done: TurnDone | None = None

    def _frame(self, event: TurnEvent) -> Frame:
        """What is told of an event, {} for nothing. Work is told of every agent, words only of ours."""
        match event:
            case ToolStarted():
                self._started[event.agent, event.call_id] = event
                return {}
            case ToolProgress():
                return self._progress(event)
            case ToolFinished():
                return self._step(event)
            case SkillLoaded():
                return {"skill_loaded": event.ref.name, "how": event.how, "bytes": event.bytes}
            case Notice():
                return _notice(event)
            case _:
                return self._said(event) if event.agent == self._agent else {}

    def _said(self, event: TurnEvent) -> Frame:
        match event:
            case TurnStarted():
                session = self._held.session_id if self._held else None
                head: Frame = {"session": session, "turn": event.turn_id, "model": event.model or UNNAMED}
                return head | ({"confinement": asdict(event.confinement)} if event.confinement else {})
            case TextDelta():
                text = self._joiner.feed(event)
                return {"text": text} if text else {}
            case ReasoningDelta(text=text) if text:
                return {"reasoning": text}
            case CallDelta():
                fragment = {"index": event.index, "id": event.call_id, "name": event.name}
                return {"tool_call": {**fragment, "arguments": event.arguments}}
            case TurnDone():
                self._done = event
                return {}
            case _:
                return {}

    def _step(self, event: ToolFinished) -> Frame:
        started = self._started.pop((event.agent, event.call_id), None)
        return {
            "skill_step": event.name,
            "agent_id": event.agent,
            "skill": event.skill or (started.skill if started else ""),
            "detail": event.path or (started.path if started else ""),
            "ok": event.ok,
            "round": event.round,
            **produced(event),
        }

    def _progress(self, event: ToolProgress) -> Frame:
        started = self._started.get((event.agent, event.call_id))
        return {
            "tool_progress": started.name if started else "",
            "phase": event.phase,
            "agent_id": event.agent,
            "detail": event.detail,
            "files": list(event.files[:MOST_FILES]),
            "round": event.round,
            **({"run": event.run} if event.run else {}),
        }

    def _ending(self) -> list[Frame]:
        """The frames that end a complete turn, which is over and kept when this is asked."""
        done = self._done
        if done is None:
            return []
        frames: list[Frame] = [_notice(_LOST)] if self._held and self._held.is_lost else []
        if done.client_calls:
            frames.append({"tool_calls": _calls(done.client_calls)})
        rounds = [encode_usage(usage) for usage in done.usage_by_round]
        frames.append({"usage": {**encode_usage(done.usage), "rounds": rounds}})
        end: Frame = {"done": True, "finish": done.finish, **produced(done)}
        if done.continuation and self._held is None:
            end["continuation"] = done.continuation
        return [*frames, end]


class FrameEncoder(_Answer):
    """One ``data:`` event a frame, as it happens; the last one says ``done``, or ``error`` when the turn failed."""

    is_streamed = True
    media_type = "text/event-stream; charset=utf-8"
    heartbeat = b": ping\n\n"

    def feed(self, event: TurnEvent) -> bytes:
        return _event(self._frame(event))

    def finish(self) -> bytes:
        return b"".join(map(_event, self._ending()))

    def error(self, failure: SatchelError) -> bytes:
        return _event({"error": told(failure), "code": failure.code})


class AnswerEncoder(_Answer):
    """One object with what the frames of a stream would have said."""

    is_streamed = False
    media_type = "application/json"
    heartbeat = b""

    def __init__(self, agent: str, held: SessionTurn | None) -> None:
        super().__init__(agent, held)
        self._head: Frame = {}
        self._words: dict[str, list[str]] = {"text": [], "reasoning": []}
        self._lists: dict[str, list[object]] = {"steps": [], "loaded": [], "notices": []}

    def feed(self, event: TurnEvent) -> bytes:
        self._take(self._frame(event))
        return b""

    def finish(self) -> bytes:
        end: Frame = {"tool_calls": []}
        for frame in self._ending():
            self._take(frame)
            end |= {key: frame[key] for key in _LAST if key in frame}
        said = {key: "".join(pieces) for key, pieces in self._words.items()}
        return encode_json({**self._head, **said, **self._lists, **end})

    def error(self, failure: SatchelError) -> bytes:
        return encode_json({"error": told(failure)})

    def _take(self, frame: Frame) -> None:
        match frame:
            case {"session": _}:
                self._head = frame
            case {"text": str() as words}:
                self._words["text"].append(words)
            case {"reasoning": str() as words}:
                self._words["reasoning"].append(words)
            case {"skill_step": _}:
                self._lists["steps"].append(frame)
            case {"skill_loaded": _}:
                self._lists["loaded"].append(frame)
            case {"notice": notice}:
                self._lists["notices"].append(notice)
            case _:
                pass


def _calls(uses: Iterable[ToolUse]) -> list[Frame]:
    return [
        {"id": use.call_id, "type": "function", "function": {"name": use.name, "arguments": use.arguments}}
        for use in uses
    ]


def _notice(notice: Notice) -> Frame:
    return {"notice": {"code": notice.code, "message": notice.message}}


def _event(frame: Mapping[str, object]) -> bytes:
    return b"data: " + encode_json(frame) + b"\n\n" if frame else b""
