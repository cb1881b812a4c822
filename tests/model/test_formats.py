"""The three wire formats that llama.cpp's own server speaks, against the real model: what one says, the others say."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from satchel.chat.events import ModelDone, ModelText
from satchel.chat.messages import Message, ToolOutput, ToolUse, message
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy, ToolSpec
from satchel.errors import UpstreamError
from satchel.ports.models import EmbeddedOptions, UpstreamOptions
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.upstream.anthropic import AnthropicClient
from satchel.upstream.client import ServerClient
from satchel.upstream.embedded import weights
from satchel.upstream.embedded.server import LocalServer, start_server
from satchel.upstream.openai_chat import OpenAIChatClient
from satchel.upstream.openai_responses import OpenAIResponsesClient

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

CLIENTS: tuple[type[ServerClient], ...] = (OpenAIChatClient, OpenAIResponsesClient, AnthropicClient)
WEATHER = ToolSpec(
    name="get_weather",
    description="The weather of a town.",
    parameters={"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
)


@pytest.fixture
async def server() -> AsyncGenerator[LocalServer]:
    options = EmbeddedOptions(weights="large", context_tokens=4096)
    path = await weights.fetch(options, UnconfinedExecutor(), lambda *step: None, environ=os.environ)
    running = await start_server(Path(path), options)
    yield running
    await running.aclose()


def asking(text: str, **more: Any) -> ChatRequest:
    sampling = Sampling(temperature=0.0)
    return ChatRequest(model="m", messages=(message("user", text),), sampling=sampling, **more)


async def test_one_model_in_three_formats(server: LocalServer) -> None:
    said: dict[str, str] = {}
    for kind in CLIENTS:
        client = kind(UpstreamOptions(url=server.url, api_key=server.key))
        try:
            assert len(await client.models()) == 1
            said[kind.__name__] = await _text(client)
            await _cut(client)
            await _result(client)
            await _hang_up(client)
            await _too_long(client)
        finally:
            await client.aclose()
        refused = kind(UpstreamOptions(url=server.url, api_key="wrong"))
        with pytest.raises(UpstreamError) as caught:
            await _collect(refused, asking("Say yes."))
        assert caught.value.code == "upstream-auth"
        await refused.aclose()
    assert len(set(said.values())) == 1, said


async def _collect(client: ServerClient, request: ChatRequest) -> tuple[list[Any], ModelDone]:
    async with client.stream(request) as stream:
        *events, done = [event async for event in stream]
    assert isinstance(done, ModelDone)
    return events, done


async def _text(client: ServerClient) -> str:
    request = asking("Count from one to five in words.", max_tokens=60)
    system = message("system", "You are terse.")
    events, done = await _collect(client, replace(request, messages=(system, *request.messages)))
    assert done.finish == "stop"
    assert len(events) > 2
    text = "".join(event.text for event in events if isinstance(event, ModelText))
    assert text == done.message.text
    assert "five" in text.lower()
    assert done.usage is not None
    assert done.usage.prompt_tokens > 10
    assert done.usage.completion_tokens > 3
    return text


async def _cut(client: ServerClient) -> None:
    _, done = await _collect(client, asking("Count from one to fifty.", max_tokens=4))
    assert done.usage is not None
    assert done.usage.completion_tokens == 4
    # llama.cpp calls a cut response a completed one.
    assert done.finish == ("stop" if isinstance(client, OpenAIResponsesClient) else "length")


async def _result(client: ServerClient) -> None:
    use = ToolUse(call_id="call_1", name="get_weather", arguments='{"town": "Lisbon"}')
    request = asking("How is the weather in Lisbon? Give the temperature.", tools=(WEATHER,), max_tokens=100)
    messages = (
        *request.messages,
        Message(role="assistant", parts=(use,)),
        Message(role="tool", parts=(ToolOutput(call_id="call_1", name="get_weather", text="Sunny, 37 degrees."),)),
    )
    _, done = await _collect(client, replace(request, messages=messages, tool_choice=ToolPolicy(mode="none")))
    assert "37" in done.message.text


async def _hang_up(client: ServerClient) -> None:
    async with client.stream(asking("Write a very long story.", max_tokens=2000)) as stream:
        await anext(stream)
    async with asyncio.timeout(60):
        _, done = await _collect(client, asking("Say yes.", max_tokens=2))
    assert done.message.text


async def _too_long(client: ServerClient) -> None:
    with pytest.raises(UpstreamError) as caught:
        await _collect(client, asking("word " * 6000))
    assert caught.value.code == "context-overflow"
