from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import APIStatusError, AsyncOpenAI

from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, refuses, says
from tests.program.program import at_import, refused, satchel, serving
from tests.support import write_skill


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    write_skill(root, "canary", body="The share is 6 %.\n")
    return root


READ = ScriptedTurn(
    text=("Let me look.",),
    calls=(ScriptedCall(name="skills_read", fragments=('{"skill": "canary"}',), call_id="call_1"),),
)
ANSWER = says("The share ", "is ", "6 %.")
ASKED: Any = [{"role": "user", "content": "Which share?"}]


def client(url: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


async def test_the_same_text_by_every_way(skills: Path) -> None:
    async with ScriptedOpenAI([READ, ANSWER] * 3) as model:
        options = ("--skills-dir", str(skills), "--upstream", model.url)
        async with serving(*options) as (url, _), client(url) as openai:
            whole = await openai.chat.completions.create(
                model="scripted",
                messages=ASKED,
                extra_body={"skills": ["canary"]},
            )
            stream = await openai.chat.completions.create(
                model="scripted",
                messages=ASKED,
                stream=True,
                extra_body={"skills": ["canary"]},
            )
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        ended = await satchel("run", "Which share?", "--skill", "canary", *options)
    text = "Let me look.\n\nThe share is 6 %."
    assert whole.choices[0].message.content == text
    assert "".join(pieces) == text
    assert ended.out == text + "\n"
    bodies = [request.body for request in model.requests]
    assert bodies[0]["messages"] == bodies[2]["messages"] == bodies[4]["messages"]
    assert all("skills" not in body for body in bodies)


async def test_models_and_skills_are_listed(skills: Path) -> None:
    async with ScriptedOpenAI([]) as model:
        async with serving("--skills-dir", str(skills), "--upstream", model.url) as (url, _):
            async with client(url) as openai, aiohttp.ClientSession() as http:
                assert [item.id async for item in openai.models.list()] == ["scripted"]
                async with http.get(f"{url}/v1/skills") as answer:
                    assert [skill["name"] for skill in (await answer.json())["data"]] == ["canary"]
                async with http.get(f"{url}/v1/skills/canary") as answer:
                    assert (await answer.json())["instructions"] == "The share is 6 %.\n"
                async with http.get(f"{url}/health") as answer:
                    assert answer.status == 200


@pytest.mark.parametrize("streamed", [False, True])
async def test_refusals_keep_their_status(skills: Path, *, streamed: bool) -> None:
    script = [refuses(429, "slow down", Retry_After="7"), refuses(400, "bad field"), refuses(503, "busy")]
    async with ScriptedOpenAI(script) as model:
        async with serving("--skills-dir", str(skills), "--upstream", model.url) as (url, _), client(url) as openai:
            for status in (429, 400, 502):
                with pytest.raises(APIStatusError) as caught:
                    await openai.chat.completions.create(model="m", messages=ASKED, stream=streamed)
                assert caught.value.status_code == status
                if status == 429:
                    assert caught.value.response.headers["retry-after"] == "7"
            with pytest.raises(APIStatusError) as caught:
                await openai.chat.completions.create(
                    model="m",
                    messages=ASKED,
                    stream=streamed,
                    extra_body={"skills": ["canry"]},
                )
    assert caught.value.status_code == 400
    assert "canary" in str(caught.value)


async def test_a_client_that_hangs_up_stops_the_model(skills: Path) -> None:
    async with ScriptedOpenAI([ScriptedTurn(text=("half",), fault="stall")] * 2) as model:
        async with serving("--skills-dir", str(skills), "--upstream", model.url) as (url, _):
            for streamed in (True, False):
                async with aiohttp.ClientSession() as http:
                    body = {"model": "m", "messages": ASKED, "stream": streamed}
                    asking = asyncio.create_task(http.post(f"{url}/v1/chat/completions", json=body).__aenter__())
                    seen = await model.wait_for_request(2 - streamed)
                    asking.cancel()
                    await asyncio.gather(asking, return_exceptions=True)
                async with asyncio.timeout(20):
                    await seen.hung_up.wait()


async def test_a_taken_port_is_said_before_anything_starts(skills: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = await satchel(
            "serve", "--skills-dir", str(skills), "--upstream", "http://127.0.0.1:9/v1", "--port", str(port)
        )
    assert ended.code == 2
    assert "[port-in-use]" in ended.err
    assert "Traceback" not in ended.err


async def test_sigterm_lets_an_open_answer_finish(skills: Path) -> None:
    slow = ScriptedTurn(text=("a", "b", "c", "d"), delay_s=0.1)
    async with ScriptedOpenAI([slow]) as model:
        async with (
            serving("--skills-dir", str(skills), "--upstream", model.url) as (url, process),
            client(url) as openai,
        ):
            stream = await openai.chat.completions.create(model="m", messages=ASKED, stream=True)
            process.send_signal(signal.SIGTERM)
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
            async with asyncio.timeout(20):
                _, err = await process.communicate()
    assert "".join(pieces) == "abcd"
    assert process.returncode == 0
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--skills-dir", "nowhere", "--upstream", "http://127.0.0.1:9/v1"), "root-missing"),
        (("--upstream", "http://user@host/v1"), "setting-invalid"),
        (("--upstream", "http://127.0.0.1:9/v1", "--skills-dir", ""), "setting-invalid"),
    ],
)
async def test_what_cannot_work_is_said_instead_of_listening(arguments: tuple[str, ...], code: str) -> None:
    ended = await satchel("serve", "--port", "0", "--json", *arguments)
    assert (ended.code, ended.err) == (2, "")
    assert [event["error"]["code"] for event in ended.events] == [code]
    ended = await satchel("serve", "--port", "0", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("satchel: ")
    assert f"[{code}]" in ended.err
    assert len(ended.err.splitlines()) == 2


@pytest.mark.parametrize(
    ("module", "name", "codes"),
    [
        ("uvicorn", "SIGINT", {130}),
        ("satchel.gateway.app", "SIGINT", {130}),
        ("satchel.upstream.openai_chat", "SIGINT", {130}),
        ("uvicorn.lifespan.on", "SIGINT", {130}),
        ("satchel.gateway.app", "SIGTERM", {143}),
        ("uvicorn.lifespan.on", "SIGTERM", {0}),
    ],
)
async def test_a_signal_while_it_starts_ends_it_quietly(
    skills: Path, tmp_path: Path, module: str, name: str, codes: set[int]
) -> None:
    hook = at_import(tmp_path, module, f"signal.raise_signal(signal.{name})")
    options = ("--skills-dir", str(skills), "--upstream", "http://127.0.0.1:9/v1", "--port", "0", "--json")
    ended = await satchel("serve", *options, PYTHONPATH=hook)
    assert (ended.out, ended.err) == ("", "")
    assert ended.code in codes


async def test_a_second_interrupt_drops_open_answers_without_a_traceback(skills: Path) -> None:
    async with ScriptedOpenAI([ScriptedTurn(text=("half",), fault="stall")]) as model:
        async with (
            serving("--skills-dir", str(skills), "--upstream", model.url) as (url, process),
            client(url) as openai,
        ):
            stream = await openai.chat.completions.create(model="m", messages=ASKED, stream=True)
            assert (await anext(stream)).choices
            process.send_signal(signal.SIGINT)
            await refused(url)
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(20):
                _, err = await process.communicate()
            await stream.close()
    assert process.returncode == 130
    assert b"Traceback" not in err


async def test_each_request_is_one_line_of_log(skills: Path) -> None:
    async with ScriptedOpenAI([READ, ANSWER]) as model:
        async with (
            serving("--skills-dir", str(skills), "--upstream", model.url) as (url, process),
            client(url) as openai,
            aiohttp.ClientSession() as http,
        ):
            await openai.chat.completions.create(model="m", messages=ASKED)
            async with http.get(f"{url}/nowhere%0Aforged?secret=1") as answer:
                assert answer.status == 404
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(20):
                out, err = await process.communicate()
    assert out == b""
    # A line is written when all that a request used is given back, which may be after the next request's answer.
    missing, asked = sorted(err.decode().splitlines(), key=lambda line: "POST" in line)
    assert " INFO POST /v1/chat/completions 200 " in asked
    assert "skills=canary" in asked
    assert " INFO GET /nowhere%0Aforged 404 " in missing
    assert "secret" not in missing


@pytest.mark.parametrize(
    ("host", "keys", "warns"),
    [("0.0.0.0", "", True), ("0.0.0.0", "k", False), ("127.0.0.1", "", False), ("localhost", "", False)],
)
async def test_an_open_address_is_warned_of(skills: Path, host: str, keys: str, *, warns: bool) -> None:
    options = ("--skills-dir", str(skills), "--upstream", "http://127.0.0.1:9/v1", "--host", host)
    given = {"SATCHEL_KEYS": keys} if keys else {}
    async with serving(*options, **given) as (_, process):
        process.send_signal(signal.SIGTERM)
        _, err = await process.communicate()
    assert (b"WARNING: everybody who reaches" in err) is warns
    assert (b"SATCHEL_KEYS" in err) is warns
