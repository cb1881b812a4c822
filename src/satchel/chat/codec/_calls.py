"""Calls and endings, as they come out of a stream of any format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from satchel.chat.arguments import is_one_object, read_arguments
from satchel.chat.codec._common import Object, TextMender, extras, fresh_call_id
from satchel.chat.events import Finish, ModelCall
from satchel.chat.messages import Format, Json, ToolUse
from satchel.errors import UpstreamError

_FINISHES: Mapping[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
}


_MAX_LOOKED_AT = 256 * 1024


@dataclass(slots=True)
class Slot:
    """One call while it is being streamed. ``index`` is set with the first delta that went out."""

    call_id: str
    name: str = ""
    is_id_made: bool = False
    index: int | None = None
    extra: Object = field(default_factory=dict[str, Json])
    pieces: list[str] = field(default_factory=list[str])
    mender: TextMender = field(default_factory=TextMender)
    size: int = 0
    looked_at: int = 0

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def is_whole(self) -> bool:
        """Whether the arguments so far are a finished object.

        Looks at a bounded number of characters over all times it is asked, and says no afterwards: a server may
        make it ask for every fragment of a long call.
        """
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        self.looked_at += self.size
        return self.looked_at <= _MAX_LOOKED_AT and is_one_object(self.arguments)


class CallSlots:
    """The calls of one generation. Ids are unique in it: a second call under a used id gets an id of its own."""

    def __init__(self, new_id: Callable[[], str] = fresh_call_id) -> None:
        self._new_id = new_id
        self._slots: list[Slot] = []
        self._ids: set[str] = set()
        self._sent = 0

    def open(self, *, call_id: str = "", name: str = "") -> Slot:
        """A new call; without a usable id it gets one."""
        is_made = not call_id or call_id in self._ids
        slot = Slot(call_id=self._new_id() if is_made else call_id, name=name, is_id_made=is_made)
        self._ids.add(slot.call_id)
        self._slots.append(slot)
        return slot

    def add(self, slot: Slot, arguments: Json) -> list[ModelCall]:
        """The deltas that a further piece of arguments gives: none as long as the name is unknown."""
        piece = slot.mender.feed(arguments_text(arguments))
        if piece:
            slot.pieces.append(piece)
            slot.size += len(piece)
        if not slot.name:
            return []
        if slot.index is None:
            slot.index = self._sent
            self._sent += 1
            piece = slot.arguments
        elif not piece:
            return []
        return [ModelCall(index=slot.index, call_id=slot.call_id, name=slot.name, arguments=piece)]

    def uses(self, form: Format, *, is_cut: bool) -> tuple[ToolUse, ...]:
        """The calls in the order of their deltas.

        A call that the length limit cut off (``is_cut``) is not one. Raises ``UpstreamError`` for a call without
        a name; an entry with nothing in it is ignored.
        """
        if any(not slot.name and (slot.pieces or not slot.is_id_made) for slot in self._slots):
            raise UpstreamError("upstream-garbled", "The model server sent a tool call without a name.")
        sent = sorted((slot.index, slot) for slot in self._slots if slot.index is not None)
        uses = [
            ToolUse(call_id=slot.call_id, name=slot.name, arguments=slot.arguments, extra=extras(form, slot.extra))
            for _, slot in sent
        ]
        return without_cut_call(uses, is_cut=is_cut)


def without_cut_call(uses: list[ToolUse], *, is_cut: bool) -> tuple[ToolUse, ...]:
    """The calls, less a last one whose arguments the length limit cut off."""
    if is_cut and uses and not (uses[-1].arguments and read_arguments(uses[-1].arguments) is not None):
        uses = uses[:-1]
    return tuple(uses)


def arguments_text(raw: Json) -> str:
    """A call's arguments as JSON text, whether they came as text, as an object or not at all."""
    if raw is None:
        return ""
    return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)


def finish_of(wire: str) -> Finish:
    """What a server's own word for an ending means, calls aside."""
    return _FINISHES.get(wire.lower(), "stop")


def decide_finish(wire: str, uses: tuple[ToolUse, ...]) -> Finish:
    """The ending: "tool_calls" exactly when there are calls."""
    return "tool_calls" if uses else finish_of(wire)


def cut_off() -> UpstreamError:
    """The error for a stream that ended before the model did."""
    return UpstreamError(
        "upstream-cut-off",
        "The model server's answer ended before it was complete.",
        hint="Try again; if it persists, see the model server's own log.",
        retryable=True,
    )
