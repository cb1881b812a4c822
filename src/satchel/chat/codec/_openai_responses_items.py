"""Input and output items of the OpenAI Responses format.

Items of the assistant that follow each other are one message. The first part of each message item carries the item's
own fields under ``item``. ``Opaque.raw`` is a whole item, or ``{"content": part}`` for a content part (with
``item`` beside it when it is the first one).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from satchel.chat.arguments import replayable
from satchel.chat.codec._calls import arguments_text
from satchel.chat.codec._common import Node, Object, data_url, extras, marked_error, own, read_data_url, rest
from satchel.chat.messages import Format, Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolOutput, ToolUse

FORMAT: Format = "openai-responses"

_ROLES: dict[str, Role] = {role: role for role in ("system", "developer", "user", "assistant")}
_INSTRUCTIONS = extras(FORMAT, {"as": "instructions"})
_PLAIN_INPUT = extras(FORMAT, {"as": "input"})


def decode_instructions(node: Node) -> list[Message]:
    """The ``instructions`` field as a system message; nothing when it is absent or empty."""
    text = node.optional_text()
    return [Message(role="system", parts=(Text(text=text),), extra=_INSTRUCTIONS)] if text else []


def decode_input(node: Node) -> list[Message]:
    """The ``input`` field: a string or an array of items."""
    if isinstance(node.value, str):
        return [Message(role="user", parts=(Text(text=node.value),), extra=_PLAIN_INPUT)]
    if not isinstance(node.value, list) or not node.value:
        raise node.bad("a string or an array of items that is not empty")
    messages: list[Message] = []
    is_open = False
    for item in node.items():
        message = _decode_item(item)
        is_assistant = message.role == "assistant"
        if is_assistant and is_open:
            messages[-1] = replace(messages[-1], parts=(*messages[-1].parts, *message.parts))
        else:
            messages.append(message)
        is_open = is_assistant
    return messages


def _decode_item(node: Node) -> Message:
    raw = node.object()
    kind = raw.get("type", "message" if "role" in raw else None)
    if kind == "message":
        role = _ROLES.get(node.get("role").text())
        if role is None:
            raise node.get("role").bad("system, developer, user or assistant")
        if role == "assistant":
            return Message(role=role, parts=tuple(_decode_assistant_item(node)))
        return Message(role=role, parts=tuple(_decode_content(node)), extra=extras(FORMAT, _item_fields(node)))
    if kind == "function_call_output":
        return Message(role="tool", parts=(_decode_function_output(node),))
    if not isinstance(kind, str):
        raise node.get("type").bad("the kind of an item")
    if kind.endswith("_output"):
        return Message(role="tool", parts=(Opaque(format=FORMAT, raw=raw),))
    return Message(role="assistant", parts=(_decode_assistant_part(node, kind),))


def _item_fields(node: Node) -> Object:
    raw = node.object()
    fields = rest(raw, "role", "content")
    if raw.get("content") == []:
        fields["content"] = []
    return fields


def _decode_assistant_item(node: Node) -> list[Part]:
    parts = _decode_content(node)
    item = {**_item_fields(node), "role": "assistant"}
    if not parts:
        return [Opaque(format=FORMAT, raw={"type": "message", **node.object()})]
    first = parts[0]
    if isinstance(first, Opaque):
        raw = first.raw if isinstance(first.raw, dict) else {}
        parts[0] = replace(first, raw={**raw, "item": item})
    elif isinstance(first, Text | Media):
        parts[0] = replace(first, extra=extras(FORMAT, {**own(first.extra, FORMAT), "item": item}))
    return parts


def _decode_assistant_part(node: Node, kind: str) -> Part:
    raw = node.object()
    if kind == "function_call":
        arguments = node.get("arguments")
        if arguments.value is not None and not isinstance(arguments.value, str | dict):
            raise arguments.bad("JSON text")
        return ToolUse(
            call_id=node.get("call_id").filled_text(),
            name=node.get("name").filled_text(),
            arguments=arguments_text(arguments.value),
            extra=extras(FORMAT, rest(raw, "type", "call_id", "name", "arguments")),
        )
    if kind == "reasoning":
        return Reasoning(text=reasoning_text(raw), opaque=raw, format=FORMAT)
    return Opaque(format=FORMAT, raw=raw)


def reasoning_text(item: Object) -> str:
    """What a reasoning item shows: its text, or its summary, paragraph by paragraph."""
    for key in ("content", "summary"):
        pieces = item.get(key)
        if isinstance(pieces, list) and pieces:
            texts = [piece.get("text") for piece in pieces if isinstance(piece, dict)]
            return "\n\n".join(text for text in texts if isinstance(text, str))
    return ""


def _decode_content(node: Node) -> list[Part]:
    content = node.get("content")
    if isinstance(content.value, str):
        return [Text(text=content.value)]
    if not isinstance(content.value, list):
        raise content.bad("a string or an array of parts")
    return [_decode_part(part) for part in content.items()]


def _decode_part(node: Node) -> Part:
    raw = node.object()
    match node.get("type").text():
        case "input_text" | "output_text" | "text":
            return Text(text=node.get("text").text(), extra=extras(FORMAT, rest(raw, "text")))
        case "input_image" if isinstance(raw.get("image_url"), str):
            url = node.get("image_url").text()
            media_type, data = read_data_url(url) or ("", "")
            kept = extras(FORMAT, rest(raw, "image_url"))
            return Media(kind="image", media_type=media_type, url="" if data else url, data=data, extra=kept)
        case "input_file" if isinstance(raw.get("file_url"), str):
            return Media(kind="document", url=node.get("file_url").text(), extra=extras(FORMAT, rest(raw, "file_url")))
        case "input_file" if isinstance(raw.get("file_data"), str):
            read = read_data_url(node.get("file_data").text())
            if read is None:
                return Opaque(format=FORMAT, raw={"content": raw})
            kept = extras(FORMAT, rest(raw, "file_data"))
            return Media(kind="document", media_type=read[0], data=read[1], extra=kept)
        case _:
            return Opaque(format=FORMAT, raw={"content": raw})


def _decode_function_output(node: Node) -> ToolOutput:
    raw = node.object()
    output = node.get("output")
    if not isinstance(output.value, str | list):
        raise output.bad("a string or an array of parts")
    text = _text_of(output.value)
    known = ["type", "call_id", *(["output"] if isinstance(output.value, str) else [])]
    return ToolOutput(call_id=node.get("call_id").filled_text(), text=text, extra=extras(FORMAT, rest(raw, *known)))


def _text_of(output: Json) -> str:
    if isinstance(output, str):
        return output
    texts = [part.get("text") for part in output if isinstance(part, dict)] if isinstance(output, list) else []
    return "".join(text for text in texts if isinstance(text, str))


def decode_output(node: Node) -> list[Part]:
    """The ``output`` items of an answer as the parts of one message."""
    parts: list[Part] = []
    for item in node.items():
        kind = item.get("type").text()
        parts.extend(_decode_assistant_item(item) if kind == "message" else [_decode_assistant_part(item, kind)])
    return parts


def encode_input(messages: Iterable[Message]) -> tuple[str, Json]:
    """``(instructions, input)`` of a request."""
    instructions: list[str] = []
    items: list[Json] = []
    plain: str | None = None
    for message in messages:
        kept = own(message.extra, FORMAT)
        role = kept.pop("as", None)
        if role == "instructions":
            instructions.append(message.text)
            continue
        if role == "input" and not items and all(isinstance(part, Text) for part in message.parts):
            plain = message.text
        if message.role == "tool":
            items.extend(_encode_tool_part(part) for part in message.parts if _is_sent(part))
        elif message.role == "assistant":
            items.extend(encode_items(message))
        else:
            content = _encode_content(message.parts, "input_text")
            if content is None and "content" in kept:
                content = kept["content"]
            if content is not None:
                items.append({"role": message.role, **kept, "content": content})
    return "\n\n".join(instructions), items if plain is None or len(items) > 1 else plain


def _is_sent(part: Part) -> bool:
    return isinstance(part, ToolOutput) or (isinstance(part, Opaque) and part.format == FORMAT)


def _encode_tool_part(part: Part) -> Json:
    if isinstance(part, Opaque):
        return part.raw
    if not isinstance(part, ToolOutput):
        return None
    kept = own(part.extra, FORMAT)
    if "output" not in kept or _text_of(kept["output"]) != part.text or part.is_error:
        kept["output"] = marked_error(part.text, is_error=part.is_error)
    return {"type": "function_call_output", "call_id": part.call_id, **kept}


def encode_items(message: Message) -> list[Json]:
    """The items of an assistant's message, as a request replays them."""
    items: list[Json] = []
    run: list[Part] = []
    for part in message.parts:
        is_content = isinstance(part, Text | Media) or (isinstance(part, Opaque) and _is_content(part))
        if run and (not is_content or _item_of(part) is not None):
            items.extend(_encode_message_item(run))
            run = []
        if is_content:
            run.append(part)
        else:
            items.extend(_encode_other(part))
    items.extend(_encode_message_item(run))
    return items


def _is_content(part: Opaque) -> bool:
    return part.format == FORMAT and isinstance(part.raw, dict) and "type" not in part.raw and "content" in part.raw


def _item_of(part: Part) -> Object | None:
    """The fields of the message item that this part begins."""
    kept: Json = None
    if isinstance(part, Text | Media):
        kept = own(part.extra, FORMAT).get("item")
    elif isinstance(part, Opaque) and isinstance(part.raw, dict):
        kept = part.raw.get("item")
    return dict(kept) if isinstance(kept, dict) else None


def _encode_message_item(run: list[Part]) -> list[Json]:
    if not run:
        return []
    item = _item_of(run[0]) or {"role": "assistant"}
    content = _encode_content(run, "output_text")
    return [] if content is None or (content == "" and "type" not in item) else [{**item, "content": content}]


def _encode_other(part: Part) -> list[Json]:
    match part:
        case ToolUse():
            head: Object = {"type": "function_call", "call_id": part.call_id, "name": part.name}
            return [head | own(part.extra, FORMAT) | {"arguments": replayable(part.arguments)}]
        case Reasoning():
            return [dict(part.opaque)] if part.format == FORMAT and part.opaque else []
        case Opaque():
            return [part.raw] if part.format == FORMAT else []
        case _:
            return []


def _encode_content(parts: Iterable[Part], text_type: str) -> Json:
    shown = [(part, encoded) for part in parts if (encoded := _encode_part(part, text_type))]
    if not shown:
        return None
    if all(isinstance(part, Text) and "type" not in own(part.extra, FORMAT) for part, _ in shown):
        return "".join(part.text for part, _ in shown if isinstance(part, Text))
    return [encoded for _, encoded in shown]


def _encode_part(part: Part, text_type: str) -> Object:
    """A content part; empty when this format has no place for it."""
    if isinstance(part, Opaque):
        raw = part.raw.get("content") if _is_content(part) and isinstance(part.raw, dict) else None
        return raw if isinstance(raw, dict) else {}
    if isinstance(part, Text):
        return {"type": text_type, **rest(own(part.extra, FORMAT), "item"), "text": part.text}
    if not isinstance(part, Media) or part.kind == "audio":
        return {}
    kept = rest(own(part.extra, FORMAT), "item")
    if part.kind == "image":
        url = data_url(part.media_type, part.data) if part.data else part.url
        return {"type": "input_image", **({} if kept else {"detail": "auto"}), **kept, "image_url": url}
    if part.data:
        name: Object = {} if kept else {"filename": "document"}
        return {"type": "input_file", **name, **kept, "file_data": data_url(part.media_type, part.data)}
    return {"type": "input_file", **kept, "file_url": part.url}


def encode_output(message: Message, answer_id: str) -> list[Json]:
    """The output items of an answer: as they came, or made from the parts, with ids made from the answer's."""
    parts = [_shown_reasoning(part) if isinstance(part, Reasoning) else part for part in message.parts]
    items = encode_items(replace(message, parts=tuple(parts)))
    return [_completed(item, f"{answer_id}_{number}") for number, item in enumerate(items) if isinstance(item, dict)]


def _shown_reasoning(part: Reasoning) -> Reasoning:
    """Reasoning of another format as an item that a client can show."""
    if (part.format == FORMAT and part.opaque) or not part.text:
        return part
    summary: list[Json] = [{"type": "summary_text", "text": part.text}]
    return replace(part, format=FORMAT, opaque={"type": "reasoning", "summary": summary})


def _completed(item: Object, item_id: str) -> Json:
    if "id" in item:
        return item
    kind = item.get("type", "message")
    if kind == "reasoning":
        return {"id": f"rs_{item_id}", **item}
    if kind == "function_call":
        return {"id": f"fc_{item_id}", "status": "completed", **item}
    if kind != "message":
        return item
    content: Json = item.get("content")
    if isinstance(content, str):
        part: Json = {"type": "output_text", "text": content, "annotations": []}
        content = [part]
    return {"id": f"msg_{item_id}", "type": "message", "status": "completed", **item, "content": content}
