from __future__ import annotations

from satchel.chat.messages import Json, Message, ToolOutput, ToolUse, message
from satchel.chat.request import ChatRequest, ToolSpec
from satchel.ports.models import UpstreamOptions
from satchel.testing.scripted_openai import ScriptedOpenAI, says
from satchel.upstream.anthropic import AnthropicClient

CALLED = (
    message("user", "Read it."),
    Message(role="assistant", parts=(ToolUse(call_id="c1", name="skills_read", arguments="{}"),)),
    Message(role="tool", parts=(ToolOutput(call_id="c1", name="skills_read", text="Body."),)),
)


async def sent(request: ChatRequest) -> dict[str, Json]:
    async with ScriptedOpenAI([says("Done.")]) as server:
        client = AnthropicClient(UpstreamOptions(kind="anthropic", url=server.root))
        try:
            async with client.stream(request) as events:
                _ = [event async for event in events]
        finally:
            await client.aclose()
        return server.requests[-1].body


async def test_what_was_called_stays_declared_and_may_not_be_called_when_no_tool_is_left():
    body = await sent(ChatRequest(model="m", messages=CALLED))
    assert body["tools"] == [{"name": "skills_read", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}


async def test_declared_tools_are_all_there_is():
    body = await sent(ChatRequest(model="m", messages=CALLED, tools=(ToolSpec(name="weather"),)))
    assert body["tools"] == [{"name": "weather", "input_schema": {"type": "object"}}]
    assert "tool_choice" not in body


async def test_a_conversation_without_calls_declares_nothing():
    body = await sent(ChatRequest(model="m", messages=CALLED[:1]))
    assert "tools" not in body
    assert "tool_choice" not in body
