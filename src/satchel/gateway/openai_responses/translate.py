"""OpenAI Responses: a turn's events into the vendor's events, or into one response."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from satchel.chat.codec.openai_responses import FORMAT, encode_usage
from satchel.chat.events import Finish
from satchel.chat.messages import Json, Message
from satchel.engine.events import (
    CallDelta,
    Notice,
    ProseJoiner,
    ReasoningDelta,
    RoundFinished,
    TextDelta,
    TurnDone,
    TurnEvent,
    TurnStarted,
)
from satchel.errors import SatchelError
from satchel.gateway.body import encode_json
from satchel.gateway.extension import Extension
from satchel.gateway.failures import told, vendor_error
from satchel.gateway.kept import KeptResponse
from satchel.gateway.openai_responses.output import Object, Output
from satchel.gateway.openai_responses.request import ResponseCall

Keep = Callable[[Object, Sequence[Message]], bool]


class _Answer:
    """What both forms of an answer share: one id, one time, the items, and the fields around them."""

    def __init__(self, call: ResponseCall, *, agent: str, keep: Keep) -> None:
        self._agent = agent
        self._call = call
        self._keep = keep
        token = uuid.uuid4().hex
        self._id = f"resp_{token}"
        self._created = int(time.time())
        self._model = call.chat.model
        self._joiner = ProseJoiner()
        self._extension = Extension(call.notices)
        self._output = Output(token, self._emit)

    def _emit(self, kind: str, fields: Object) -> None:
        """Takes one event of a stream."""

    def _take(self, event: TurnEvent) -> None:
        self._extension.note(event)
        if event.agent != self._agent:
            return
        match event:
            case TurnStarted(model=model):
                self._model = model
            case TextDelta():
                self._output.text(event, self._joiner.feed(event))
            case ReasoningDelta():
                self._output.reasoning(event)
            case CallDelta():
                self._output.call(event)
            case RoundFinished(finish=finish):
                self._output.end_round(finish)
            case _:
                pass

    def _end(self, done: TurnDone) -> Object:
        """The finished answer, kept for whoever asks for it again."""
        self._output.end(done.finish, {use.call_id for use in done.client_calls}, done.transcript)
        reason = _REASONS.get(done.finish)
        body = self._body("incomplete" if reason else "completed") | _reported(done)
        body["completed_at"] = None if reason else int(time.time())
        body["incomplete_details"] = {"reason": reason} if reason else None
        body["usage"] = encode_usage(done.usage)
        body |= self._told(done)
        if self._call.is_kept and not self._keep(body, done.transcript):
            self._extension.note(Notice(code="response-not-kept", message="The answer is too large to be kept."))
            body |= {"store": False} | self._told(done)
        return body

    def _body(self, status: str, error: Json = None) -> Object:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "completed_at": None,
            "error": error,
            "incomplete_details": None,
            "model": self._model,
            "output": list(self._output.items),
            **self._call.echo,
            "usage": None,
        }

    def _told(self, done: TurnDone) -> Object:
        return cast("Object", self._extension.field(done, encode_usage))


class EventEncoder(_Answer):
    """The vendor's events: numbered from 0 without a gap, each under its own name, and no end mark after the last."""

    is_streamed = True
    media_type = "text/event-stream; charset=utf-8"
    heartbeat = b": ping\n\n"

    def __init__(self, call: ResponseCall, *, agent: str, keep: Keep) -> None:
        super().__init__(call, agent=agent, keep=keep)
        self._number = 0
        self._pieces: list[bytes] = []

    def feed(self, event: TurnEvent) -> bytes:
        self._take(event)
        if event.agent == self._agent:
            if isinstance(event, TurnStarted):
                self._begin()
            elif isinstance(event, TurnDone):
                body = self._end(event)
                self._emit(f"response.{body['status']}", {"response": body})
        return self._taken()

    def finish(self) -> bytes:
        return b""

    def error(self, failure: SatchelError) -> bytes:
        if not self._number:
            # A heartbeat went out before the model server refused; clients want the answer announced all the same.
            self._begin()
        self._output.abandon()
        error: Object = {"code": _word_for(failure), "message": told(failure), "type": failure.code}
        self._emit("response.failed", {"response": self._body("failed", error)})
        return self._taken()

    def _begin(self) -> None:
        for kind in ("response.created", "response.in_progress"):
            self._emit(kind, {"response": self._body("in_progress")})

    def _emit(self, kind: str, fields: Object) -> None:
        data = encode_json({"type": kind, "sequence_number": self._number, **fields})
        self._pieces.append(b"event: %s\ndata: %s\n\n" % (kind.encode(), data))
        self._number += 1

    def _taken(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


class ResponseEncoder(_Answer):
    """One ``response`` with the items that a stream would have told of."""

    is_streamed = False
    media_type = "application/json"
    heartbeat = b""

    def feed(self, event: TurnEvent) -> bytes:
        self._take(event)
        if isinstance(event, TurnDone) and event.agent == self._agent:
            return encode_json(self._end(event))
        return b""

    def finish(self) -> bytes:
        return b""

    def error(self, failure: SatchelError) -> bytes:
        return encode_json(vendor_error(failure))


def kept_response(
    call: ResponseCall, body: Object, before: Sequence[Message], added: Sequence[Message]
) -> KeptResponse:
    """The answer as it is kept, with the whole conversation up to it."""
    return KeptResponse(body=body, inputs=call.inputs, messages=(*before, *call.asked, *added))


_REASONS: Mapping[Finish, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}
_REPORTED = ("moderation", "reasoning", "service_tier", "temperature", "text", "top_logprobs", "top_p", "truncation")
"""Fields whose effective value a model server of this format reports."""


def _reported(done: TurnDone) -> Object:
    own = done.extra.get(FORMAT, {})
    return {key: own[key] for key in _REPORTED if own.get(key) is not None}


def _word_for(failure: SatchelError) -> str:
    """The vendor's word for a failure in a stream; its clients know a closed list of them."""
    if failure.code == "upstream-rate-limited":
        return "rate_limit_exceeded"
    return "invalid_prompt" if failure.code in {"context-overflow", "upstream-rejected"} else "server_error"
