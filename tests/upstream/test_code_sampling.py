"""What a model server is sent in a turn in which models may write code, in each format, and in one without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from satchel.chat.messages import message
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy
from satchel.engine.request import SkillSelection, TurnRequest
from satchel.engine.runtime import Runtime
from satchel.execution.options import ExecutionOptions
from satchel.execution.workbench import Execution
from satchel.library import discover
from satchel.ports.models import UpstreamOptions
from satchel.sources.directory import DirectorySource
from satchel.testing.fake_executor import FakeExecutor
from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, says
from satchel.upstream.anthropic import AnthropicClient
from satchel.upstream.client import ServerClient
from satchel.upstream.ollama import OllamaClient
from satchel.upstream.openai_chat import OpenAIChatClient
from satchel.upstream.openai_responses import OpenAIResponsesClient
from satchel.wiring.sources import skill_hosts
from tests.support import collect, write_skill

CLIENTS = (OpenAIChatClient, OpenAIResponsesClient, OllamaClient, AnthropicClient)
CODE = ExecutionOptions(code=True, temperature=0.3)
PENALTIES = {"repeat_penalty", "repetition_penalty", "frequency_penalty", "presence_penalty"}
RUN = ScriptedTurn(calls=(ScriptedCall(name="shell", fragments=('{"command": "make"}',), call_id="c1"),))

ANY = SkillSelection()

Client = Callable[[UpstreamOptions], ServerClient]


@pytest.fixture(params=CLIENTS, ids=lambda client: client.__name__.removesuffix("Client"))
def client(request: pytest.FixtureRequest) -> Client:
    return request.param


@pytest.fixture
def source(tmp_path: Path) -> DirectorySource:
    write_skill(tmp_path / "skills", "geometry")
    return DirectorySource(discover([tmp_path / "skills"]))


async def sent(
    client: Client,
    source: DirectorySource | None,
    options: ExecutionOptions,
    *turns: ScriptedTurn,
    can_call: bool = True,
    skills: SkillSelection = ANY,
    **chat: Any,
) -> list[Mapping[str, Any]]:
    """The sampling fields of every generation of one turn: of the body, of its options for Ollama."""
    shows: dict[str, Any] = {"m": {"capabilities": ["completion", *(["tools"] if can_call else [])]}}
    async with ScriptedOpenAI(turns or [says("done")], shows=shows) as server:
        url = server.url if client in {OpenAIChatClient, OpenAIResponsesClient} else server.root
        models = client(UpstreamOptions(url=url, tools="auto" if client is OllamaClient or can_call else "none"))
        runtime = Runtime(
            models=models, source=source, hosts=skill_hosts, execution=Execution(FakeExecutor(), options, host={})
        )
        asked = ChatRequest(model="m", messages=(message("user", "Compute it."),), **chat)
        await collect(runtime, TurnRequest(chat=asked, skills=skills))
        await runtime.aclose()
        bodies: list[dict[str, Any]] = [seen.body for seen in server.requests]
    return [body.get("options", {}) if client is OllamaClient else body for body in bodies]


def neutral(client: Client) -> dict[str, float]:
    """Ollama alone has a penalty unless it is told otherwise; others refuse a field that they do not know."""
    return {"repeat_penalty": 1.0} if client is OllamaClient else {}


def penalties(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in PENALTIES & set(body)}


async def test_every_generation_of_a_coding_turn_has_its_temperature_and_no_penalty(
    client: Client, source: DirectorySource
) -> None:
    bodies = await sent(client, source, CODE, RUN, says("done"))
    assert [body["temperature"] for body in bodies] == [0.3, 0.3]
    assert [penalties(body) for body in bodies] == [neutral(client)] * 2


async def test_a_temperature_is_sent_only_where_an_operator_names_one(client: Client, source: DirectorySource) -> None:
    (body,) = await sent(client, source, replace(CODE, temperature=None))
    assert "temperature" not in body
    assert penalties(body) == neutral(client)


@pytest.mark.parametrize("own", [0.9, 0.0])
async def test_a_clients_temperature_stays(client: Client, source: DirectorySource, own: float) -> None:
    (body,) = await sent(client, source, CODE, sampling=Sampling(temperature=own))
    assert body["temperature"] == own
    assert penalties(body) == neutral(client)


@pytest.mark.parametrize("own", [1.3, 0.5])
async def test_a_clients_penalty_stays(source: DirectorySource, own: float) -> None:
    extra: dict[str, Any] = {"ollama": {"options": {"repeat_penalty": own, "top_k": 5}}}
    (options,) = await sent(OllamaClient, source, CODE, extra=extra)
    assert (options["repeat_penalty"], options["top_k"], options["temperature"]) == (own, 5, 0.3)
    for name in ("frequency_penalty", "repetition_penalty"):
        (body,) = await sent(OpenAIChatClient, source, CODE, extra={"openai-chat": {name: own}})
        assert penalties(body) == {name: own}


async def test_a_turn_without_code_is_sent_as_it_was_asked_for(client: Client, source: DirectorySource) -> None:
    turns = [
        await sent(client, source, ExecutionOptions(scripts=True, temperature=0.3)),  # only scripts may run
        await sent(client, source, CODE, skills=SkillSelection(discovery=False)),
        await sent(client, source, CODE, tool_choice=ToolPolicy(mode="none")),
        await sent(client, source, CODE, can_call=False),
        await sent(client, None, CODE),
    ]
    for (body,) in turns:
        assert "temperature" not in body
        assert penalties(body) == {}
