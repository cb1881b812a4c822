"""The events of a streamed Anthropic Messages answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from satchel.chat.arguments import read_arguments
from satchel.chat.codec._anthropic_messages import FORMAT, decode_block
from satchel.chat.codec._calls import CallSlots, Slot, cut_off, decide_finish, finish_of
from satchel.chat.codec._common import (
    Node,
    Object,
    TextMender,
    count,
    extras,
    fresh_call_id,
    garbled_answer,
    rest,
)
from satchel.chat.codec.failures import read_failure
from satchel.chat.events import ModelDone, ModelEvent, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Json, Message, Part, ToolUse


@dataclass(slots=True)
class _Block:
    """A content block while it is being streamed. ``pieces`` grow the field that its kind has."""

    raw: Object
    slot: Slot | None = None
    is_open: bool = True
    pieces: list[str] = field(default_factory=list[str])
    mender: TextMender = field(default_factory=TextMender)


_GROWING = {"text": "text", "thinking": "thinking"}


class StreamDecoder:
    """Feed it the data of each event in order, then ask for the end."""

    def __init__(self, *, new_id: Callable[[], str] = fresh_call_id) -> None:
        self._slots = CallSlots(new_id)
        self._blocks: dict[int, _Block] = {}
        self._usage: Object = {}
        self._extra: Object = {}
        self._wire_finish = ""
        self._is_stopped = False

    @property
    def is_finished(self) -> bool:
        """Whether the stream has come to its end, which is more than the model's word for how it ended."""
        return self._is_stopped

    def feed(self, event: Mapping[str, Json]) -> list[ModelEvent]:
        """What one event adds. Raises ``UpstreamError`` for an error event and for one of the wrong shape.

        A block has one start and one stop, and no delta after its stop.
        """
        node = Node(dict(event), "", garbled_answer)
        match event.get("type"):
            case "error":
                raise read_failure(dict(event))
            case "message_start":
                message = node.get("message")
                self._note_usage(message.get("usage").value)
                fields = rest(
                    message.object(), "id", "type", "role", "model", "content", "usage", "stop_reason", "stop_sequence"
                )
                self._extra |= fields
            case "content_block_start":
                return self._start(node)
            case "content_block_delta":
                return self._delta(node)
            case "content_block_stop":
                return self._stop(node)
            case "message_delta":
                delta = node.get("delta").object()
                self._note_usage(event.get("usage"))
                self._extra |= {key: value for key, value in rest(delta, "stop_reason").items() if value is not None}
                wire = delta.get("stop_reason")
                self._wire_finish = wire if isinstance(wire, str) else self._wire_finish
            case "message_stop":
                self._is_stopped = True
            case _:
                return []
        return []

    def finish(self) -> ModelDone:
        """The whole answer. Raises ``UpstreamError`` (upstream-cut-off) when the stream did not come to its end."""
        if not self.is_finished:
            raise cut_off()
        uses = self._slots.uses(FORMAT, is_cut=finish_of(self._wire_finish) == "length")
        by_id = {use.call_id: use for use in uses}
        parts: list[Part] = []
        for index in sorted(self._blocks):
            block = self._blocks[index]
            if block.slot is not None:
                if block.slot.call_id in by_id:
                    parts.append(by_id[block.slot.call_id])
                continue
            part = decode_block(Node(_whole(block), f"content[{index}]", garbled_answer), role="assistant")
            if not isinstance(part, ToolUse):
                parts.append(part)
        if self._wire_finish and self._wire_finish not in {"end_turn", "max_tokens", "tool_use", "refusal"}:
            self._extra["stop_reason"] = self._wire_finish
        if self._usage:
            self._extra["usage"] = self._usage
        return ModelDone(
            finish=decide_finish(self._wire_finish, uses),
            message=Message(role="assistant", parts=tuple(parts)),
            usage=decode_usage(self._usage) if self._usage else None,
            extra=extras(FORMAT, self._extra),
        )

    def _note_usage(self, raw: Json) -> None:
        if isinstance(raw, dict):
            self._usage |= {key: value for key, value in raw.items() if value is not None}

    def _start(self, node: Node) -> list[ModelEvent]:
        index = _index(node)
        if index in self._blocks:
            raise node.get("index").bad("that of a block that has not begun")
        start = node.get("content_block")
        block = _Block(raw=dict(start.object()))
        self._blocks[index] = block
        match start.get("type").text():
            case "tool_use":
                block.slot = self._slots.open(
                    call_id=start.get("id").optional_text(), name=start.get("name").filled_text()
                )
                block.slot.extra = rest(block.raw, "type", "id", "name", "input")
                return list(self._slots.add(block.slot, None))
            case "text" | "thinking" as kind:
                piece = block.raw.get(kind)
                return _grow(block, piece if isinstance(piece, str) else "")
            case _:
                return []

    def _delta(self, node: Node) -> list[ModelEvent]:
        block = self._blocks.get(_index(node))
        if block is None or not block.is_open:
            raise node.get("index").bad("that of a block that has begun and not stopped")
        delta = node.get("delta")
        match delta.get("type").text():
            case "text_delta":
                return _grow(block, delta.get("text").text())
            case "thinking_delta":
                return _grow(block, delta.get("thinking").text())
            case "signature_delta":
                known = block.raw.get("signature")
                block.raw["signature"] = f"{known or ''}{delta.get('signature').text()}"
            case "input_json_delta" if block.slot is not None:
                return list(self._slots.add(block.slot, delta.get("partial_json").optional_text()))
            case "citations_delta":
                known = block.raw.get("citations")
                citation = delta.get("citation").value
                block.raw["citations"] = [*(known if isinstance(known, list) else []), citation]
                return [ModelText(text="", extra=extras(FORMAT, {"citation": citation}))]
            case "input_json_delta":
                block.pieces.append(delta.get("partial_json").optional_text())
            case _:
                return []
        return []

    def _stop(self, node: Node) -> list[ModelEvent]:
        block = self._blocks.get(_index(node))
        if block is None or not block.is_open:
            raise node.get("index").bad("that of a block that has begun and not stopped")
        block.is_open = False
        if block.slot is not None and not block.slot.pieces:
            return list(self._slots.add(block.slot, block.raw.get("input") or "{}"))
        if block.raw.get("type") in ("thinking", "redacted_thinking"):
            return [ModelReasoning(text="", opaque=_whole(block))]
        return []


def _index(node: Node) -> int:
    index = node.get("index").optional_integer()
    if index is None:
        raise node.get("index").bad("a whole number")
    return index


def _grow(block: _Block, piece: str) -> list[ModelEvent]:
    piece = block.mender.feed(piece)
    if not piece:
        return []
    block.pieces.append(piece)
    return [ModelReasoning(text=piece)] if block.raw.get("type") == "thinking" else [ModelText(text=piece)]


def _whole(block: _Block) -> Object:
    name = _GROWING.get(str(block.raw.get("type")))
    if name is not None:
        return {**block.raw, name: "".join(block.pieces)}
    if block.pieces:
        return {**block.raw, "input": read_arguments("".join(block.pieces)) or {}}
    return block.raw


def decode_usage(raw: Mapping[str, Json]) -> Usage:
    """A ``usage`` object; tokens read from and written to the cache are part of the prompt."""
    cached = count(raw.get("cache_read_input_tokens"))
    written = count(raw.get("cache_creation_input_tokens"))
    return Usage(
        prompt_tokens=count(raw.get("input_tokens")) + cached + written,
        completion_tokens=count(raw.get("output_tokens")),
        cached_tokens=cached,
        cache_write_tokens=written,
    )
