"""The programs on the pages of docs/guides are files, and they do what the pages say."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import agents
import pytest
from agents.testing import ScriptedModel, assistant_message, function_call
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from docs_src import (
    agent_deepagents,
    agent_langchain,
    agent_openai,
    agent_pydantic_ai,
    loop_anthropic,
    loop_openai,
)
from satchel.activation.enforce import ToolPolicy
from satchel.activation.session import SkillSession
from satchel.chat.messages import Json
from satchel.library import discover
from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn
from tests.integrations.test_langchain import Script as LangChainScript
from tests.integrations.test_pydantic_ai import Script as PydanticScript
from tests.project.tree import ROOT, pyproject

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
ROUND = [("skill", {"name": "canary-deploy"}), ("skill", {"name": "kiln-firing"}), ("traffic", {"service": "api"})]


def skills(module: Any, **options: Any) -> SkillSession:
    """The session of a page, over the bundled skills."""
    return SkillSession(discover([ROOT / "skills"]), permission=module.permission, **options)


def body() -> str:
    text = (ROOT / "skills" / "canary-deploy" / "SKILL.md").read_text(encoding="utf-8")
    return text.split("---\n", 2)[2].strip()


def scripted(texts: Callable[[dict[str, Any]], str] = json.dumps) -> list[ScriptedTurn]:
    calls = tuple(
        ScriptedCall(name=name, fragments=(texts(given),), call_id=f"c{number}")
        for number, (name, given) in enumerate(ROUND)
    )
    usage: dict[str, Json] = {"input_tokens": 1, "output_tokens": 1}
    return [
        ScriptedTurn(calls=calls, plain=True, usage=usage),
        ScriptedTurn(text=("6 percent.",), plain=True, usage=usage),
    ]


async def test_the_loop_over_openai() -> None:
    session = skills(loop_openai)
    async with ScriptedOpenAI(scripted()) as server, AsyncOpenAI(base_url=server.url, api_key="x") as client:
        assert await loop_openai.converse(client, "scripted", session, "How much?") == "6 percent."
    first, second = (request.body["messages"] for request in server.requests)
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert second[:2] == first
    told: dict[str, str] = {item["tool_call_id"]: item["content"] for item in second[3:]}  # pyright: ignore[reportArgumentType, reportCallIssue, reportIndexIssue, reportOptionalSubscript, reportAssignmentType]
    assert body() in told["c0"]
    assert "Error [NOT_TRUSTED]" in told["c1"]
    assert told["c2"] == "api: 6 percent"


async def test_the_loop_over_anthropic() -> None:
    session = skills(loop_anthropic)
    async with ScriptedOpenAI(scripted()) as server, AsyncAnthropic(base_url=server.root, api_key="x") as client:
        assert await loop_anthropic.converse(client, "scripted", session, "How much?") == "6 percent."
    last: Any = server.requests[1].body
    assert last["system"].startswith("## Skills")
    results = {block["tool_use_id"]: block for block in last["messages"][-1]["content"]}
    assert body() in results["c0"]["content"]
    assert results["c1"]["is_error"] is True
    assert results["c2"]["content"] == "api: 6 percent"


@pytest.mark.parametrize("module", [loop_openai, loop_anthropic], ids=["openai", "anthropic"])
async def test_the_loops_ask_the_session_about_their_own_tools(module: Any) -> None:
    session = skills(module, tool_policy=ToolPolicy(deny=["traffic"]))
    given: Any = {"service": "api"}
    told = await module.run_tool(session, "traffic", json.dumps(given) if module is loop_openai else given)
    assert told.startswith("Error [PERMISSION_DENIED]")


async def test_the_loops_end_when_the_model_does_not() -> None:
    turn = scripted()[0]
    turns = [turn] * loop_openai.ROUNDS
    async with ScriptedOpenAI(turns) as server, AsyncOpenAI(base_url=server.url, api_key="x") as client:
        with pytest.raises(loop_openai.OutOfRoundsError) as over:
            await loop_openai.converse(client, "scripted", skills(loop_openai), "How much?")
    assert len(over.value.messages) == 2 + loop_openai.ROUNDS * (1 + len(ROUND))
    async with ScriptedOpenAI(turns) as server, AsyncAnthropic(base_url=server.root, api_key="x") as client:
        with pytest.raises(loop_anthropic.OutOfRoundsError) as ended:
            await loop_anthropic.converse(client, "scripted", skills(loop_anthropic), "How much?")
    assert len(ended.value.messages) == 1 + 2 * loop_anthropic.ROUNDS


async def test_a_call_that_is_no_object_is_answered() -> None:
    for text in ("[1]", "nonsense", "7", "null", "", "[" * 100_000, "9" * 5000):
        assert "not a JSON object" in await loop_openai.run_tool(skills(loop_openai), "traffic", text)


def check(told: list[str]) -> None:
    assert len(told) == 3
    assert body() in told[0]
    assert "Error [NOT_TRUSTED]" in told[1]
    assert "api: 6 percent" in told[2]


async def test_the_agent_of_the_openai_agents_sdk() -> None:
    agents.set_tracing_disabled(True)
    try:
        calls = [function_call(name, given, call_id=name + str(given)) for name, given in ROUND]
        model = ScriptedModel([calls, [assistant_message("6 percent.")]])
        assert await agent_openai.ask(skills(agent_openai), model, "How much?") == "6 percent."
    finally:
        agents.set_tracing_disabled(False)
    told: list[Any] = [item for item in model.calls[1].input if item.get("type") == "function_call_output"]
    check([item["output"] for item in told])


async def test_the_agent_of_pydantic_ai() -> None:
    script = PydanticScript(ROUND)
    assert await agent_pydantic_ai.ask(skills(agent_pydantic_ai), script.model, "How much?") == "Done."
    check([str(part.content) for part in script.told(1)])


@pytest.mark.parametrize("module", [agent_langchain, agent_deepagents], ids=["langchain", "deepagents"])
async def test_the_agents_of_langchain(module: Any) -> None:
    script = LangChainScript(ROUND)
    assert await module.ask(skills(module), script, "How much?") == "Done."
    check([str(message.content) for message in script.told(1)])


def test_the_pages_name_extras_that_exist() -> None:
    text = (ROOT / "docs" / "guides" / "frameworks.md").read_text(encoding="utf-8")
    extras = pyproject()["project"]["optional-dependencies"]
    assert all(f"satchel[{name}]" in text for name in ("openai-agents", "pydantic-ai", "langchain"))
    assert {"openai-agents", "pydantic-ai", "langchain"} <= extras.keys()
