from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.messages import message
from satchel.chat.request import Caller, ChatRequest
from satchel.errors import UpstreamError
from satchel.ports.models import ModelClient, UpstreamOptions
from satchel.testing.scripted_model import Reply, ScriptedModel
from satchel.testing.scripted_openai import ScriptedOpenAI, says
from satchel.upstream.anthropic import AnthropicClient
from satchel.upstream.ollama import OllamaClient
from satchel.upstream.openai_chat import OpenAIChatClient
from satchel.upstream.router import Router
from tests.upstream.talking import ASK, collect, failure_of

DEAD = "http://127.0.0.1:9"


def asking(model: str, **more: Any) -> ChatRequest:
    return ChatRequest(model=model, messages=(message("user", "hello"),), **more)


@asynccontextmanager
async def routing(**clients: ModelClient) -> AsyncGenerator[Router]:
    router = Router(clients)
    try:
        yield router
    finally:
        await router.aclose()


def models(*ids: str) -> list[dict[str, Any]]:
    return [{"id": name} for name in ids]


async def test_a_model_is_found_by_its_name_its_upstream_and_the_order():
    turns = [says("x")] * 9
    async with (
        ScriptedOpenAI(turns, models=models("both", "only-a", "org/deep")) as a,
        ScriptedOpenAI(turns, models=models("both", "only-b")) as b,
        routing(
            a=OpenAIChatClient(UpstreamOptions(url=a.url)), b=AnthropicClient(UpstreamOptions(url=b.root))
        ) as router,
    ):
        assert [info.id for info in await router.models()] == ["both", "only-a", "org/deep", "b/both", "only-b"]
        for name in ("both", "only-b", "b/both", "a/only-a", "org/deep", "a/org/deep", "b/not-listed", ""):
            await collect(router, asking(name))
        assert [seen.body["model"] for seen in a.requests] == ["both", "only-a", "org/deep", "org/deep", "both"]
        assert [seen.body["model"] for seen in b.requests] == ["only-b", "both", "not-listed"]


async def test_a_name_is_looked_for_without_a_listing_before():
    async with (
        ScriptedOpenAI([], models=models("one")) as a,
        ScriptedOpenAI([says("x"), says("y")], models=models("two")) as b,
        routing(
            a=OpenAIChatClient(UpstreamOptions(url=a.url)), b=OpenAIChatClient(UpstreamOptions(url=b.url))
        ) as router,
    ):
        await collect(router, asking("two"))
        await collect(router, asking("two"))
        assert [len(server.listings) for server in (a, b)] == [1, 1]


async def test_a_name_without_a_tag_is_the_latest():
    async with (
        ScriptedOpenAI([], models=models("other")) as a,
        ScriptedOpenAI([says("x")], models=models("qwen3:latest")) as b,
        routing(a=OpenAIChatClient(UpstreamOptions(url=a.url)), b=OllamaClient(UpstreamOptions(url=b.root))) as router,
    ):
        await collect(router, asking("qwen3"))
        assert b.requests[0].body["model"] == "qwen3"


async def test_a_name_that_nobody_lists_is_refused_with_what_was_meant():
    async with (
        ScriptedOpenAI([], models=models("qwen3-8b")) as a,
        ScriptedOpenAI([], models=models("llama3.1")) as b,
        routing(
            a=OpenAIChatClient(UpstreamOptions(url=a.url)),
            b=OpenAIChatClient(UpstreamOptions(url=b.url)),
            dead=OpenAIChatClient(UpstreamOptions(url=DEAD)),
        ) as router,
    ):
        error = await failure_of(router, asking("qwen3"))
        assert error.code == "model-not-found"
        assert "Did you mean qwen3-8b?" in error.hint
        assert "dead did not list its models; name one as dead/MODEL" in error.hint
        assert "qwen3-8b, llama3.1" in (await failure_of(router, asking("zzz"))).hint
        with pytest.raises(UpstreamError):
            await router.capabilities("zzz")
        assert [len(server.listings) for server in (a, b)] == [1, 1], "unknown names ask again only after a while"
        assert a.requests == b.requests == []


async def test_one_that_is_gone_does_not_hide_the_others(caplog: pytest.LogCaptureFixture):
    async with (
        ScriptedOpenAI([says("x")], models=models("one")) as server,
        routing(
            dead=OpenAIChatClient(UpstreamOptions(url=DEAD)), live=OpenAIChatClient(UpstreamOptions(url=server.url))
        ) as router,
    ):
        with caplog.at_level(logging.WARNING, logger="satchel.upstream"):
            assert [info.id for info in await router.models()] == ["one"]
        assert "upstream dead are not listed: The model server at http://127.0.0.1:9 cannot be reached" in caplog.text
        assert (await collect(router, asking("one")))[-1].finish == "stop"
        assert (await failure_of(router, asking("dead/x"))).code == "upstream-unreachable"


async def test_when_all_are_gone_that_is_the_failure():
    dead = {name: OpenAIChatClient(UpstreamOptions(url=DEAD)) for name in ("a", "b")}
    async with routing(**dead) as router:
        with pytest.raises(UpstreamError) as caught:
            await router.models()
        assert caught.value.code == "upstream-unreachable"
        assert (await failure_of(router, asking("m"))).code == "upstream-unreachable"


async def test_one_that_does_not_list_in_time_is_left_out(monkeypatch: pytest.MonkeyPatch):
    class Silent(ScriptedModel):
        async def models(self, caller: Caller = Caller()) -> Any:
            await asyncio.Event().wait()

    monkeypatch.setattr("satchel.upstream.router._LISTING_S", 0.05)
    async with routing(silent=Silent([]), quick=ScriptedModel([Reply(text=("hi",))])) as router:
        assert [info.id for info in await router.models()] == ["scripted"]
        assert (await collect(router, asking("scripted")))[-1].message.text == "hi"


async def test_what_a_model_can_carry_is_asked_of_its_own_server():
    shows: dict[str, Any] = {"local": {"capabilities": ["completion"]}}
    guided = ScriptedModel([], capabilities=ModelCapabilities(tools="guided"))
    async with (
        ScriptedOpenAI(models=models("local"), shows=shows) as server,
        routing(
            hosted=OpenAIChatClient(UpstreamOptions(url=server.url)),
            home=OllamaClient(UpstreamOptions(kind="ollama", url=server.root)),
            embedded=guided,
        ) as router,
    ):
        names = ("local", "home/local", "scripted", "embedded/scripted", "hosted/mistral3")
        assert [(await router.capabilities(name)).tools for name in names] == [
            "native",
            "none",
            "guided",
            "guided",
            "none",
        ]


async def test_a_callers_key_goes_along_and_all_are_closed():
    async with ScriptedOpenAI([says("x")]) as server:
        clients = [OpenAIChatClient(UpstreamOptions(url=server.url)) for _ in range(2)]
        router = Router({"a": clients[0], "b": clients[1]})
        await collect(router, asking("a/m", caller=Caller(key="theirs")))
        assert server.requests[0].headers["Authorization"] == "Bearer theirs"
        await router.aclose()
        for client in clients:
            with pytest.raises(RuntimeError):
                await client.models()


async def test_leaving_the_block_leaves_the_servers():
    played = ScriptedModel([Reply(text=("a", "b"))])
    async with routing(x=played, y=ScriptedModel([])) as router:
        async with router.stream(asking("x/scripted")) as events:
            await anext(events)
        assert played.closed == 1
        assert [request.model for request in played.requests] == ["scripted"]
        assert ASK.model == "m"


async def test_a_hint_names_models_as_they_can_be_asked_for():
    async with (
        ScriptedOpenAI(models=models("shared")) as a,
        ScriptedOpenAI(models=models("shared", "other")) as b,
        routing(
            a=OpenAIChatClient(UpstreamOptions(url=a.url)), home=OpenAIChatClient(UpstreamOptions(url=b.url))
        ) as router,
    ):
        with pytest.raises(UpstreamError) as caught:
            await router.capabilities("nothing-like-it")
    assert caught.value.hint == "Offered are shared, home/shared, other."
