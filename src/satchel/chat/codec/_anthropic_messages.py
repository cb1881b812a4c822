"""Messages and their content blocks in the Anthropic format.

Each message that came in this format carries ``turn`` in its kept fields: "new" where a message began on the wire,
"same" where it was one with the message before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from satchel.chat.arguments import read_arguments, to_json
from satchel.chat.codec._common import Node, Object, extras, own, rest, sniffed_image_type
from satchel.chat.messages import Format, Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolOutput, ToolUse

FORMAT: Format = "anthropic"

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def decode_system(node: Node) -> list[Message]:
    """The ``system`` field: text or text blocks; nothing when it is absent or empty."""
    if not node.value:
        return []
    return [Message(role="system", parts=tuple(_decode_content(node, "system")))]


def decode_message(node: Node) -> list[Message]:
    """One message; several when a user's message holds tool results beside other blocks."""
    role = _ROLES.get(node.get("role").text())
    if role is None:
        raise node.get("role").bad("user, assistant or system")
    content = node.get("content")
    parts = _decode_content(content, role)
    fields = rest(node.object(), "role", "content") | {"turn": "new"}
    if not parts:
        return [Message(role=role, parts=(), extra=extras(FORMAT, {**fields, "content": content.value}))]
    messages: list[Message] = []
    for part in parts:
        part_role: Role = "tool" if isinstance(part, ToolOutput) else role
        if messages and messages[-1].role == part_role:
            messages[-1] = replace(messages[-1], parts=(*messages[-1].parts, part))
        else:
            messages.append(Message(role=part_role, parts=(part,), extra=extras(FORMAT, fields)))
        fields = {"turn": "same"}
    return messages


def _decode_content(content: Node, role: str) -> list[Part]:
    if isinstance(content.value, str):
        return [Text(text=content.value)]
    if not isinstance(content.value, list):
        raise content.bad("a string or an array of blocks")
    return [decode_block(block, role=role) for block in content.items()]


def decode_block(node: Node, *, role: str) -> Part:
    """One content block."""
    raw = node.object()
    match node.get("type").text():
        case "text":
            return Text(text=node.get("text").text(), extra=extras(FORMAT, rest(raw, "text")))
        case "thinking" if role == "assistant":
            return Reasoning(text=node.get("thinking").text(), opaque=raw, format=FORMAT)
        case "redacted_thinking" if role == "assistant":
            return Reasoning(opaque=raw, format=FORMAT)
        case "tool_use" if role == "assistant":
            return ToolUse(
                call_id=node.get("id").filled_text(),
                name=node.get("name").filled_text(),
                arguments=to_json(node.get("input").object()),
                extra=extras(FORMAT, rest(raw, "type", "id", "name", "input")),
            )
        case "tool_result" if role == "user":
            return _decode_result(node)
        case "image" | "document" as kind:
            return _decode_media(node, "image" if kind == "image" else "document")
        case _:
            return Opaque(format=FORMAT, raw=raw)


def _decode_media(node: Node, kind: str) -> Part:
    raw = node.object()
    source = node.get("source")
    kept = extras(FORMAT, {**raw, "source": rest(source.object(), "type", "media_type", "data", "url")})
    media_kind = "image" if kind == "image" else "document"
    match source.get("type").text():
        case "base64":
            return Media(
                kind=media_kind,
                media_type=source.get("media_type").text(),
                data=source.get("data").filled_text(),
                extra=kept,
            )
        case "url":
            return Media(kind=media_kind, url=source.get("url").filled_text(), extra=kept)
        case _:
            return Opaque(format=FORMAT, raw=raw)


def _decode_result(node: Node) -> ToolOutput:
    raw = node.object()
    content = node.get("content")
    if content.value is not None and not isinstance(content.value, str | list):
        raise content.bad("a string or an array of blocks")
    text = _text_of(content.value)
    is_error = raw.get("is_error") is True
    known = ["type", "tool_use_id", *(["is_error"] if is_error else [])]
    if isinstance(content.value, str) and text:
        known.append("content")
    return ToolOutput(
        call_id=node.get("tool_use_id").filled_text(),
        text=text,
        is_error=is_error,
        extra=extras(FORMAT, rest(raw, *known)),
    )


def _text_of(content: Json) -> str:
    if isinstance(content, str):
        return content
    texts = [item.get("text") for item in content if isinstance(item, dict)] if isinstance(content, list) else []
    return "".join(text for text in texts if isinstance(text, str))


def encode_messages(messages: Iterable[Message]) -> tuple[Json, list[Json]]:
    """``(system, messages)`` of a request."""
    system: list[Message] = []
    turns: list[tuple[Role, Object, Json]] = []
    previous: Message | None = None
    for message in messages:
        kept = own(message.extra, FORMAT)
        turn = kept.pop("turn", None)
        role = message.role
        if role in {"system", "developer"} and turn is None:
            system.append(message)
            continue
        wire_role: Role = "user" if role in {"user", "tool"} else "assistant" if role == "assistant" else "system"
        content = _encode_content(message)
        if content is None:
            if "content" not in kept:
                continue
            content = kept.pop("content")
        kept.pop("content", None)
        joins = previous is not None and previous.role == "tool" and role == "tool" and turn is None
        if turns and turns[-1][0] == wire_role and (turn == "same" or joins):
            before = turns[-1]
            turns[-1] = (before[0], before[1], [*_as_blocks(before[2]), *_as_blocks(content)])
        else:
            turns.append((wire_role, kept, content))
        previous = message
    return _encode_system(system), [{"role": role, **kept, "content": content} for role, kept, content in turns]


def _as_blocks(content: Json) -> list[Json]:
    return list(content) if isinstance(content, list) else [{"type": "text", "text": content}]


def _encode_system(messages: Sequence[Message]) -> Json:
    parts = [part for message in messages for part in message.parts]
    if all(isinstance(part, Text) and not own(part.extra, FORMAT) for part in parts):
        return "\n\n".join(text for message in messages if (text := message.text))
    return [block for part in parts if (block := encode_block(part))]


def _encode_content(message: Message) -> Json:
    """The ``content`` field; None when nothing is left of the message."""
    parts = message.parts
    if parts and all(isinstance(part, Text) and not own(part.extra, FORMAT) for part in parts):
        is_ours = FORMAT in message.extra
        return message.text if message.text or is_ours else None
    return encode_blocks(message) or None


def encode_blocks(message: Message) -> list[Json]:
    """The content blocks of a message."""
    return [block for part in message.parts if (block := encode_block(part))]


def encode_block(part: Part) -> Object:
    """One content block; empty when this format has no place for the part."""
    match part:
        case Text():
            kept = own(part.extra, FORMAT)
            return {"type": "text", **kept, "text": part.text} if part.text or kept else {}
        case Reasoning():
            return dict(part.opaque) if part.format == FORMAT and part.opaque else {}
        case ToolUse():
            arguments = read_arguments(part.arguments) or {}
            head: Object = {"type": "tool_use", "id": part.call_id, "name": part.name, "input": arguments}
            return head | own(part.extra, FORMAT)
        case ToolOutput():
            return _encode_result(part)
        case Media():
            return _encode_media(part)
        case Opaque():
            return part.raw if part.format == FORMAT and isinstance(part.raw, dict) else {}


def _encode_result(part: ToolOutput) -> Object:
    kept = own(part.extra, FORMAT)
    if part.text and _text_of(kept.get("content")) != part.text:
        kept["content"] = part.text
    if part.is_error:
        kept["is_error"] = True
    return {"type": "tool_result", "tool_use_id": part.call_id, **kept}


def _encode_media(part: Media) -> Object:
    if part.kind == "audio":
        return {}
    kept = own(part.extra, FORMAT)
    beside = kept.get("source")
    source: Object = dict(beside) if isinstance(beside, dict) else {}
    if part.data:
        fallback = sniffed_image_type(part.data) if part.kind == "image" else "application/pdf"
        source |= {"type": "base64", "media_type": part.media_type or fallback, "data": part.data}
    else:
        source |= {"type": "url", "url": part.url}
    return {"type": part.kind, **kept, "source": source}
