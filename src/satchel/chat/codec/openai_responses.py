"""OpenAI Responses, in both directions.

What does not cross into this format: ``stop`` and ``seed``, reasoning of another format (an item needs the id and
the encrypted content that only this API gives), opaque items of another format, sounds, ``is_error`` of a tool's
answer (its text begins with "Error:" instead), and every kept field of another format. Declarations of another
format are sent with ``strict`` false, which is what they mean there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from satchel.chat.codec._calls import decide_finish, without_cut_call
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
from satchel.chat.codec._openai_responses_items import (
    FORMAT,
    decode_input,
    decode_instructions,
    decode_output,
    encode_input,
    encode_output,
)
from satchel.chat.codec._openai_responses_stream import StreamDecoder, decode_usage, read_ending
from satchel.chat.events import ModelDone, Usage
from satchel.chat.messages import Json, Message, ToolUse
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy, ToolSpec

__all__ = [
    "FORMAT",
    "StreamDecoder",
    "decode_answer",
    "decode_request",
    "encode_answer",
    "encode_request",
    "encode_usage",
]

_SETTINGS = ("model", "temperature", "top_p", "max_output_tokens", "tool_choice", "parallel_tool_calls")


def decode_request(body: Mapping[str, Json]) -> ChatRequest:
    """A request body. Raises ``RequestError`` that names the field."""
    node = Node(dict(body), "", invalid_request)
    node.get("stream").optional_flag()
    messages = (*decode_instructions(node.get("instructions")), *decode_input(node.get("input")))
    tools, foreign = split_tools(node, _decode_tool)
    settings = _decode_settings(node)
    known = ["input", "tools", *(["instructions"] if body.get("instructions") else [])]
    kept = leftovers(body, _encode_settings(settings), *known) | foreign
    return replace(settings, messages=messages, tools=tools, extra=extras(FORMAT, kept))


def encode_request(request: ChatRequest, *, stream: bool) -> Object:
    """A request body. ``stream_options`` go along only with a stream."""
    kept = own(request.extra, FORMAT)
    now = _encode_settings(request)
    then = _encode_settings(_decode_settings(Node(kept, "", invalid_request)))
    body: Object = reconcile(kept, _SETTINGS, now=now, then=then)
    instructions, items = encode_input(request.messages)
    if instructions:
        body["instructions"] = instructions
    body["input"] = items
    join_tools(body, [_encode_tool(spec) for spec in request.tools])
    if stream:
        body["stream"] = True
    else:
        body.pop("stream_options", None)
        if body.get("stream"):
            body["stream"] = False
    return body


def _decode_settings(node: Node) -> ChatRequest:
    return ChatRequest(
        model=node.get("model").optional_text(),
        messages=(),
        sampling=Sampling(
            temperature=node.get("temperature").optional_number(), top_p=node.get("top_p").optional_number()
        ),
        max_tokens=node.get("max_output_tokens").optional_integer(),
        tool_choice=_decode_policy(node.get("tool_choice")),
        one_call=node.get("parallel_tool_calls").value is False,
    )


def _encode_settings(request: ChatRequest) -> Object:
    settings: dict[str, Json] = {
        "model": request.model or None,
        "temperature": request.sampling.temperature,
        "top_p": request.sampling.top_p,
        "max_output_tokens": request.max_tokens,
        "tool_choice": _encode_policy(request.tool_choice),
        "parallel_tool_calls": False if request.one_call else None,
    }
    return {key: value for key, value in settings.items() if value is not None}


def _decode_policy(node: Node) -> ToolPolicy | None:
    match node.value:
        case None:
            return None
        case "auto" | "none" | "required" as mode:
            return ToolPolicy(mode=mode)
        case {"type": "function"}:
            return ToolPolicy(mode="named", name=node.get("name").filled_text())
        case {"type": "allowed_tools", "mode": "auto"}:
            return ToolPolicy(mode="auto")
        case {"type": str()}:
            return ToolPolicy(mode="required")
        case _:
            raise node.bad('"auto", "none", "required" or an object that names a tool')


def _encode_policy(policy: ToolPolicy | None) -> Json:
    if policy is None:
        return None
    return {"type": "function", "name": policy.name} if policy.mode == "named" else policy.mode


def _decode_tool(node: Node) -> ToolSpec | None:
    raw = node.object()
    if node.get("type").text() != "function":
        return None
    description = node.get("description").optional_text()
    schema = node.get("parameters")
    parameters = {} if schema.value is None else schema.object()
    known = ["type", "name", *(["description"] if description else []), *(["parameters"] if parameters else [])]
    kept = rest(raw, *known)
    if "strict" not in raw:
        kept["strict_default"] = True
    return ToolSpec(
        name=node.get("name").filled_text(),
        description=description,
        parameters=parameters,
        extra=extras(FORMAT, kept),
    )


def _encode_tool(spec: ToolSpec) -> Json:
    kept = own(spec.extra, FORMAT)
    head: Object = {"type": "function", "name": spec.name}
    if spec.description:
        head["description"] = spec.description
    head["parameters"] = dict(spec.parameters) or {"type": "object", "properties": {}}
    if kept.pop("strict_default", None) is None:
        head["strict"] = False
    return head | kept


def decode_answer(body: Mapping[str, Json]) -> ModelDone:
    """An answer that was not streamed. Raises ``UpstreamError`` when it is not one, or when it says it failed."""
    wire = read_ending(body)
    node = Node(dict(body), "", garbled_answer)
    parts = decode_output(node.get("output"))
    uses = without_cut_call([part for part in parts if isinstance(part, ToolUse)], is_cut=wire == "max_output_tokens")
    raw_usage = body.get("usage")
    usage = decode_usage(raw_usage) if isinstance(raw_usage, dict) and raw_usage else None
    return ModelDone(
        finish=decide_finish(wire, uses),
        message=Message(
            role="assistant", parts=tuple(part for part in parts if not isinstance(part, ToolUse) or part in uses)
        ),
        usage=usage,
        extra=extras(FORMAT, rest(body, "id", "object", "created_at", "model", "output")),
    )


def encode_answer(done: ModelDone, *, model: str, id: str, created: int) -> Object:  # noqa: A002
    """An answer that is not streamed. ``created`` is in Unix seconds. Items get ids that are made from ``id``."""
    kept = own(done.extra, FORMAT)
    raw_usage = kept.get("usage")
    if done.usage is not None and not (isinstance(raw_usage, dict) and decode_usage(raw_usage) == done.usage):
        kept["usage"] = encode_usage(done.usage)
    if _says_otherwise(kept, done):
        kept = rest(kept, "status", "incomplete_details")
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(done.finish)
    return {
        "id": id,
        "object": "response",
        "created_at": created,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": model,
        "output": encode_output(done.message, id),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **kept,
    }


def _says_otherwise(kept: Object, done: ModelDone) -> bool:
    """Whether the kept status is not the one of this ending."""
    return "status" in kept and decide_finish(read_ending(kept), done.message.tool_uses) != done.finish


def encode_usage(usage: Usage) -> Object:
    """The ``usage`` object of an answer."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
