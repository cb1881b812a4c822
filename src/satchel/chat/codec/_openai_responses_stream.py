"""The events of a streamed OpenAI Responses answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from satchel.chat.codec._calls import CallSlots, Slot, cut_off, decide_finish, finish_of
from satchel.chat.codec._common import Node, Object, TextMender, count, extras, fresh_call_id, garbled_answer, rest
from satchel.chat.codec._openai_responses_items import FORMAT, decode_output, reasoning_text
from satchel.chat.codec.failures import read_failure
from satchel.chat.events import ModelCall, ModelDone, ModelEvent, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Json, Message, Part, Text, ToolUse

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_REASONING = {
    "response.reasoning_summary_text.delta": "summary_index",
    "response.reasoning_text.delta": "content_index",
}


class StreamDecoder:
    """Feed it the data of each event in order, then ask for the end.

    The message is built from the finished items; deltas only pass through. Events without an ``output_index``, as some
    servers send them, are told apart by the item's id.
    """

    def __init__(self, *, new_id: Callable[[], str] = fresh_call_id) -> None:
        self._slots = CallSlots(new_id)
        self._calls: dict[int, Slot] = {}
        self._items: dict[int, Json] = {}
        self._places: dict[str, int] = {}
        self._last_place = -1
        self._mender = TextMender()
        self._texts: dict[int, list[str]] = {}
        self._reasoning_mender = TextMender()
        self._reasoning_at: tuple[int, int] | None = None
        self._reasoned: set[int] = set()
        self._response: Object | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the response has come to its end."""
        return self._response is not None

    def feed(self, event: Mapping[str, Json]) -> list[ModelEvent]:
        """What one event adds. Raises ``UpstreamError`` for an error event and for one of the wrong shape."""
        node = Node(dict(event), "", garbled_answer)
        kind = event.get("type")
        if kind == "error":
            raise read_failure({"error": event.get("error") or rest(event, "type", "sequence_number")})
        if isinstance(kind, str) and kind in _ENDS:
            self._response = node.get("response").object()
            read_ending(self._response)
            return self._catch_up(node.get("response").get("output"))
        if kind == "response.output_text.delta":
            piece = self._mender.feed(node.get("delta").text())
            self._texts.setdefault(self._place(node), []).append(piece)
            beside: Object = {"logprobs": event["logprobs"]} if event.get("logprobs") else {}
            return [ModelText(text=piece, extra=extras(FORMAT, beside))] if piece else []
        if kind == "response.output_text.annotation.added":
            return [ModelText(text="", extra=extras(FORMAT, {"annotations": [event.get("annotation")]}))]
        if isinstance(kind, str) and kind in _REASONING:
            return self._reason(node, _REASONING[kind])
        if kind == "response.output_item.added":
            item = node.get("item")
            place = self._place(node)
            if item.get("type").value != "function_call":
                return []
            slot = self._slots.open(call_id=item.get("call_id").optional_text(), name=item.get("name").filled_text())
            self._calls[place] = slot
            return list(self._slots.add(slot, item.get("arguments").value or ""))
        if kind == "response.function_call_arguments.delta":
            slot = self._calls.get(self._place(node))
            return [] if slot is None else list(self._slots.add(slot, node.get("delta").text()))
        if kind == "response.output_item.done":
            return self._item_done(node)
        return []

    def finish(self) -> ModelDone:
        """The whole answer. Raises ``UpstreamError`` (upstream-cut-off) when the response did not come to its end."""
        if self._response is None:
            raise cut_off()
        wire = read_ending(self._response)
        uses = {use.call_id: use for use in self._slots.uses(FORMAT, is_cut=finish_of(wire) == "length")}
        items: list[Json] = [self._items[place] for place in sorted(self._items)]
        parts: list[Part] = [
            part
            for part in decode_output(Node(items, "output", garbled_answer))
            if not isinstance(part, ToolUse) or part.call_id in uses
        ]
        raw_usage = self._response.get("usage")
        return ModelDone(
            finish=decide_finish(wire, tuple(uses.values())),
            message=Message(role="assistant", parts=tuple(parts)),
            usage=decode_usage(raw_usage) if isinstance(raw_usage, dict) and raw_usage else None,
            extra=extras(FORMAT, rest(self._response, "id", "object", "created_at", "model", "output")),
        )

    def _place(self, node: Node) -> int:
        """Which item an event is about, counted from 0."""
        item = node.get("item").value
        names = [node.get("item_id").value, *([item.get("id"), item.get("call_id")] if isinstance(item, dict) else [])]
        known = next((self._places[name] for name in names if isinstance(name, str) and name in self._places), None)
        place = node.get("output_index").optional_integer()
        if place is None:
            place = known
        if place is None and isinstance(item, dict):
            place = self._last_place + 1
        if place is None:
            raise node.get("output_index").bad("a whole number")
        self._places |= {name: place for name in names if isinstance(name, str)}
        self._last_place = max(self._last_place, place)
        return place

    def _reason(self, node: Node, counter: str) -> list[ModelEvent]:
        at = (self._place(node), node.get(counter).optional_integer() or 0)
        is_further = self._reasoning_at is not None and self._reasoning_at != at
        self._reasoning_at = at
        self._reasoned.add(at[0])
        piece = self._reasoning_mender.feed(node.get("delta").text())
        if not piece:
            return []
        item_id = node.get("item_id").optional_text()
        place = extras(FORMAT, {"item_id": item_id, counter: at[1]} if item_id else {})
        return [ModelReasoning(text=f"\n\n{piece}" if is_further else piece, extra=place)]

    def _catch_up(self, output: Node) -> list[ModelEvent]:
        """Takes items of the finished response that had no event of their own."""
        events: list[ModelEvent] = []
        for place, item in enumerate([] if output.value is None else output.items()):
            if place not in self._items:
                events.extend(self._item_done(Node({"output_index": place, "item": item.value}, "", garbled_answer)))
        return events

    def _item_done(self, node: Node) -> list[ModelEvent]:
        place = self._place(node)
        item = dict(node.get("item").object())
        self._items[place] = item
        if item.get("type") == "reasoning":
            text = "" if place in self._reasoned else reasoning_text(item)
            return [ModelReasoning(text=text, opaque=item)]
        if item.get("type") == "message" and place not in self._texts:
            parts = decode_output(Node([item], "output", garbled_answer))
            text = "".join(part.text for part in parts if isinstance(part, Text))
            return [ModelText(text=text)] if text else []
        if item.get("type") != "function_call":
            return []
        return list(self._call_done(place, node.get("item"), item))

    def _call_done(self, place: int, node: Node, item: Object) -> list[ModelCall]:
        """The finished call decides; what its deltas left out is added, and it keeps the id that went out."""
        slot = self._calls.get(place)
        if slot is None:
            slot = self._slots.open(call_id=node.get("call_id").optional_text(), name=node.get("name").filled_text())
            self._calls[place] = slot
        item["call_id"] = slot.call_id
        arguments = node.get("arguments").optional_text()
        events = self._slots.add(slot, arguments.removeprefix(slot.arguments) if slot.arguments else arguments)
        item["arguments"] = slot.arguments
        return events


def read_ending(response: Mapping[str, Json]) -> str:
    """The word for how a response ended. Raises ``UpstreamError`` when it failed or is not finished."""
    status = response.get("status")
    if status in ("failed", "cancelled") or response.get("error"):
        raise read_failure({"error": response.get("error")})
    if status == "completed":
        return "stop"
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if status != "incomplete":
        raise garbled_answer("status", "completed or incomplete")
    return reason if isinstance(reason, str) else "max_output_tokens"


def decode_usage(raw: Mapping[str, Json]) -> Usage:
    """A ``usage`` object, generously: anything that is not a count is 0."""
    prompt = raw.get("input_tokens_details")
    completion = raw.get("output_tokens_details")
    return Usage(
        prompt_tokens=count(raw.get("input_tokens")),
        completion_tokens=count(raw.get("output_tokens")),
        cached_tokens=count(prompt.get("cached_tokens")) if isinstance(prompt, dict) else 0,
        cache_write_tokens=count(prompt.get("cache_write_tokens")) if isinstance(prompt, dict) else 0,
        reasoning_tokens=count(completion.get("reasoning_tokens")) if isinstance(completion, dict) else 0,
    )
