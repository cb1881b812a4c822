"""The items and events of an answer, whatever order a model says things in."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from satchel.chat.messages import Extra, Json
from satchel.engine.events import CallDelta, ProseJoiner, ReasoningDelta, TextDelta
from satchel.gateway.openai_responses.output import Output

Seen = list[tuple[str, dict[str, Json]]]


class Told:
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.output = Output("t", lambda kind, fields: self.events.append((kind.removeprefix("response."), fields)))
        self.joiner = ProseJoiner()
        self.said = ""

    def text(self, text: str, number: int = 1) -> None:
        delta = TextDelta(text=text, round=number)
        joined = self.joiner.feed(delta)
        self.said += joined
        self.output.text(delta, joined)

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]

    @property
    def items(self) -> list[dict[str, Any]]:
        return [item for item in self.output.items if isinstance(item, dict)]


def test_text_after_a_call_is_an_item_of_its_own_and_an_unfinished_call_waits_for_the_end() -> None:
    told = Told()
    told.output.call(CallDelta(index=0, call_id="a", name="f", arguments='{"x":'))
    told.output.call(CallDelta(index=1, call_id="b", name="g", arguments="{}"))
    told.output.call(CallDelta(index=0, call_id="a", name="f", arguments="1}"))
    told.text("done")
    told.output.end_round("tool_calls")
    assert "function_call_arguments.done" not in told.kinds
    told.output.end("tool_calls", {"a"}, ())
    assert [(item["type"], item["status"], item.get("arguments")) for item in told.items] == [
        ("function_call", "completed", '{"x":1}'),
        ("function_call", "incomplete", "{}"),
        ("message", "completed", None),
    ]


def test_a_finished_call_is_told_before_the_next_one_begins() -> None:
    told = Told()
    told.output.call(CallDelta(index=0, call_id="a", name="f", arguments='{"x": 1}'))
    told.output.call(CallDelta(index=1, call_id="b", name="g"))
    assert told.kinds[:5] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
    ]


def test_raw_reasoning_is_told_as_content() -> None:
    told = Told()
    place: Extra = {"openai-responses": {"item_id": "rs_9", "content_index": 0}}
    told.output.reasoning(ReasoningDelta(text="hm", extra=place))
    told.text("ok")
    assert told.kinds[:6] == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert told.items[0] == {
        "id": "rs_9",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
    }


def test_two_reasoning_items_in_a_row_stay_two() -> None:
    told = Told()
    for name in ("rs_1", "rs_2"):
        place: Extra = {"openai-responses": {"item_id": name, "summary_index": 0}}
        text = "hm" if name == "rs_1" else "\n\nso"
        told.output.reasoning(ReasoningDelta(text=text, extra=place))
    told.output.end_round("stop")
    assert [(item["id"], item["summary"][0]["text"]) for item in told.items] == [("rs_1", "hm"), ("rs_2", "so")]


def test_a_signed_item_of_another_format_is_not_shown_as_one_of_this() -> None:
    told = Told()
    told.output.reasoning(ReasoningDelta(text="hm"))
    told.output.reasoning(ReasoningDelta(text="", opaque={"type": "thinking", "signature": "s"}))
    told.output.end_round("stop")
    assert told.items == [{"id": "rs_t0000", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.sampled_from(["a", "é ", "\n", ""])),
        st.tuples(st.just("reason"), st.sampled_from(["r", ""])),
        st.tuples(st.just("call"), st.sampled_from(["", "{", "}", '{"a": 1}'])),
        st.tuples(st.just("round"), st.sampled_from(["tool_calls", "stop", "length"])),
    ),
    max_size=30,
)


@given(STEPS, st.booleans(), st.data())
def test_every_item_begins_once_ends_once_and_says_nothing_afterwards(
    steps: list[tuple[str, str]], fails: bool, draw: st.DataObject
) -> None:
    told, number, calls = Told(), 1, 0
    for kind, value in steps:
        match kind:
            case "text":
                told.text(value, number)
            case "reason":
                told.output.reasoning(ReasoningDelta(text=value, round=number))
            case "call":
                index = draw.draw(st.integers(0, min(calls, 3)))
                calls = max(calls, index + 1)
                told.output.call(CallDelta(index=index + 10 * number, call_id=f"c{index}", name="f", arguments=value))
            case _:
                told.output.end_round(value)  # pyright: ignore[reportArgumentType]
                number += 1
    if fails:
        told.output.abandon()
    else:
        told.output.end("stop", {"c0"}, ())
    begun: list[int] = []
    ended: dict[int, dict[str, Any]] = {}
    streamed: dict[int, str] = {}
    for kind, fields in told.events:
        place = fields["output_index"]
        assert place not in ended
        if kind == "output_item.added":
            begun.append(place)
        elif kind == "output_item.done":
            ended[place] = fields["item"]
        else:
            assert fields["item_id"] == told.items[place]["id"]
        if kind.endswith(".delta"):
            streamed[place] = streamed.get(place, "") + fields["delta"]
    assert begun == list(range(len(told.items)))
    assert len({item["id"] for item in told.items}) == len(told.items)
    assert fails or sorted(ended) == begun
    assert all(told.items[place] == item for place, item in ended.items())
    for place, item in enumerate(told.items):
        parts = item.get("content") or item.get("summary") or []
        whole = item["arguments"] if item["type"] == "function_call" else "".join(part["text"] for part in parts)
        assert streamed.get(place, "") == whole
    messages = [item for item in told.items if item["type"] == "message"]
    assert "".join(item["content"][0]["text"] for item in messages) == told.said
