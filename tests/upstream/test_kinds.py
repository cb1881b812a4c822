"""What holds for every kind of model server: what is sent, what comes back, and how it fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from satchel.chat.events import ModelCall, ModelDone, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Message, Reasoning, ToolOutput, message
from satchel.chat.request import Caller, ChatRequest, ToolSpec
from satchel.errors import UpstreamError
from satchel.ports.models import UpstreamOptions
from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, refuses, says
from satchel.upstream.anthropic import AnthropicClient
from satchel.upstream.client import ServerClient
from satchel.upstream.ollama import OllamaClient
from satchel.upstream.openai_chat import OpenAIChatClient
from satchel.upstream.openai_responses import OpenAIResponsesClient
from tests.upstream.talking import ASK, KEY, collect, failure_of, raw_server

WEATHER = ToolSpec(name="f", description="d", parameters={"type": "object"})


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of server. ``usage`` is what it says, ``counted`` what that means, ``length`` its word for a cut answer."""

    client: Callable[[UpstreamOptions], ServerClient]
    base: Callable[[ScriptedOpenAI], str]
    usage: dict[str, Any]
    counted: Usage
    length: str
    error: dict[str, Any]
    hides_key: tuple[str, str]

    @property
    def name(self) -> str:
        return self.client.__name__.removesuffix("Client")


KINDS = (
    Kind(
        client=OpenAIChatClient,
        base=lambda server: server.url,
        usage={
            "prompt_tokens": 9,
            "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
        counted=Usage(prompt_tokens=9, completion_tokens=4, cached_tokens=2, cache_write_tokens=3, reasoning_tokens=1),
        length="length",
        error={"error": {"message": "it broke"}},
        hides_key=("Authorization", f"Bearer {KEY}"),
    ),
    Kind(
        client=OpenAIResponsesClient,
        base=lambda server: server.url,
        usage={
            "input_tokens": 9,
            "output_tokens": 4,
            "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 3},
            "output_tokens_details": {"reasoning_tokens": 1},
        },
        counted=Usage(prompt_tokens=9, completion_tokens=4, cached_tokens=2, cache_write_tokens=3, reasoning_tokens=1),
        length="max_output_tokens",
        error={"type": "response.failed", "response": {"status": "failed", "error": {"message": "it broke"}}},
        hides_key=("Authorization", f"Bearer {KEY}"),
    ),
    Kind(
        client=OllamaClient,
        base=lambda server: server.root,
        usage={"prompt_eval_count": 9, "eval_count": 4},
        counted=Usage(prompt_tokens=9, completion_tokens=4),
        length="length",
        error={"error": "it broke"},
        hides_key=("Authorization", f"Bearer {KEY}"),
    ),
    Kind(
        client=AnthropicClient,
        base=lambda server: server.root,
        usage={
            "input_tokens": 4,
            "cache_read_input_tokens": 2,
            "cache_creation_input_tokens": 3,
            "output_tokens": 4,
        },
        counted=Usage(prompt_tokens=9, completion_tokens=4, cached_tokens=2, cache_write_tokens=3),
        length="max_tokens",
        error={"type": "error", "error": {"type": "api_error", "message": "it broke"}},
        hides_key=("x-api-key", KEY),
    ),
)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@asynccontextmanager
async def speaking(kind: Kind, server: ScriptedOpenAI | str, **options: Any) -> AsyncGenerator[ServerClient]:
    url = server if isinstance(server, str) else kind.base(server)
    client = kind.client(UpstreamOptions(url=url, **options))
    try:
        yield client
    finally:
        await client.aclose()


def full_turn(kind: Kind, **more: Any) -> ScriptedTurn:
    return ScriptedTurn(
        reasoning=("h", "m"),
        sealed="c2ln",
        text=("I ", "look"),
        calls=(
            ScriptedCall(name="f", fragments=('{"x":', " 1}"), call_id="a"),
            ScriptedCall(name="g", fragments=("{}",), call_id="b"),
        ),
        usage=kind.usage,
        **more,
    )


# --- what comes back


async def test_a_streamed_answer_with_reasoning_calls_and_usage(kind: Kind):
    async with ScriptedOpenAI([full_turn(kind)]) as server, speaking(kind, server, api_key=KEY) as client:
        *events, done = await collect(client)
        assert "".join(event.text for event in events if isinstance(event, ModelReasoning)) == "hm"
        assert [event.text for event in events if isinstance(event, ModelText)] == ["I ", "look"]
        calls = [event for event in events if isinstance(event, ModelCall)]
        assert {event.index: (event.call_id, event.name) for event in calls} == {0: ("a", "f"), 1: ("b", "g")}
        assert isinstance(done, ModelDone)
        assert done.finish == "tool_calls"
        assert done.usage == kind.counted
        assert [(use.call_id, json.loads(use.arguments)) for use in done.message.tool_uses] == [
            ("a", {"x": 1}),
            ("b", {}),
        ]
        name, value = kind.hides_key
        assert server.requests[0].headers[name] == value
        assert server.requests[0].body["stream"] is True


async def test_an_answer_in_one_piece_against_what_was_asked_says_the_same(kind: Kind):
    turns = [full_turn(kind), full_turn(kind, plain=True)]
    async with ScriptedOpenAI(turns) as server, speaking(kind, server) as client:
        *_, streamed = await collect(client)
        *events, whole = await collect(client)
        assert "".join(event.text for event in events if isinstance(event, ModelText)) == "I look"
        assert "".join(event.text for event in events if isinstance(event, ModelReasoning)) == "hm"
        assert [event.call_id for event in events if isinstance(event, ModelCall)] == ["a", "b"]
        assert (whole.finish, whole.usage, whole.message.text) == (streamed.finish, streamed.usage, "I look")
        said = [(use.call_id, json.loads(use.arguments)) for use in whole.message.tool_uses]
        assert said == [(use.call_id, json.loads(use.arguments)) for use in streamed.message.tool_uses]


async def test_text_arrives_before_the_answer_is_over(kind: Kind):
    turn = ScriptedTurn(text=("one", "two"), fault="stall")
    async with ScriptedOpenAI([turn]) as server, speaking(kind, server) as client:
        async with client.stream(ASK) as events:
            assert await anext(events) == ModelText(text="one")
        await asyncio.wait_for(server.requests[0].hung_up.wait(), 10)


async def test_a_cut_answer_is_a_length(kind: Kind):
    async with (
        ScriptedOpenAI([ScriptedTurn(text=("x",), finish=kind.length)]) as server,
        speaking(kind, server) as client,
    ):
        assert (await collect(client))[-1].finish == "length"


async def test_an_answer_without_counts_has_none(kind: Kind):
    async with ScriptedOpenAI([says("x")]) as server, speaking(kind, server) as client:
        assert (await collect(client))[-1].usage is None


async def test_reasoning_goes_back_as_it_came_in_the_next_round(kind: Kind):
    async with ScriptedOpenAI([full_turn(kind), says("done")]) as server, speaking(kind, server) as client:
        *_, done = await collect(client, replace(ASK, tools=(WEATHER,)))
        results = tuple(
            Message(role="tool", parts=(ToolOutput(call_id=use.call_id, name=use.name, text=f"result {use.call_id}"),))
            for use in done.message.tool_uses
        )
        messages = (*ASK.messages, done.message, *results)
        await collect(client, replace(ASK, messages=messages, tools=(WEATHER,)))
        body = json.dumps(server.requests[1].body)
        assert "result a" in body
        assert "result b" in body
        assert any(isinstance(part, Reasoning) for part in done.message.parts)
        if kind.client is AnthropicClient:
            sent: Any = server.requests[1].body["messages"]
            assert sent[1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
            assert [block["tool_use_id"] for block in sent[2]["content"]] == ["a", "b"]
        elif kind.client is OpenAIResponsesClient:
            sent = server.requests[1].body["input"]
            (item,) = (item for item in sent if item.get("type") == "reasoning")
            assert (item["id"], item["encrypted_content"]) == ("rs_scripted", "c2ln")
            assert [item["call_id"] for item in sent if item.get("type") == "function_call_output"] == ["a", "b"]
        elif kind.client is OllamaClient:
            sent = server.requests[1].body["messages"]
            assert sent[1]["thinking"] == "hm"
            assert sent[1]["tool_calls"][0]["function"]["arguments"] == {"x": 1}
        else:
            sent = server.requests[1].body["messages"]
            assert sent[1]["reasoning_content"] == "hm"


# --- keys


async def test_a_callers_key_is_sent_only_where_none_is_configured(kind: Kind):
    request = replace(ASK, caller=Caller(key="theirs"))
    for own, sent in (("mine", "mine"), ("", "theirs")):
        async with ScriptedOpenAI([says("a")]) as server, speaking(kind, server, api_key=own) as client:
            await collect(client, request)
            await client.models(Caller(key="theirs"))
            name = kind.hides_key[0]
            assert server.requests[0].headers[name].endswith(sent)
            assert server.listings[0].headers[name].endswith(sent)
    async with ScriptedOpenAI([says("a")]) as server, speaking(kind, server) as client:
        await collect(client)
        assert kind.hides_key[0] not in server.requests[0].headers


async def test_a_key_that_no_header_can_carry_is_refused_and_no_failure_shows_a_key(kind: Kind):
    async with ScriptedOpenAI([]) as server, speaking(kind, server, api_key="a\r\nX-Evil: 1") as client:
        assert (await failure_of(client)).code == "upstream-auth"
    turns = [
        refuses(401, f"Incorrect API key provided: {KEY}"),
        ScriptedTurn(chunks=(json.loads(json.dumps(kind.error).replace("it broke", f"bad {KEY}")),)),
    ]
    async with ScriptedOpenAI(turns) as server, speaking(kind, server, api_key=KEY) as client:
        assert KEY not in repr(client._options)  # pyright: ignore[reportPrivateUsage]
        for _ in turns:
            shown = json.dumps((await failure_of(client)).to_dict())
            assert KEY not in shown
            assert "[key]" in shown


# --- models


async def test_models_are_listed_and_the_first_stands_in_for_none(kind: Kind):
    listed = [{"id": name} for name in ("one", "two", "three", "four", "five")]
    async with ScriptedOpenAI([says("x")], models=listed) as server, speaking(kind, server) as client:
        assert [info.id for info in await client.models()] == ["one", "two", "three", "four", "five"]
        await collect(client, ChatRequest(messages=ASK.messages))
        assert server.requests[0].body["model"] == "one"


async def test_a_list_of_models_that_is_none_is_garbled(kind: Kind):
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    for body in (b"<html>", b"5", b'{"data": 5}'):
        async with raw_server(head, body) as url, speaking(kind, url) as client:
            with pytest.raises(UpstreamError) as caught:
                await client.models()
            assert caught.value.code == "upstream-garbled"


# --- failures


@pytest.mark.parametrize(
    ("turn", "code", "retryable"),
    [
        (refuses(400, "tools: extra inputs are not permitted"), "upstream-rejected", False),
        (refuses(403, "no"), "upstream-auth", False),
        (refuses(404, "model 'm' not found"), "model-not-found", False),
        (refuses(429, "slow down", Retry_After="7"), "upstream-rate-limited", True),
        (refuses(500, "boom"), "upstream-failed", True),
        (refuses(529, "Overloaded"), "upstream-failed", True),
        (refuses(400, "prompt is too long: 210000 tokens > 200000 maximum"), "context-overflow", False),
        (ScriptedTurn(text=("half",), fault="cut"), "upstream-cut-off", True),
        (ScriptedTurn(text=("half",), fault="end"), "upstream-cut-off", True),
        (ScriptedTurn(text=("all",), fault="", finish=""), "upstream-cut-off", True),
        (ScriptedTurn(text=("half",), fault="garbage"), "upstream-garbled", False),
        (ScriptedTurn(chunks=(), finish=""), "upstream-cut-off", True),
    ],
)
async def test_each_failure_has_its_code(kind: Kind, turn: ScriptedTurn, code: str, retryable: bool):
    async with ScriptedOpenAI([turn]) as server, speaking(kind, server) as client:
        error = await failure_of(client)
        assert (error.code, error.retryable) == (code, retryable)
        if turn.status != 200:
            assert error.data["status"] == turn.status
            assert error.data.get("retry_after") == turn.headers.get("Retry-After")
        assert len(server.requests) == 1


async def test_an_error_inside_a_stream_is_one(kind: Kind):
    async with ScriptedOpenAI([ScriptedTurn(chunks=(kind.error,))]) as server, speaking(kind, server) as client:
        error = await failure_of(client)
        assert error.code == "upstream-failed"
        assert "it broke" in error.message


async def test_silence_runs_out(kind: Kind):
    turn = ScriptedTurn(text=("one",), fault="stall")
    async with ScriptedOpenAI([turn]) as server, speaking(kind, server, silence_s=0.1) as client:
        assert (await failure_of(client)).code == "upstream-timeout"


async def test_cancelling_a_wait_for_the_first_byte_closes_the_connection(kind: Kind):
    async with ScriptedOpenAI([ScriptedTurn(text=("one",), delay_s=600)]) as server, speaking(kind, server) as client:
        task = asyncio.create_task(collect(client))
        seen = await server.wait_for_request()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(seen.hung_up.wait(), 10)


async def test_reading_waits_for_the_reader(kind: Kind):
    async with ScriptedOpenAI([ScriptedTurn(text=("x" * 50_000,) * 2000)]) as server, speaking(kind, server) as client:
        async with client.stream(ASK) as events:
            await anext(events)
            before = -1
            while before != server.requests[0].chunks_sent:
                before = server.requests[0].chunks_sent
                await asyncio.sleep(0.05)
            assert before < 1000
        await asyncio.wait_for(server.requests[0].hung_up.wait(), 10)


async def test_a_large_conversation_arrives_whole(kind: Kind):
    long = "ü" * 4_000_000
    async with ScriptedOpenAI([says("ok")]) as server, speaking(kind, server) as client:
        await collect(client, ChatRequest(model="m", messages=(message("user", long),)))
        assert long in json.dumps(server.requests[0].body, ensure_ascii=False)
