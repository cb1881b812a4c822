"""An answer's content blocks, as the events that build them up. Both forms of an answer are made from these.

All prose of a turn is one block as long as nothing comes between: many clients read the first text block only. Where
thinking or a call comes between, prose goes on in a block of its own. The blank line between the prose of two rounds
is part of the text either way, so the text blocks of an answer, joined, are its text on every other surface.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from satchel.chat.arguments import is_one_object, read_arguments
from satchel.chat.messages import Json, ToolUse
from satchel.engine.events import CallDelta, ReasoningDelta

Event = dict[str, Json]

_GROWING = frozenset({"text", "thinking"})
_MAX_LOOKED_AT = 256 * 1024


@dataclass(slots=True)
class _Call:
    """A call's block. It is closed when its arguments are whole and something else begins, else at the end."""

    index: int
    is_open: bool = True
    pieces: list[str] = field(default_factory=list[str])
    looked_at: int = 0

    def is_whole(self) -> bool:
        """Whether the arguments are one object; looks at a bounded number of characters over all times it is asked."""
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}") or self.looked_at > _MAX_LOOKED_AT:
            return False
        arguments = "".join(self.pieces)
        self.looked_at += len(arguments)
        return is_one_object(arguments)


class BlockWriter:
    """Every block has one start and one stop, and no delta after its stop.

    Blocks follow one another. Only calls whose fragments a model server mixes are open side by side. Without
    ``shows_thinking``, reasoning is written only where the model server signed it, since it wants that back.
    """

    def __init__(self, *, shows_thinking: bool) -> None:
        self._shows_thinking = shows_thinking
        self._next = 0
        self._open: tuple[Literal["text", "thinking"], int] | None = None
        self._round = 0
        self._calls: dict[int, _Call] = {}

    def text(self, piece: str) -> list[Event]:
        """A piece of prose."""
        if not piece:
            return []
        events, index = self._enter("text", {"type": "text", "text": ""})
        return [*events, _delta(index, {"type": "text_delta", "text": piece})]

    def citation(self, citation: Json) -> list[Event]:
        """What the prose just written refers to; left out where none is open."""
        if self._open is None or self._open[0] != "text":
            return []
        return [_delta(self._open[1], {"type": "citations_delta", "citation": citation})]

    def reasoning(self, delta: ReasoningDelta) -> list[Event]:
        """A piece of reasoning, or the end of a signed or redacted one."""
        raw = delta.opaque or {}
        kind = raw.get("type")
        if kind == "redacted_thinking":
            return self.whole(raw)
        if kind == "thinking" and not self._shows_thinking:
            return self._signed(raw)
        events: list[Event] = []
        if delta.text and self._shows_thinking:
            if delta.round != self._round:
                events += self._leave("thinking")
            self._round = delta.round
            events += self._thought(delta.text)
        if kind == "thinking":
            return [*events, *self._signed(raw)]
        return events + self._leave("thinking") if raw else events

    def call(self, delta: CallDelta) -> list[Event]:
        """A fragment of a call. What comes after a call was whole and closed is left out."""
        events: list[Event] = []
        call = self._calls.get(delta.index)
        if call is None:
            events += [*self._leave(), *self._leave_calls()]
            call = self._calls[delta.index] = _Call(index=self._take())
            events.append(
                _start(call.index, {"type": "tool_use", "id": delta.call_id, "name": delta.name, "input": {}})
            )
        if delta.arguments and call.is_open:
            call.pieces.append(delta.arguments)
            events.append(_delta(call.index, {"type": "input_json_delta", "partial_json": delta.arguments}))
        return events

    def whole(self, block: Mapping[str, Json]) -> list[Event]:
        """A block that comes in one piece."""
        events = [*self._leave(), *self._leave_calls()]
        index = self._take()
        return [*events, _start(index, block), _stop(index)]

    def end(self) -> list[Event]:
        """Closes what is open."""
        return [*self._leave(), *self._leave_calls(is_end=True)]

    def _thought(self, text: str) -> list[Event]:
        events, index = self._enter("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        return [*events, _delta(index, {"type": "thinking_delta", "thinking": text})]

    def _signed(self, raw: Mapping[str, Json]) -> list[Event]:
        """The end of a thinking block; all of it when none of it was written yet."""
        events: list[Event] = []
        if self._open is None or self._open[0] != "thinking":
            events, index = self._enter("thinking", {"type": "thinking", "thinking": "", "signature": ""})
            if text := raw.get("thinking"):
                events.append(_delta(index, {"type": "thinking_delta", "thinking": text}))
        else:
            index = self._open[1]
        if signature := raw.get("signature"):
            events.append(_delta(index, {"type": "signature_delta", "signature": signature}))
        return [*events, *self._leave()]

    def _enter(self, kind: Literal["text", "thinking"], block: Mapping[str, Json]) -> tuple[list[Event], int]:
        if self._open is not None and self._open[0] == kind:
            return [], self._open[1]
        events = [*self._leave(), *self._leave_calls()]
        self._open = (kind, self._take())
        return [*events, _start(self._open[1], block)], self._open[1]

    def _leave(self, only: Literal["text", "thinking"] | None = None) -> list[Event]:
        if self._open is None or only not in (None, self._open[0]):
            return []
        index = self._open[1]
        self._open = None
        return [_stop(index)]

    def _leave_calls(self, *, is_end: bool = False) -> list[Event]:
        events: list[Event] = []
        for call in self._calls.values():
            if call.is_open and (is_end or call.is_whole()):
                call.is_open = False
                events.append(_stop(call.index))
        return events

    def _take(self) -> int:
        self._next += 1
        return self._next - 1


class BlockReader:
    """Puts the blocks together again."""

    def __init__(self) -> None:
        self._blocks: dict[Json, dict[str, Json]] = {}
        self._pieces: dict[Json, list[str]] = {}

    def feed(self, events: Iterable[Event]) -> None:
        """Takes events in their order."""
        for event in events:
            match event:
                case {"index": index, "content_block": dict(block)}:
                    self._blocks[index] = dict(block)
                    self._pieces[index] = []
                case {"index": index, "delta": {"type": "signature_delta", "signature": signature}}:
                    self._blocks[index]["signature"] = signature
                case {"index": index, "delta": {"type": "citations_delta", "citation": citation}}:
                    known = self._blocks[index].get("citations")
                    self._blocks[index]["citations"] = [*(known if isinstance(known, list) else []), citation]
                case {"index": index, "delta": {"text": str(piece)} | {"thinking": str(piece)}}:
                    self._pieces[index].append(piece)
                case _:
                    # Arguments are known whole at the end.
                    pass

    def content(self, calls: Iterable[ToolUse]) -> list[Json]:
        """The blocks. ``calls`` are those that were made in the end: one that a limit cut off is not among them."""
        made = {use.call_id: use for use in calls}
        content: list[Json] = []
        for index, block in self._blocks.items():
            kind = str(block["type"])
            if kind in _GROWING:
                content.append({**block, kind: "".join(self._pieces[index]) or block.get(kind)})
            elif kind != "tool_use":
                content.append(block)
            elif use := made.get(str(block["id"])):
                content.append({**block, "input": read_arguments(use.arguments) or {}})
        return content


def _start(index: int, block: Mapping[str, Json]) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": dict(block)}


def _delta(index: int, delta: Mapping[str, Json]) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": dict(delta)}


def _stop(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}
