from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from satchel.chat.capabilities import ModelInfo
from satchel.chat.events import ModelCall, ModelDone, ModelReasoning, ModelText, Usage
from satchel.chat.messages import message
from satchel.chat.request import Caller, ChatRequest, Sampling, ToolSpec
from satchel.errors import RequestError, SetupError, UpstreamError
from satchel.ports.models import UpstreamOptions
from satchel.testing.scripted_openai import (
    ScriptedCall,
    ScriptedOpenAI,
    ScriptedTurn,
    refuses,
    says,
)
from satchel.upstream.http import MAX_ANSWER_BYTES, Endpoint
from satchel.upstream.openai_chat import OpenAIChatClient
from tests.upstream.talking import ASK, HEAD, KEY, client_for, collect, data, failure_of, raw_server, text_chunk


async def test_a_streamed_answer_with_reasoning_calls_and_usage():
    turn = ScriptedTurn(
        reasoning=("h", "m"),
        text=("I ", "look"),
        calls=(
            ScriptedCall(name="f", fragments=('{"x":', "1}"), call_id="a"),
            ScriptedCall(name="g", fragments=("{}",), call_id="b"),
        ),
        usage={"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2}},
    )
    async with ScriptedOpenAI([turn]) as server, client_for(server.url, api_key=KEY) as client:
        events = await collect(client)
        done = events.pop()
        assert events == [
            ModelReasoning(text="h"),
            ModelReasoning(text="m"),
            ModelText(text="I "),
            ModelText(text="look"),
            ModelCall(index=0, call_id="a", name="f", arguments='{"x":'),
            ModelCall(index=0, call_id="a", name="f", arguments="1}"),
            ModelCall(index=1, call_id="b", name="g", arguments="{}"),
        ]
        assert isinstance(done, ModelDone)
        assert done.finish == "tool_calls"
        assert done.usage == Usage(prompt_tokens=3, completion_tokens=4, cached_tokens=2)
        assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"


async def test_what_is_sent_is_always_a_stream_that_asks_for_usage():
    request = ChatRequest(
        model="m",
        messages=(message("system", "b\ud800"), message("user", "grüße")),
        tools=(ToolSpec(name="f", parameters={"type": "object"}),),
        sampling=Sampling(temperature=0.0),
        max_tokens=5,
        extra={"openai-chat": {"stream_options": {"vendor": 1}, "user": "u"}, "ollama": {"keep_alive": 1}},
    )
    async with ScriptedOpenAI([says("ok")]) as server, client_for(server.url + "/") as client:
        await collect(client, request)
        assert server.requests[0].body == {
            "model": "m",
            "messages": [{"role": "system", "content": "b?"}, {"role": "user", "content": "grüße"}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
            "temperature": 0.0,
            "max_tokens": 5,
            "user": "u",
            "stream": True,
            "stream_options": {"vendor": 1, "include_usage": True},
        }
        assert "Authorization" not in server.requests[0].headers


async def test_a_request_that_json_cannot_carry_is_refused_before_it_is_sent():
    request = ChatRequest(model="m", messages=ASK.messages, sampling=Sampling(temperature=float("nan")))
    async with ScriptedOpenAI([]) as server, client_for(server.url) as client:
        with pytest.raises(RequestError):
            await collect(client, request)
        assert server.requests == []


async def test_a_server_that_refuses_stream_options_is_asked_again_and_remembered():
    refusal = refuses(400, "Unrecognized request argument supplied: stream_options")
    async with ScriptedOpenAI([refusal, says("one"), says("two")]) as server, client_for(server.url) as client:
        await collect(client)
        await collect(client)
        assert ["stream_options" in seen.body for seen in server.requests] == [True, False, False]


async def test_another_400_is_not_asked_again():
    async with ScriptedOpenAI([refuses(400, "bad tools")]) as server, client_for(server.url) as client:
        assert (await failure_of(client)).code == "upstream-rejected"
        assert len(server.requests) == 1


async def test_a_plain_json_answer_is_accepted():
    turn = ScriptedTurn(
        plain=True,
        text=("hi",),
        reasoning=("hm",),
        calls=(ScriptedCall(name="f", call_id="a"),),
        usage={"prompt_tokens": 1, "completion_tokens": 2},
    )
    async with ScriptedOpenAI([turn]) as server, client_for(server.url) as client:
        events = await collect(client)
        assert events[:-1] == [
            ModelReasoning(text="hm"),
            ModelText(text="hi"),
            ModelCall(index=0, call_id="a", name="f", arguments="{}"),
        ]
        assert events[-1].finish == "tool_calls"
        assert events[-1].usage == Usage(prompt_tokens=1, completion_tokens=2)


@pytest.mark.parametrize(("own", "sent"), [("own", "Bearer own"), ("", "Bearer theirs")])
async def test_a_callers_key_is_sent_only_where_none_is_configured(own: str, sent: str):
    async with ScriptedOpenAI([says("a")]) as server, client_for(server.url, api_key=own) as client:
        request = ChatRequest(messages=(message("user", "hi"),), model="m", caller=Caller(key="theirs"))
        await collect(client, request)
        assert [seen.headers["Authorization"] for seen in server.requests] == [sent]
        assert "theirs" not in repr(request)


async def test_a_key_that_no_header_can_carry_is_refused():
    async with ScriptedOpenAI([]) as server, client_for(server.url, api_key="a\r\nX-Evil: 1") as client:
        assert (await failure_of(client)).code == "upstream-auth"


async def test_a_closed_client_does_not_come_back():
    client = OpenAIChatClient(UpstreamOptions(url="http://127.0.0.1:9/v1"))
    await client.aclose()
    with pytest.raises(RuntimeError):
        await client.models()


# --- models


async def test_models_tell_their_context_windows():
    listed: list[dict[str, Any]] = [
        {"id": "a", "owned_by": "x", "created": 5, "context_length": 1000},
        {"id": "b", "max_model_len": 2000},
        {"id": "c", "meta": {"n_ctx": 4096, "n_ctx_train": 32768}},
        {"id": "d", "meta": None},
        {"nothing": 1},
    ]
    async with ScriptedOpenAI([], models=listed) as server, client_for(server.url) as client:
        assert (await client.capabilities("a")).context_tokens is None
        assert await client.models() == (
            ModelInfo(id="a", owned_by="x", created=5, context_tokens=1000),
            ModelInfo(id="b", context_tokens=2000),
            ModelInfo(id="c", context_tokens=4096),
            ModelInfo(id="d"),
        )
        assert [(await client.capabilities(name)).context_tokens for name in ("a", "c", "d", "z", "")] == [
            1000,
            4096,
            None,
            None,
            1000,
        ]
        assert (await client.capabilities("a")).tools == "native"
        assert (await client.capabilities("b")).context_tokens == 2000


async def test_the_servers_first_model_stands_in_for_none():
    unnamed = ChatRequest(messages=ASK.messages)
    async with ScriptedOpenAI([says("x")], models=[{"id": "first"}, {"id": "second"}]) as server, client_for(server.url) as client:  # fmt: skip
        await collect(client, unnamed)
        assert server.requests[0].body["model"] == "first"
    async with ScriptedOpenAI([says("x")], models=[]) as server, client_for(server.url) as client:
        await collect(client, unnamed)
        assert "model" not in server.requests[0].body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"models": [{"name": "a"}]}', ("a",)),
        (b'["x", {"id": "a"}]', ("a",)),
        (b'{"object": "list", "data": []}', ()),
    ],
)
async def test_other_shapes_of_a_model_list(body: bytes, expected: tuple[str, ...]):
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    async with raw_server(head, body) as url, client_for(url) as client:
        assert tuple(info.id for info in await client.models()) == expected


async def test_a_model_list_that_is_none_is_garbled():
    async with raw_server(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"<html>") as url, client_for(url) as client:
        with pytest.raises(UpstreamError) as caught:
            await client.models()
        assert caught.value.code == "upstream-garbled"


# --- hanging up


async def test_leaving_the_block_closes_the_connection_at_once():
    turn = ScriptedTurn(text=("one", "two"), fault="stall")
    async with ScriptedOpenAI([turn]) as server, client_for(server.url) as client:
        async with client.stream(ASK) as events:
            assert await anext(events) == ModelText(text="one")
        await asyncio.wait_for(server.requests[0].hung_up.wait(), 10)


async def test_cancelling_a_wait_for_the_first_byte_closes_the_connection():
    turn = ScriptedTurn(text=("one",), delay_s=600)
    async with ScriptedOpenAI([turn]) as server, client_for(server.url) as client:
        task = asyncio.create_task(collect(client))
        await server.wait_for_request()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.requests[0].hung_up.wait(), 10)


async def test_reading_waits_for_the_reader():
    turn = ScriptedTurn(text=("x" * 50_000,) * 2000)
    async with ScriptedOpenAI([turn]) as server, client_for(server.url) as client:
        async with client.stream(ASK) as events:
            await anext(events)
            before = -1
            while before != server.requests[0].chunks_sent:
                before = server.requests[0].chunks_sent
                await asyncio.sleep(0.05)
            assert before < 1000
        await asyncio.wait_for(server.requests[0].hung_up.wait(), 10)


# --- failures


@pytest.mark.parametrize(
    ("turn", "code", "retryable"),
    [
        (refuses(401, f"Incorrect API key provided: {KEY}"), "upstream-auth", False),
        (refuses(403, "no"), "upstream-auth", False),
        (refuses(404, "The model 'm' does not exist"), "model-not-found", False),
        (refuses(404, "Not Found"), "upstream-rejected", False),
        (refuses(408, "slow"), "upstream-timeout", True),
        (refuses(400, "This model's maximum context length is 8192 tokens"), "context-overflow", False),
        (refuses(400, "the request exceeds the available context size, try increasing it"), "context-overflow", False),
        (refuses(422, "tools: extra inputs are not permitted"), "upstream-rejected", False),
        (refuses(429, "slow down"), "upstream-rate-limited", True),
        (refuses(500, "boom"), "upstream-failed", True),
        (refuses(503, "Loading model"), "upstream-failed", True),
        (refuses(307, "", Location="http://127.0.0.1:9/"), "upstream-rejected", False),
        (ScriptedTurn(status=400, body={"detail": [{"msg": "bad"}]}), "upstream-rejected", False),
        (ScriptedTurn(status=502, body="<html>Bad Gateway</html>"), "upstream-failed", True),
        (ScriptedTurn(text=("half",), fault="cut"), "upstream-cut-off", True),
        (ScriptedTurn(text=("half",), fault="end"), "upstream-cut-off", True),
        (ScriptedTurn(text=("half",), fault="garbage"), "upstream-garbled", False),
        (ScriptedTurn(chunks=({"error": {"message": "it broke"}},)), "upstream-failed", True),
        (ScriptedTurn(plain=True, finish="error"), None, None),
    ],
)
async def test_each_failure_has_its_code(turn: ScriptedTurn, code: str | None, retryable: bool | None):
    async with ScriptedOpenAI([turn]) as server, client_for(server.url, api_key=KEY) as client:
        if code is None:
            assert (await collect(client))[-1].finish == "stop"
            return
        error = await failure_of(client)
        assert (error.code, error.retryable) == (code, retryable)
        assert KEY not in json.dumps(error.to_dict())
        if turn.status != 200:
            assert error.data["status"] == turn.status


async def test_a_rate_limit_keeps_its_status_and_its_wait():
    async with ScriptedOpenAI([refuses(429, "slow down", Retry_After="7")]) as server, client_for(server.url) as client:
        error = await failure_of(client)
        assert (error.data["status"], error.data["retry_after"]) == (429, "7")
        assert "slow down" in error.message


async def test_a_used_up_quota_is_not_worth_a_retry():
    turn = ScriptedTurn(status=429, body={"error": {"message": "quota", "code": "insufficient_quota"}})
    async with ScriptedOpenAI([turn]) as server, client_for(server.url) as client:
        error = await failure_of(client)
        assert (error.code, error.retryable) == ("upstream-rate-limited", False)


async def test_text_before_a_failure_still_arrives():
    turn = ScriptedTurn(text=("half",), fault="cut")
    async with ScriptedOpenAI([turn]) as server, client_for(server.url) as client, client.stream(ASK) as events:
        assert await anext(events) == ModelText(text="half")
        with pytest.raises(UpstreamError):
            await anext(events)


async def test_nobody_listens_there():
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    async with client_for(f"http://127.0.0.1:{port}/v1") as client:
        error = await failure_of(client)
    assert error.code == "upstream-unreachable"
    assert f"http://127.0.0.1:{port}/v1" in error.hint


async def test_a_name_that_does_not_resolve():
    async with client_for("http://no-such-host.invalid/v1") as client:
        assert (await failure_of(client)).code == "upstream-unreachable"


async def test_silence_before_and_within_an_answer_runs_out():
    async with raw_server(hold=True) as url, client_for(url, silence_s=0.1) as client:
        assert (await failure_of(client)).code == "upstream-timeout"
    async with raw_server(HEAD, data(text_chunk("a")), hold=True) as url, client_for(url, silence_s=0.1) as client:
        assert (await failure_of(client)).code == "upstream-timeout"


@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        ((), "upstream-cut-off"),
        ((b"SSH-2.0-OpenSSH\r\n\r\n",), "upstream-garbled"),
        ((HEAD,), "upstream-cut-off"),
        ((b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"<html>hello</html>"), "upstream-garbled"),
        ((HEAD, b"data: 5\n\n"), "upstream-garbled"),
        ((HEAD, b"data: \xff\xfe\n\n"), "upstream-garbled"),
        ((HEAD, b'data: {"choices": [{"delta": {"content": NaN}}]}\n\n'), "upstream-garbled"),
        ((HEAD, data(b'{"a":' * 100_000)), "upstream-garbled"),
        ((HEAD, data(text_chunk("a")), b'data: {"choices": [{"del'), "upstream-cut-off"),
        ((HEAD, b"data: " + b"x" * 1000, *[b"x" * 1_000_000] * 9), "upstream-garbled"),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", data(text_chunk("a"))), "upstream-cut-off"),
        ((b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b'  {"error": {"message": "x"}}'), "upstream-failed"),
        ((b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b'{"choices": ['), "upstream-garbled"),
    ],
)
async def test_what_is_no_answer_is_told_apart(pieces: tuple[bytes, ...], code: str):
    async with raw_server(*pieces) as url, client_for(url) as client:
        assert (await failure_of(client)).code == code


async def test_an_endless_answer_is_stopped():
    chunk = data(text_chunk("x" * 1_000_000))
    async with raw_server(HEAD, *[chunk] * (MAX_ANSWER_BYTES // len(chunk) + 2)) as url, client_for(url) as client:
        assert (await failure_of(client)).code == "upstream-garbled"


async def test_an_error_body_is_read_only_so_far():
    head = b"HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\n\r\n"
    async with raw_server(head, *[b"word " * 20_000] * 3, hold=True) as url, client_for(url) as client:
        error = await failure_of(client)
        assert error.code == "upstream-failed"
        assert len(error.message) < 1000


async def test_a_connection_that_breaks_after_the_end_has_broken_nothing():
    pieces = (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", data(text_chunk("a", "stop")))
    async with raw_server(*pieces) as url, client_for(url) as client:
        assert (await collect(client))[-1].finish == "stop"


async def test_the_end_marker_alone_is_an_end_and_nothing_is_read_after_it():
    pieces = (HEAD, data(text_chunk("a")), b"data:[DONE]\n\n", b"data: garbage\n\n")
    async with raw_server(*pieces, hold=True) as url, client_for(url) as client:
        events = await collect(client)
        assert [event.text for event in events[:-1]] == ["a"]
        assert events[-1].finish == "stop"


async def test_a_last_event_without_an_empty_line_counts():
    async with raw_server(HEAD, data(text_chunk("a", "stop")).rstrip()) as url, client_for(url) as client:
        assert (await collect(client))[0] == ModelText(text="a")


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "ftp://h/v1", "http://", "http://u:p@h/v1", "http://h:99999/v1", "http://[::1"]
)
def test_an_address_that_is_none_is_refused(url: str):
    with pytest.raises(SetupError) as caught:
        OpenAIChatClient(UpstreamOptions(url=url))
    assert caught.value.code == "setting-invalid"
    assert "u:p" not in str(caught.value)


async def test_a_query_of_the_address_stays_behind_the_path():
    heads: list[bytes] = []
    async with raw_server(HEAD, data(text_chunk("a", "stop")), before=heads.append) as url, client_for(url + "?version=2") as client:  # fmt: skip
        await collect(client)
    assert heads[0].startswith(b"POST /v1/chat/completions?version=2 HTTP/1.1")
    assert Endpoint(UpstreamOptions(url="http://h/v1/?k=secret")).shown == "http://h/v1"


# --- the bytes of an event stream
