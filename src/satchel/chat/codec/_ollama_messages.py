"""Messages in Ollama's own chat format."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from satchel.chat.arguments import read_arguments
from satchel.chat.codec._calls import arguments_text
from satchel.chat.codec._common import Node, Object, extras, marked_error, own, rest, sniffed_image_type
from satchel.chat.messages import Format, Json, Media, Message, Part, Reasoning, Role, Text, ToolOutput, ToolUse

FORMAT: Format = "ollama"

_ROLES: dict[str, Role] = {role: role for role in ("system", "user", "assistant", "tool")}
_KNOWN = ("role", "content", "thinking", "images", "tool_calls")


def decode_messages(node: Node) -> tuple[Message, ...]:
    """A request's messages; calls and the answers to them get ids where they have none."""
    messages: list[Message] = []
    waiting: list[ToolUse] = []
    numbers = itertools.count(1)

    def new_id() -> str:
        return f"call_ollama_{next(numbers)}"

    for item in node.items():
        role = _ROLES.get(item.get("role").text())
        if role is None:
            raise item.get("role").bad("system, user, assistant or tool")
        if role == "tool":
            messages.append(_decode_output(item, waiting, new_id))
            continue
        parts, kept = decode_parts(item)
        if role == "assistant":
            calls = decode_calls(item, new_id)
            waiting = [*calls]
            parts.extend(calls)
        messages.append(Message(role=role, parts=tuple(parts), extra=extras(FORMAT, kept)))
    return tuple(messages)


def decode_parts(node: Node) -> tuple[list[Part], Object]:
    """A message's parts without its calls, and its unknown fields."""
    raw = node.object()
    kept = rest(raw, *_KNOWN)
    parts: list[Part] = []
    if thinking := node.get("thinking").optional_text():
        parts.append(Reasoning(text=thinking, format=FORMAT))
    if raw.get("content") is not None:
        parts.append(Text(text=node.get("content").text()))
    parts.extend(
        Media(kind="image", media_type=sniffed_image_type(data), data=data) for data in node.get("images").strings()
    )
    kept |= {key: raw[key] for key in _KNOWN[1:] if key in raw and not raw[key] and raw[key] != ""}
    if raw.get("thinking") == "":
        kept["thinking"] = ""
    return parts, kept


def decode_calls(node: Node, new_id: Callable[[], str]) -> list[ToolUse]:
    """A message's calls. The kept field ``id`` is None for a call that came without one."""
    calls = node.get("tool_calls")
    return [] if calls.value is None else [_decode_call(call, new_id) for call in calls.items()]


def _decode_call(node: Node, new_id: Callable[[], str]) -> ToolUse:
    function = node.get("function")
    arguments = function.get("arguments")
    if arguments.value is not None and not isinstance(arguments.value, str | dict):
        raise arguments.bad("an object")
    kept = rest(node.object(), "id", "function")
    call_id = node.get("id").optional_text()
    if not call_id:
        kept["id"] = None
    if inner := rest(function.object(), "name", "arguments"):
        kept["function"] = inner
    return ToolUse(
        call_id=call_id or new_id(),
        name=function.get("name").filled_text(),
        arguments=arguments_text(arguments.value),
        extra=extras(FORMAT, kept),
    )


def _decode_output(node: Node, waiting: list[ToolUse], new_id: Callable[[], str]) -> Message:
    raw = node.object()
    name = node.get("tool_name").optional_text()
    given = node.get("tool_call_id").optional_text()
    match = next((use for use in waiting if use.call_id == given), None)
    if match is None and not given:
        match = next((use for use in waiting if use.name == name), waiting[0] if waiting else None)
    if match is not None:
        waiting.remove(match)
    kept: Object = {key: raw[key] for key in ("tool_name", "tool_call_id") if key in raw}
    output = ToolOutput(
        call_id=given or (match.call_id if match else new_id()),
        name=name or (match.name if match else ""),
        text=node.get("content").text(),
        extra=extras(FORMAT, {"names": kept}),
    )
    fields = rest(raw, "role", "content", "tool_name", "tool_call_id")
    return Message(role="tool", parts=(output,), extra=extras(FORMAT, fields))


def encode_messages(messages: Iterable[Message]) -> list[Json]:
    """The messages as they go out; a tool message gives one for each of its outputs."""
    names: dict[str, str] = {}
    written: list[Json] = []
    for message in messages:
        names.update({use.call_id: use.name for use in message.tool_uses})
        kept = own(message.extra, FORMAT)
        written.extend(_encode_output(part, kept, names) for part in message.parts if isinstance(part, ToolOutput))
        if message.role != "tool" and (body := _encode_message(message, kept)):
            written.append(body)
    return written


def _encode_message(message: Message, kept: Object) -> Object:
    """One message; empty when this format has no place for any of it."""
    body: Object = {**kept}
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    if texts:
        body["content"] = "".join(texts)
    thoughts = [part.text for part in message.parts if isinstance(part, Reasoning) and part.format in {FORMAT, None}]
    if "".join(thoughts):
        body["thinking"] = "".join(thoughts)
    images: list[Json] = [
        part.data for part in message.parts if isinstance(part, Media) and part.kind == "image" and part.data
    ]
    if images:
        body["images"] = images
    if calls := [_encode_call(use) for use in message.tool_uses]:
        body["tool_calls"] = calls
    return {"role": "system" if message.role == "developer" else message.role, **body} if body else {}


def _encode_call(use: ToolUse) -> Json:
    kept = own(use.extra, FORMAT)
    inner = kept.pop("function", None)
    function: Object = {"name": use.name, "arguments": read_arguments(use.arguments) or {}}
    head: Object = {} if kept.pop("id", "") is None else {"id": use.call_id}
    return {**head, **kept, "function": function | (inner if isinstance(inner, dict) else {})}


def _encode_output(part: ToolOutput, kept: Object, names: dict[str, str]) -> Object:
    given = own(part.extra, FORMAT).get("names")
    name = part.name or names.get(part.call_id, "")
    labels: Object = {"tool_name": name, "tool_call_id": part.call_id} if name else {"tool_call_id": part.call_id}
    return {
        "role": "tool",
        **kept,
        "content": marked_error(part.text, is_error=part.is_error),
        **(given if isinstance(given, dict) else labels),
    }
