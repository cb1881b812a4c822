"""The output items of one answer, and the events by which a stream tells of them.

Each round has message items of its own. One item over all rounds would have to stay open while our tools run and while
the model reasons again, so clients would see a message that is never done and items inside each other. The text of a
later round starts with the blank line that parts the rounds, because the ``output_text`` of client libraries joins
items with nothing between: it then reads as it does on the other surfaces. Prose before a call to one of our tools is
marked as ``commentary`` once it is done, which keeps it out of structured results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from satchel.chat.arguments import is_one_object
from satchel.chat.codec.openai_responses import FORMAT
from satchel.chat.events import Finish
from satchel.chat.messages import Json, Message, Opaque
from satchel.engine.events import CallDelta, ReasoningDelta, TextDelta

Object = dict[str, Json]
Emit = Callable[[str, Object], None]


@dataclass(slots=True)
class _Text:
    item: Object
    place: int
    pieces: list[str] = field(default_factory=list[str])
    annotations: list[Json] = field(default_factory=list[Json])
    logprobs: list[Json] = field(default_factory=list[Json])

    def part(self) -> Object:
        text = "".join(self.pieces)
        return {"type": "output_text", "text": text, "annotations": self.annotations, "logprobs": self.logprobs}


@dataclass(slots=True)
class _Reasoning:
    item: Object
    place: int
    summary: list[Json] = field(default_factory=list[Json])
    content: list[Json] = field(default_factory=list[Json])
    part: tuple[str, int] | None = None
    pieces: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Call:
    item: Object
    place: int
    pieces: list[str] = field(default_factory=list[str])


class Output:
    """``items`` are finished or, after a failure, as far as they came. ``emit`` gets a type and the event's fields."""

    def __init__(self, token: str, emit: Emit) -> None:
        self._token = token
        self._emit = emit
        self._open: _Text | _Reasoning | None = None
        self._calls: dict[int, _Call] = {}
        self._reasoned = False
        self._called = False
        self.items: list[Json] = []

    # -- what comes in --------------------------------------------------------------------------------------------

    def text(self, delta: TextDelta, joined: str) -> None:
        """A piece of text; ``joined`` is how it reads in the answer as a whole."""
        annotations, logprobs = _beside(delta)
        if not joined and not annotations:
            return
        now = self._open if isinstance(self._open, _Text) else self._begin_text()
        at: Object = {"item_id": now.item["id"], "output_index": now.place, "content_index": 0}
        if joined:
            now.pieces.append(joined)
            now.logprobs += logprobs
            self._emit("response.output_text.delta", {**at, "delta": joined, "logprobs": logprobs})
        for annotation in annotations:
            place = {"annotation_index": len(now.annotations), "annotation": annotation}
            now.annotations.append(annotation)
            self._emit("response.output_text.annotation.added", {**at, **place})

    def reasoning(self, delta: ReasoningDelta) -> None:
        """A piece of reasoning, or the item that it was, which is then passed on as it is."""
        own = delta.extra.get(FORMAT, {})
        whole = dict(delta.opaque) if delta.opaque and delta.opaque.get("type") == "reasoning" else None
        if not delta.text and whole is None:
            return
        named = own.get("item_id") or (whole or {}).get("id")
        now = self._open if isinstance(self._open, _Reasoning) else None
        if now is None or (named and named != now.item["id"]):
            now = self._begin_reasoning(named)
        if delta.text:
            kind = "content" if "content_index" in own else "summary"
            index = own.get(f"{kind}_index", 0)
            self._reason(now, (kind, index if isinstance(index, int) else 0), delta.text, is_placed=bool(own))
        if whole is not None:
            self._end_reasoning(now, whole)

    def call(self, delta: CallDelta) -> None:
        """A fragment of a call to one of the client's own functions."""
        self._called = True
        now = self._calls.get(delta.index)
        if now is None:
            self._close()
            for index, earlier in list(self._calls.items()):
                # Nothing can follow a finished object; anything else waits for the end of the answer.
                if is_one_object("".join(earlier.pieces)):
                    self._end_call(self._calls.pop(index), is_whole=True)
            now = self._calls[delta.index] = self._begin_call(delta)
        if delta.arguments:
            now.pieces.append(delta.arguments)
            self._emit("response.function_call_arguments.delta", {**_place(now), "delta": delta.arguments})

    def end_round(self, finish: Finish) -> None:
        """Closes what the round said. Calls stay open until the turn tells which of them are whole."""
        goes_on = finish == "tool_calls" and not self._called
        self._close(is_cut=finish in {"length", "content_filter"}, phase="commentary" if goes_on else "")
        self._reasoned = False
        self._called = False

    def end(self, finish: Finish, whole_calls: Collection[str], transcript: Iterable[Message]) -> None:
        """Closes everything, and adds what the model server sent beside text, reasoning and calls."""
        self._close(is_cut=finish in {"length", "content_filter"})
        for now in self._calls.values():
            self._end_call(now, is_whole=now.item["call_id"] in whole_calls)
        self._calls.clear()
        for message in transcript:
            for part in message.parts if message.role == "assistant" else ():
                if isinstance(part, Opaque) and part.format == FORMAT and isinstance(part.raw, dict):
                    self._add_foreign(part.raw)

    def abandon(self) -> None:
        """Takes open items as they are, without a word in the stream: the answer failed."""
        now = self._open
        if isinstance(now, _Text):
            self.items[now.place] = {**now.item, "status": "incomplete", "content": [now.part()]}
        elif now is not None:
            self.items[now.place] = self._reasoning_item(now)
        for call in self._calls.values():
            self.items[call.place] = {**call.item, "status": "incomplete", "arguments": "".join(call.pieces)}
        self._open = None
        self._calls.clear()

    # -- items ----------------------------------------------------------------------------------------------------

    def _added(self, item: Object) -> int:
        place = len(self.items)
        self.items.append(item)
        self._emit("response.output_item.added", {"output_index": place, "item": item})
        return place

    def _done(self, place: int, item: Object) -> None:
        self.items[place] = item
        self._emit("response.output_item.done", {"output_index": place, "item": item})

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{self._token}{len(self.items):04x}"

    def _begin_text(self) -> _Text:
        self._close()
        item: Object = {
            "id": self._id("msg"),
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }
        now = self._open = _Text(item, self._added(item))
        self._emit("response.content_part.added", {**_place(now), "content_index": 0, "part": now.part()})
        return now

    def _begin_reasoning(self, named: Json) -> _Reasoning:
        self._close()
        item: Object = {"id": named if isinstance(named, str) and named else self._id("rs"), "type": "reasoning"}
        now = self._open = _Reasoning(item, self._added({**item, "summary": []}))
        return now

    def _begin_call(self, delta: CallDelta) -> _Call:
        item: Object = {
            "id": self._id("fc"),
            "type": "function_call",
            "status": "in_progress",
            "call_id": delta.call_id,
            "name": delta.name,
            "arguments": "",
        }
        return _Call(item, self._added(item))

    def _close(self, *, is_cut: bool = False, phase: str = "") -> None:
        """Ends the text or the reasoning that is open."""
        now, self._open = self._open, None
        if isinstance(now, _Text):
            part = now.part()
            at: Object = {**_place(now), "content_index": 0}
            self._emit("response.output_text.done", {**at, "text": part["text"], "logprobs": now.logprobs})
            self._emit("response.content_part.done", {**at, "part": part})
            marked: Object = {"phase": phase} if phase else {}
            status = "incomplete" if is_cut else "completed"
            self._done(now.place, {**now.item, "status": status, "content": [part], **marked})
        elif now is not None:
            self._end_part(now)
            self._done(now.place, self._reasoning_item(now))

    # -- reasoning ------------------------------------------------------------------------------------------------

    def _reason(self, now: _Reasoning, part: tuple[str, int], text: str, *, is_placed: bool) -> None:
        if now.part != part:
            self._end_part(now)
            now.part = part
            if is_placed and self._reasoned:
                # Where parts are told apart by their places, nothing has to stand between them.
                text = text.removeprefix("\n\n")
            kind, number = part
            empty: Object = {"type": f"{_REASONED[kind]}_text", "text": ""}
            name = "response.content_part.added" if kind == "content" else "response.reasoning_summary_part.added"
            self._emit(name, {**_place(now), f"{kind}_index": number, "part": empty})
        self._reasoned = True
        now.pieces.append(text)
        name = "response.reasoning_text.delta" if part[0] == "content" else "response.reasoning_summary_text.delta"
        self._emit(name, {**_place(now), f"{part[0]}_index": part[1], "delta": text})

    def _end_part(self, now: _Reasoning) -> None:
        if now.part is None:
            return
        kind, number = now.part
        at: Object = {**_place(now), f"{kind}_index": number}
        text = "".join(now.pieces)
        part: Object = {"type": f"{_REASONED[kind]}_text", "text": text}
        (now.content if kind == "content" else now.summary).append(part)
        name = "reasoning" if kind == "content" else "reasoning_summary"
        self._emit(f"response.{name}_text.done", {**at, "text": text})
        ended = "content_part" if kind == "content" else "reasoning_summary_part"
        self._emit(f"response.{ended}.done", {**at, "part": part})
        now.part, now.pieces = None, []

    def _end_reasoning(self, now: _Reasoning, whole: Object) -> None:
        self._end_part(now)
        self._open = None
        self._done(now.place, {"summary": [], **whole, "id": now.item["id"]})

    def _reasoning_item(self, now: _Reasoning) -> Object:
        if now.part is not None:
            kind, text = now.part[0], "".join(now.pieces)
            (now.content if kind == "content" else now.summary).append(
                {"type": f"{_REASONED[kind]}_text", "text": text}
            )
        content: Object = {"content": now.content} if now.content else {}
        return {**now.item, "summary": now.summary, **content}

    # -- calls and the rest ---------------------------------------------------------------------------------------

    def _end_call(self, now: _Call, *, is_whole: bool) -> None:
        if is_whole and not "".join(now.pieces).strip():
            # Clients parse what they get, and a call without arguments has an empty object.
            now.pieces.append("{}")
            self._emit("response.function_call_arguments.delta", {**_place(now), "delta": "{}"})
        arguments = "".join(now.pieces)
        item: Object = {**now.item, "status": "completed" if is_whole else "incomplete", "arguments": arguments}
        fields: Object = {**_place(now), "name": now.item["name"], "arguments": arguments}
        self._emit("response.function_call_arguments.done", fields)
        self._done(now.place, item)

    def _add_foreign(self, raw: Mapping[str, Json]) -> None:
        """An item of the model server's own tools, or a content part that is no text, such as a refusal."""
        content = raw.get("content")
        if "type" in raw:
            item: Object = {"id": self._id("item"), **raw}
        elif isinstance(content, dict):
            kept = raw.get("item")
            own = kept if isinstance(kept, dict) else {}
            item = {"id": self._id("msg"), "status": "completed", **own, "type": "message", "role": "assistant"}
            item["content"] = [content]
        else:
            return
        self._done(self._added(item), item)


_REASONED = {"content": "reasoning", "summary": "summary"}


def _place(now: _Text | _Reasoning | _Call) -> Object:
    return {"item_id": now.item["id"], "output_index": now.place}


def _beside(delta: TextDelta) -> tuple[list[Json], list[Json]]:
    """``(annotations, log probabilities)`` that came with the text, from a server of this format or of Chat."""
    own = delta.extra.get(FORMAT, {})
    annotations, logprobs = own.get("annotations"), own.get("logprobs")
    if logprobs is None:
        chat = delta.extra.get("openai-chat", {}).get("logprobs")
        logprobs = chat.get("content") if isinstance(chat, dict) else None
    return (annotations if isinstance(annotations, list) else [], logprobs if isinstance(logprobs, list) else [])
