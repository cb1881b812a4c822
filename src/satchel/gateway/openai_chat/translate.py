"""OpenAI Chat Completions: a body into a turn's request, a turn's events into chunks or into one completion."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from satchel.chat.capabilities import ModelInfo
from satchel.chat.codec.openai_chat import FORMAT, decode_request, encode_usage
from satchel.chat.messages import Json, Opaque, ToolUse
from satchel.chat.request import Caller
from satchel.engine.events import (
    CallDelta,
    ProseJoiner,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    TurnDone,
    TurnEvent,
    TurnStarted,
)
from satchel.engine.request import TurnRequest
from satchel.errors import SatchelError
from satchel.gateway.body import encode_json
from satchel.gateway.extension import Extension
from satchel.gateway.failures import vendor_error
from satchel.gateway.fields import OURS, UNNAMED, check_parts, read_fields, refused
from satchel.gateway.openai_chat.steps import invocation, step
from satchel.gateway.openai_chat.wire import ChatBody, ModelBody

_NOT_SAID = frozenset({"role", "content", "tool_calls", "refusal", "reasoning", "reasoning_content"})
_ENDS_HERE = OURS | {"stream", "stream_options"}
"""How we stream is between us and the model server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """What a body asks for."""

    turn: TurnRequest
    is_streamed: bool
    include_usage: bool
    include_steps: bool


def read_call(body: Mapping[str, Json], caller: Caller) -> ChatCall:
    """Raises ``RequestError`` "invalid-request", whose ``data["field"]`` names the field."""
    known = read_fields(ChatBody, body)
    for field in ("content", "tool_calls"):
        check_parts(known.messages, field)
    if known.n is not None and known.n > 1:
        raise refused("n", "Only one choice can be made here, with skills or without; send the request again for more.")
    included = {name: (known.stream_options or {}).get(name) for name in ("include_usage", "include_steps")}
    for name, value in included.items():
        if not isinstance(value, bool | None):
            raise refused(f"stream_options.{name}", "Input should be a valid boolean.")
    chat = decode_request({key: value for key, value in body.items() if key not in _ENDS_HERE})
    return ChatCall(
        turn=TurnRequest(
            chat=replace(chat, caller=caller),
            skills=known.selection(),
            continuation=known.skills_continuation or "",
        ),
        is_streamed=known.stream is True,
        include_usage=included["include_usage"] is True,
        include_steps=included["include_steps"] is True,
    )


def model_body(info: ModelInfo) -> ModelBody:
    """One entry of the model list."""
    return ModelBody(id=info.id, created=info.created, owned_by=info.owned_by or "satchel")


class _Answer:
    """What both forms of an answer share: one id, one time, one model name, and the text as clients see it."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())
        self._model = ""
        self._joiner = ProseJoiner()
        self._extension = Extension()
        self._invocations: list[dict[str, object]] = []
        self._shown: dict[str, tuple[str, list[str]]] = {}

    def _head(self, kind: str) -> dict[str, object]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}

    def _note(self, event: TurnEvent) -> None:
        self._extension.note(event)
        if isinstance(event, ToolFinished):
            self._invocations.append(invocation(event))
        elif isinstance(event, TurnStarted) and event.agent == self._agent:
            self._model = event.model or UNNAMED
        elif isinstance(event, CallDelta) and event.agent == self._agent:
            self._shown.setdefault(event.call_id, (event.name, []))[1].append(event.arguments)

    def _cut(self, done: TurnDone) -> list[ToolUse]:
        """Calls that a limit cut off. A stream has shown them, so the whole answer holds them too."""
        made = {use.call_id for use in done.client_calls}
        return [
            ToolUse(call_id=call_id, name=name, arguments="".join(pieces))
            for call_id, (name, pieces) in self._shown.items()
            if call_id not in made
        ]

    def _finish(self, done: TurnDone) -> str:
        """The reason: calls of which one was cut off are none to act on."""
        return "length" if done.finish == "tool_calls" and self._cut(done) else done.finish

    def _cost(self, done: TurnDone) -> dict[str, object]:
        extension = self._extension.field(done, encode_usage, invocations=self._invocations)
        return {"usage": encode_usage(done.usage), **extension}


class ChunkEncoder(_Answer):
    """``chat.completion.chunk`` events: one role first, one finish reason last, one id throughout."""

    is_streamed = True
    media_type = "text/event-stream; charset=utf-8"
    heartbeat = b": ping\n\n"

    def __init__(self, *, agent: str, include_usage: bool, include_steps: bool) -> None:
        super().__init__(agent)
        self._include_usage = include_usage
        self._include_steps = include_steps
        self._calls: set[int] = set()
        self._frame = (b"", b"")

    def feed(self, event: TurnEvent) -> bytes:
        self._note(event)
        if self._include_steps and (taken := step(event)):
            return _event({**self._head("chat.completion.chunk"), "choices": [], "satchel": {"step": taken}})
        if event.agent != self._agent:
            return b""
        match event:
            case TurnStarted():
                return self._chunk({"role": "assistant", "content": ""})
            case TextDelta():
                text = self._joiner.feed(event)
                logprobs = _logprobs(event)
                if logprobs:
                    return self._chunk({"content": text}, logprobs=logprobs)
                return self._text(text) if text else b""
            case ReasoningDelta(text=text) if text:
                return self._chunk({"reasoning_content": text})
            case CallDelta():
                return self._chunk({"tool_calls": [self._call(event)]})
            case TurnDone():
                return self._end(event)
            case _:
                return b""

    def finish(self) -> bytes:
        return b"data: [DONE]\n\n"

    def error(self, failure: SatchelError) -> bytes:
        return _event(vendor_error(failure))

    def _text(self, text: str) -> bytes:
        """The chunk that a stream consists of: all but its text is written once."""
        if not self._frame[0]:
            before, _, after = self._chunk({"content": ""}).partition(b'"content":""')
            self._frame = (before + b'"content":', after)
        return b"".join((self._frame[0], encode_json(text), self._frame[1]))

    def _call(self, event: CallDelta) -> dict[str, object]:
        if event.index in self._calls:
            return {"index": event.index, "function": {"arguments": event.arguments}}
        self._calls.add(event.index)
        function = {"name": event.name, "arguments": event.arguments}
        return {"index": event.index, "id": event.call_id, "type": "function", "function": function}

    def _chunk(
        self,
        delta: Mapping[str, object],
        finish: str | None = None,
        ours: Mapping[str, object] | None = None,
        *,
        logprobs: Mapping[str, Json] | None = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        unknown_yet = {"usage": None} if self._include_usage else {}
        return _event({**(ours or {}), **self._head("chat.completion.chunk"), "choices": [choice], **unknown_yet})

    def _end(self, done: TurnDone) -> bytes:
        return self._beside(done) + self._last(done)

    def _beside(self, done: TurnDone) -> bytes:
        """What no event has told: calls that are no functions, and a refusal."""
        delta: dict[str, object] = {}
        if foreign := _foreign_calls(done):
            delta["tool_calls"] = [{"index": len(self._calls) + at, **call} for at, call in enumerate(foreign)]
        if refusal := _refusal(done):
            delta["refusal"] = refusal
        for key, value in _message_fields(done).items():
            delta.setdefault(key, value)
        return self._chunk(delta) if delta else b""

    def _last(self, done: TurnDone) -> bytes:
        if not self._include_usage:
            # No chunk comes after this one, so what a client can come back for comes with the finish reason.
            is_told = done.continuation or self._extension.has_artifacts
            ours = self._extension.field(done, encode_usage) if is_told else {}
            return self._chunk({}, self._finish(done), {**_said(done), **ours})
        end = self._chunk({}, self._finish(done), _said(done))
        return end + _event({**self._head("chat.completion.chunk"), "choices": [], **self._cost(done)})


class CompletionEncoder(_Answer):
    """One ``chat.completion`` with the text that a stream would have carried."""

    is_streamed = False
    media_type = "application/json"
    heartbeat = b""

    def __init__(self, *, agent: str) -> None:
        super().__init__(agent)
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._logprobs: dict[str, list[Json]] = {}

    def feed(self, event: TurnEvent) -> bytes:
        self._note(event)
        if event.agent != self._agent:
            return b""
        match event:
            case TextDelta():
                self._text.append(self._joiner.feed(event))
                for key, values in _logprobs(event).items():
                    if isinstance(values, list):
                        self._logprobs.setdefault(key, []).extend(values)
            case ReasoningDelta(text=text):
                self._reasoning.append(text)
            case TurnDone():
                return encode_json(self._completion(event))
            case _:
                pass
        return b""

    def finish(self) -> bytes:
        return b""

    def error(self, failure: SatchelError) -> bytes:
        return encode_json(vendor_error(failure))

    def _completion(self, done: TurnDone) -> dict[str, object]:
        text = "".join(self._text)
        reasoning = "".join(self._reasoning)
        calls = [*_calls((*done.client_calls, *self._cut(done))), *_foreign_calls(done)]
        refusal = _refusal(done)
        answer: dict[str, object] = {"role": "assistant", "content": text or (None if calls or refusal else "")}
        if reasoning:
            answer["reasoning_content"] = reasoning
        if calls:
            answer["tool_calls"] = calls
        if refusal:
            answer["refusal"] = refusal
        for key, value in _message_fields(done).items():
            answer.setdefault(key, value)
        logprobs = self._logprobs or None
        choice = {"index": 0, "message": answer, "logprobs": logprobs, "finish_reason": self._finish(done)}
        return {**_said(done), **self._head("chat.completion"), "choices": [choice], **self._cost(done)}


def _calls(uses: Iterable[ToolUse]) -> list[dict[str, object]]:
    return [
        {"id": use.call_id, "type": "function", "function": {"name": use.name, "arguments": use.arguments}}
        for use in uses
    ]


def _foreign_calls(done: TurnDone) -> list[dict[str, Json]]:
    """Calls of kinds that only this format knows."""
    said = (part for message in done.transcript if message.role == "assistant" for part in message.parts)
    kept = (part.raw for part in said if isinstance(part, Opaque) and part.format == FORMAT)
    calls = (raw.get("tool_calls") for raw in kept if isinstance(raw, dict))
    return [call for call in calls if isinstance(call, dict)]


def _logprobs(event: TextDelta) -> Mapping[str, Json]:
    """The log probabilities that came with a piece of text."""
    logprobs = event.extra.get(FORMAT, {}).get("logprobs")
    return logprobs if isinstance(logprobs, dict) else {}


def _said(done: TurnDone) -> dict[str, Json]:
    """What a server of the same format said of the answer as a whole, such as its fingerprint."""
    return {key: value for key, value in done.extra.get(FORMAT, {}).items() if key not in {"choice", "satchel"}}


def _message_fields(done: TurnDone) -> Mapping[str, Json]:
    """What a server of the same format said of its last message beside text and calls, such as annotations."""
    said = done.transcript[-1] if done.transcript else None
    fields: Mapping[str, Json] = said.extra.get(FORMAT, {}) if said is not None and said.role == "assistant" else {}
    return {key: value for key, value in fields.items() if key not in _NOT_SAID and value is not None}


def _refusal(done: TurnDone) -> str:
    refusal = done.transcript[-1].extra.get(FORMAT, {}).get("refusal") if done.transcript else None
    return refusal if isinstance(refusal, str) else ""


def _event(value: object) -> bytes:
    return b"data: " + encode_json(value) + b"\n\n"
