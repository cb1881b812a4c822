"""The clients of three vendors at one process, and a second port that stands in for an Ollama."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import Any

import aiohttp
import ollama
import pytest
from anthropic import AsyncAnthropic

from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, says
from tests.program.program import satchel, serving, start
from tests.support import write_skill

READ = ScriptedTurn(
    text=("Let me look.",),
    calls=(ScriptedCall(name="skills_read", fragments=('{"skill": "canary"}',), call_id="call_1"),),
)
TEXT = "Let me look.\n\nThe share is 6 %."
ASKED: Any = [{"role": "user", "content": "Which share?"}]


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    write_skill(root, "canary", body="The share is 6 %.\n")
    return root


async def test_an_anthropic_and_an_ollama_client_hear_the_same(skills: Path) -> None:
    async with ScriptedOpenAI([READ, says("The share ", "is ", "6 %.")] * 4) as model:
        async with serving("--skills-dir", str(skills), "--upstream", model.url) as (url, _):
            async with AsyncAnthropic(base_url=url, api_key="none", max_retries=0) as client:
                fields: Any = {"model": "m", "max_tokens": 1000, "messages": ASKED}
                whole = await client.messages.create(**fields)
                async with client.messages.stream(**fields) as stream:
                    streamed = await stream.get_final_message()
            async with ollama.AsyncClient(host=f"{url}/ollama") as asker:
                said = await asker.chat(model="m", messages=ASKED)
                parts = [
                    part.message.content async for part in await asker.chat(model="m", messages=ASKED, stream=True)
                ]
    for message in (whole, streamed):
        assert [block.to_dict() for block in message.content] == [{"type": "text", "text": TEXT}]
    assert said.message.content == "".join(part or "" for part in parts) == TEXT
    prompts = [request.body["messages"] for request in model.requests]
    assert prompts[0] == prompts[2] == prompts[4] == prompts[6]


async def test_a_second_port_stands_in_for_an_ollama_and_ends_with_the_first(skills: Path) -> None:
    async with ScriptedOpenAI([READ, says("The share ", "is ", "6 %."), says("late")]) as model:
        options = ("--skills-dir", str(skills), "--upstream", model.url, "--ollama-port", "0")
        process = await start("serve", "--port", "0", "--json", *options)
        assert process.stdout is not None
        said = json.loads(await process.stdout.readline())
        assert said["url"] != said["ollama_url"]
        async with aiohttp.ClientSession() as session:
            for base, status in ((said["ollama_url"], 200), (said["url"], 404)):
                async with session.get(base) as answer:
                    assert answer.status == status
                async with session.get(f"{base}/v1/models") as answer:
                    assert answer.status == 200
        async with ollama.AsyncClient(host=said["ollama_url"]) as asker:
            assert (await asker.chat(model="m", messages=ASKED)).message.content == TEXT
            assert [item.model for item in (await asker.list()).models] == ["scripted"]
            stream = await asker.chat(model="m", messages=ASKED, stream=True)
            process.send_signal(signal.SIGTERM)
            assert "".join([part.message.content or "" async for part in stream]) == "late"
        _, err = await process.communicate()
    assert process.returncode == 0
    assert b"Traceback" not in err


async def test_a_taken_second_port_is_said_before_anything_starts(skills: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        options = ("--skills-dir", str(skills), "--upstream", "http://127.0.0.1:9/v1", "--port", "0")
        ended = await satchel("serve", *options, SATCHEL_OLLAMA_PORT=port)
    assert ended.code == 2
    assert f"Port {port} on 127.0.0.1 is taken" in ended.err
    assert "--ollama-port" in ended.err
