"""Ollama's chat and generate: a body into a turn's request, a turn's events into lines or into one object.

A call goes out whole, in one line before the last: its arguments are an object here, which cannot come in pieces.

A silent stream is kept alive by a line without text. NDJSON has no comments; Ollama itself sends such lines (those of
a reasoning model have no content), so clients take them, and without any a proxy would cut a long tool call off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from satchel.chat.arguments import read_arguments
from satchel.chat.capabilities import ModelCapabilities, ModelInfo
from satchel.chat.codec.ollama import FORMAT, decode_request
from satchel.chat.events import Usage
from satchel.chat.messages import Format, Json, ToolUse
from satchel.chat.request import Caller
from satchel.engine.events import (
    ProseJoiner,
    ReasoningDelta,
    RoundFinished,
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
from satchel.gateway.failures import told
from satchel.gateway.fields import OURS, check_parts, read_fields, refused
from satchel.gateway.ollama.wire import AskBody, ChatBody, GenerateBody, ShownBody, TagBody

Kind = Literal["chat", "generate"]

_ENDS_HERE = OURS | {"stream"}
"""How we stream is between us and the model server."""
_PROMPT_FIELDS = frozenset({"prompt", "system", "images", "raw", "template", "suffix", "context"})
_AT_ONCE = (0, "0", "0s", "0m", "0h")
_OWN_TIMES = ("load_duration", "prompt_eval_duration", "eval_duration")
_TIMES = ("total_duration", *_OWN_TIMES)
# Clients that split lines as Python does would split at these characters inside a text.
_LINE_ENDS = ((b"\xc2\x85", b"\\u0085"), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaCall:
    """What a body asks for. ``turn`` is None for a request that only loads or unloads a model: ``load_reason``."""

    kind: Kind
    turn: TurnRequest | None
    model: str
    is_streamed: bool
    shows_thinking: bool
    load_reason: Literal["load", "unload"]


def read_chat(body: Mapping[str, Json], caller: Caller) -> OllamaCall:
    """A body of ``/api/chat``. Raises ``RequestError`` "invalid-request", whose ``data["field"]`` names the field."""
    known = read_fields(ChatBody, body)
    for field in ("tool_calls", "images"):
        check_parts(known.messages or (), field)
    return _call("chat", known, body if known.messages else None, caller)


def read_generate(body: Mapping[str, Json], caller: Caller) -> OllamaCall:
    """A body of ``/api/generate``. Raises as ``read_chat``, also for what a conversation cannot carry."""
    known = read_fields(GenerateBody, body)
    for field, value, why in (
        ("raw", known.raw, "A prompt cannot pass by the chat template here: send it without raw."),
        ("template", known.template, "The chat template is the model server's and cannot be replaced here."),
        ("suffix", known.suffix, "Text cannot be filled into a gap here."),
        ("context", known.context, "Tokens of an earlier answer mean nothing here: send the messages to /api/chat."),
    ):
        if value:
            raise refused(field, why)
    if not known.prompt and not known.images:
        return _call("generate", known, None, caller)
    asked: dict[str, Json] = {"role": "user", "content": known.prompt or ""}
    if known.images:
        asked["images"] = list(known.images)
    system: list[Json] = [{"role": "system", "content": known.system}] if known.system else []
    beside = {key: value for key, value in body.items() if key not in _PROMPT_FIELDS}
    return _call("generate", known, {**beside, "messages": [*system, asked]}, caller)


def _call(kind: Kind, known: AskBody, chat_body: Mapping[str, Json] | None, caller: Caller) -> OllamaCall:
    if not isinstance(known.think, bool | str | None):
        raise refused("think", "Input should be true, false or the name of a level.")
    turn = None
    if chat_body is not None:
        chat = decode_request({key: value for key, value in chat_body.items() if key not in _ENDS_HERE})
        turn = TurnRequest(
            chat=replace(chat, caller=caller, extra={**_other_formats(known.format), **chat.extra}),
            skills=known.selection(),
            continuation=known.skills_continuation or "",
        )
    return OllamaCall(
        kind=kind,
        turn=turn,
        model=known.model or "",
        is_streamed=known.stream is not False,
        shows_thinking=known.think is not False,
        load_reason="unload" if known.keep_alive in _AT_ONCE else "load",
    )


def _other_formats(wanted: object) -> dict[Format, Mapping[str, Json]]:
    """``format`` as model servers that are no Ollama know it."""
    match wanted:
        case None | "":
            return {}
        case "json":
            chat: dict[str, Json] = {"type": "json_object"}
            responses = chat
        case dict() as schema:  # pyright: ignore[reportUnknownVariableType] - it was read from JSON
            named: dict[str, Json] = {"name": "answer", "schema": schema}
            chat = {"type": "json_schema", "json_schema": named}
            responses = {"type": "json_schema", **named}
        case _:
            raise refused("format", 'Input should be "json" or a JSON schema.')
    return {"openai-chat": {"response_format": chat}, "openai-responses": {"text": {"format": responses}}}


def load_answer(call: OllamaCall) -> dict[str, object]:
    """The answer to a request that generates nothing. Model servers load models when they are asked something."""
    return {**_head(call.model), **_said(call.kind, ""), "done": True, "done_reason": call.load_reason}


def tag_body(info: ModelInfo) -> TagBody:
    """One entry of the model list."""
    return TagBody(name=info.id, model=info.id, modified_at=_modified(info))


def shown_body(info: ModelInfo, capabilities: ModelCapabilities) -> ShownBody:
    """What is known of a model."""
    facts: dict[str, object] = {"general.architecture": "unknown"}
    window = info.context_tokens or capabilities.context_tokens
    if window:
        facts["unknown.context_length"] = window
    return ShownBody(model_info=facts, capabilities=_capability_names(capabilities), modified_at=_modified(info))


def _modified(info: ModelInfo) -> str:
    return _time(datetime.fromtimestamp(info.created, UTC))


def _capability_names(capabilities: ModelCapabilities) -> list[str]:
    # A guided model calls our tools only; a client that reads "tools" would send its own.
    return ["completion", "tools"] if capabilities.tools == "native" else ["completion"]


class _Stopwatch:
    """How long the model read its prompts and how long it wrote, over all generations, without the tools between.

    A generation of which nothing is seen counts as written.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._began = self._mark = now()
        self._is_writing = False
        self.reading = 0
        self.writing = 0

    @property
    def total(self) -> int:
        return self._now() - self._began

    def note(self, event: TurnEvent) -> None:
        now = self._now()
        match event:
            case TextDelta() | ReasoningDelta() if not self._is_writing:
                self._is_writing = True
                self.reading += now - self._mark
            case RoundFinished():
                self._is_writing = False
                self.writing += now - self._mark
            case ToolFinished():
                pass
            case _:
                return
        self._mark = now


class _Answer:
    """What both forms of an answer share."""

    def __init__(self, call: OllamaCall, *, agent: str, now: Callable[[], int] = time.monotonic_ns) -> None:
        self._agent = agent
        self._kind: Kind = call.kind
        self._shows_thinking = call.shows_thinking
        self._model = call.model
        self._joiner = ProseJoiner()
        self._extension = Extension()
        self._watch = _Stopwatch(now)

    def _takes(self, event: TurnEvent) -> bool:
        """Notes the event; whether it is one of the agent that answers."""
        self._extension.note(event)
        if event.agent != self._agent:
            return False
        self._watch.note(event)
        if isinstance(event, TurnStarted):
            self._model = event.model
        return True

    def _end(self, done: TurnDone) -> dict[str, object]:
        beside = dict(done.extra.get(FORMAT, {}))
        if done.rounds > 1:
            # The server's own figures are those of its last generation.
            beside = {key: value for key, value in beside.items() if key not in _TIMES}
        return {
            "done": True,
            "done_reason": "length" if done.finish == "length" else "stop",
            "total_duration": self._watch.total,
            "load_duration": 0,
            "prompt_eval_count": done.usage.prompt_tokens,
            "prompt_eval_duration": self._watch.reading,
            "eval_count": done.usage.completion_tokens,
            # Clients divide by it.
            "eval_duration": max(self._watch.writing, 1),
            **{key: value for key, value in beside.items() if key != "total_duration"},
            **self._extension.field(done, _counts),
        }


class LineEncoder(_Answer):
    """One JSON object a line; the last one has ``"done": true``, and only it."""

    is_streamed = True
    media_type = "application/x-ndjson"

    @property
    def heartbeat(self) -> bytes:
        return self._line(_said(self._kind, ""))

    def feed(self, event: TurnEvent) -> bytes:
        if not self._takes(event):
            return b""
        match event:
            case TextDelta():
                text = self._joiner.feed(event)
                return self._line(_said(self._kind, text)) if text else b""
            case ReasoningDelta(text=text) if text and self._shows_thinking:
                return self._line(_said(self._kind, "", thinking=text))
            case TurnDone():
                calls = self._line(_said(self._kind, "", calls=event.client_calls)) if event.client_calls else b""
                return calls + _encoded({**_head(self._model), **_said(self._kind, ""), **self._end(event)})
            case _:
                return b""

    def finish(self) -> bytes:
        return b""

    def error(self, failure: SatchelError) -> bytes:
        return _encoded({"error": told(failure)})

    def _line(self, said: Mapping[str, object]) -> bytes:
        return _encoded({**_head(self._model), **said, "done": False})


class ObjectEncoder(_Answer):
    """One object with the text that the lines would have carried."""

    is_streamed = False
    media_type = "application/json; charset=utf-8"
    heartbeat = b""

    def __init__(self, call: OllamaCall, *, agent: str, now: Callable[[], int] = time.monotonic_ns) -> None:
        super().__init__(call, agent=agent, now=now)
        self._text: list[str] = []
        self._thinking: list[str] = []

    def feed(self, event: TurnEvent) -> bytes:
        if not self._takes(event):
            return b""
        match event:
            case TextDelta():
                self._text.append(self._joiner.feed(event))
            case ReasoningDelta(text=text) if self._shows_thinking:
                self._thinking.append(text)
            case TurnDone():
                said = _said(
                    self._kind, "".join(self._text), thinking="".join(self._thinking), calls=event.client_calls
                )
                return encode_json({**_head(self._model), **said, **self._end(event)})
            case _:
                pass
        return b""

    def finish(self) -> bytes:
        return b""

    def error(self, failure: SatchelError) -> bytes:
        return encode_json({"error": told(failure)})


def _head(model: str) -> dict[str, object]:
    return {"model": model, "created_at": _time(datetime.now(UTC))}


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _said(kind: Kind, text: str, *, thinking: str = "", calls: Iterable[ToolUse] = ()) -> dict[str, object]:
    """The fields of a line that carry what the model said."""
    thought: dict[str, object] = {"thinking": thinking} if thinking else {}
    if kind == "generate":
        return {"response": text, **thought}
    used = [
        {
            "id": use.call_id,
            "function": {"index": index, "name": use.name, "arguments": read_arguments(use.arguments) or {}},
        }
        for index, use in enumerate(calls)
    ]
    return {"message": {"role": "assistant", "content": text, **thought, **({"tool_calls": used} if used else {})}}


def _counts(usage: Usage) -> dict[str, object]:
    return {"prompt_eval_count": usage.prompt_tokens, "eval_count": usage.completion_tokens}


def _encoded(value: object) -> bytes:
    line = encode_json(value)
    for raw, escaped in _LINE_ENDS:
        line = line.replace(raw, escaped)
    return line + b"\n"
