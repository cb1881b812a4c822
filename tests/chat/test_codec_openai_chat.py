from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from satchel.chat.codec import openai_chat
from satchel.chat.events import Usage
from satchel.chat.messages import Media, Message, Opaque, Reasoning, Text, ToolOutput, ToolUse, message
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy, ToolSpec
from satchel.errors import RequestError, UpstreamError

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Looks up",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": []},
        "strict": True,
    },
}
CALL: dict[str, Any] = {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": '{ "q":"a" }'}}

REQUESTS: dict[str, dict[str, Any]] = {
    "text": {"model": "m", "messages": [{"role": "user", "content": "hello"}]},
    "no model, empty content": {"messages": [{"role": "user", "content": ""}]},
    "system and developer": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "developer", "content": [{"type": "text", "text": "and kind"}], "name": "dev"},
            {"role": "user", "content": "hello", "name": "ada"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    "settings": {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "temperature": 0.5,
        "top_p": 1,
        "seed": 7,
        "stop": "END",
        "max_completion_tokens": 100,
        "tool_choice": "auto",
        "stream": False,
        "n": 1,
        "logit_bias": {"5": -100},
        "response_format": {"type": "json_object"},
        "vendor_thing": {"deep": [1, None]},
    },
    "odd settings": {
        "model": "",
        "messages": [{"role": "user", "content": "hello"}],
        "temperature": None,
        "stop": [],
        "max_tokens": 5,
        "max_completion_tokens": 9,
        "tool_choice": None,
        "tools": [],
        "user": None,
    },
    "parts": {
        "model": "m",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "what is this?", "cache_control": {"type": "ephemeral"}},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
                    {"type": "file", "file": {"file_id": "file-1"}},
                    {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}},
                ],
            },
            {"role": "user", "content": []},
        ],
    },
    "tool round trip": {
        "model": "m",
        "messages": [
            {"role": "user", "content": "look"},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "I should look",
                "refusal": None,
                "tool_calls": [
                    CALL,
                    {
                        "id": "call_2",
                        "type": "function",
                        "extra_content": {"google": {"thought_signature": "xyz"}},
                        "function": {"name": "lookup", "arguments": "{}"},
                    },
                    {"id": "call_3", "type": "custom", "custom": {"name": "grep", "input": "a"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "found"},
            {
                "role": "tool",
                "tool_call_id": "call_2",
                "name": "lookup",
                "content": [{"type": "text", "text": "fou"}, {"type": "text", "text": "nd"}],
            },
            {
                "role": "assistant",
                "content": "done",
                "reasoning": "so",
                "reasoning_details": [{"type": "x", "data": "y"}],
            },
            {"role": "assistant", "content": "more", "tool_calls": []},
        ],
        "tools": [
            {"type": "web_search", "filters": {}},
            TOOL,
            {"type": "custom", "custom": {"name": "grep"}},
            {"type": "function", "function": {"name": "bare"}},
            {"type": "function", "function": {"name": "odd", "description": "", "parameters": None}, "cache": 1},
        ],
        "tool_choice": {"type": "function", "function": {"name": "lookup"}},
        "parallel_tool_calls": False,
    },
    "newer limit left open": {
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 5,
        "max_completion_tokens": None,
        "stream": None,
    },
    "allowed tools": {
        "model": "m",
        "messages": [{"role": "user", "content": "look"}],
        "tools": [TOOL],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
    },
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_comes_back_as_it_was(name: str):
    body = REQUESTS[name]
    before = copy.deepcopy(body)
    request = openai_chat.decode_request(body)
    assert openai_chat.encode_request(request, stream=body.get("stream") or False) == before
    assert body == before


def test_a_request_is_understood():
    request = openai_chat.decode_request(REQUESTS["tool round trip"])
    assistant = request.messages[1]
    assert [type(part) for part in assistant.parts] == [Reasoning, ToolUse, ToolUse, Opaque]
    assert [(use.call_id, use.arguments) for use in assistant.tool_uses] == [
        ("call_1", '{ "q":"a" }'),
        ("call_2", "{}"),
    ]
    assert [part.text for part in request.messages[3].parts if isinstance(part, ToolOutput)] == ["found"]
    assert [spec.name for spec in request.tools] == ["lookup", "bare", "odd"]
    assert request.tool_choice == ToolPolicy(mode="named", name="lookup")

    settings = openai_chat.decode_request(REQUESTS["settings"])
    assert settings.sampling == Sampling(temperature=0.5, top_p=1, seed=7, stop=("END",))
    assert settings.max_tokens == 100

    parts = openai_chat.decode_request(REQUESTS["parts"]).messages[0].parts
    assert [(part.kind, part.media_type, part.data, part.url) for part in parts if isinstance(part, Media)] == [
        ("image", "image/png", "AAAA", ""),
        ("image", "", "", "https://example.org/a.png"),
        ("audio", "audio/mp3", "AAAA", ""),
        ("document", "application/pdf", "AAAA", ""),
    ]


def test_our_own_fields_never_go_upstream():
    body: dict[str, Any] = {**REQUESTS["text"], "skills": ["a"], "skills_discovery": False, "multi_agent": True}
    request = openai_chat.decode_request(body)
    assert openai_chat.encode_request(request, stream=False) == REQUESTS["text"]
    assert request.extra == {}


def test_a_changed_setting_replaces_the_kept_form():
    request = openai_chat.decode_request(REQUESTS["settings"])
    changed = replace(request, max_tokens=40, sampling=Sampling(), tool_choice=None)
    body = openai_chat.encode_request(changed, stream=True)
    assert body["max_completion_tokens"] == 40
    assert body["stream"] is True
    assert not {"max_tokens", "stop", "temperature", "tool_choice"} & body.keys()

    forced = openai_chat.decode_request(REQUESTS["allowed tools"])
    assert openai_chat.encode_request(replace(forced, tool_choice=ToolPolicy(mode="none")), stream=False)[
        "tool_choice"
    ] == "none"  # fmt: skip


def test_text_added_to_a_message_keeps_its_form():
    request = openai_chat.decode_request(REQUESTS["system and developer"])
    block = Text(text="\n\nblock")
    messages = [replace(item, parts=(*item.parts, block)) for item in request.messages[:2]]
    body = openai_chat.encode_request(replace(request, messages=tuple(messages)), stream=False)
    assert body["messages"] == [
        {"role": "system", "content": "be brief\n\nblock"},
        {
            "role": "developer",
            "name": "dev",
            "content": [{"type": "text", "text": "and kind"}, {"type": "text", "text": "\n\nblock"}],
        },
    ]
    assert "stream_options" not in body


def test_broken_arguments_are_made_one_object():
    use = ToolUse(call_id="c", name="f", arguments='{"a": 1}{"b": 2}')
    (body,) = openai_chat.encode_message(Message(role="assistant", parts=(use,)))
    assert body["tool_calls"] == [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1, "b": 2}'}}
    ]


def test_what_another_format_keeps_does_not_cross():
    messages = (
        Message(role="user", parts=(Text(text="hi", extra={"anthropic": {"type": "text"}}),)),
        Message(role="assistant", parts=(Opaque(format="anthropic", raw={"type": "x"}),)),
        Message(
            role="assistant",
            parts=(
                Reasoning(text="hm", format="anthropic", opaque={"signature": "s"}),
                ToolUse(call_id="c", name="f", arguments="{}"),
            ),
            extra={"anthropic": {"turn": "new"}},
        ),
        Message(
            role="tool",
            parts=(
                ToolOutput(call_id="c", text="no such file", is_error=True),
                ToolOutput(call_id="d", text="Error: again", is_error=True),
            ),
        ),
    )
    body = openai_chat.encode_request(ChatRequest(messages=messages, extra={"anthropic": {"top_k": 1}}), stream=False)
    assert body == {
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "Error: no such file"},
            {"role": "tool", "tool_call_id": "d", "content": "Error: again"},
        ]
    }


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("messages", {"messages": "hi"}),
        ("messages", {"messages": []}),
        ("messages[0]", {"messages": ["hi"]}),
        ("messages[0].role", {"messages": [{"role": "robot", "content": "x"}]}),
        ("messages[0].content", {"messages": [{"role": "user"}]}),
        ("messages[0].content", {"messages": [{"role": "user", "content": 5}]}),
        (
            "messages[0].content[1].type",
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {}]}]},
        ),
        ("messages[0].content[0].text", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
        ("messages[0].tool_call_id", {"messages": [{"role": "tool", "content": "x"}]}),
        ("messages[0].tool_calls[0].id", {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]}),
        (
            "messages[0].tool_calls[0].function.name",
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]}]},
        ),
        ("temperature", {"temperature": "hot"}),
        ("max_tokens", {"max_tokens": 1.5}),
        ("seed", {"seed": True}),
        ("stop[0]", {"stop": [1]}),
        ("tools", {"tools": {}}),
        ("tools[0].function.name", {"tools": [{"type": "function", "function": {}}]}),
        ("tool_choice", {"tool_choice": 5}),
        ("model", {"model": 5}),
        ("stream", {"stream": "yes"}),
    ],
)
def test_a_malformed_request_names_the_field(field: str, change: dict[str, Any]):
    with pytest.raises(RequestError) as caught:
        openai_chat.decode_request({**REQUESTS["text"], **change})
    assert caught.value.code == "invalid-request"
    assert caught.value.data["field"] == field
    assert caught.value.message.startswith(field)


ANSWERS: dict[str, dict[str, Any]] = {
    "text": {
        "id": "a1",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    },
    "calls": {
        "id": "a1",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "system_fingerprint": "fp",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "refusal": None,
                    "reasoning_content": "hm",
                    "tool_calls": [CALL, {**CALL, "id": "call_9"}],
                },
                "finish_reason": "tool_calls",
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "total_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 1, "audio_tokens": 0},
        },
    },
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_comes_back_as_it_was(name: str):
    done = openai_chat.decode_answer(ANSWERS[name])
    assert openai_chat.encode_answer(done, model="m", id="a1", created=5) == ANSWERS[name]


def test_an_answers_ending_is_decided_by_its_calls():
    body = copy.deepcopy(ANSWERS["calls"])
    body["choices"][0]["finish_reason"] = "stop"
    done = openai_chat.decode_answer(body)
    assert (done.finish, done.usage) == ("tool_calls", Usage(prompt_tokens=3, completion_tokens=2, cached_tokens=1))
    body["choices"][0]["message"]["tool_calls"] = None
    body["choices"][0]["finish_reason"] = "tool_calls"
    assert openai_chat.decode_answer(body).finish == "stop"


def test_a_call_that_the_length_limit_cut_off_is_no_call():
    body = copy.deepcopy(ANSWERS["calls"])
    body["choices"][0]["finish_reason"] = "length"
    body["choices"][0]["message"]["tool_calls"][1]["function"]["arguments"] = '{"q": "unfin'
    done = openai_chat.decode_answer(body)
    assert [use.call_id for use in done.message.tool_uses] == ["call_1"]
    del body["choices"][0]["message"]["tool_calls"][0]
    assert openai_chat.decode_answer(body).finish == "length"


def test_an_answer_without_ids_gets_them():
    body = copy.deepcopy(ANSWERS["calls"])
    for call in body["choices"][0]["message"]["tool_calls"]:
        del call["id"]
    ids = [use.call_id for use in openai_chat.decode_answer(body).message.tool_uses]
    assert len(set(ids)) == 2
    assert all(ids)


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": [{}]}, {"choices": [{"message": {"content": 5}}]}])
def test_an_answer_of_another_shape_is_garbled(body: dict[str, Any]):
    with pytest.raises(UpstreamError) as caught:
        openai_chat.decode_answer(body)
    assert caught.value.code == "upstream-garbled"


def test_a_tool_of_ours_is_declared_plainly():
    spec = ToolSpec(name="skills_list", description="Lists", parameters={"type": "object", "properties": {}})
    body = openai_chat.encode_request(
        ChatRequest(model="m", messages=(message("user", "x"),), tools=(spec,)), stream=True
    )
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "skills_list",
                    "description": "Lists",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "stream": True,
    }


def test_tokens_written_to_the_cache_are_told():
    usage = Usage(prompt_tokens=9, completion_tokens=1, cached_tokens=2, cache_write_tokens=3)
    raw = openai_chat.encode_usage(usage)
    assert raw["prompt_tokens_details"] == {"cached_tokens": 2, "cache_write_tokens": 3}
    body: dict[str, Any] = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": raw}
    assert openai_chat.decode_answer(body).usage == usage


@pytest.mark.parametrize(("old", "new"), [(12, 100), (100, 12), (12, 12)])
def test_of_two_limits_the_tighter_one_counts(old: int, new: int) -> None:
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": "x"}],
        "max_tokens": old,
        "max_completion_tokens": new,
    }
    request = openai_chat.decode_request(body)
    assert request.max_tokens == 12
    assert openai_chat.encode_request(request, stream=False) == body
    later = openai_chat.encode_request(replace(request, max_tokens=7), stream=False)
    assert (later["max_tokens"], later["max_completion_tokens"]) == (7, 7)
