"""OpenAI Chat Completions, in both directions.

What does not cross into this format: reasoning of another format (text or opaque), opaque items of another format,
``is_error`` of a tool's answer (its text begins with "Error:" instead), pictures inside a tool's answer, documents
and sounds that are only a URL, and every kept field of another format. What it cannot say to others: everything it
does not share with ``ChatRequest`` (``n``, ``logprobs``, ``response_format``, ``logit_bias`` and so on) stays here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from satchel.chat.codec._calls import decide_finish, finish_of, without_cut_call
from satchel.chat.codec._common import (
    Node,
    Object,
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
from satchel.chat.codec._openai_chat_messages import FORMAT, decode_message, encode_message
from satchel.chat.codec._openai_chat_stream import StreamDecoder, decode_usage
from satchel.chat.events import ModelDone, Usage
from satchel.chat.messages import Json, Message, ToolUse
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy, ToolSpec

__all__ = [
    "FORMAT",
    "StreamDecoder",
    "decode_answer",
    "decode_message",
    "decode_request",
    "decode_usage",
    "encode_answer",
    "encode_message",
    "encode_request",
    "encode_usage",
]

_LIMIT = "max_tokens"
_NEWER_LIMIT = "max_completion_tokens"
_LIMITS = (_LIMIT, _NEWER_LIMIT)
_SETTINGS = (
    "model",
    "temperature",
    "top_p",
    "seed",
    "stop",
    _LIMIT,
    _NEWER_LIMIT,
    "tool_choice",
    "parallel_tool_calls",
)


def decode_request(body: Mapping[str, Json]) -> ChatRequest:
    """A request body. Raises ``RequestError`` that names the field."""
    node = Node(dict(body), "", invalid_request)
    node.get("stream").optional_flag()
    if not node.get("messages").items():
        raise node.get("messages").bad("an array of at least one message")
    messages = tuple(decode_message(item) for item in node.get("messages").items())
    tools, foreign = split_tools(node, _decode_tool)
    settings = _decode_settings(node)
    kept = leftovers(body, _encode_settings(settings, (_LIMIT,)), "messages", "tools") | foreign
    if len(both := {name: body[name] for name in _LIMITS if body.get(name) is not None}) == len(_LIMITS):
        kept |= both
    return replace(settings, messages=messages, tools=tools, extra=extras(FORMAT, kept))


def encode_request(request: ChatRequest, *, stream: bool) -> Object:
    """A request body. ``stream_options`` go along only with a stream."""
    kept = own(request.extra, FORMAT)
    limits = (_LIMIT,)
    if kept.get(_NEWER_LIMIT) is not None:
        limits = (_NEWER_LIMIT,) if kept.get(_LIMIT) is None else _LIMITS
    now = _encode_settings(request, limits)
    then = _encode_settings(_decode_settings(Node(kept, "", invalid_request)), limits)
    body: Object = reconcile(kept, _SETTINGS, now=now, then=then)
    body["messages"] = [encoded for message in request.messages for encoded in encode_message(message)]
    join_tools(body, [_encode_tool(spec) for spec in request.tools])
    if stream:
        body["stream"] = True
    else:
        body.pop("stream_options", None)
        if body.get("stream"):
            body["stream"] = False
    return body


def _decode_settings(node: Node) -> ChatRequest:
    limits = [limit for name in _LIMITS if (limit := node.get(name).optional_integer()) is not None]
    return ChatRequest(
        model=node.get("model").optional_text(),
        messages=(),
        sampling=Sampling(
            temperature=node.get("temperature").optional_number(),
            top_p=node.get("top_p").optional_number(),
            seed=node.get("seed").optional_integer(),
            stop=_decode_stop(node.get("stop")),
        ),
        max_tokens=min(limits, default=None),
        tool_choice=_decode_policy(node.get("tool_choice")),
        one_call=node.get("parallel_tool_calls").value is False,
    )


def _encode_settings(request: ChatRequest, limits: tuple[str, ...]) -> Object:
    settings: dict[str, Json] = {
        "model": request.model or None,
        "temperature": request.sampling.temperature,
        "top_p": request.sampling.top_p,
        "seed": request.sampling.seed,
        "stop": list(request.sampling.stop) or None,
        **dict.fromkeys(limits, request.max_tokens),
        "tool_choice": _encode_policy(request.tool_choice),
        "parallel_tool_calls": False if request.one_call else None,
    }
    return {key: value for key, value in settings.items() if value is not None}


def _decode_stop(node: Node) -> tuple[str, ...]:
    return (node.value,) if isinstance(node.value, str) else node.strings()


def _decode_policy(node: Node) -> ToolPolicy | None:
    match node.value:
        case None:
            return None
        case "auto" | "none" | "required" as mode:
            return ToolPolicy(mode=mode)
        case {"type": "function"}:
            return ToolPolicy(mode="named", name=node.get("function").get("name").filled_text())
        case {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}:
            return ToolPolicy(mode="auto")
        case {"type": str()}:
            return ToolPolicy(mode="required")
        case _:
            raise node.bad('"auto", "none", "required" or an object that names a tool')


def _encode_policy(policy: ToolPolicy | None) -> Json:
    if policy is None:
        return None
    return {"type": "function", "function": {"name": policy.name}} if policy.mode == "named" else policy.mode


def _decode_tool(node: Node) -> ToolSpec | None:
    raw = node.object()
    if node.get("type").text() != "function":
        return None
    function = node.get("function")
    description = function.get("description").optional_text()
    parameters = function.get("parameters")
    schema = {} if parameters.value is None else parameters.object()
    inner = rest(
        function.object(), "name", *(["description"] if description else []), *(["parameters"] if schema else [])
    )
    kept = rest(raw, "type", "function") | ({"function": inner} if inner else {})
    return ToolSpec(
        name=function.get("name").filled_text(), description=description, parameters=schema, extra=extras(FORMAT, kept)
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
    """An answer that was not streamed; of several choices the first. Raises ``UpstreamError`` when it is not one."""
    node = Node(dict(body), "", garbled_answer)
    choices = node.get("choices").items()
    if not choices:
        raise node.get("choices").bad("an array of at least one choice")
    choice = choices[0]
    wire = choice.get("finish_reason").optional_text()
    message = _drop_cut_call(
        decode_message(_as_assistant(choice.get("message")), new_id=fresh_call_id), is_cut=finish_of(wire) == "length"
    )
    raw_usage = node.get("usage").value
    usage = decode_usage(raw_usage) if isinstance(raw_usage, dict) and raw_usage else None
    kept = rest(body, "id", "object", "created", "model", "choices", "usage")
    if usage is None or encode_usage(usage) != raw_usage:
        kept |= {key: value for key, value in body.items() if key == "usage"}
    if beside := rest(choice.object(), "index", "message", "finish_reason"):
        kept["choice"] = beside
    finish = decide_finish(wire, message.tool_uses)
    return ModelDone(finish=finish, message=message, usage=usage, extra=extras(FORMAT, kept))


def _as_assistant(node: Node) -> Node:
    return Node({"role": "assistant", **node.object()}, node.path, node.fault)


def _drop_cut_call(message: Message, *, is_cut: bool) -> Message:
    if without_cut_call(list(message.tool_uses), is_cut=is_cut) == message.tool_uses:
        return message
    last = next(part for part in reversed(message.parts) if isinstance(part, ToolUse))
    return replace(message, parts=tuple(part for part in message.parts if part is not last))


def encode_answer(done: ModelDone, *, model: str, id: str, created: int) -> Object:  # noqa: A002
    """An answer that is not streamed. ``created`` is in Unix seconds."""
    kept = own(done.extra, FORMAT)
    choice = kept.pop("choice", None)
    message: Object = {"role": "assistant", "content": None}
    for encoded in encode_message(done.message):
        message |= encoded
    raw_usage = kept.get("usage")
    body: Object = {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": done.finish,
                **(choice if isinstance(choice, dict) else {}),
            }
        ],
    }
    if done.usage is not None and not (isinstance(raw_usage, dict) and decode_usage(raw_usage) == done.usage):
        kept["usage"] = encode_usage(done.usage)
    return body | kept


def encode_usage(usage: Usage) -> Object:
    """The ``usage`` object of an answer or of a stream's last chunk."""
    body: Object = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
    if usage.cached_tokens or usage.cache_write_tokens:
        body["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
        if usage.cache_write_tokens:
            body["prompt_tokens_details"] |= {"cache_write_tokens": usage.cache_write_tokens}
    if usage.reasoning_tokens:
        body["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return body
