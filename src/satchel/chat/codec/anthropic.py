"""Anthropic Messages, in both directions.

A user message with tool results becomes a tool message and a user message; they are joined again on the way back.
System and developer messages that do not come from this format all go into ``system``. ``max_tokens`` is required
here, ``DEFAULT_MAX_TOKENS`` stands in when nobody set it.

What does not cross into this format: ``seed``, reasoning of another format (it has no signature), opaque items of
another format, sounds, and every kept field of another format. Prompt tokens count what was read from and written to
the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from satchel.chat.codec._anthropic_messages import FORMAT, decode_block, decode_message, decode_system, encode_blocks
from satchel.chat.codec._anthropic_messages import encode_messages as _encode_messages
from satchel.chat.codec._anthropic_stream import StreamDecoder, decode_usage
from satchel.chat.codec._calls import decide_finish, finish_of, without_cut_call
from satchel.chat.codec._common import (
    Node,
    Object,
    extras,
    garbled_answer,
    invalid_request,
    join_tools,
    leftovers,
    own,
    reconcile,
    rest,
    split_tools,
)
from satchel.chat.events import Finish, ModelDone, Usage
from satchel.chat.messages import Json, Message, ToolUse
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy, ToolSpec

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "FORMAT",
    "StreamDecoder",
    "decode_answer",
    "decode_request",
    "encode_answer",
    "encode_request",
    "encode_usage",
    "stop_reason",
]

DEFAULT_MAX_TOKENS = 8192
"""As much as every current model of this API may write; some may write more when a request asks for it."""

_SETTINGS = ("model", "temperature", "top_p", "stop_sequences", "max_tokens", "tool_choice")
_WORDS = {"auto": "auto", "none": "none", "required": "any"}
_STOP_REASONS: dict[Finish, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


def decode_request(body: Mapping[str, Json]) -> ChatRequest:
    """A request body. Raises ``RequestError`` that names the field."""
    node = Node(dict(body), "", invalid_request)
    node.get("stream").optional_flag()
    if node.get("max_tokens").optional_integer() is None:
        raise node.get("max_tokens").bad("a whole number")
    if not node.get("messages").items():
        raise node.get("messages").bad("an array of at least one message")
    messages = [*decode_system(node.get("system"))]
    for item in node.get("messages").items():
        messages.extend(decode_message(item))
    tools, foreign = split_tools(node, _decode_tool)
    settings = _decode_settings(node)
    known = ["messages", "tools", *(["system"] if body.get("system") else [])]
    kept = leftovers(body, _encode_settings(settings), *known) | foreign
    return replace(settings, messages=tuple(messages), tools=tools, extra=extras(FORMAT, kept))


def encode_request(request: ChatRequest, *, stream: bool) -> Object:
    """A request body."""
    kept = own(request.extra, FORMAT)
    now = {"max_tokens": DEFAULT_MAX_TOKENS, **_encode_settings(request)}
    then = _encode_settings(_decode_settings(Node(kept, "", invalid_request)))
    body: Object = reconcile(kept, _SETTINGS, now=now, then=then)
    system, messages = _encode_messages(request.messages)
    if system:
        body["system"] = system
    body["messages"] = messages
    join_tools(body, [_encode_tool(spec) for spec in request.tools])
    if stream:
        body["stream"] = True
    elif body.get("stream"):
        body["stream"] = False
    return body


def _decode_settings(node: Node) -> ChatRequest:
    return ChatRequest(
        model=node.get("model").optional_text(),
        messages=(),
        sampling=Sampling(
            temperature=node.get("temperature").optional_number(),
            top_p=node.get("top_p").optional_number(),
            stop=node.get("stop_sequences").strings(),
        ),
        max_tokens=node.get("max_tokens").optional_integer(),
        tool_choice=_decode_policy(node.get("tool_choice")),
        one_call=node.get("tool_choice").value is not None
        and node.get("tool_choice").get("disable_parallel_tool_use").value is True,
    )


def _encode_settings(request: ChatRequest) -> Object:
    policy = request.tool_choice
    if policy is None and request.one_call and request.tools:
        policy = ToolPolicy()
    settings: dict[str, Json] = {
        "model": request.model or None,
        "temperature": request.sampling.temperature,
        "top_p": request.sampling.top_p,
        "stop_sequences": list(request.sampling.stop) or None,
        "max_tokens": request.max_tokens,
        "tool_choice": _encode_policy(policy, one_call=request.one_call),
    }
    return {key: value for key, value in settings.items() if value is not None}


def _decode_policy(node: Node) -> ToolPolicy | None:
    if node.value is None:
        return None
    match node.get("type").text():
        case "auto":
            return ToolPolicy(mode="auto")
        case "none":
            return ToolPolicy(mode="none")
        case "any":
            return ToolPolicy(mode="required")
        case "tool":
            return ToolPolicy(mode="named", name=node.get("name").filled_text())
        case _:
            raise node.get("type").bad("auto, any, none or tool")


def _encode_policy(policy: ToolPolicy | None, *, one_call: bool) -> Json:
    if policy is None:
        return None
    body: Object = {"type": _WORDS[policy.mode]} if policy.mode != "named" else {"type": "tool", "name": policy.name}
    return body | {"disable_parallel_tool_use": True} if one_call and policy.mode != "none" else body


def _decode_tool(node: Node) -> ToolSpec | None:
    raw = node.object()
    if raw.get("type") not in (None, "custom"):
        return None
    description = node.get("description").optional_text()
    parameters = node.get("input_schema").object()
    known = ["name", *(["description"] if description else []), *(["input_schema"] if parameters else [])]
    return ToolSpec(
        name=node.get("name").filled_text(),
        description=description,
        parameters=parameters,
        extra=extras(FORMAT, rest(raw, *known)),
    )


def _encode_tool(spec: ToolSpec) -> Json:
    body: Object = {"name": spec.name}
    if spec.description:
        body["description"] = spec.description
    body["input_schema"] = dict(spec.parameters) or {"type": "object"}
    return body | own(spec.extra, FORMAT)


def decode_answer(body: Mapping[str, Json]) -> ModelDone:
    """An answer that was not streamed. Raises ``UpstreamError`` when it is not one."""
    node = Node(dict(body), "", garbled_answer)
    parts = [decode_block(block, role="assistant") for block in node.get("content").items()]
    wire = node.get("stop_reason").optional_text()
    uses = without_cut_call([part for part in parts if isinstance(part, ToolUse)], is_cut=finish_of(wire) == "length")
    parts = [part for part in parts if not isinstance(part, ToolUse) or part in uses]
    raw_usage = node.get("usage").value
    usage = decode_usage(raw_usage) if isinstance(raw_usage, dict) and raw_usage else None
    finish = decide_finish(wire, uses)
    kept = rest(body, "id", "type", "role", "model", "content", "usage", "stop_reason")
    if usage is None or encode_usage(usage) != raw_usage:
        kept |= {key: value for key, value in body.items() if key == "usage"}
    if stop_reason(finish) != wire:
        kept["stop_reason"] = node.get("stop_reason").value
    return ModelDone(
        finish=finish,
        message=Message(role="assistant", parts=tuple(parts)),
        usage=usage,
        extra=extras(FORMAT, kept),
    )


def encode_answer(done: ModelDone, *, model: str, id: str, created: int) -> Object:  # noqa: A002
    """An answer that is not streamed. This format has no place for ``created``."""
    del created
    kept = own(done.extra, FORMAT)
    raw_usage = kept.get("usage")
    if done.usage is not None and not (isinstance(raw_usage, dict) and decode_usage(raw_usage) == done.usage):
        kept["usage"] = encode_usage(done.usage)
    kept.setdefault("usage", encode_usage(Usage()))
    wire = kept.pop("stop_reason", None)
    is_same = isinstance(wire, str) and decide_finish(wire, done.message.tool_uses) == done.finish
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": encode_blocks(done.message),
        "stop_reason": wire if is_same else stop_reason(done.finish),
        "stop_sequence": None,
        **kept,
    }


def stop_reason(finish: Finish) -> str:
    """This format's word for an ending."""
    return _STOP_REASONS[finish]


def encode_usage(usage: Usage) -> Object:
    """The ``usage`` object of an answer."""
    body: Object = {
        "input_tokens": max(usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens, 0),
        "output_tokens": usage.completion_tokens,
    }
    if usage.cached_tokens:
        body["cache_read_input_tokens"] = usage.cached_tokens
    if usage.cache_write_tokens:
        body["cache_creation_input_tokens"] = usage.cache_write_tokens
    return body
