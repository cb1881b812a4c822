"""The Responses API of the program, in front of a model server that speaks Chat Completions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from openai import APIStatusError, AsyncOpenAI
from pydantic import BaseModel

from satchel.testing.scripted_openai import Fault, ScriptedCall, ScriptedOpenAI, ScriptedTurn, refuses, says
from tests.program.program import serving
from tests.support import write_skill

READ = ScriptedTurn(
    reasoning=("I need ", "the skill."),
    text=("Let me look.",),
    calls=(ScriptedCall(name="skills_read", fragments=('{"skill": "canary"}',), call_id="call_1"),),
)
ANSWER = says("The share ", "is ", "6 %.", prompt_tokens=50, completion_tokens=5, total_tokens=55)
TEXT = "Let me look.\n\nThe share is 6 %."


class Share(BaseModel):
    percent: int


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path / "skills", "canary", body="The share is 6 %.\n")
    return tmp_path / "skills"


def client(url: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


async def test_a_conversation_of_several_answers_whole_and_streamed(skills: Path) -> None:
    script = [READ, ANSWER, READ, ANSWER, says('{"percent": 6}')]
    async with ScriptedOpenAI(script) as model:
        options = ("--skills-dir", str(skills), "--upstream", model.url)
        async with serving(*options) as (url, _), client(url) as openai:
            first = await openai.responses.create(model="scripted", input="Which share?", instructions="Be brief.")
            async with openai.responses.stream(
                model="scripted", input="Once more?", previous_response_id=first.id
            ) as stream:
                pieces = [event.delta async for event in stream if event.type == "response.output_text.delta"]
            second = await stream.get_final_response()
            third = await openai.responses.parse(
                model="scripted", input="As a number.", previous_response_id=second.id, text_format=Share
            )
    assert first.output_text == "".join(pieces) == second.output_text == TEXT
    assert [item.type for item in first.output] == ["reasoning", "message", "message"]
    assert third.output_parsed == Share(percent=6)
    bodies: list[Any] = [request.body for request in model.requests]
    roles = [message["role"] for message in bodies[4]["messages"]]
    turn = ["user", "assistant", "tool", "assistant"]
    assert roles == ["system", *turn, *turn, "user"]
    assert "Be brief." in bodies[0]["messages"][0]["content"]
    assert "Be brief." not in bodies[2]["messages"][0]["content"]
    assert bodies[4]["messages"][1:9] == [
        *bodies[3]["messages"][1:],
        {"role": "assistant", "content": "The share is 6 %."},
    ]
    assert bodies[4]["response_format"]["json_schema"]["schema"]["properties"].keys() == {"percent"}
    assert not {"input", "store", "previous_response_id", "text"} & set(bodies[4])


@pytest.mark.parametrize("fault", ["cut", "end", "garbage"])
async def test_a_model_server_that_dies_in_a_stream_is_a_failed_response(skills: Path, fault: Fault) -> None:
    dying = ScriptedTurn(text=("Half an ans",), fault=fault)
    async with ScriptedOpenAI([dying, dying]) as model:
        options = ("--skills-dir", str(skills), "--upstream", model.url)
        async with serving(*options) as (url, _), client(url) as openai:
            stream = await openai.responses.create(model="scripted", input="x", stream=True)
            events = [event async for event in stream]
            with pytest.raises(APIStatusError) as caught:
                await openai.responses.create(model="scripted", input="x")
    last = events[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert last.response.error.code == "server_error"
    assert caught.value.status_code == 502


async def test_refusals_keep_their_status(skills: Path) -> None:
    async with ScriptedOpenAI([refuses(429, "slow down", Retry_After="7"), refuses(400, "bad field")]) as model:
        options = ("--skills-dir", str(skills), "--upstream", model.url)
        async with serving(*options) as (url, _), client(url) as openai:
            for status in (429, 400):
                with pytest.raises(APIStatusError) as caught:
                    await openai.responses.create(model="scripted", input="x", stream=True)
                assert caught.value.status_code == status


async def test_hanging_up_reaches_the_model_server(skills: Path) -> None:
    async with ScriptedOpenAI([ScriptedTurn(text=("word",), fault="stall")]) as model:
        options = ("--skills-dir", str(skills), "--upstream", model.url)
        async with serving(*options) as (url, _), client(url) as openai:
            async with openai.responses.stream(model="scripted", input="x") as stream:
                async for event in stream:
                    if event.type == "response.output_text.delta":
                        break
            async with asyncio.timeout(20):
                await model.requests[0].hung_up.wait()
