"""A scripted turn in the words of each wire format: the messages of its stream, and its answer in one piece."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from satchel.chat.messages import Json

Message = dict[str, Json]


class Call(Protocol):
    """A call; ``fragments`` are the pieces of its arguments."""

    @property
    def name(self) -> str: ...
    @property
    def fragments(self) -> tuple[str, ...]: ...
    @property
    def call_id(self) -> str: ...


class Turn(Protocol):
    """What a turn says. ``sealed`` is what comes with its reasoning to be sent back unread."""

    @property
    def text(self) -> tuple[str, ...]: ...
    @property
    def reasoning(self) -> tuple[str, ...]: ...
    @property
    def sealed(self) -> str: ...
    @property
    def calls(self) -> Sequence[Call]: ...
    @property
    def finish(self) -> str | None: ...
    @property
    def usage(self) -> Mapping[str, Json] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One wire format. ``pieces`` go out before a fault strikes, ``ending`` after; ``end`` closes a stream."""

    media_type: str
    pieces: Callable[[Turn], Iterator[Message]]
    ending: Callable[[Turn], Iterator[Message]]
    whole: Callable[[Turn], Message]
    is_lines: bool = False
    end: bytes = b""

    def frame(self, message: Mapping[str, Json]) -> bytes:
        """The bytes of one message."""
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        if self.is_lines:
            return f"{text}\n".encode()
        kind = message.get("type")
        named = f"event: {kind}\n" if isinstance(kind, str) else ""
        return f"{named}data: {text}\n\n".encode()


# --- OpenAI Chat Completions


def _chunk(delta: Message, finish: str | None = None) -> Message:
    choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": [choice],
    }


def _chat_pieces(turn: Turn) -> Iterator[Message]:
    yield _chunk({"role": "assistant", "content": ""})
    for piece in turn.reasoning:
        yield _chunk({"reasoning_content": piece})
    for piece in turn.text:
        yield _chunk({"content": piece})
    for index, call in enumerate(turn.calls):
        for number, fragment in enumerate(call.fragments or ("",)):
            entry: Message = {"index": index, "function": {"arguments": fragment}}
            if number == 0:
                entry |= {"type": "function", "function": {"name": call.name, "arguments": fragment}}
                entry |= {"id": call.call_id} if call.call_id else {}
            yield _chunk({"tool_calls": [entry]})


def _chat_finish(turn: Turn) -> str:
    return turn.finish or ("tool_calls" if turn.calls else "stop")


def _chat_ending(turn: Turn) -> Iterator[Message]:
    if turn.finish != "":
        yield _chunk({}, _chat_finish(turn))
    if turn.usage is not None:
        yield {**_chunk({}), "choices": [], "usage": dict(turn.usage)}


def _chat_whole(turn: Turn) -> Message:
    message: Message = {"role": "assistant", "content": "".join(turn.text) or None}
    if turn.reasoning:
        message["reasoning_content"] = "".join(turn.reasoning)
    calls: list[Json] = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": "".join(call.fragments)},
        }
        for call in turn.calls
    ]
    if calls:
        message["tool_calls"] = calls
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": _chat_finish(turn)}],
        "usage": dict(turn.usage) if turn.usage is not None else None,
    }


# --- OpenAI Responses


def _items(turn: Turn) -> list[Message]:
    items: list[Message] = []
    if turn.reasoning or turn.sealed:
        summary: list[Json] = [{"type": "summary_text", "text": "".join(turn.reasoning)}] if turn.reasoning else []
        items.append(
            {"type": "reasoning", "id": "rs_scripted", "summary": summary, "encrypted_content": turn.sealed or None}
        )
    if turn.text:
        part: Json = {"type": "output_text", "text": "".join(turn.text), "annotations": []}
        items.append(
            {"type": "message", "id": "msg_scripted", "status": "completed", "role": "assistant", "content": [part]}
        )
    items.extend(
        {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": "".join(call.fragments),
            "status": "completed",
        }
        for number, call in enumerate(turn.calls)
    )
    return items


def _response(turn: Turn, status: str, output: Sequence[Json]) -> Message:
    return {
        "id": "resp_scripted",
        "object": "response",
        "created_at": 0,
        "model": "scripted",
        "status": status,
        "error": None,
        "incomplete_details": {"reason": turn.finish} if status == "incomplete" else None,
        "output": list(output),
        "usage": dict(turn.usage) if turn.usage is not None else None,
    }


_EMPTY: Mapping[str, Message] = {
    "function_call": {"arguments": ""},
    "message": {"content": []},
    "reasoning": {"summary": []},
}


def _responses_pieces(turn: Turn) -> Iterator[Message]:
    yield {"type": "response.created", "response": _response(turn, "in_progress", [])}
    for index, item in enumerate(_items(turn)):
        kind = item["type"]
        place: Message = {"output_index": index, "item_id": item["id"]}
        begun = {**item, **_EMPTY[str(kind)]}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        if kind == "reasoning":
            for piece in turn.reasoning:
                yield {"type": "response.reasoning_summary_text.delta", **place, "summary_index": 0, "delta": piece}
        elif kind == "message":
            for piece in turn.text:
                yield {"type": "response.output_text.delta", **place, "content_index": 0, "delta": piece}
        else:
            for piece in turn.calls[int(str(item["id"]).removeprefix("fc_"))].fragments:
                yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _responses_whole(turn: Turn) -> Message:
    return _response(turn, "incomplete" if turn.finish else "completed", _items(turn))


def _responses_ending(turn: Turn) -> Iterator[Message]:
    response = _responses_whole(turn)
    if turn.finish != "":
        yield {"type": f"response.{response['status']}", "response": response}


# --- Ollama


def _line(message: Message) -> Message:
    said: Json = {"role": "assistant", "content": "", **message}
    return {"model": "scripted", "created_at": "1970-01-01T00:00:00Z", "message": said, "done": False}


def _ollama_calls(turn: Turn) -> list[Json]:
    calls: list[Json] = []
    for call in turn.calls:
        function: Message = {"name": call.name, "arguments": json.loads("".join(call.fragments))}
        calls.append({"id": call.call_id, "function": function} if call.call_id else {"function": function})
    return calls


def _ollama_pieces(turn: Turn) -> Iterator[Message]:
    for piece in turn.reasoning:
        yield _line({"thinking": piece})
    for piece in turn.text:
        yield _line({"content": piece})
    for call in _ollama_calls(turn):
        yield _line({"tool_calls": [call]})


def _ollama_end(turn: Turn, message: Message) -> Message:
    end: Message = {"done": True, "done_reason": turn.finish or "stop"}
    return {**_line(message), **end, **(turn.usage or {})}


def _ollama_ending(turn: Turn) -> Iterator[Message]:
    if turn.finish != "":
        yield _ollama_end(turn, {})


def _ollama_whole(turn: Turn) -> Message:
    message: Message = {"content": "".join(turn.text)}
    if turn.reasoning:
        message["thinking"] = "".join(turn.reasoning)
    if turn.calls:
        message["tool_calls"] = _ollama_calls(turn)
    return _ollama_end(turn, message)


# --- Anthropic Messages


def _blocks(turn: Turn) -> list[Message]:
    blocks: list[Message] = []
    if turn.reasoning or turn.sealed:
        blocks.append({"type": "thinking", "thinking": "".join(turn.reasoning), "signature": turn.sealed})
    if turn.text:
        blocks.append({"type": "text", "text": "".join(turn.text)})
    blocks.extend(
        {"type": "tool_use", "id": call.call_id, "name": call.name, "input": json.loads("".join(call.fragments))}
        for call in turn.calls
    )
    return blocks


def _anthropic_whole(turn: Turn) -> Message:
    content: list[Json] = [*_blocks(turn)]
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": turn.finish or ("tool_use" if turn.calls else "end_turn"),
        "stop_sequence": None,
        "usage": dict(turn.usage or {}),
    }


def _anthropic_pieces(turn: Turn) -> Iterator[Message]:
    begun: Message = {**_anthropic_whole(turn), "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    calls = iter(turn.calls)
    for index, block in enumerate(_blocks(turn)):
        deltas: list[Message] = []
        match block["type"]:
            case "thinking":
                start: Message = {**block, "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": piece} for piece in turn.reasoning]
                deltas.append({"type": "signature_delta", "signature": turn.sealed})
            case "text":
                start = {**block, "text": ""}
                deltas = [{"type": "text_delta", "text": piece} for piece in turn.text]
            case _:
                start = {**block, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in next(calls).fragments]
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}


def _anthropic_ending(turn: Turn) -> Iterator[Message]:
    whole = _anthropic_whole(turn)
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
        "usage": whole["usage"],
    }
    if turn.finish != "":
        yield {"type": "message_stop"}


_EVENTS = "text/event-stream"
FORMS: Mapping[str, Form] = {
    "/v1/chat/completions": Form(
        media_type=_EVENTS,
        pieces=_chat_pieces,
        ending=_chat_ending,
        whole=_chat_whole,
        end=b"data: [DONE]\n\n",
    ),
    "/v1/responses": Form(
        media_type=_EVENTS, pieces=_responses_pieces, ending=_responses_ending, whole=_responses_whole
    ),
    "/api/chat": Form(
        media_type="application/x-ndjson",
        pieces=_ollama_pieces,
        ending=_ollama_ending,
        whole=_ollama_whole,
        is_lines=True,
    ),
    "/v1/messages": Form(
        media_type=_EVENTS, pieces=_anthropic_pieces, ending=_anthropic_ending, whole=_anthropic_whole
    ),
}
"""By the path that is asked."""
