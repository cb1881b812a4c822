from __future__ import annotations

from typing import Any

import pytest

from satchel.chat.codec import anthropic, openai_chat, openai_responses
from satchel.chat.messages import message
from satchel.chat.request import ChatRequest, ToolPolicy, ToolSpec

ASK: list[Any] = [{"role": "user", "content": "x"}]
TOOL = ToolSpec(name="f", parameters={"type": "object"})
BODIES: dict[Any, dict[str, Any]] = {
    openai_chat: {"model": "m", "messages": ASK, "parallel_tool_calls": False},
    openai_responses: {"model": "m", "input": ASK, "parallel_tool_calls": False},
    anthropic: {
        "model": "m",
        "max_tokens": 9,
        "messages": ASK,
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    },
}


@pytest.mark.parametrize("codec", BODIES)
def test_one_call_at_a_time_is_understood_and_comes_back(codec: Any) -> None:
    request = codec.decode_request(BODIES[codec])
    assert request.one_call
    for key in ("parallel_tool_calls", "tool_choice"):
        assert codec.encode_request(request, stream=False).get(key) == BODIES[codec].get(key)


@pytest.mark.parametrize("flag", [True, None])
def test_every_other_value_stays_as_it_came(flag: bool | None) -> None:
    body = {**BODIES[openai_chat], "parallel_tool_calls": flag}
    request = openai_chat.decode_request(body)
    assert not request.one_call
    assert openai_chat.encode_request(request, stream=False)["parallel_tool_calls"] is flag


def test_it_crosses_from_format_to_format() -> None:
    asked = ChatRequest(model="m", messages=(message("user", "x"),), tools=(TOOL,), one_call=True)
    for codec in (openai_chat, openai_responses):
        assert codec.encode_request(asked, stream=False)["parallel_tool_calls"] is False
    flag = {"disable_parallel_tool_use": True}
    assert anthropic.encode_request(asked, stream=False)["tool_choice"] == {"type": "auto", **flag}
    named = ChatRequest(
        model="m", messages=asked.messages, tools=(TOOL,), tool_choice=ToolPolicy(mode="named", name="f"), one_call=True
    )
    assert anthropic.encode_request(named, stream=False)["tool_choice"] == {"type": "tool", "name": "f", **flag}
    none = ChatRequest(
        model="m", messages=asked.messages, tools=(TOOL,), tool_choice=ToolPolicy(mode="none"), one_call=True
    )
    assert anthropic.encode_request(none, stream=False)["tool_choice"] == {"type": "none"}


def test_a_choice_without_anything_to_choose_from_is_not_made_up() -> None:
    asked = ChatRequest(model="m", messages=(message("user", "x"),), one_call=True)
    assert "tool_choice" not in anthropic.encode_request(asked, stream=False)
