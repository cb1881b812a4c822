"""Whose key a model server refused, and what of it a failure shows."""

from __future__ import annotations

import json

import pytest

from satchel.chat.codec.failures import masked
from satchel.chat.messages import message
from satchel.chat.request import Caller, ChatRequest
from satchel.errors import UpstreamError
from satchel.gateway.failures import status_of
from satchel.ports.models import UpstreamOptions
from satchel.testing.scripted_openai import ScriptedOpenAI, refuses, says
from satchel.upstream.openai_chat import OpenAIChatClient


@pytest.mark.parametrize("word", ["none", "key", "ollama", "not-needed", "Lm-Studio"])
def test_words_that_are_no_secret_stay(word: str) -> None:
    said = f'There is none; tool_choice "{word}" is not supported by ollama, keyword not-needed'
    assert masked(said, word) == said


def test_a_key_is_struck_out_in_every_spelling() -> None:
    key = 'sk-"é"-1234'
    said = f"{key} | {json.dumps(key)} | {json.dumps(key, ensure_ascii=False)}"
    assert masked(said, key) == '[key] | "[key]" | "[key]"'


async def _failure(key: str, own: str, status: int) -> UpstreamError:
    async with ScriptedOpenAI([refuses(status, "no")]) as server:
        client = OpenAIChatClient(UpstreamOptions(name="up", url=server.url, kind="openai", api_key=own))
        request = ChatRequest(model="m", messages=(message("user", "hi"),), caller=Caller(key=key))
        try:
            with pytest.raises(UpstreamError) as caught:
                await client.stream(request).__aenter__()
        finally:
            await client.aclose()
    return caught.value


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_of_the_callers_own_keeps_its_status(status: int) -> None:
    theirs = await _failure("sk-client-key", "", status)
    assert status_of(theirs) == status
    assert "The key that you sent" in theirs.hint
    for failure in (await _failure("sk-client-key", "sk-configured", status), await _failure("", "", status)):
        assert status_of(failure) == 502
        assert "configured" in failure.hint


async def test_a_key_spelled_like_a_field_does_not_hide_what_is_refused() -> None:
    key = "stream_options"
    async with ScriptedOpenAI([refuses(400, f"{key} is unknown"), says("hi")]) as server:
        client = OpenAIChatClient(UpstreamOptions(name="up", url=server.url, kind="openai", api_key=key))
        async with client.stream(ChatRequest(model="m", messages=(message("user", "hi"),))) as events:
            assert [event async for event in events]
        await client.aclose()
        assert ["stream_options" in request.body for request in server.requests] == [True, False]


async def test_what_models_refuse_is_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satchel.upstream.client._MOST_REFUSED", 3)
    turns = [turn for _ in range(5) for turn in (refuses(400, "stream_options is unknown"), says("hi"))]
    async with ScriptedOpenAI(turns) as server:
        client = OpenAIChatClient(UpstreamOptions(name="up", url=server.url, kind="openai"))
        for number in range(5):
            async with client.stream(ChatRequest(model=f"m{number}", messages=(message("user", "hi"),))) as events:
                assert [event async for event in events]
        assert len(client._refused) <= 3
        await client.aclose()
