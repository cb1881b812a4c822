from __future__ import annotations

import itertools
from typing import Any

import pytest

from satchel.chat.codec import openai_chat
from satchel.chat.codec._calls import Slot
from satchel.chat.events import ModelCall, ModelDone, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Opaque, Reasoning
from satchel.errors import UpstreamError


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def call(
    index: int | None, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    fragment: dict[str, Any] = {"function": function}
    if index is not None:
        fragment["index"] = index
    if call_id is not None:
        fragment["id"] = call_id
    return chunk({"tool_calls": [fragment]})


def run(*chunks: dict[str, Any], ended: bool = False) -> tuple[list[Any], ModelDone]:
    numbers = itertools.count(1)
    decoder = openai_chat.StreamDecoder(new_id=lambda: f"made_{next(numbers)}")
    events = [event for item in chunks for event in decoder.feed(item)]
    return events, decoder.finish(ended=ended)


def calls_of(done: ModelDone) -> list[tuple[str, str, str]]:
    return [(use.call_id, use.name, use.arguments) for use in done.message.tool_uses]


def joined(events: list[Any]) -> list[tuple[str, str, str]]:
    by_index: dict[int, list[str]] = {}
    for event in events:
        if isinstance(event, ModelCall):
            known = by_index.setdefault(event.index, [event.call_id, event.name, ""])
            assert [event.call_id, event.name] == known[:2]
            known[2] += event.arguments
    assert sorted(by_index) == list(range(len(by_index)))
    return [(item[0], item[1], item[2]) for _, item in sorted(by_index.items())]


def test_text_and_reasoning_pass_through_at_once():
    events, done = run(
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "hm", "reasoning": "hm"}),
        chunk({"content": "he"}),
        chunk({"content": "llo"}),
        chunk({}, "stop", system_fingerprint="fp"),
        {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}},
    )
    assert events == [ModelReasoning(text="hm"), ModelText(text="he"), ModelText(text="llo")]
    assert done.message.text == "hello"
    assert done.message.parts[0] == Reasoning(
        text="hm", format="openai-chat", extra={"openai-chat": {"field": "reasoning_content"}}
    )
    assert done.usage == Usage(prompt_tokens=2, completion_tokens=3)
    assert done.extra == {"openai-chat": {"system_fingerprint": "fp"}}
    assert openai_chat.encode_message(done.message) == [
        {"role": "assistant", "content": "hello", "reasoning_content": "hm"}
    ]


def test_parallel_calls_are_put_together_by_index():
    events, done = run(
        call(0, "a", "one", ""),
        call(0, None, None, '{"x"'),
        call(1, "b", "two", ""),
        call(0, None, None, ": 1}"),
        call(1, "", "", "{}"),
        chunk({}, "tool_calls"),
    )
    assert calls_of(done) == [("a", "one", '{"x": 1}'), ("b", "two", "{}")]
    assert joined(events) == calls_of(done)
    assert done.finish == "tool_calls"
    assert openai_chat.encode_message(done.message)[0]["content"] is None


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        pytest.param(
            [
                call(0, "a", "one", "{}"),
                call(0, "b", "two", '{"y":'),
                call(0, "b", None, "2}"),
                call(0, "a", None, " "),
            ],
            [("a", "one", "{} "), ("b", "two", '{"y":2}')],
            id="a new id under a used index is a new call",
        ),
        pytest.param(
            [call(0, None, "one", '{"a":1}'), call(0, None, "one", '{"a":2}')],
            [("made_1", "one", '{"a":1}'), ("made_2", "one", '{"a":2}')],
            id="whole calls without ids under one index",
        ),
        pytest.param(
            [call(None, None, "one", "{}"), call(None, None, "two", "{}")],
            [("made_1", "one", "{}"), ("made_2", "two", "{}")],
            id="neither index nor id",
        ),
        pytest.param(
            [call(None, "a", "one", '{"x"'), call(None, None, None, ":1}"), call(None, "b", "two", "{}")],
            [("a", "one", '{"x":1}'), ("b", "two", "{}")],
            id="no index",
        ),
        pytest.param(
            [call(0, "a", "one", "{}"), call(1, "a", "two", "{}")],
            [("a", "one", "{}"), ("made_1", "two", "{}")],
            id="an id is never used twice",
        ),
        pytest.param(
            [call(0, "a", "one", "{"), call(0, "a", "one", "}")],
            [("a", "one", "{}")],
            id="id and name in every fragment",
        ),
        pytest.param(
            [call(0, "a", None, '{"x"'), call(0, None, "one", ":1}")],
            [("a", "one", '{"x":1}')],
            id="name after the arguments began",
        ),
        pytest.param(
            [call(0, None, "one", "{"), call(0, "late", None, "}")],
            [("made_1", "one", "{}")],
            id="id after the name: the one that went out stays",
        ),
        pytest.param([call(0, "a", "one", {"x": 1})], [("a", "one", '{"x": 1}')], id="arguments as an object"),
        pytest.param([call(0, "a", "one", '{"x":1}{"y":2}')], [("a", "one", '{"x":1}{"y":2}')], id="run together"),
        pytest.param([call(0, "a", "one", None)], [("a", "one", "")], id="no arguments"),
        pytest.param([call(0, "a", "one", "{}"), call(1)], [("a", "one", "{}")], id="an empty entry is ignored"),
    ],
)
def test_calls_are_put_together_whatever_the_server(
    fragments: list[dict[str, Any]], expected: list[tuple[str, str, str]]
):
    events, done = run(*fragments, chunk({}, "stop"))
    assert calls_of(done) == expected
    assert joined(events) == expected
    assert done.finish == "tool_calls"


def test_asking_whether_a_call_is_whole_reads_a_bounded_amount_in_all():
    slot = Slot(call_id="a", name="f")
    slot.pieces.append('{"x": "' + "x" * 50_000 + '"}')
    slot.size = len(slot.pieces[0])
    assert [slot.is_whole() for _ in range(7)] == [True] * 5 + [False] * 2


def test_a_call_that_never_gets_a_name_is_garbled():
    with pytest.raises(UpstreamError) as caught:
        run(call(0, "a", None, "{}"), chunk({}, "tool_calls"))
    assert caught.value.code == "upstream-garbled"


def test_an_ending_without_calls_is_no_tool_turn():
    _, done = run(chunk({"content": "x"}), chunk({}, "tool_calls"))
    assert done.finish == "stop"
    _, done = run(chunk({"content": "x"}, "length"))
    assert done.finish == "length"


def test_the_last_usage_that_says_something_counts():
    usage = {"prompt_tokens": 2, "completion_tokens": 1, "prompt_tokens_details": None}
    _, done = run(
        chunk({"content": "a"}, usage=usage),
        chunk({"content": "b"}, usage={**usage, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}),
        chunk({}, "stop", usage=None),
        {"choices": None, "usage": {}},
    )
    assert done.usage == Usage(prompt_tokens=2, completion_tokens=2, cached_tokens=1)
    odd = {"prompt_tokens": -1, "completion_tokens": "many", "prompt_cache_hit_tokens": 1e400}
    _, done = run(chunk({}, "stop", usage=odd))
    assert done.usage == Usage()


def test_characters_split_into_halves_are_joined():
    events, done = run(
        chunk({"content": "a\ud83d"}), chunk({"content": "\ude00b\ud83d"}), chunk({"content": "c"}, "stop")
    )
    assert done.message.text == "a\U0001f600b\ufffdc"
    assert "".join(event.text for event in events) == done.message.text


def test_unknown_fields_of_the_message_are_put_together_and_replayed():
    _, done = run(
        chunk({"content": "x", "reasoning_details": [{"i": 0}], "refusal": "n"}),
        chunk({"reasoning_details": [{"i": 1}], "refusal": "o", "annotations": None}, "stop"),
    )
    assert openai_chat.encode_message(done.message) == [
        {
            "role": "assistant",
            "content": "x",
            "reasoning_details": [{"i": 0}, {"i": 1}],
            "refusal": "no",
            "annotations": None,
        }
    ]


def test_logprobs_stay_with_their_text():
    first = {"id": "x", "choices": [{"delta": {"content": "a"}, "logprobs": {"content": [{"token": "a"}]}}]}
    second = {"id": "x", "choices": [{"delta": {"content": "b"}, "logprobs": {"content": [{"token": "b"}]}}]}
    events, done = run(first, second, chunk({}, "stop"))
    assert events[0] == ModelText(text="a", extra={"openai-chat": {"logprobs": {"content": [{"token": "a"}]}}})
    answer = openai_chat.encode_answer(done, model="m", id="i", created=1)
    assert answer["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "ab"},
            "finish_reason": "stop",
            "logprobs": {"content": [{"token": "a"}, {"token": "b"}]},
        }
    ]


def test_other_choices_do_not_mix_in():
    _, done = run(
        chunk({"content": "a"}),
        {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]},
        chunk({}, "stop"),
    )
    assert done.message.text == "a"


def test_a_stream_that_just_ends_is_cut_off():
    with pytest.raises(UpstreamError) as caught:
        run(chunk({"content": "half"}))
    assert caught.value.code == "upstream-cut-off"
    _, done = run(chunk({"content": "whole"}), ended=True)
    assert (done.finish, done.message.text) == ("stop", "whole")


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"choices": {}}, "upstream-garbled"),
        ({"choices": [5]}, "upstream-garbled"),
        ({"choices": [{"delta": []}]}, "upstream-garbled"),
        ({"choices": [{"delta": {"content": 5}}]}, "upstream-garbled"),
        ({"choices": [{"delta": {"tool_calls": {}}}]}, "upstream-garbled"),
        ({"choices": [{"delta": {"tool_calls": [{"function": "f"}]}}]}, "upstream-garbled"),
        ({"choices": [{"delta": {"tool_calls": [{"function": {"name": "f", "arguments": [1]}}]}}]}, "upstream-garbled"),
        ({"error": {"message": "it broke", "type": "server_error"}}, "upstream-failed"),
        ({"error": {"message": "slow down", "code": 429}}, "upstream-rate-limited"),
        ({"error": "the request exceeds the available context size"}, "context-overflow"),
        ({"object": "error", "message": "bad", "type": "invalid_request_error"}, "upstream-rejected"),
        ({"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "boom"}}]}, "upstream-failed"),
    ],
)
def test_bad_events_are_errors(event: dict[str, Any], code: str):
    with pytest.raises(UpstreamError) as caught:
        run(event)
    assert caught.value.code == code


def test_a_chunk_about_the_answer_is_told_when_it_comes_and_once() -> None:
    about = {"choices": [], "filters": {"safe": True}}
    events, done = run(about, chunk({"content": "a"}, system="x"), about, chunk(finish="stop"), {"choices": []})
    assert events == [ModelText(text="", extra={"openai-chat": {"filters": {"safe": True}}}), ModelText(text="a")]
    assert done.message.text == "a"
    assert done.extra["openai-chat"] == {"filters": {"safe": True}, "system": "x"}


def test_a_call_that_is_no_function_is_kept_whole() -> None:
    decoder = openai_chat.StreamDecoder()
    pieces: list[dict[str, Any]] = [
        {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "grep", "input": "fo"}},
        {"index": 0, "custom": {"input": "o"}},
        {"index": 1, "id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"index": 2, "id": "c3", "type": "custom", "custom": {"name": "grep", "input": "x"}},
    ]
    for piece in pieces:
        decoder.feed({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]})
    decoder.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    kept = [part.raw for part in decoder.finish().message.parts if isinstance(part, Opaque)]
    assert kept == [
        {"tool_calls": {"id": "c1", "type": "custom", "custom": {"name": "grep", "input": "foo"}}},
        {"tool_calls": {"id": "c3", "type": "custom", "custom": {"name": "grep", "input": "x"}}},
    ]
