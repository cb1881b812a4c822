from __future__ import annotations

import asyncio

import openai
import pytest

from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, refuses, says


async def test_the_official_client_reads_what_it_says():
    turn = ScriptedTurn(
        text=("he", "llo"),
        calls=(ScriptedCall(name="f", fragments=('{"x"', ":1}"), call_id="a"),),
        usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    )
    async with (
        ScriptedOpenAI([turn, says("plain")]) as server,
        openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
    ):
        assert [model.id async for model in client.models.list()] == ["scripted"]
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "x"}], stream=True
        )
        chunks = [chunk async for chunk in stream]
        deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
        assert "".join(delta.content or "" for delta in deltas) == "hello"
        fragments = [call.function for delta in deltas for call in delta.tool_calls or () if call.function]
        assert "".join(fragment.arguments or "" for fragment in fragments) == '{"x":1}'
        assert chunks[-1].usage is not None
        assert server.requests[0].body["messages"] == [{"role": "user", "content": "x"}]
        await asyncio.wait_for(server.requests[0].answered.wait(), 10)


async def test_a_script_that_ends_and_turns_that_refuse():
    async with (
        ScriptedOpenAI([refuses(429, "slow", Retry_After="3"), lambda body: says(str(body["model"]))]) as server,
        openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
    ):
        with pytest.raises(openai.RateLimitError) as caught:
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        assert caught.value.response.headers["retry-after"] == "3"
        stream = await client.chat.completions.create(
            model="mm", messages=[{"role": "user", "content": "x"}], stream=True
        )
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "mm"
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
