"""Ollama's own chat format (``/api/chat``), in both directions.

Calls may have no ids here. A request's calls get ids by their place in the conversation, so that the same
conversation always gets the same ones, and a tool's answer is matched by id, then by name, then by order.

What does not cross into this format: ``tool_choice`` (declarations are left out when no tool may be called), pictures
that are only a URL, sounds, documents, where a picture stood within the text, reasoning and opaque items of another
format, ``is_error`` of a tool's answer (its text begins with "Error:" instead), cached and reasoning tokens, and every
kept field of another format. "developer" becomes "system".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from satchel.chat.codec._calls import CallSlots, cut_off, decide_finish, finish_of, without_cut_call
from satchel.chat.codec._common import (
    Node,
    Object,
    TextMender,
    count,
    extras,
    fresh_call_id,
    garbled_answer,
    invalid_request,
    join_tools,
    leftovers,
    own,
    reconcile,
    rest,
    split_tools,
)
from satchel.chat.codec._ollama_messages import FORMAT, decode_calls, decode_messages, decode_parts, encode_messages
from satchel.chat.codec.failures import read_failure
from satchel.chat.events import ModelDone, ModelEvent, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Json, Message, Part, Reasoning, Text, ToolUse
from satchel.chat.request import ChatRequest, Sampling, ToolSpec

__all__ = ["FORMAT", "StreamDecoder", "decode_answer", "decode_request", "encode_answer", "encode_request"]

_OPTIONS = ("temperature", "top_p", "seed", "stop", "num_predict")
_ANSWER_FIELDS = ("model", "created_at", "message", "done", "done_reason", "prompt_eval_count", "eval_count")


def decode_request(body: Mapping[str, Json]) -> ChatRequest:
    """A request body. Raises ``RequestError`` that names the field."""
    node = Node(dict(body), "", invalid_request)
    node.get("stream").optional_flag()
    tools, foreign = split_tools(node, _decode_tool)
    options = node.get("options")
    raw_options = {} if options.value is None else options.object()
    settings = replace(_decode_options(options), model=node.get("model").optional_text())
    known = ["messages", "tools", *(["options"] if raw_options else []), *(["model"] if settings.model else [])]
    kept = leftovers(body, {}, *known) | foreign
    if odd := leftovers(raw_options, _encode_options(settings)):
        kept["options"] = odd
    return replace(settings, messages=decode_messages(node.get("messages")), tools=tools, extra=extras(FORMAT, kept))


def encode_request(request: ChatRequest, *, stream: bool) -> Object:
    """A request body. A stream is the default of this format."""
    body = own(request.extra, FORMAT)
    options = Node(body.get("options"), "options", invalid_request)
    raw_options = dict(options.object()) if options.value else {}
    now = _encode_options(request)
    then = _encode_options(_decode_options(options))
    if written := reconcile(raw_options, _OPTIONS, now=now, then=then):
        body["options"] = written
    if request.model:
        body["model"] = request.model
    body["messages"] = encode_messages(request.messages)
    is_barred = request.tool_choice is not None and request.tool_choice.mode == "none"
    join_tools(body, [] if is_barred else [_encode_tool(spec) for spec in request.tools])
    if not stream or "stream" in body:
        body["stream"] = stream
    return body


def _decode_options(node: Node) -> ChatRequest:
    if node.value is None:
        return ChatRequest(messages=())
    stop = node.get("stop")
    limit = node.get("num_predict").optional_integer()
    return ChatRequest(
        messages=(),
        sampling=Sampling(
            temperature=node.get("temperature").optional_number(),
            top_p=node.get("top_p").optional_number(),
            seed=node.get("seed").optional_integer(),
            stop=(stop.value,) if isinstance(stop.value, str) else stop.strings(),
        ),
        max_tokens=limit if limit is not None and limit >= 0 else None,
    )


def _encode_options(request: ChatRequest) -> Object:
    options: dict[str, Json] = {
        "temperature": request.sampling.temperature,
        "top_p": request.sampling.top_p,
        "seed": request.sampling.seed,
        "stop": list(request.sampling.stop) or None,
        "num_predict": request.max_tokens,
    }
    return {key: value for key, value in options.items() if value is not None}


def _decode_tool(node: Node) -> ToolSpec | None:
    raw = node.object()
    if raw.get("type", "function") != "function":
        return None
    function = node.get("function")
    description = function.get("description").optional_text()
    schema = function.get("parameters")
    parameters = {} if schema.value is None else schema.object()
    known = ["name", *(["description"] if description else []), *(["parameters"] if parameters else [])]
    inner = rest(function.object(), *known)
    return ToolSpec(
        name=function.get("name").filled_text(),
        description=description,
        parameters=parameters,
        extra=extras(FORMAT, rest(raw, "type", "function") | ({"function": inner} if inner else {})),
    )


def _encode_tool(spec: ToolSpec) -> Json:
    kept = own(spec.extra, FORMAT)
    inner = kept.get("function")
    function: Object = {"name": spec.name}
    if spec.description:
        function["description"] = spec.description
    if spec.parameters:
        function["parameters"] = dict(spec.parameters)
    return {"type": "function", **kept, "function": function | (inner if isinstance(inner, dict) else {})}


def decode_answer(body: Mapping[str, Json]) -> ModelDone:
    """An answer that was not streamed. Raises ``UpstreamError`` when it is not one."""
    if body.get("error"):
        raise read_failure(dict(body))
    node = Node(dict(body), "", garbled_answer)
    wire = node.get("done_reason").optional_text()
    message = node.get("message")
    parts, kept = decode_parts(message)
    calls = decode_calls(message, fresh_call_id)
    uses = without_cut_call(calls, is_cut=finish_of(wire) == "length")
    return ModelDone(
        finish=decide_finish(wire, uses),
        message=Message(role="assistant", parts=(*parts, *uses), extra=extras(FORMAT, kept)),
        usage=decode_usage(body),
        extra=extras(FORMAT, _beside(body)),
    )


def _beside(body: Mapping[str, Json]) -> Object:
    """What an answer says beyond message, ending and counts."""
    kept = rest(body, *_ANSWER_FIELDS)
    if body.get("done_reason") not in (None, "stop", "length"):
        kept["done_reason"] = body.get("done_reason")
    return kept


def encode_answer(done: ModelDone, *, model: str, id: str, created: int) -> Object:  # noqa: A002
    """An answer that is not streamed. ``created`` is in Unix seconds; this format has no place for ``id``."""
    del id
    message: Object = {"role": "assistant", "content": ""}
    for encoded in encode_messages([done.message]):
        if isinstance(encoded, dict):
            message |= encoded
    counts: Object = {}
    if done.usage is not None:
        counts = {"prompt_eval_count": done.usage.prompt_tokens, "eval_count": done.usage.completion_tokens}
    return {
        "model": model,
        "created_at": datetime.fromtimestamp(created, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "message": message,
        "done": True,
        "done_reason": "length" if done.finish == "length" else "stop",
        **counts,
        **own(done.extra, FORMAT),
    }


def decode_usage(body: Mapping[str, Json]) -> Usage | None:
    """The counts of a last line; None when it has none."""
    if body.get("prompt_eval_count") is None and body.get("eval_count") is None:
        return None
    return Usage(prompt_tokens=count(body.get("prompt_eval_count")), completion_tokens=count(body.get("eval_count")))


class StreamDecoder:
    """Feed it each line's object in order, then ask for the end. Calls come whole, one or more to a line."""

    def __init__(self, *, new_id: Callable[[], str] = fresh_call_id) -> None:
        self._new_id = new_id
        self._slots = CallSlots(new_id)
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._mender = TextMender()
        self._reasoning_mender = TextMender()
        self._message_extra: Object = {}
        self._last: Mapping[str, Json] | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the last line was seen."""
        return self._last is not None

    def feed(self, event: Mapping[str, Json]) -> list[ModelEvent]:
        """What one line adds. Raises ``UpstreamError`` for an error line and for one of the wrong shape."""
        if event.get("error"):
            raise read_failure(dict(event))
        node = Node(dict(event), "", garbled_answer)
        events: list[ModelEvent] = []
        message = node.get("message")
        if message.value is not None:
            self._message_extra |= rest(message.object(), "role", "content", "thinking", "tool_calls", "images")
            if thought := self._reasoning_mender.feed(message.get("thinking").optional_text()):
                self._reasoning.append(thought)
                events.append(ModelReasoning(text=thought))
            if piece := self._mender.feed(message.get("content").optional_text()):
                self._text.append(piece)
                events.append(ModelText(text=piece))
            for use in decode_calls(message, self._new_id):
                slot = self._slots.open(call_id=use.call_id, name=use.name)
                slot.extra = own(use.extra, FORMAT)
                events.extend(self._slots.add(slot, use.arguments))
        if event.get("done") is True:
            self._last = event
        return events

    def finish(self) -> ModelDone:
        """The whole answer. Raises ``UpstreamError`` (upstream-cut-off) when the last line was not seen."""
        if self._last is None:
            raise cut_off()
        wire = self._last.get("done_reason")
        wire = wire if isinstance(wire, str) else ""
        uses: tuple[ToolUse, ...] = self._slots.uses(FORMAT, is_cut=finish_of(wire) == "length")
        parts: list[Part] = []
        if self._reasoning:
            parts.append(Reasoning(text="".join(self._reasoning), format=FORMAT))
        parts.append(Text(text="".join(self._text)))
        return ModelDone(
            finish=decide_finish(wire, uses),
            message=Message(role="assistant", parts=(*parts, *uses), extra=extras(FORMAT, self._message_extra)),
            usage=decode_usage(self._last),
            extra=extras(FORMAT, _beside(self._last)),
        )
