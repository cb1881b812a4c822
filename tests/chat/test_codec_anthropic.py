from __future__ import annotations

import copy
import itertools
from dataclasses import replace
from typing import Any

import pytest

from satchel.chat.codec import anthropic, openai_chat
from satchel.chat.events import ModelCall, ModelDone, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Media, Message, Opaque, Reasoning, Text, ToolOutput, ToolUse, message
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy, ToolSpec
from satchel.errors import RequestError, UpstreamError

BASE: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
IMAGE: dict[str, Any] = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
}
THINKING: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
USE: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "lookup", "input": {"q": "a"}}

REQUESTS: dict[str, dict[str, Any]] = {
    "text": BASE,
    "system text": {**BASE, "system": "be brief", "stream": True},
    "system blocks": {
        **BASE,
        "system": [
            {"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "and kind"},
        ],
        "stream": False,
    },
    "settings": {
        **BASE,
        "system": "",
        "temperature": 1,
        "top_p": 0.5,
        "top_k": 5,
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "container": {"skills": [{"type": "anthropic", "skill_id": "pdf"}]},
    },
    "parts": {
        **BASE,
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "what is this?"},
                    {**IMAGE, "cache_control": {"type": "ephemeral"}},
                    {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                    {
                        "type": "document",
                        "title": "t",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
                    },
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
                    {"type": "search_result", "source": "s", "title": "t", "content": []},
                ],
            },
            {"role": "assistant", "content": []},
            {"role": "user", "content": ""},
        ],
    },
    "tool round trip": {
        **BASE,
        "messages": [
            {"role": "user", "content": "look"},
            {
                "role": "assistant",
                "content": [
                    THINKING,
                    {"type": "redacted_thinking", "data": "b3BhcXVl"},
                    {"type": "text", "text": "I look", "citations": None},
                    USE,
                    {**USE, "id": "toolu_2", "input": {}, "cache_control": {"type": "ephemeral"}},
                    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_2",
                        "content": [{"type": "text", "text": "no"}, IMAGE],
                        "is_error": True,
                    },
                    {"type": "text", "text": "go on"},
                ],
            },
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_3"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_4", "is_error": False, "content": ""}]},
            {"role": "user", "content": [{"type": "text", "text": "and"}, {"type": "tool_result", "tool_use_id": "t"}]},
            {"role": "system", "content": "mind the gap", "vendor": 1},
        ],
        "tools": [
            {"name": "lookup", "description": "Looks up", "input_schema": {"type": "object"}, "strict": True},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
            {"type": "custom", "name": "bare", "description": "", "input_schema": {"type": "object"}},
        ],
        "tool_choice": {"type": "tool", "name": "lookup"},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_comes_back_as_it_was(name: str):
    body = REQUESTS[name]
    before = copy.deepcopy(body)
    request = anthropic.decode_request(body)
    assert anthropic.encode_request(request, stream=body.get("stream", False)) == before
    assert body == before


def test_a_request_is_understood():
    request = anthropic.decode_request(REQUESTS["tool round trip"])
    assert [item.role for item in request.messages] == [
        "user", "assistant", "tool", "user", "assistant", "tool", "tool", "user", "tool", "system",
    ]  # fmt: skip
    assistant = request.messages[1]
    assert [type(part) for part in assistant.parts] == [Reasoning, Reasoning, Text, ToolUse, ToolUse, Opaque]
    assert [use.arguments for use in assistant.tool_uses] == ['{"q": "a"}', "{}"]
    outputs = [part for part in request.messages[2].parts if isinstance(part, ToolOutput)]
    assert [(part.call_id, part.text, part.is_error) for part in outputs] == [
        ("toolu_1", "found", False),
        ("toolu_2", "no", True),
    ]
    assert [spec.name for spec in request.tools] == ["lookup", "bare"]
    assert request.tool_choice == ToolPolicy(mode="named", name="lookup")
    settings = anthropic.decode_request(REQUESTS["settings"])
    assert settings.sampling == Sampling(temperature=1, top_p=0.5, stop=("END",))
    assert (settings.max_tokens, settings.tool_choice) == (100, ToolPolicy(mode="auto"))
    media = [part for part in anthropic.decode_request(REQUESTS["parts"]).messages[0].parts if isinstance(part, Media)]
    assert [(part.kind, part.data, part.url) for part in media] == [
        ("image", "AAAA", ""),
        ("image", "", "https://example.org/a.png"),
        ("document", "AAAA", ""),
    ]


def test_our_own_fields_never_go_upstream():
    request = anthropic.decode_request({**BASE, "skills": ["a"], "skills_discovery": False, "multi_agent": True})
    assert anthropic.encode_request(request, stream=False) == BASE


def test_a_conversation_from_elsewhere_is_written_whole():
    request = ChatRequest(
        model="m",
        messages=(
            message("system", "one"),
            message("user", "look"),
            Message(
                role="assistant",
                parts=(
                    Reasoning(text="hm", format="openai-chat"),
                    Text(text=""),
                    ToolUse(call_id="a", name="f", arguments='{"x": 1}{"y": 2}'),
                    ToolUse(call_id="b", name="f", arguments=""),
                ),
            ),
            Message(role="tool", parts=(ToolOutput(call_id="a", text="1"),)),
            Message(role="tool", parts=(ToolOutput(call_id="b", text="", is_error=True),)),
            message("developer", "two"),
            Message(role="user", parts=(Media(kind="image", data="/9j/4AA"), Media(kind="audio", data="AA"))),
        ),
        tools=(ToolSpec(name="f"),),
        tool_choice=ToolPolicy(mode="required"),
        extra={"openai-chat": {"n": 1}},
    )
    assert anthropic.encode_request(request, stream=True) == {
        "model": "m",
        "max_tokens": anthropic.DEFAULT_MAX_TOKENS,
        "system": "one\n\ntwo",
        "messages": [
            {"role": "user", "content": "look"},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1, "y": 2}},
                    {"type": "tool_use", "id": "b", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                    {"type": "tool_result", "tool_use_id": "b", "is_error": True},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4AA"}}
                ],
            },
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "any"},
        "stream": True,
    }


def test_crossing_to_chat_keeps_what_both_know():
    request = anthropic.decode_request(REQUESTS["tool round trip"])
    body = openai_chat.encode_request(request, stream=False)
    messages = body["messages"]
    assert isinstance(messages, list)
    assert messages[:5] == [
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": "I look",
            "tool_calls": [
                {"id": "toolu_1", "type": "function", "function": {"name": "lookup", "arguments": '{"q": "a"}'}},
                {"id": "toolu_2", "type": "function", "function": {"name": "lookup", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": "found"},
        {"role": "tool", "tool_call_id": "toolu_2", "content": "Error: no"},
        {"role": "user", "content": "go on"},
    ]
    assert body["max_tokens"] == 100


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("max_tokens", {"max_tokens": None}),
        ("messages", {"messages": []}),
        ("messages[0].role", {"messages": [{"role": "tool", "content": "x"}]}),
        ("messages[0].content", {"messages": [{"role": "user"}]}),
        ("messages[0].content[0].type", {"messages": [{"role": "user", "content": [{}]}]}),
        ("messages[0].content[0].text", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
        (
            "messages[0].content[0].input",
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "x"}]}
                ]
            },
        ),
        ("messages[0].content[0].tool_use_id", {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}),
        ("messages[0].content[0].source", {"messages": [{"role": "user", "content": [{"type": "image"}]}]}),
        ("system", {"system": 5}),
        ("tools[0].input_schema", {"tools": [{"name": "f"}]}),
        ("tool_choice.type", {"tool_choice": {"type": "some"}}),
        ("stop_sequences", {"stop_sequences": "END"}),
    ],
)
def test_a_malformed_request_names_the_field(field: str, change: dict[str, Any]):
    with pytest.raises(RequestError) as caught:
        anthropic.decode_request({**BASE, **change})
    assert (caught.value.code, caught.value.data["field"]) == ("invalid-request", field)


ANSWERS: dict[str, dict[str, Any]] = {
    "text": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "stop_sequence",
        "stop_sequence": "END",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    },
    "calls": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [THINKING, {"type": "text", "text": "I look"}, USE],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "container": {"id": "c"},
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 20,
            "output_tokens": 2,
            "service_tier": "standard",
        },
    },
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_comes_back_as_it_was(name: str):
    done = anthropic.decode_answer(ANSWERS[name])
    assert anthropic.encode_answer(done, model="m", id="msg_1", created=0) == ANSWERS[name]


def test_tokens_of_the_cache_are_part_of_the_prompt():
    done = anthropic.decode_answer(ANSWERS["calls"])
    assert done.usage == Usage(prompt_tokens=33, completion_tokens=2, cached_tokens=20, cache_write_tokens=10)
    assert done.finish == "tool_calls"
    more = replace(done, usage=Usage(prompt_tokens=50, completion_tokens=5, cached_tokens=20, cache_write_tokens=7), finish="stop", message=message("assistant", "x"))  # fmt: skip
    answer = anthropic.encode_answer(more, model="m", id="i", created=0)
    assert answer["usage"] == {
        "input_tokens": 23,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 7,
        "output_tokens": 5,
    }
    assert answer["stop_reason"] == "end_turn"


@pytest.mark.parametrize(
    "body", [{}, {"content": "x"}, {"content": [{"type": "text"}]}, {"content": [], "stop_reason": 1}]
)
def test_an_answer_of_another_shape_is_garbled(body: dict[str, Any]):
    with pytest.raises(UpstreamError) as caught:
        anthropic.decode_answer(body)
    assert caught.value.code == "upstream-garbled"


# --- streams

START: dict[str, Any] = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1},
    },
}
STOP: dict[str, Any] = {"type": "message_stop"}


def ending(reason: str) -> dict[str, Any]:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 9},
    }


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def end(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def run(*events: dict[str, Any]) -> tuple[list[Any], ModelDone]:
    numbers = itertools.count(1)
    decoder = anthropic.StreamDecoder(new_id=lambda: f"made_{next(numbers)}")
    seen = [event for item in events for event in decoder.feed(item)]
    return seen, decoder.finish()


def test_a_streamed_answer_equals_the_whole_one():
    events, done = run(
        START,
        {"type": "ping"},
        begin(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="h"),
        delta(0, type="thinking_delta", thinking="m"),
        delta(0, type="signature_delta", signature="c2ln"),
        end(0),
        begin(1, type="text", text=""),
        delta(1, type="text_delta", text="I "),
        delta(1, type="text_delta", text="look"),
        end(1),
        begin(2, type="tool_use", id="toolu_1", name="lookup", input={}),
        delta(2, type="input_json_delta", partial_json=""),
        delta(2, type="input_json_delta", partial_json='{"q": '),
        delta(2, type="input_json_delta", partial_json='"a"}'),
        end(2),
        ending("tool_use"),
        STOP,
    )
    assert events == [
        ModelReasoning(text="h"),
        ModelReasoning(text="m"),
        ModelReasoning(text="", opaque=THINKING),
        ModelText(text="I "),
        ModelText(text="look"),
        ModelCall(index=0, call_id="toolu_1", name="lookup"),
        ModelCall(index=0, call_id="toolu_1", name="lookup", arguments='{"q": '),
        ModelCall(index=0, call_id="toolu_1", name="lookup", arguments='"a"}'),
    ]
    assert done.finish == "tool_calls"
    assert done.usage == Usage(prompt_tokens=7, completion_tokens=9, cached_tokens=4)
    answer = anthropic.encode_answer(done, model="m", id="i", created=0)
    assert answer["content"] == ANSWERS["calls"]["content"]


def test_a_call_without_arguments_and_a_call_given_whole():
    events, done = run(
        START,
        begin(0, type="tool_use", id="a", name="f", input={}),
        end(0),
        begin(1, type="tool_use", id="b", name="f", input={"x": 1}),
        end(1),
        ending("end_turn"),
        STOP,
    )
    assert [(use.call_id, use.arguments) for use in done.message.tool_uses] == [("a", "{}"), ("b", '{"x": 1}')]
    assert [event.arguments for event in events] == ["", "{}", "", '{"x": 1}']
    assert done.finish == "tool_calls"


def test_blocks_of_other_kinds_are_kept():
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    _, done = run(
        START,
        begin(0, **block),
        delta(0, type="input_json_delta", partial_json='{"query":'),
        delta(0, type="input_json_delta", partial_json='"x"}'),
        end(0),
        begin(1, type="text", text="a"),
        delta(1, type="citations_delta", citation={"n": 1}),
        end(1),
        ending("pause_turn"),
        STOP,
    )
    assert anthropic.encode_answer(done, model="m", id="i", created=0)["content"] == [
        {**block, "input": {"query": "x"}},
        {"type": "text", "text": "a", "citations": [{"n": 1}]},
    ]
    assert anthropic.encode_answer(done, model="m", id="i", created=0)["stop_reason"] == "pause_turn"


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([START, begin(0, type="text", text="half")], "upstream-cut-off"),
        ([START, begin(0, type="text", text="all"), end(0), ending("end_turn")], "upstream-cut-off"),
        ([START, delta(0, type="text_delta", text="x")], "upstream-garbled"),
        ([START, begin(0, type="text", text=""), end(0), delta(0, type="text_delta", text="x")], "upstream-garbled"),
        ([START, begin(0, type="text", text=""), begin(0, type="text", text="")], "upstream-garbled"),
        ([START, begin(0, type="text", text=""), end(0), end(0)], "upstream-garbled"),
        ([START, begin(0, type="tool_use", id="a", input={})], "upstream-garbled"),
        ([{"type": "message_start"}], "upstream-garbled"),
        ([{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}], "upstream-failed"),
        ([{"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}], "upstream-rate-limited"),
    ],
)
def test_bad_streams_are_errors(events: list[dict[str, Any]], code: str):
    with pytest.raises(UpstreamError) as caught:
        run(*events)
    assert caught.value.code == code
