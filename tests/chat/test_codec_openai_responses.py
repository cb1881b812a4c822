from __future__ import annotations

import copy
import itertools
from dataclasses import replace
from typing import Any

import pytest

from satchel.chat.codec import openai_chat, openai_responses
from satchel.chat.events import ModelCall, ModelDone, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Json, Media, Message, Opaque, Reasoning, Text, ToolOutput, ToolUse, message
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy, ToolSpec
from satchel.errors import RequestError, UpstreamError

BASE: dict[str, Any] = {"model": "m", "input": "hello"}
REASONING: dict[str, Any] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}, {"type": "summary_text", "text": "so"}],
    "encrypted_content": "b3BhcXVl",
}
ANSWER_ITEM: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "I look", "annotations": [], "logprobs": []}],
}
CALL: dict[str, Any] = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "lookup",
    "arguments": '{ "q":"a" }',
    "status": "completed",
}

REQUESTS: dict[str, dict[str, Any]] = {
    "text": BASE,
    "one message": {"model": "m", "input": [{"role": "user", "content": "hello"}]},
    "settings": {
        **BASE,
        "instructions": "be brief",
        "temperature": 0,
        "top_p": 1,
        "max_output_tokens": 50,
        "tool_choice": "required",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low"},
        "previous_response_id": None,
        "stream": True,
        "stream_options": {"include_obfuscation": False},
    },
    "odd settings": {**BASE, "instructions": None, "max_output_tokens": None, "tool_choice": {"type": "file_search"}, "stream": False},
    "parts": {
        "model": "m",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be kind"}]},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "what is this?"},
                    {"type": "input_image", "detail": "low", "image_url": "data:image/png;base64,AAAA"},
                    {"type": "input_image", "detail": "auto", "file_id": "file_1"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
                    {"type": "input_file", "file_url": "https://example.org/a.pdf"},
                    {"type": "input_audio", "input_audio": {"data": "A", "format": "mp3"}},
                ],
            },
            {"role": "user", "content": []},
            {"role": "assistant", "content": "plain"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}, {"type": "output_text", "text": "x"}]},
            {"type": "message", "role": "assistant", "content": []},
        ],
    },
    "tool round trip": {
        "model": "m",
        "input": [
            {"role": "user", "content": "look"},
            REASONING,
            ANSWER_ITEM,
            {**ANSWER_ITEM, "id": "msg_2", "phase": "final_answer"},
            CALL,
            {**CALL, "id": "fc_2", "call_id": "call_2"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "function_call_output", "call_id": "call_1", "output": "found", "id": "fco_1"},
            {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "fou"}, {"type": "input_text", "text": "nd"}]},
            {"type": "custom_tool_call_output", "call_id": "call_3", "output": "x"},
            {"type": "item_reference", "id": "msg_9"},
            ANSWER_ITEM,
            {"role": "user", "content": "and?"},
        ],
        "tools": [
            {"type": "function", "name": "lookup", "description": "d", "parameters": {"type": "object"}, "strict": True},
            {"type": "web_search"},
            {"type": "function", "name": "bare", "parameters": {"type": "object"}},
            {"type": "function", "name": "none", "parameters": None, "strict": None},
        ],
        "tool_choice": {"type": "function", "name": "lookup"},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_comes_back_as_it_was(name: str):
    body = REQUESTS[name]
    before = copy.deepcopy(body)
    request = openai_responses.decode_request(body)
    assert openai_responses.encode_request(request, stream=body.get("stream", False)) == before
    assert body == before


def test_a_request_is_understood():
    request = openai_responses.decode_request(REQUESTS["tool round trip"])
    assert [item.role for item in request.messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assistant = request.messages[1]
    assert [type(part) for part in assistant.parts] == [Reasoning, Text, Text, ToolUse, ToolUse, Opaque]
    assert assistant.parts[0] == Reasoning(text="hm\n\nso", opaque=REASONING, format="openai-responses")
    outputs = [part for item in request.messages for part in item.parts if isinstance(part, ToolOutput)]
    assert [(part.call_id, part.text) for part in outputs] == [("call_1", "found"), ("call_2", "found")]
    assert [spec.name for spec in request.tools] == ["lookup", "bare", "none"]
    settings = openai_responses.decode_request(REQUESTS["settings"])
    assert settings.messages == (
        Message(role="system", parts=(Text(text="be brief"),), extra={"openai-responses": {"as": "instructions"}}),
        Message(role="user", parts=(Text(text="hello"),), extra={"openai-responses": {"as": "input"}}),
    )
    assert settings.sampling == Sampling(temperature=0, top_p=1)
    assert (settings.max_tokens, settings.tool_choice) == (50, ToolPolicy(mode="required"))
    media = [
        part for part in openai_responses.decode_request(REQUESTS["parts"]).messages[1].parts if isinstance(part, Media)
    ]
    assert [(part.kind, part.data, part.url) for part in media] == [
        ("image", "AAAA", ""),
        ("document", "AAAA", ""),
        ("document", "", "https://example.org/a.pdf"),
    ]


def test_plain_input_becomes_items_when_the_conversation_grows():
    request = openai_responses.decode_request({**BASE, "instructions": "be brief", "skills": ["x"]})
    block = replace(request.messages[0], parts=(*request.messages[0].parts, Text(text="\n\nblock")))
    grown = replace(
        request,
        messages=(
            block,
            request.messages[1],
            Message(role="assistant", parts=(Text(text="ok"), ToolUse(call_id="c", name="f", arguments=""))),
            Message(role="tool", parts=(ToolOutput(call_id="c", text="gone", is_error=True),)),
        ),
        tools=(ToolSpec(name="f", parameters={"type": "object"}),),
    )
    assert openai_responses.encode_request(grown, stream=False) == {
        "model": "m",
        "instructions": "be brief\n\nblock",
        "input": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "ok"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "Error: gone"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}],
    }


def test_a_conversation_from_elsewhere_is_written_whole():
    request = ChatRequest(
        messages=(
            message("system", "one"),
            Message(
                role="user", parts=(Text(text="see"), Media(kind="image", data="AA"), Media(kind="audio", data="AA"))
            ),
            Message(role="assistant", parts=(Reasoning(text="hm", format="openai-chat"), Text(text=""))),
        ),
        sampling=Sampling(stop=("END",), seed=5),
        extra={"openai-chat": {"n": 1}},
    )
    assert openai_responses.encode_request(request, stream=False) == {
        "input": [
            {"role": "system", "content": "one"},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "see"},
                    {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA"},
                ],
            },
        ]
    }


def test_crossing_to_chat_joins_the_items_of_the_assistant():
    request = openai_responses.decode_request(REQUESTS["tool round trip"])
    messages = openai_chat.encode_request(request, stream=False)["messages"]
    assert isinstance(messages, list)
    assert messages[1] == {
        "role": "assistant",
        "content": "I lookI look",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": '{ "q":"a" }'}},
            {"id": "call_2", "type": "function", "function": {"name": "lookup", "arguments": '{ "q":"a" }'}},
        ],
    }
    assert messages[2:4] == [
        {"role": "tool", "tool_call_id": "call_1", "content": "found"},
        {"role": "tool", "tool_call_id": "call_2", "content": "found"},
    ]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("input", {"input": None}),
        ("input", {"input": []}),
        ("input[0].type", {"input": [{}]}),
        ("input[0].role", {"input": [{"role": "tool", "content": "x"}]}),
        ("input[0].content", {"input": [{"role": "user"}]}),
        ("input[0].call_id", {"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]}),
        ("input[0].output", {"input": [{"type": "function_call_output", "call_id": "c"}]}),
        ("instructions", {"instructions": 5}),
        ("max_output_tokens", {"max_output_tokens": "5"}),
        ("tools[0].name", {"tools": [{"type": "function"}]}),
    ],
)
def test_a_malformed_request_names_the_field(field: str, change: dict[str, Any]):
    with pytest.raises(RequestError) as caught:
        openai_responses.decode_request({**BASE, **change})
    assert (caught.value.code, caught.value.data["field"]) == ("invalid-request", field)


ANSWER: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 5,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "model": "m",
    "output": [REASONING, ANSWER_ITEM, CALL],
    "parallel_tool_calls": False,
    "tool_choice": "auto",
    "tools": [],
    "metadata": {},
    "usage": {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 2},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 7,
    },
}
USAGE = Usage(prompt_tokens=3, completion_tokens=4, cached_tokens=1, reasoning_tokens=2, cache_write_tokens=2)


def test_an_answer_comes_back_as_it_was():
    done = openai_responses.decode_answer(ANSWER)
    assert (done.finish, done.usage) == ("tool_calls", USAGE)
    assert openai_responses.encode_answer(done, model="m", id="resp_1", created=5) == ANSWER


def test_an_answer_from_elsewhere_gets_items_with_ids():
    parts = (Reasoning(text="hm", format="openai-chat"), Text(text="ok"), ToolUse(call_id="c", name="f", arguments=""))
    done = ModelDone(finish="tool_calls", message=Message(role="assistant", parts=parts), usage=USAGE)
    answer = openai_responses.encode_answer(done, model="m", id="resp_1", created=5)
    assert answer["output"] == [
        {"id": "rs_resp_1_0", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "id": "msg_resp_1_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "ok", "annotations": []}],
        },
        {"id": "fc_resp_1_2", "type": "function_call", "status": "completed", "call_id": "c", "name": "f", "arguments": "{}"},
    ]  # fmt: skip
    cut = replace(done, finish="length", message=message("assistant", "ok"))
    answer = openai_responses.encode_answer(cut, model="m", id="resp_1", created=5)
    assert (answer["status"], answer["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "upstream-garbled"),
        ({**ANSWER, "output": {}}, "upstream-garbled"),
        ({**ANSWER, "status": "failed", "error": {"code": "server_error", "message": "boom"}}, "upstream-failed"),
        (
            {**ANSWER, "status": "failed", "error": {"code": "rate_limit_exceeded", "message": "x"}},
            "upstream-rate-limited",
        ),
    ],
)
def test_an_answer_that_failed_or_is_none_is_an_error(body: dict[str, Any], code: str):
    with pytest.raises(UpstreamError) as caught:
        openai_responses.decode_answer(body)
    assert caught.value.code == code


def run(*events: dict[str, Any]) -> tuple[list[Any], ModelDone]:
    numbers = itertools.count(1)
    decoder = openai_responses.StreamDecoder(new_id=lambda: f"made_{next(numbers)}")
    seen = [event for item in events for event in decoder.feed(item)]
    return seen, decoder.finish()


def item_event(kind: str, place: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": place, "item": item}


def delta(kind: str, place: int, text: str, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": place, "delta": text, **more}


COMPLETED: dict[str, Any] = {"type": "response.completed", "response": ANSWER}


def test_a_streamed_answer_equals_the_whole_one():
    events, done = run(
        {"type": "response.created", "response": {"status": "in_progress"}},
        item_event("added", 0, {"type": "reasoning", "id": "rs_1", "summary": []}),
        delta("reasoning_summary_text", 0, "hm", summary_index=0),
        delta("reasoning_summary_text", 0, "so", summary_index=1),
        item_event("done", 0, REASONING),
        item_event("added", 1, {"type": "message", "id": "msg_1", "role": "assistant", "content": []}),
        delta("output_text", 1, "I "),
        delta("output_text", 1, "look"),
        item_event("done", 1, ANSWER_ITEM),
        item_event("added", 2, {**CALL, "arguments": ""}),
        delta("function_call_arguments", 2, '{ "q":'),
        item_event("done", 2, CALL),
        COMPLETED,
    )
    assert events == [
        ModelReasoning(text="hm"),
        ModelReasoning(text="\n\nso"),
        ModelReasoning(text="", opaque=REASONING),
        ModelText(text="I "),
        ModelText(text="look"),
        ModelCall(index=0, call_id="call_1", name="lookup", arguments=""),
        ModelCall(index=0, call_id="call_1", name="lookup", arguments='{ "q":'),
        ModelCall(index=0, call_id="call_1", name="lookup", arguments='"a" }'),
    ]
    assert done == openai_responses.decode_answer(ANSWER)


def test_a_stream_of_nothing_but_its_end_still_tells_everything():
    events, done = run(COMPLETED)
    assert events == [
        ModelReasoning(text="hm\n\nso", opaque=REASONING),
        ModelText(text="I look"),
        ModelCall(index=0, call_id="call_1", name="lookup", arguments='{ "q":"a" }'),
    ]
    assert done == openai_responses.decode_answer(ANSWER)


def test_an_incomplete_answer_ends_with_length():
    cut = {
        **ANSWER,
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [ANSWER_ITEM],
    }
    _, done = run({"type": "response.incomplete", "response": cut})
    assert done.finish == "length"
    assert openai_responses.encode_answer(done, model="m", id="resp_1", created=5) == cut


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([delta("output_text", 0, "half")], "upstream-cut-off"),
        ([{"type": "response.output_text.delta", "delta": "x"}], "upstream-garbled"),
        ([item_event("added", 0, {"type": "function_call", "call_id": "c"})], "upstream-garbled"),
        ([{"type": "error", "code": "server_error", "message": "boom", "sequence_number": 3}], "upstream-failed"),
        (
            [{"type": "response.failed", "response": {"status": "failed", "error": {"code": "context_length_exceeded", "message": "x"}}}],
            "context-overflow",
        ),
    ],
)  # fmt: skip
def test_bad_streams_are_errors(events: list[dict[str, Any]], code: str):
    with pytest.raises(UpstreamError) as caught:
        run(*events)
    assert caught.value.code == code


def test_what_came_beside_the_text_and_which_item_reasoning_belongs_to_are_told():
    source: Json = {
        "type": "url_citation",
        "url": "https://example.org",
        "title": "t",
        "start_index": 0,
        "end_index": 1,
    }
    logprobs: Json = [{"token": "I", "logprob": -0.5, "top_logprobs": []}]
    events, _ = run(
        {**delta("reasoning_summary_text", 0, "hm", summary_index=1), "item_id": "rs_1"},
        {**delta("output_text", 1, "I"), "logprobs": logprobs},
        {"type": "response.output_text.annotation.added", "output_index": 1, "annotation": source},
        COMPLETED,
    )
    assert events[:3] == [
        ModelReasoning(text="hm", extra={"openai-responses": {"item_id": "rs_1", "summary_index": 1}}),
        ModelText(text="I", extra={"openai-responses": {"logprobs": logprobs}}),
        ModelText(text="", extra={"openai-responses": {"annotations": [source]}}),
    ]


def test_events_without_an_index_are_told_apart_by_their_item():
    def added(item: dict[str, Any]) -> dict[str, Any]:
        return {"type": "response.output_item.added", "item": item}

    def done(item: dict[str, Any]) -> dict[str, Any]:
        return {"type": "response.output_item.done", "item": item}

    part = {"type": "output_text", "text": "ab"}
    text: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
    call: dict[str, Any] = {"type": "function_call", "call_id": "fc_a", "name": "f", "arguments": '{"x": 1}'}
    over: dict[str, Any] = {"type": "response.completed", "response": {"status": "completed", "output": [text, call]}}
    decoder = openai_responses.StreamDecoder()
    events = [
        event
        for item in (
            added({**text, "content": []}),
            {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "a"},
            {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "b"},
            done(text),
            added({**call, "arguments": ""}),
            {"type": "response.function_call_arguments.delta", "item_id": "fc_a", "delta": '{"x": 1}'},
            done(call),
            over,
        )
        for event in decoder.feed(item)
    ]
    assert events == [
        ModelText(text="a"),
        ModelText(text="b"),
        ModelCall(index=0, call_id="fc_a", name="f"),
        ModelCall(index=0, call_id="fc_a", name="f", arguments='{"x": 1}'),
    ]
    message = decoder.finish().message
    assert (message.text, [use.arguments for use in message.tool_uses]) == ("ab", ['{"x": 1}'])
    with pytest.raises(UpstreamError):
        openai_responses.StreamDecoder().feed({"type": "response.output_text.delta", "item_id": "x", "delta": "a"})
