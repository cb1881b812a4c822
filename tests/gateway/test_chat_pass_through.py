"""What an upstream of the same format says beside text and calls reaches the client, streamed and whole alike."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI

from satchel.ports.models import UpstreamOptions
from satchel.testing.scripted_openai import ScriptedOpenAI, ScriptedTurn, Stage
from satchel.upstream.openai_chat import OpenAIChatClient
from tests.gateway.serving import client_of, runtime_over, serving
from tests.gateway.shelf import shelf

ASK: list[Any] = [{"role": "user", "content": "x"}]
LOGPROBS = {"content": [{"token": "hi", "logprob": -0.1, "bytes": None, "top_logprobs": []}], "refusal": None}
CITED = {"type": "url_citation", "url_citation": {"url": "http://x", "title": "t", "start_index": 0, "end_index": 1}}
FUNCTION: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def chunk(delta: dict[str, Any], finish: str | None = None, **choice: Any) -> dict[str, Any]:
    return {"id": "a", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **choice}]}


@asynccontextmanager
async def gateway(*chunks: dict[str, Any], plain: Any = None, skills: bool = True) -> AsyncGenerator[AsyncOpenAI]:
    async def say_whole(stage: Stage) -> None:
        await stage.open("application/json")
        await stage.write(json.dumps(plain).encode())

    turn = ScriptedTurn(chunks=chunks) if plain is None else ScriptedTurn(play=say_whole)
    async with ScriptedOpenAI([turn, turn]) as upstream:
        models = OpenAIChatClient(UpstreamOptions(name="up", url=upstream.url, kind="openai"))
        async with serving(runtime_over(models, shelf() if skills else None)) as base, client_of(base) as client:
            yield client


async def both(*chunks: dict[str, Any], skills: bool = True, **asked: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first choice, whole and put together from a stream by the official client; of the message what is set."""
    async with gateway(*chunks, skills=skills) as client:
        whole = await client.chat.completions.create(model="m", messages=ASK, **asked)
        async with client.chat.completions.stream(model="m", messages=ASK, **asked) as stream:
            streamed = await stream.get_final_completion()
    assert whole.system_fingerprint == streamed.system_fingerprint
    return _choice(whole), _choice(streamed)


def _choice(completion: Any) -> dict[str, Any]:
    choice = completion.model_dump(exclude_none=True)["choices"][0]
    message = {key: value for key, value in choice["message"].items() if value and key not in {"parsed", "role"}}
    for call in message.get("tool_calls", ()):
        call.pop("index", None)
        call.get("function", {}).pop("parsed_arguments", None)
    return {"message": message, "finish": choice["finish_reason"], "logprobs": choice.get("logprobs")}


async def test_a_refusal_is_not_an_empty_answer() -> None:
    whole, streamed = await both(
        chunk({"role": "assistant", "refusal": "I cannot"}), chunk({"refusal": " do it"}), chunk({}, "stop")
    )
    assert whole == streamed == {"message": {"refusal": "I cannot do it"}, "finish": "stop", "logprobs": None}


async def test_log_probabilities_reach_the_client() -> None:
    whole, streamed = await both(
        chunk({"content": "hi"}, logprobs=LOGPROBS), chunk({"content": "hi"}, logprobs=LOGPROBS), chunk({}, "stop")
    )
    assert whole == streamed
    assert [token["token"] for token in whole["logprobs"]["content"]] == ["hi", "hi"]


async def test_annotations_and_what_the_server_says_of_itself_come_along() -> None:
    async with gateway(
        chunk({"content": "hi", "annotations": [CITED]}),
        {**chunk({}, "stop"), "system_fingerprint": "fp_1", "service_tier": "flex"},
    ) as client:
        whole = await client.chat.completions.create(model="m", messages=ASK)
        chunks = [item async for item in await client.chat.completions.create(model="m", messages=ASK, stream=True)]
    message = whole.model_dump(exclude_none=True)["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "hi", "annotations": [CITED]}
    deltas = [item.model_dump(exclude_none=True)["choices"][0]["delta"] for item in chunks]
    assert {"annotations": [CITED]} in deltas
    assert whole.system_fingerprint == chunks[-1].system_fingerprint == "fp_1"
    assert whole.service_tier == chunks[-1].service_tier == "flex"


@pytest.mark.parametrize("skills", [True, False])
async def test_a_call_of_a_custom_tool_goes_to_the_client(*, skills: bool) -> None:
    async with gateway(
        chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "custom", "custom": {"name": "grep", "input": "fo"}}]}),
        chunk({"tool_calls": [{"index": 0, "custom": {"input": "o"}}]}),
        chunk({}, "tool_calls"),
        skills=skills,
    ) as client:
        tools: Any = [{"type": "custom", "custom": {"name": "grep"}}, FUNCTION]
        whole = await client.chat.completions.create(model="m", messages=ASK, tools=tools)
        async with client.chat.completions.stream(model="m", messages=ASK, tools=tools) as stream:
            finishes = [event.chunk.choices[0].finish_reason async for event in stream if event.type == "chunk"]
    choice = whole.choices[0].model_dump(exclude_none=True)
    assert choice["finish_reason"] == finishes[-1] == "tool_calls"
    assert choice["message"]["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": {"name": "grep", "input": "foo"}}
    ]
