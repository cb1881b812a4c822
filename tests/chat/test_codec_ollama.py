from __future__ import annotations

import copy
import itertools
from dataclasses import replace
from typing import Any

import pytest

from satchel.chat.codec import ollama, openai_chat
from satchel.chat.events import ModelCall, ModelDone, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Media, Message, Reasoning, Text, ToolOutput, ToolUse, message
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy, ToolSpec
from satchel.errors import RequestError, UpstreamError

BASE: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "lookup", "description": "Looks up", "parameters": {"type": "object", "properties": {}}},
}

REQUESTS: dict[str, dict[str, Any]] = {
    "text": BASE,
    "settings": {
        **BASE,
        "options": {"temperature": 0, "top_p": 0.5, "seed": 7, "stop": ["END"], "num_predict": 50, "num_ctx": 4096},
        "format": "json",
        "keep_alive": "5m",
        "think": "high",
        "stream": True,
    },
    "odd settings": {**BASE, "options": {"num_predict": -1, "stop": "END", "seed": None}, "tools": [], "stream": False},
    "empty options": {**BASE, "options": {}, "tools": None},
    "tool round trip": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "look", "images": ["iVBORw0AAAA", "/9j/AAAA"]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "hm",
                "tool_calls": [
                    {"function": {"name": "lookup", "arguments": {"q": "a"}}},
                    {"id": "call_x", "type": "function", "function": {"index": 1, "name": "find", "arguments": {}}},
                    {"function": {"name": "lookup", "arguments": {"q": "b"}}},
                ],
            },
            {"role": "tool", "content": "found b", "tool_name": "find"},
            {"role": "tool", "content": "found a"},
            {"role": "tool", "content": "found c", "tool_name": "lookup", "vendor": 1},
            {"role": "assistant", "tool_calls": [{"function": {"name": "lookup", "arguments": {}}}]},
            {"role": "tool", "content": "x", "tool_call_id": "call_y"},
            {"role": "assistant", "content": "done", "thinking": "", "images": None, "tool_calls": []},
        ],
        "tools": [TOOL, {"type": "web", "x": 1}, {"type": "function", "function": {"name": "bare"}}],
    },
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_comes_back_as_it_was(name: str):
    body = REQUESTS[name]
    before = copy.deepcopy(body)
    request = ollama.decode_request(body)
    assert ollama.encode_request(request, stream=body.get("stream", True)) == before
    assert body == before


def test_a_request_is_understood():
    request = ollama.decode_request(REQUESTS["tool round trip"])
    uses = request.messages[2].tool_uses
    assert [(use.call_id, use.name, use.arguments) for use in uses] == [
        ("call_ollama_1", "lookup", '{"q": "a"}'),
        ("call_x", "find", "{}"),
        ("call_ollama_2", "lookup", '{"q": "b"}'),
    ]
    outputs = [part for item in request.messages for part in item.parts if isinstance(part, ToolOutput)]
    assert [(part.call_id, part.name) for part in outputs] == [
        ("call_x", "find"),
        ("call_ollama_1", "lookup"),
        ("call_ollama_2", "lookup"),
        ("call_y", ""),
    ]
    media = [part for part in request.messages[1].parts if isinstance(part, Media)]
    assert [(part.media_type, part.data) for part in media] == [
        ("image/png", "iVBORw0AAAA"),
        ("image/jpeg", "/9j/AAAA"),
    ]
    settings = ollama.decode_request(REQUESTS["settings"])
    assert settings.sampling == Sampling(temperature=0, top_p=0.5, seed=7, stop=("END",))
    assert settings.max_tokens == 50
    assert ollama.decode_request(REQUESTS["odd settings"]).max_tokens is None


def test_the_same_conversation_gets_the_same_ids():
    first = ollama.decode_request(REQUESTS["tool round trip"])
    longer = copy.deepcopy(REQUESTS["tool round trip"])
    longer["messages"].append({"role": "user", "content": "more"})
    assert ollama.decode_request(longer).messages[:-1] == first.messages


def test_a_changed_limit_replaces_the_kept_form():
    request = ollama.decode_request(REQUESTS["settings"])
    body = ollama.encode_request(replace(request, max_tokens=9, sampling=Sampling()), stream=False)
    assert body["options"] == {"num_predict": 9, "num_ctx": 4096}
    assert body["stream"] is False


def test_a_conversation_from_elsewhere_is_written_whole():
    request = ChatRequest(
        model="m",
        messages=(
            message("developer", "one"),
            Message(
                role="user",
                parts=(
                    Text(text="see"),
                    Media(kind="image", url="https://example.org/a.png"),
                    Media(kind="image", data="AA"),
                ),
            ),
            Message(
                role="assistant",
                parts=(
                    Reasoning(text="hm", format="anthropic", opaque={"signature": "s"}),
                    ToolUse(call_id="a", name="f", arguments='{"x": 1} trailing'),
                ),
            ),
            Message(role="tool", parts=(ToolOutput(call_id="a", text="gone", is_error=True),)),
        ),
        tools=(ToolSpec(name="f"),),
        sampling=Sampling(temperature=0.5),
        max_tokens=5,
        extra={"openai-chat": {"n": 1}},
    )
    body = ollama.encode_request(request, stream=False)
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "one"},
            {"role": "user", "content": "see", "images": ["AA"]},
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]},
            {"role": "tool", "content": "Error: gone", "tool_name": "f", "tool_call_id": "a"},
        ],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "options": {"temperature": 0.5, "num_predict": 5},
        "stream": False,
    }
    barred = ollama.encode_request(replace(request, tool_choice=ToolPolicy(mode="none")), stream=True)
    assert "tools" not in barred
    assert "stream" not in barred


def test_crossing_to_chat_gives_a_whole_conversation():
    request = ollama.decode_request({**REQUESTS["tool round trip"], "skills": ["a"]})
    body = openai_chat.encode_request(request, stream=False)
    messages = body["messages"]
    assert isinstance(messages, list)
    assert messages[1] == {
        "role": "user",
        "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0AAAA"}},
            {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/AAAA"}},
        ],
    }
    assert messages[3] == {"role": "tool", "tool_call_id": "call_x", "name": "find", "content": "found b"}
    assert body.keys() == {"model", "messages", "tools"}


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("messages", {"messages": None}),
        ("messages[0].role", {"messages": [{"role": "developer", "content": "x"}]}),
        ("messages[0].content", {"messages": [{"role": "user", "content": ["x"]}]}),
        ("messages[0].images[0]", {"messages": [{"role": "user", "content": "x", "images": [5]}]}),
        (
            "messages[0].tool_calls[0].function.arguments",
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": [1]}}]}]},
        ),
        ("options", {"options": []}),
        ("options.temperature", {"options": {"temperature": "hot"}}),
        ("tools[0].function", {"tools": [{"type": "function"}]}),
    ],
)
def test_a_malformed_request_names_the_field(field: str, change: dict[str, Any]):
    with pytest.raises(RequestError) as caught:
        ollama.decode_request({**BASE, **change})
    assert (caught.value.code, caught.value.data["field"]) == ("invalid-request", field)


ANSWERS: dict[str, dict[str, Any]] = {
    "text": {
        "model": "m",
        "created_at": "2026-01-02T03:04:05Z",
        "message": {"role": "assistant", "content": "hi"},
        "done": True,
        "done_reason": "length",
        "total_duration": 5,
        "load_duration": 1,
        "prompt_eval_count": 3,
        "prompt_eval_duration": 2,
        "eval_count": 2,
        "eval_duration": 2,
    },
    "calls": {
        "model": "m",
        "created_at": "2026-01-02T03:04:05Z",
        "message": {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [{"function": {"name": "lookup", "arguments": {"q": "a"}}}],
        },
        "done": True,
        "done_reason": "stop",
    },
}
CREATED = 1767323045


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_comes_back_as_it_was(name: str):
    done = ollama.decode_answer(ANSWERS[name])
    assert ollama.encode_answer(done, model="m", id="", created=CREATED) == ANSWERS[name]


def test_an_answer_with_calls_is_a_tool_turn():
    assert ollama.decode_answer(ANSWERS["calls"]).finish == "tool_calls"
    done = ollama.decode_answer(ANSWERS["text"])
    assert (done.finish, done.usage) == ("length", Usage(prompt_tokens=3, completion_tokens=2))


def run(*lines: dict[str, Any]) -> tuple[list[Any], ModelDone]:
    numbers = itertools.count(1)
    decoder = ollama.StreamDecoder(new_id=lambda: f"made_{next(numbers)}")
    events = [event for line in lines for event in decoder.feed(line)]
    return events, decoder.finish()


def line(done: bool = False, **message: Any) -> dict[str, Any]:
    return {"model": "m", "created_at": "x", "message": {"role": "assistant", **message}, "done": done}


def test_a_streamed_answer_is_put_together():
    events, done = run(
        line(content="", thinking="hm"),
        line(content="a"),
        line(content="", tool_calls=[{"function": {"name": "f", "arguments": {"x": 1}}}, {"function": {"name": "g"}}]),
        line(content="", tool_calls=[{"function": {"name": "f", "arguments": '{"x": 2}'}}]),
        {
            **line(done=True, content=""),
            "done_reason": "stop",
            "prompt_eval_count": 3,
            "eval_count": 4,
            "total_duration": 9,
        },
    )
    assert events == [
        ModelReasoning(text="hm"),
        ModelText(text="a"),
        ModelCall(index=0, call_id="made_1", name="f", arguments='{"x": 1}'),
        ModelCall(index=1, call_id="made_2", name="g", arguments=""),
        ModelCall(index=2, call_id="made_3", name="f", arguments='{"x": 2}'),
    ]
    assert done.finish == "tool_calls"
    assert done.usage == Usage(prompt_tokens=3, completion_tokens=4)
    assert ollama.encode_answer(done, model="m", id="", created=CREATED) == {
        "model": "m",
        "created_at": "2026-01-02T03:04:05Z",
        "message": {
            "role": "assistant",
            "content": "a",
            "thinking": "hm",
            "tool_calls": [
                {"function": {"name": "f", "arguments": {"x": 1}}},
                {"function": {"name": "g", "arguments": {}}},
                {"function": {"name": "f", "arguments": {"x": 2}}},
            ],
        },
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 3,
        "eval_count": 4,
        "total_duration": 9,
    }


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (line(content="half"), "upstream-cut-off"),
        ({"error": "model 'm' not found"}, "model-not-found"),
        ({"error": "out of memory"}, "upstream-failed"),
        ({"message": "x"}, "upstream-garbled"),
        (line(tool_calls=[{"function": {"arguments": {}}}]), "upstream-garbled"),
    ],
)
def test_bad_streams_are_errors(item: dict[str, Any], code: str):
    with pytest.raises(UpstreamError) as caught:
        run(item)
    assert caught.value.code == code
