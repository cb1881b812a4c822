"""What is true of one kind of model server alone."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.chat.codec.anthropic import DEFAULT_MAX_TOKENS
from satchel.chat.events import ModelText
from satchel.chat.messages import message
from satchel.chat.request import Caller, ChatRequest, Sampling, ToolPolicy, ToolSpec
from satchel.errors import UpstreamError
from satchel.ports.models import UpstreamOptions
from satchel.testing.scripted_openai import ScriptedOpenAI, ScriptedTurn, refuses, says
from satchel.upstream.anthropic import AnthropicClient
from satchel.upstream.framing import LineParser
from satchel.upstream.ollama import OllamaClient
from satchel.upstream.openai_chat import OpenAIChatClient
from satchel.upstream.openai_responses import OpenAIResponsesClient
from tests.upstream.talking import ASK, client_for, collect, failure_of, raw_server

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


# --- OpenAI Chat Completions


async def test_a_model_that_wants_the_newer_limit_gets_it_from_then_on():
    refusal = refuses(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    request = replace(ASK, max_tokens=5)
    async with ScriptedOpenAI([refusal, says("a"), says("b"), says("c")]) as server, client_for(server.url) as client:
        await collect(client, request)
        await collect(client, request)
        await collect(client, replace(request, model="other"))
        limits = [(seen.body.get("max_tokens"), seen.body.get("max_completion_tokens")) for seen in server.requests]
        assert limits == [(5, None), (None, 5), (None, 5), (5, None)]


async def test_of_two_limits_the_tighter_one_goes_into_the_newer_field():
    refusal = refuses(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    fields: dict[str, Any] = {"max_tokens": 9, "max_completion_tokens": 5}
    request = replace(ASK, max_tokens=5, extra={"openai-chat": fields})
    async with ScriptedOpenAI([refusal, says("a")]) as server, client_for(server.url) as client:
        await collect(client, request)
        assert [seen.body.get("max_completion_tokens") for seen in server.requests] == [5, 5]
        assert "max_tokens" not in server.requests[1].body


async def test_a_field_is_left_out_for_good_only_when_that_helped():
    turns = [refuses(400, "stream_options is odd"), refuses(400, "bad tools"), says("x")]
    async with ScriptedOpenAI(turns) as server, client_for(server.url) as client:
        assert "bad tools" in (await failure_of(client)).message
        await collect(client)
        assert ["stream_options" in seen.body for seen in server.requests] == [True, False, True]


# --- OpenAI Responses


async def test_a_response_is_not_left_with_the_server_and_its_reasoning_comes_sealed():
    async with ScriptedOpenAI([says("a"), says("b"), says("c")]) as server:
        client = OpenAIResponsesClient(UpstreamOptions(url=server.url))
        asked: dict[str, Any] = {"store": True, "include": ["file_search_call.results"]}
        await collect(client)
        await collect(client, replace(ASK, extra={"openai-responses": asked}))
        await collect(client, replace(ASK, extra={"openai-responses": {"previous_response_id": "resp_1"}}))
        await client.aclose()
        sent = [(seen.body.get("store"), seen.body.get("include")) for seen in server.requests]
        assert sent == [
            (False, ["reasoning.encrypted_content"]),
            (True, ["file_search_call.results"]),
            (None, None),
        ]


async def test_a_model_that_seals_nothing_is_not_asked_for_it_again():
    turns = [refuses(400, "Encrypted content is not supported with this model."), says("a"), says("b")]
    async with ScriptedOpenAI(turns) as server:
        client = OpenAIResponsesClient(UpstreamOptions(url=server.url))
        await collect(client)
        await collect(client)
        await client.aclose()
        assert [seen.body.get("include") for seen in server.requests] == [["reasoning.encrypted_content"], None, None]


# --- Anthropic


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_an_anthropic_address_may_end_in_its_version(suffix: str):
    async with ScriptedOpenAI([says("a")]) as server:
        client = AnthropicClient(UpstreamOptions(url=server.root + suffix))
        await collect(client)
        await client.models()
        await client.aclose()
        assert server.requests[0].path == "/v1/messages"
        assert server.requests[0].headers["anthropic-version"] == "2023-06-01"
        assert [seen.path for seen in server.listings] == ["/v1/models?limit=1000"]


async def test_a_callers_betas_are_handed_on_and_nothing_else_of_the_header():
    request = replace(ASK, caller=Caller(betas=("files-2026-01-01", "evil\r\nx: y", "é", "b" * 200, "skills-1")))
    async with ScriptedOpenAI([says("a"), says("b")]) as server:
        client = AnthropicClient(UpstreamOptions(url=server.root))
        await collect(client, request)
        await collect(client)
        await client.aclose()
        assert server.requests[0].headers["anthropic-beta"] == "files-2026-01-01,skills-1"
        assert "anthropic-beta" not in server.requests[1].headers


@pytest.mark.parametrize(
    ("limit", "budget", "sent"),
    [
        (16_000, 10_000, {"type": "enabled", "budget_tokens": 10_000}),
        (8_000, 10_000, {"type": "enabled", "budget_tokens": 7_999}),
        (1_024, 10_000, None),
        (None, 10_000, {"type": "enabled", "budget_tokens": DEFAULT_MAX_TOKENS - 1}),
    ],
)
async def test_the_thinking_budget_stays_below_what_is_left(limit: int | None, budget: int, sent: Any):
    thinking: Any = {"thinking": {"type": "enabled", "budget_tokens": budget}}
    async with ScriptedOpenAI([says("a")]) as server:
        client = AnthropicClient(UpstreamOptions(url=server.root))
        await collect(client, replace(ASK, max_tokens=limit, extra={"anthropic": thinking}))
        await client.aclose()
        assert server.requests[0].body.get("thinking") == sent
        assert server.requests[0].body["max_tokens"] == (limit or DEFAULT_MAX_TOKENS)


async def test_an_address_with_a_query_keeps_it_beside_the_pages_own():
    async with ScriptedOpenAI([], models=[{"id": "a"}, {"id": "b"}, {"id": "c d"}]) as server:
        client = AnthropicClient(UpstreamOptions(url=server.root + "/v1?tenant=t"))
        assert [info.id for info in await client.models()] == ["a", "b", "c d"]
        await client.aclose()
        assert [seen.path for seen in server.listings] == [
            "/v1/models?limit=1000&tenant=t",
            "/v1/models?limit=1000&after_id=b&tenant=t",
        ]


async def test_a_listing_without_end_is_left():
    page = b'{"data": [{"id": "a"}], "has_more": true, "last_id": "a"}'
    async with raw_server(HEAD, page) as url:
        client = AnthropicClient(UpstreamOptions(url=url))
        assert len(await client.models()) == 20
        await client.aclose()


# --- Ollama


@pytest.mark.parametrize("suffix", ["", "/", "/api"])
async def test_an_ollama_address_is_the_hosts_root(suffix: str):
    tools = (ToolSpec(name="f"),)
    request = replace(ASK, tools=tools, sampling=Sampling(seed=3), max_tokens=7)
    async with ScriptedOpenAI([says("a"), says("b")]) as server:
        client = OllamaClient(UpstreamOptions(url=server.root + suffix))
        await collect(client, request)
        await collect(client, replace(request, tool_choice=ToolPolicy(mode="none")))
        await client.aclose()
        first, second = (seen.body for seen in server.requests)
        assert server.requests[0].path == "/api/chat"
        assert first["options"] == {"seed": 3, "num_predict": 7}
        assert first["stream"] is True
        assert first["tools"] == [{"type": "function", "function": {"name": "f"}}]
        assert "tools" not in second


async def test_what_a_model_can_do_is_asked_once():
    shows: dict[str, Any] = {
        "tooled": {
            "capabilities": ["completion", "tools", "thinking"],
            "model_info": {"general.architecture": "x", "x.context_length": 131072},
            "parameters": 'stop "<end>"\nnum_ctx   16384\ntemperature 0.5',
        },
        "plain": {"capabilities": ["completion"], "model_info": {"x.context_length": 8192}},
        "mistral3": {"capabilities": ["completion", "tools"]},
        "qwen3:8b": {"template": "old servers do not tell"},
        "strange": {},
    }
    async with ScriptedOpenAI(shows=shows, models=[{"id": "tooled"}]) as server:
        client = OllamaClient(UpstreamOptions(kind="ollama", url=server.root))
        names = ("tooled", "plain", "mistral3", "qwen3:8b", "strange", "missing", "")
        seen = [await client.capabilities(name) for name in names]
        assert [item.tools for item in seen] == ["native", "none", "native", "native", "none", "none", "native"]
        assert [item.context_tokens for item in seen] == [16384, 8192, None, None, None, None, 16384]
        assert [item.tool_role for item in seen][:3] == [True, False, True]
        asked = len(server.listings)
        await client.capabilities("tooled")
        assert len(server.listings) == asked
        await client.aclose()


async def test_a_server_that_is_gone_cannot_say_what_its_model_can_do():
    client = OllamaClient(UpstreamOptions(kind="ollama", url="http://127.0.0.1:9"))
    with pytest.raises(UpstreamError) as caught:
        await client.capabilities("m")
    assert caught.value.code == "upstream-unreachable"
    await client.aclose()


LINES = [b'{"a": "gr\xc3\xbc\xc3\x9fe"}', b"{}", b'{"b": 1}']


@given(st.sampled_from([b"\n", b"\r\n", b"\n\n"]), st.lists(st.integers(0, 60), max_size=20), st.booleans())
def test_any_cut_of_the_bytes_gives_the_same_lines(newline: bytes, cuts: list[int], is_closed: bool):
    stream = newline.join(LINES) + (newline if is_closed else b"")
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    parser = LineParser()
    seen = [line for start, end in itertools.pairwise(places) for line in parser.feed(stream[start:end])]
    assert [line.strip() for line in [*seen, *parser.close()]] == LINES


def test_a_line_is_bounded():
    parser = LineParser(max_line_bytes=10)
    assert parser.feed(b"0123456789\n012345678") == [b"0123456789"]
    with pytest.raises(UpstreamError):
        parser.feed(b"9x")
    with pytest.raises(UpstreamError):
        LineParser(max_line_bytes=3).feed(b"ok\n1234\n")


@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        ((b'{"message": {"content": "half"}}\n', b'{"message": {"con'), "upstream-cut-off"),
        ((b"<html>hello</html>",), "upstream-cut-off"),
        ((b"<html>\nhello</html>\n",), "upstream-garbled"),
        ((b"5\n",), "upstream-garbled"),
        ((b'{"error": "model runner has unexpectedly stopped"}\n',), "upstream-failed"),
        ((b'{"message": {"content": 5}}\n',), "upstream-garbled"),
        ((), "upstream-cut-off"),
        ((b"\n" * 16384,) * 5, "upstream-garbled"),
    ],
)
async def test_lines_that_are_no_answer_are_told_apart(pieces: tuple[bytes, ...], code: str):
    async with raw_server(HEAD, *pieces) as url:
        client = OllamaClient(UpstreamOptions(url=url.removesuffix("/v1")))
        assert (await failure_of(client)).code == code
        await client.aclose()


async def test_nothing_is_read_after_the_last_line():
    body = b'{"message": {"content": "a"}}\n{"done": true, "done_reason": "stop"}\n'
    async with raw_server(HEAD, body, b"garbage\n", hold=True) as url:
        client = OllamaClient(UpstreamOptions(url=url.removesuffix("/v1")))
        assert (await collect(client))[0] == ModelText(text="a")
        await client.aclose()


async def test_an_extra_of_another_format_does_not_cross():
    request = ChatRequest(model="m", messages=(message("user", "x"),), extra={"ollama": {"keep_alive": 1}})
    async with ScriptedOpenAI([says("a"), ScriptedTurn(text=("b",))]) as server:
        for client in (
            OllamaClient(UpstreamOptions(url=server.root)),
            OpenAIChatClient(UpstreamOptions(url=server.url)),
        ):
            await collect(client, request)
            await client.aclose()
        assert ["keep_alive" in seen.body for seen in server.requests] == [True, False]
