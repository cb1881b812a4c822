"""What holds for every body, and for the vendors' own readers."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from satchel.chat.codec import anthropic, ollama, openai_chat, openai_responses
from satchel.chat.events import Finish, ModelDone, Usage
from satchel.chat.messages import Json, Message, Reasoning, Text, ToolOutput, ToolUse
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy, ToolSpec
from satchel.errors import RequestError, UpstreamError

CODECS: dict[str, Any] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "ollama": ollama,
    "anthropic": anthropic,
}
WORDS = st.text(max_size=8)
NAMES = st.sampled_from(["f", "lookup", "skills_read"])
IDS = st.sampled_from(["a", "b", "call_1"])
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=10,
)

PARTS = st.one_of(
    st.builds(Text, text=WORDS),
    st.builds(Reasoning, text=WORDS),
    st.builds(
        ToolUse, call_id=IDS, name=NAMES, arguments=st.sampled_from(['{"x": 1}', "{}", "", "broken", "{'a': 1}"])
    ),
)
MESSAGES = st.one_of(
    st.builds(
        Message, role=st.sampled_from(["system", "developer", "user"]), parts=st.tuples(st.builds(Text, text=WORDS))
    ),
    st.builds(Message, role=st.just("assistant"), parts=st.lists(PARTS, min_size=1, max_size=4).map(tuple)),
    st.builds(
        Message,
        role=st.just("tool"),
        parts=st.lists(
            st.builds(ToolOutput, call_id=IDS, text=WORDS, is_error=st.booleans()), min_size=1, max_size=3
        ).map(tuple),
    ),
)
REQUESTS = st.builds(
    ChatRequest,
    model=st.sampled_from(["", "m"]),
    messages=st.lists(MESSAGES, max_size=5).map(lambda made: (Message(role="user", parts=(Text(text="x"),)), *made)),
    tools=st.lists(st.builds(ToolSpec, name=NAMES, description=WORDS), max_size=2).map(tuple),
    tool_choice=st.none() | st.builds(ToolPolicy, mode=st.sampled_from(["auto", "required"])),
    sampling=st.builds(Sampling, temperature=st.none() | st.floats(0, 2), stop=st.lists(WORDS, max_size=2).map(tuple)),
    max_tokens=st.none() | st.integers(1, 100),
)


@pytest.mark.parametrize("name", CODECS)
@given(request=REQUESTS, stream=st.booleans())
def test_what_is_written_is_read_and_written_again_the_same(name: str, request: ChatRequest, stream: bool):
    codec = CODECS[name]
    body = codec.encode_request(request, stream=stream)
    assert codec.encode_request(codec.decode_request(body), stream=stream) == body


@pytest.mark.parametrize("name", CODECS)
@given(request=REQUESTS, field=st.sampled_from(["messages", "input", "tools", "tool_choice", "system", "options", "stop", "instructions"]), value=JSON_VALUES)  # fmt: skip
def test_a_body_is_refused_or_comes_back_as_it_was(name: str, request: ChatRequest, field: str, value: Json):
    codec = CODECS[name]
    body = {**codec.encode_request(request, stream=False), field: value}
    with contextlib.suppress(RequestError):
        assert codec.encode_request(codec.decode_request(body), stream=False) == body


@pytest.mark.parametrize("name", CODECS)
@given(event=st.dictionaries(st.sampled_from(["type", "choices", "message", "delta", "error", "usage", "item", "response", "index", "output_index", "content_block", "done"]), JSON_VALUES | st.sampled_from(["error", "message_start", "content_block_delta", "response.completed", "response.output_item.done", True])))  # fmt: skip
def test_a_bad_event_never_breaks_the_decoder(name: str, event: dict[str, Json]):
    decoder = CODECS[name].StreamDecoder()
    with contextlib.suppress(UpstreamError):
        decoder.feed(event)
        assert decoder.finish().message.role == "assistant"


@pytest.mark.parametrize("name", CODECS)
@given(body=st.dictionaries(st.sampled_from(["choices", "message", "output", "status", "content", "usage", "stop_reason", "done_reason"]), JSON_VALUES))  # fmt: skip
def test_a_bad_answer_never_breaks_the_reader(name: str, body: dict[str, Json]):
    with contextlib.suppress(UpstreamError):
        assert CODECS[name].decode_answer(body).message.role == "assistant"


DONES: dict[str, tuple[Finish, tuple[Any, ...]]] = {
    "text": ("stop", (Text(text="hi"),)),
    "cut": ("length", (Text(text="hi"),)),
    "empty": ("stop", (Text(text=""),)),
    "calls": (
        "tool_calls",
        (Reasoning(text="hm"), Text(text="I look"), ToolUse(call_id="a", name="f", arguments="{}")),
    ),
}


@pytest.mark.parametrize("name", DONES)
def test_the_vendors_own_types_take_our_answers(name: str):
    finish, parts = DONES[name]
    usage = Usage(prompt_tokens=5, completion_tokens=2, cached_tokens=1, reasoning_tokens=1)
    done = ModelDone(finish=finish, message=Message(role="assistant", parts=parts), usage=usage)
    chat = ChatCompletion.model_validate(openai_chat.encode_answer(done, model="m", id="i", created=1), strict=True)
    assert chat.choices[0].finish_reason == finish
    assert chat.usage is not None
    assert chat.usage.total_tokens == 7
    answer = openai_responses.encode_answer(done, model="m", id="resp_1", created=1)
    response = Response.model_validate(answer)
    assert response.output_text == done.message.text
    assert [item.type for item in response.output if item.type == "function_call"] == ["function_call"] * len(
        done.message.tool_uses
    )
