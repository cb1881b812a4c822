"""A silent stream gives signs of life, before its first word, inside a round and between two, and nobody minds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import ollama
import pytest
import pytest_asyncio
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from satchel.testing.scripted_openai import ScriptedTurn, Stage
from tests.program.standing import READ, Gateway, standing
from tests.program.surfaces import CHAT, QUESTION, SURFACES, Heard, Surface

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "Let me look.\n\nThe share is 6 %."
LOOKS = ScriptedTurn(text=("Let me ", "look."), calls=(READ,))
SAYS = ScriptedTurn(text=("The share ", "is 6 %."))
ASKED: Any = [{"role": "user", "content": QUESTION}]
MODEL = "openai/scripted"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateway]:
    async with standing(tmp_path_factory.mktemp("heartbeat"), SATCHEL_HEARTBEAT_S="0.02") as started:
        yield started


async def _two_more(heard: Heard) -> None:
    wanted = heard.beats + 2
    await heard.until(lambda heard: heard.beats >= wanted)


def after_beats(turn: ScriptedTurn, heard: Heard) -> ScriptedTurn:
    """The same turn, silent before everything that it says until the client has had two more signs of life."""

    async def play(stage: Stage) -> None:
        await _two_more(heard)
        for message in (*stage.form.pieces(turn), *stage.form.ending(turn)):
            await stage.send(message)
            await _two_more(heard)
        await stage.write(stage.form.end)

    return ScriptedTurn(play=play)


@pytest.mark.parametrize("surface", SURFACES, ids=str)
async def test_a_silent_stream_gives_signs_of_life_that_say_nothing(gateway: Gateway, surface: Surface) -> None:
    heard = Heard()
    gateway.next(after_beats(LOOKS, heard), after_beats(SAYS, heard))
    await gateway.hear(surface, heard=heard)
    gateway.next(LOOKS, SAYS)
    whole = await gateway.hear(surface, stream=False)
    assert heard.is_ended
    assert heard.said == whole.said == (TEXT, "", "")


@pytest.mark.parametrize("surface", SURFACES, ids=str)
async def test_a_refusal_after_a_sign_of_life_is_told_in_the_stream(gateway: Gateway, surface: Surface) -> None:
    heard = Heard()

    async def play(stage: Stage) -> None:
        await _two_more(heard)
        await stage.open("application/json", status=429)
        await stage.write(b'{"error": {"message": "slow down"}}')

    gateway.next(ScriptedTurn(play=play))
    await gateway.hear(surface, heard=heard)
    assert (heard.status, heard.is_ended) == (200, False)
    assert "slow down" in heard.error


def slowly(turn: ScriptedTurn) -> ScriptedTurn:
    """The same turn with a silence of several signs of life before everything that it says."""

    async def play(stage: Stage) -> None:
        for message in (*stage.form.pieces(turn), *stage.form.ending(turn)):
            await asyncio.sleep(0.06)
            await stage.send(message)
        await stage.write(stage.form.end)

    return ScriptedTurn(play=play)


async def _openai_chat(client: AsyncOpenAI) -> str:
    stream = await client.chat.completions.create(model=MODEL, messages=ASKED, stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


async def _openai_responses(client: AsyncOpenAI) -> str:
    async with client.responses.stream(model=MODEL, input=QUESTION) as stream:
        return (await stream.get_final_response()).output_text


async def _anthropic(client: AsyncAnthropic) -> str:
    async with client.messages.stream(model=MODEL, max_tokens=9000, messages=ASKED) as stream:
        return await stream.get_final_text()


async def _ollama_chat(client: ollama.AsyncClient) -> str:
    stream = await client.chat(model=MODEL, messages=ASKED, stream=True)
    return "".join([part.message.content or "" async for part in stream])


async def _ollama_generate(client: ollama.AsyncClient) -> str:
    stream = await client.generate(model=MODEL, prompt=QUESTION, stream=True)
    return "".join([part.response or "" async for part in stream])


async def test_the_official_clients_take_no_notice(gateway: Gateway) -> None:
    gateway.next(slowly(SAYS))
    assert (await gateway.hear(CHAT)).beats > 0

    def answer(body: dict[str, Any]) -> ScriptedTurn:
        return slowly(SAYS if body["messages"][-1]["role"] == "tool" else LOOKS)

    gateway.next(*[answer] * 10)
    async with (
        AsyncOpenAI(base_url=f"{gateway.bases.url}/v1", api_key="none", max_retries=0) as openai,
        AsyncAnthropic(base_url=gateway.bases.url, api_key="none", max_retries=0) as anthropic,
        ollama.AsyncClient(host=f"{gateway.bases.url}/ollama") as asker,
    ):
        said = await asyncio.gather(
            _openai_chat(openai),
            _openai_responses(openai),
            _anthropic(anthropic),
            _ollama_chat(asker),
            _ollama_generate(asker),
        )
    assert said == [TEXT] * 5
