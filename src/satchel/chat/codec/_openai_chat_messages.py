"""Messages and their parts in the OpenAI Chat Completions format.

Kept as they came: unknown message and part fields, unknown parts, tool calls of other kinds than functions.
``Opaque.raw`` is the content part itself, or ``{"tool_calls": item}`` for a tool call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from satchel.chat.arguments import replayable
from satchel.chat.codec._calls import arguments_text
from satchel.chat.codec._common import (
    Node,
    Object,
    data_url,
    extras,
    marked_error,
    own,
    read_data_url,
    rest,
)
from satchel.chat.messages import Format, Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolOutput, ToolUse

FORMAT: Format = "openai-chat"
REASONING_FIELDS = ("reasoning_content", "reasoning")

_ROLES: dict[str, Role] = {role: role for role in ("system", "developer", "user", "assistant", "tool")}
_AUDIO_FORMATS = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav"}


def decode_message(node: Node, *, new_id: Callable[[], str] | None = None) -> Message:
    """One message. ``new_id`` makes ids for calls without one; without it such a call is a fault."""
    role = _ROLES.get(node.get("role").text())
    if role is None:
        raise node.get("role").bad("system, developer, user, assistant or tool")
    if role == "tool":
        return _decode_tool_output(node)
    kept = rest(node.object(), "role", "content", "tool_calls")
    parts: list[Part] = []
    if role == "assistant":
        parts.extend(_take_reasoning(kept))
    content = node.get("content")
    if content.value is None and role != "assistant":
        raise content.bad("a string or an array of parts")
    parts.extend(decode_content(content))
    if "content" in node.object() and not content.value and not isinstance(content.value, str):
        kept["content"] = content.value
    calls = node.get("tool_calls")
    if role == "assistant" and isinstance(calls.value, list) and calls.value:
        parts.extend(_decode_call(call, new_id) for call in calls.items())
    elif "tool_calls" in node.object():
        if calls.value is not None and calls.value != []:
            raise calls.bad("an array, in a message of the assistant")
        kept["tool_calls"] = calls.value
    return Message(role=role, parts=tuple(parts), extra=extras(FORMAT, kept))


def _take_reasoning(kept: Object) -> list[Part]:
    for name in REASONING_FIELDS:
        text = kept.get(name)
        if isinstance(text, str) and text:
            del kept[name]
            return [reasoning_part(text, name)]
    return []


def reasoning_part(text: str, name: str) -> Reasoning:
    """Reasoning that came under the field ``name``."""
    return Reasoning(text=text, format=FORMAT, extra=extras(FORMAT, {"field": name}))


def decode_content(content: Node) -> list[Part]:
    """The parts of a ``content`` field: a string, an array of parts or null."""
    if content.value is None:
        return []
    if isinstance(content.value, str):
        return [Text(text=content.value)]
    if not isinstance(content.value, list):
        raise content.bad("a string or an array of parts")
    return [_decode_part(part) for part in content.items()]


def _decode_part(node: Node) -> Part:
    raw = node.object()
    match node.get("type").text():
        case "text":
            return Text(text=node.get("text").text(), extra=extras(FORMAT, rest(raw, "text")))
        case "image_url" if isinstance(raw.get("image_url"), dict):
            inner = node.get("image_url")
            url = inner.get("url").text()
            media_type, data = read_data_url(url) or ("", "")
            return Media(
                kind="image",
                media_type=media_type,
                url="" if data else url,
                data=data,
                extra=extras(FORMAT, {**raw, "image_url": rest(inner.object(), "url")}),
            )
        case "input_audio":
            inner = node.get("input_audio")
            return Media(
                kind="audio",
                media_type=f"audio/{inner.get('format').text()}",
                data=inner.get("data").text(),
                extra=extras(FORMAT, {**raw, "input_audio": rest(inner.object(), "data", "format")}),
            )
        case "file":
            inner = node.get("file")
            file_data = inner.get("file_data").value
            read = read_data_url(file_data) if isinstance(file_data, str) else None
            if read is None:
                return Opaque(format=FORMAT, raw=raw)
            return Media(
                kind="document",
                media_type=read[0],
                data=read[1],
                extra=extras(FORMAT, {**raw, "file": rest(inner.object(), "file_data")}),
            )
        case _:
            return Opaque(format=FORMAT, raw=raw)


def _decode_call(node: Node, new_id: Callable[[], str] | None) -> Part:
    raw = node.object()
    if "function" not in raw and raw.get("type") not in (None, "function"):
        return Opaque(format=FORMAT, raw={"tool_calls": raw})
    function = node.get("function")
    call_id = node.get("id").filled_text() if new_id is None else node.get("id").optional_text() or new_id()
    kept = rest(raw, "id", "type", "function")
    if inner := rest(function.object(), "name", "arguments"):
        kept["function"] = inner
    arguments = function.get("arguments")
    if arguments.value is not None and not isinstance(arguments.value, str | dict):
        raise arguments.bad("JSON text")
    return ToolUse(
        call_id=call_id,
        name=function.get("name").filled_text(),
        arguments=arguments_text(arguments.value),
        extra=extras(FORMAT, kept),
    )


def _decode_tool_output(node: Node) -> Message:
    content = node.get("content")
    parts = decode_content(content)
    kept: Object = {} if isinstance(content.value, str) else {"content": content.value}
    output = ToolOutput(
        call_id=node.get("tool_call_id").filled_text(),
        text=joined_text(parts),
        name=node.get("name").optional_text(),
        extra=extras(FORMAT, kept),
    )
    fields = rest(node.object(), "role", "content", "tool_call_id", "name")
    return Message(role="tool", parts=(output,), extra=extras(FORMAT, fields))


def joined_text(parts: Iterable[Part]) -> str:
    """The text of text parts, without a separator."""
    return "".join(part.text for part in parts if isinstance(part, Text))


def encode_message(message: Message) -> list[Object]:
    """One message as it goes out: one object, one for each output of a tool message, none when nothing is left."""
    kept = own(message.extra, FORMAT)
    outputs: list[Object] = [_encode_output(part, kept) for part in message.parts if isinstance(part, ToolOutput)]
    if message.role == "tool":
        return outputs
    body: Object = {"role": message.role, **kept}
    content = encode_content(message.parts)
    if content is not None:
        body["content"] = content
    if message.role == "assistant":
        body.update(_encode_reasoning(message.parts))
        if calls := _encode_calls(message.parts):
            body["tool_calls"] = calls
    is_empty = body.keys() == {"role"}
    return outputs if is_empty else [*outputs, body]


def encode_content(parts: Iterable[Part]) -> Json:
    """The ``content`` field; None when the parts hold nothing that goes there."""
    shown = [(part, encoded) for part in parts if (encoded := _encode_part(part))]
    if not shown:
        return None
    if all(isinstance(part, Text) and not own(part.extra, FORMAT) for part, _ in shown):
        return joined_text(part for part, _ in shown)
    return [encoded for _, encoded in shown]


def _encode_part(part: Part) -> Object:
    """A content part; empty when this format has no place for it."""
    if isinstance(part, Text):
        return {"type": "text", **own(part.extra, FORMAT), "text": part.text}
    if isinstance(part, Opaque) and part.format == FORMAT and isinstance(part.raw, dict):
        return part.raw if "type" in part.raw else {}
    if not isinstance(part, Media):
        return {}
    kept = own(part.extra, FORMAT)
    if part.kind == "image":
        url = data_url(part.media_type, part.data) if part.data else part.url
        return {"type": "image_url", **kept, "image_url": {**_inner(kept, "image_url"), "url": url}}
    if not part.data:
        return {}
    if part.kind == "audio":
        form = _AUDIO_FORMATS.get(part.media_type, part.media_type.rpartition("/")[2])
        inner: Object = {**_inner(kept, "input_audio"), "data": part.data, "format": form}
        return {"type": "input_audio", **kept, "input_audio": inner}
    file: Object = {"filename": "document"} if not kept else _inner(kept, "file")
    file["file_data"] = data_url(part.media_type or "application/pdf", part.data)
    return {"type": "file", **kept, "file": file}


def _inner(kept: Object, key: str) -> Object:
    inner = kept.get(key)
    return dict(inner) if isinstance(inner, dict) else {}


def _encode_reasoning(parts: Iterable[Part]) -> Object:
    body: Object = {}
    for part in parts:
        if isinstance(part, Reasoning) and part.text and part.format in {FORMAT, None}:
            name = str(own(part.extra, FORMAT).get("field") or REASONING_FIELDS[0])
            body[name] = f"{body.get(name, '')}{part.text}"
    return body


def _encode_calls(parts: Iterable[Part]) -> list[Json]:
    calls: list[Json] = []
    for part in parts:
        if isinstance(part, ToolUse):
            kept = own(part.extra, FORMAT)
            function: Object = {
                "name": part.name,
                "arguments": replayable(part.arguments),
                **_inner(kept, "function"),
            }
            calls.append({"id": part.call_id, "type": "function", **kept, "function": function})
        elif isinstance(part, Opaque) and part.format == FORMAT and isinstance(part.raw, dict):
            calls.extend(item for key, item in part.raw.items() if key == "tool_calls" and "type" not in part.raw)
    return calls


def _encode_output(part: ToolOutput, kept: Object) -> Object:
    body: Object = {"role": "tool", **kept, "tool_call_id": part.call_id}
    if part.name:
        body["name"] = part.name
    body["content"] = marked_error(part.text, is_error=part.is_error)
    raw = own(part.extra, FORMAT).get("content")
    if isinstance(raw, list) and _text_of(raw) == part.text and not part.is_error:
        body["content"] = raw
    return body


def _text_of(raw: list[Json]) -> str:
    texts = [item.get("text") for item in raw if isinstance(item, dict) and item.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))
