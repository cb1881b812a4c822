from __future__ import annotations

from satchel.chat.codec import anthropic
from satchel.chat.messages import Message, ToolOutput, ToolUse, message
from satchel.chat.request import ChatRequest, ToolSpec

CALLED = (
    message("user", "Read it."),
    Message(role="assistant", parts=(ToolUse(call_id="c1", name="skills_read", arguments="{}"),)),
    Message(role="tool", parts=(ToolOutput(call_id="c1", name="skills_read", text="Body."),)),
)


def test_what_was_called_stays_declared_and_may_not_be_called_when_no_tool_is_left():
    body = anthropic.encode_request(ChatRequest(model="m", messages=CALLED), stream=False)
    assert body["tools"] == [{"name": "skills_read", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}


def test_declared_tools_are_all_there_is():
    request = ChatRequest(model="m", messages=CALLED, tools=(ToolSpec(name="weather"),))
    body = anthropic.encode_request(request, stream=False)
    assert body["tools"] == [{"name": "weather", "input_schema": {"type": "object"}}]
    assert "tool_choice" not in body


def test_a_conversation_without_calls_declares_nothing():
    body = anthropic.encode_request(ChatRequest(model="m", messages=CALLED[:1]), stream=False)
    assert "tools" not in body
    assert "tool_choice" not in body
