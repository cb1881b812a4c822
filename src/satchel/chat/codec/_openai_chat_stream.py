"""The chunks of a streamed OpenAI Chat Completions answer.

Servers differ: calls may all stand under index 0, come without ids, with ids only in the first fragment or whole;
usage may come on any chunk; the finish reason may not mention the calls that were made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from satchel.chat.codec._calls import CallSlots, Slot, cut_off, decide_finish, finish_of
from satchel.chat.codec._common import Node, Object, TextMender, count, extras, fresh_call_id, garbled_answer
from satchel.chat.codec._openai_chat_messages import FORMAT, REASONING_FIELDS, decode_content, reasoning_part
from satchel.chat.codec.failures import read_failure
from satchel.chat.events import ModelDone, ModelEvent, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Json, Message, Opaque, Part, Text

_CHUNK_FIELDS = frozenset({"id", "object", "created", "model", "choices", "usage", "obfuscation", "error"})
_DELTA_FIELDS = frozenset({"role", "content", "tool_calls", *REASONING_FIELDS})


class StreamDecoder:
    """Feed it each chunk in order, then ask for the end."""

    def __init__(self, *, new_id: Callable[[], str] = fresh_call_id) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_field = REASONING_FIELDS[0]
        self._parts: list[Part] = []
        self._mender = TextMender()
        self._reasoning_mender = TextMender()
        self._slots = CallSlots(new_id)
        self._by_index: dict[int, Slot] = {}
        self._by_id: dict[tuple[int | None, str], Slot] = {}
        self._last: Slot | None = None
        self._foreign: dict[int, Object] = {}
        self._message_extra: Object = {}
        self._extra: Object = {}
        self._logprobs: Object = {}
        self._usage: Usage | None = None
        self._wire_finish = ""

    @property
    def is_finished(self) -> bool:
        """Whether the model has said how it ended."""
        return bool(self._wire_finish)

    def feed(self, event: Mapping[str, Json]) -> list[ModelEvent]:
        """What one chunk adds. Raises ``UpstreamError`` for an error chunk and for one of the wrong shape."""
        if event.get("error") or event.get("object") == "error":
            raise read_failure(dict(event))
        self._note_usage(event.get("usage"))
        news = {
            key: value
            for key, value in event.items()
            if key not in _CHUNK_FIELDS and value is not None and self._extra.get(key) != value
        }
        self._extra |= news
        choices = event.get("choices")
        if choices is not None and not isinstance(choices, list):
            raise garbled_answer("choices", "an array")
        if not choices:
            # A chunk about the answer and not of it: what it says is of use when it is said.
            return [ModelText(text="", extra=extras(FORMAT, news))] if news else []
        events: list[ModelEvent] = []
        for choice in choices:
            if not isinstance(choice, dict):
                raise garbled_answer("choices[0]", "an object")
            if not choice.get("index"):
                events.extend(self._feed_choice(choice))
        return events

    def finish(self, *, ended: bool = False) -> ModelDone:
        """The whole answer. ``ended`` tells that the stream's own end marker was seen.

        Raises ``UpstreamError`` (upstream-cut-off) when there was neither a finish reason nor the end marker.
        """
        if not self._wire_finish and not ended:
            raise cut_off()
        uses = self._slots.uses(FORMAT, is_cut=finish_of(self._wire_finish) == "length")
        parts: list[Part] = []
        if self._reasoning:
            parts.append(reasoning_part("".join(self._reasoning), self._reasoning_field))
        text = "".join(self._text)
        if text or not (uses or self._parts or self._foreign):
            parts.append(Text(text=text))
        parts.extend(self._parts)
        parts.extend(Opaque(format=FORMAT, raw={"tool_calls": item}) for item in self._foreign.values())
        fields = self._message_extra
        if (uses or self._foreign) and not text and not self._parts:
            fields = {**fields, "content": None}
        if self._logprobs:
            self._extra["choice"] = {"logprobs": self._logprobs}
        return ModelDone(
            finish=decide_finish(self._wire_finish, uses),
            message=Message(role="assistant", parts=(*parts, *uses), extra=extras(FORMAT, fields)),
            usage=self._usage,
            extra=extras(FORMAT, self._extra),
        )

    def _feed_choice(self, choice: Mapping[str, Json]) -> list[ModelEvent]:
        if choice.get("error") or choice.get("finish_reason") == "error":
            raise read_failure({"error": choice.get("error")})
        self._note_usage(choice.get("usage"))
        delta = choice.get("delta")
        if delta is None:
            delta = {}
        if not isinstance(delta, dict):
            raise garbled_answer("choices[0].delta", "an object")
        events = self._feed_reasoning(delta)
        events.extend(self._feed_content(delta.get("content"), choice.get("logprobs")))
        calls = delta.get("tool_calls")
        if calls is not None:
            for item in Node(calls, "choices[0].delta.tool_calls", garbled_answer).items():
                events.extend(self._feed_call(item))
        for key, value in delta.items():
            if key not in _DELTA_FIELDS:
                _grow(self._message_extra, key, value)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._wire_finish = finish
        return events

    def _feed_reasoning(self, delta: Mapping[str, Json]) -> list[ModelEvent]:
        for name in REASONING_FIELDS:
            piece = delta.get(name)
            if isinstance(piece, str) and piece:
                if not self._reasoning:
                    self._reasoning_field = name
                piece = self._reasoning_mender.feed(piece)
                self._reasoning.append(piece)
                return [ModelReasoning(text=piece)] if piece else []
        return []

    def _feed_content(self, content: Json, logprobs: Json) -> list[ModelEvent]:
        piece = ""
        if isinstance(content, str):
            piece = content
        elif content is not None:
            for part in decode_content(Node(content, "choices[0].delta.content", garbled_answer)):
                if isinstance(part, Text):
                    piece += part.text
                else:
                    self._parts.append(part)
        kept = self._note_logprobs(logprobs)
        piece = self._mender.feed(piece)
        if not piece:
            return []
        self._text.append(piece)
        return [ModelText(text=piece, extra=extras(FORMAT, kept))]

    def _note_logprobs(self, logprobs: Json) -> Object:
        if not isinstance(logprobs, dict):
            return {}
        for key, value in logprobs.items():
            _grow(self._logprobs, key, value)
        return {"logprobs": logprobs}

    def _note_usage(self, raw: Json) -> None:
        if isinstance(raw, dict) and raw:
            self._usage = decode_usage(raw)

    def _feed_call(self, node: Node) -> list[ModelEvent]:
        raw = node.object()
        function = raw.get("function")
        if function is not None and not isinstance(function, dict):
            raise node.get("function").bad("an object")
        name = function.get("name") if function else None
        arguments = function.get("arguments") if function else None
        if arguments is not None and not isinstance(arguments, str | dict):
            raise node.get("function").get("arguments").bad("JSON text")
        given = raw.get("index")
        index = given if isinstance(given, int) and not isinstance(given, bool) else None
        if function is None and self._take_foreign(index, raw):
            return []
        call_id = raw.get("id")
        slot = self._slot_for(
            index,
            call_id if isinstance(call_id, str) else "",
            name if isinstance(name, str) else "",
        )
        for key, value in raw.items():
            if key not in {"index", "id", "type", "function"} and value is not None:
                slot.extra[key] = value
        return list(self._slots.add(slot, arguments))

    def _take_foreign(self, index: int | None, raw: Object) -> bool:
        """Adds a piece of a call that is no function; False when it is a piece of a function's call."""
        begins = raw.get("type") not in (None, "function") and isinstance(raw.get("id"), str)
        place = index if index is not None else len(self._foreign) - (not begins)
        known = self._foreign.get(place)
        if known is None:
            if not begins:
                return False
            known = self._foreign[place] = {}
        for key, value in raw.items():
            held = known.get(key)
            if isinstance(held, dict) and isinstance(value, dict):
                for name, piece in value.items():
                    _grow(held, name, piece)
            elif key != "index" and value is not None:
                known[key] = dict(value) if isinstance(value, dict) else value
        return True

    def _slot_for(self, index: int | None, call_id: str, name: str) -> Slot:
        slot = self._known_slot(index, call_id, name)
        if slot is None:
            slot = self._slots.open(call_id=call_id, name=name)
        elif name and not slot.name:
            slot.name = name
        if call_id:
            self._by_id[index, call_id] = self._by_id[None, call_id] = slot
        if index is not None:
            self._by_index[index] = slot
        self._last = slot
        return slot

    def _known_slot(self, index: int | None, call_id: str, name: str) -> Slot | None:
        """The call that a fragment continues; None opens a new one."""
        at_place = self._last if index is None else self._by_index.get(index)
        if call_id:
            known = self._by_id.get((index, call_id))
            if known is not None:
                return known
            is_late_id = at_place is not None and at_place.is_id_made and not name and index is not None
            return at_place if is_late_id else None
        if at_place is None or not name or not at_place.name:
            return at_place
        if name != at_place.name or index is None or at_place.is_whole():
            return None
        return at_place


def _grow(fields: Object, key: str, value: Json) -> None:
    """Adds a piece of an unknown field: text and lists grow, anything else is replaced."""
    known = fields.get(key)
    if isinstance(known, list) and isinstance(value, list):
        known.extend(value)
    elif isinstance(known, str) and isinstance(value, str):
        fields[key] = known + value
    elif value is not None or known is None:
        fields[key] = list(value) if isinstance(value, list) else value


def decode_usage(raw: Mapping[str, Json]) -> Usage:
    """A ``usage`` object, generously: anything that is not a count is 0."""
    prompt = raw.get("prompt_tokens_details")
    completion = raw.get("completion_tokens_details")
    cached = prompt.get("cached_tokens") if isinstance(prompt, dict) else raw.get("prompt_cache_hit_tokens")
    return Usage(
        prompt_tokens=count(raw.get("prompt_tokens")),
        completion_tokens=count(raw.get("completion_tokens")),
        cached_tokens=count(cached),
        cache_write_tokens=count(prompt.get("cache_write_tokens")) if isinstance(prompt, dict) else 0,
        reasoning_tokens=count(completion.get("reasoning_tokens")) if isinstance(completion, dict) else 0,
    )
