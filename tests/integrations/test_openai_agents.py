"""The OpenAI Agents SDK runs a session: its own runner, its own scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, FunctionTool, RunConfig, Runner, WebSearchTool, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from satchel.activation.registry import FilesystemSkillRegistry
from satchel.activation.schema import tool_parameters
from satchel.activation.session import SkillSession
from satchel.errors import SetupError
from satchel.integrations.openai_agents import gated, instructions, skill_tools, tool_gate
from tests.activation.shelves import ListAudit, allow
from tests.integrations.shelf import SECRET, WRONG, denied, enforcing, session, shelf

QUIET = RunConfig(tracing_disabled=True)


def calls(*inputs: dict[str, Any] | str, ids: str = "a") -> list[Any]:
    """One round of calls to the tool, with ids a0, a1 ..."""
    texts = [given if isinstance(given, str) else json.dumps(given) for given in inputs]
    return [function_call("skill", text, call_id=f"{ids}{number}") for number, text in enumerate(texts)]


def outputs(model: ScriptedModel, request: int) -> dict[str, str]:
    """What the model was told of its calls, by id, in its request of that number."""
    return {
        item["call_id"]: item["output"]
        for item in model.calls[request].input
        if isinstance(item, dict) and item.get("type") == "function_call_output"
    }


async def run(agent: Agent[Any], *, context: Any = None) -> Any:
    return await Runner.run(agent, "Glaze this bowl.", context=context, run_config=QUIET)


async def test_a_model_activates_a_skill_and_answers(tmp_path: Path) -> None:
    skills = session(tmp_path)
    model = ScriptedModel([calls({"name": "glazing"}), [assistant_message("Done.")]])
    agent = Agent(
        name="potter", instructions=instructions(skills, "You are a potter."), tools=skill_tools(skills), model=model
    )
    result = await run(agent)
    assert result.final_output == "Done."
    (tool,) = model.calls[0].tools
    assert isinstance(tool, FunctionTool)
    assert (tool.name, tool.params_json_schema) == ("skill", tool_parameters())
    told = model.calls[0].system_instructions or ""
    assert told.startswith("You are a potter.\n\n## Skills")
    assert "glazing" in told
    assert SECRET not in told
    assert SECRET in outputs(model, 1)["a0"]
    assert [skill.name for skill in skills.active] == ["glazing"]
    model.assert_complete()


async def test_the_prefix_of_every_request_is_the_same(tmp_path: Path) -> None:
    skills = session(tmp_path)
    model = ScriptedModel(
        [calls({"name": "glazing"}), calls({"name": "firing"}, ids="b"), [assistant_message("Done.")]]
    )
    await run(Agent(name="potter", instructions=instructions(skills), tools=skill_tools(skills), model=model))
    assert len({call.system_instructions for call in model.calls}) == 1


async def test_parallel_calls_are_answered_once_and_in_call_order(tmp_path: Path) -> None:
    skills = session(tmp_path)
    model = ScriptedModel(
        [calls({"name": "glazing"}, {"name": "glazing"}, {"name": "firing"}), [assistant_message("ok")]]
    )
    await run(Agent(name="potter", tools=skill_tools(skills), model=model))
    told = outputs(model, 1)
    assert [SECRET in told["a0"], SECRET in told["a1"], "cone 6" in told["a2"]] == [True, False, True]
    assert "already active" in told["a1"]
    assert [skill.name for skill in skills.active] == ["glazing", "firing"]


@pytest.mark.parametrize(("given", "told"), [*WRONG, pytest.param("{not json", "one JSON object", id="no JSON")])
async def test_a_mistake_is_answered_with_what_to_do(tmp_path: Path, given: Any, told: str) -> None:
    skills = session(tmp_path)
    model = ScriptedModel([calls(given), calls({"name": "firing"}, ids="b"), [assistant_message("ok")]])
    await run(Agent(name="potter", tools=skill_tools(skills), model=model))
    assert told in outputs(model, 1)["a0"]
    assert "cone 6" in outputs(model, 2)["b0"]


async def test_a_denied_skill_never_reaches_the_model(tmp_path: Path) -> None:
    skills = session(tmp_path, permission=denied)
    model = ScriptedModel([calls({"name": "glazing"}), [assistant_message("ok")]])
    await run(Agent(name="potter", tools=skill_tools(skills), model=model))
    assert "Error [NOT_TRUSTED]" in outputs(model, 1)["a0"]
    assert SECRET not in str(model.calls[1].input)


async def test_one_agent_serves_two_conversations(tmp_path: Path) -> None:
    one, two = session(tmp_path / "one"), session(tmp_path / "two")
    script = [calls({"name": "glazing"}), [assistant_message("ok")]]
    model = ScriptedModel([*script, *script])
    agent = Agent(
        name="potter",
        instructions=instructions(lambda context: context["skills"], lambda context, agent: "Hello."),
        tools=skill_tools(lambda context: context["skills"]),
        model=model,
    )
    for skills in (one, two):
        await run(agent, context={"skills": skills})
    assert [SECRET in outputs(model, number)["a0"] for number in (1, 3)] == [True, True]
    assert len(one.active) == len(two.active) == 1


async def test_own_instructions_may_be_a_coroutine_and_skills_come_from_a_registry(tmp_path: Path) -> None:
    async def own(context: object, agent: object) -> str:
        del context, agent
        return "Own."

    class Registry:
        """A directory's skills behind the port."""

        def __init__(self) -> None:
            self.inner = FilesystemSkillRegistry(shelf(tmp_path))

        async def discover(self) -> Any:
            return await self.inner.discover()

        async def load(self, name: str) -> Any:
            return await self.inner.load(name)

    skills = SkillSession(Registry(), permission=allow)
    model = ScriptedModel([[assistant_message("ok")]])
    await run(Agent(name="potter", instructions=instructions(skills, own), tools=skill_tools(skills), model=model))
    assert (model.calls[0].system_instructions or "").startswith("Own.\n\n## Skills")


def weigher() -> tuple[Any, Any, list[str]]:
    """Two tools of the agent's own, and what they were really called with."""
    ran: list[str] = []

    @function_tool
    def weigh(what: str) -> str:
        """Weighs."""
        ran.append(what)
        return "3 kg"

    @function_tool
    def smash(what: str) -> str:
        """Smashes."""
        ran.append(what)
        return "smashed"

    return weigh, smash, ran


async def test_other_tools_are_asked_about(tmp_path: Path) -> None:
    audit = ListAudit()
    skills = enforcing(tmp_path, audit=audit)
    weigh, smash, ran = weigher()
    model = ScriptedModel(
        [
            calls({"name": "glazing"}),
            [
                function_call("weigh", '{"what": "bowl"}', call_id="w"),
                function_call("smash", '{"what": "pot"}', call_id="s"),
            ],
            [function_call("smash", '{"what": ', call_id="b")],
            [assistant_message("ok")],
        ]
    )
    await run(Agent(name="potter", tools=[*skill_tools(skills), *gated(skills, [weigh, smash])], model=model))
    assert ran == ["bowl"]
    assert outputs(model, 2)["w"] == "3 kg"
    assert "Error [PERMISSION_DENIED]" in outputs(model, 2)["s"]
    assert "not one JSON object" in outputs(model, 3)["b"]
    assert [entry[:2] for entry in audit.decisions] == [("glazing", "allow"), ("weigh", "allow"), ("smash", "deny")]


def test_gating_copies_tools_and_keeps_their_own_guardrails(tmp_path: Path) -> None:
    skills = session(tmp_path)
    weigh, _, _ = weigher()
    own = tool_gate(skills)
    weigh.tool_input_guardrails = [own]
    (guarded,) = gated(skills, [weigh])
    assert isinstance(guarded, FunctionTool)
    assert (guarded.tool_input_guardrails or [])[1:] == [own]
    assert weigh.tool_input_guardrails == [own]


def test_a_tool_that_cannot_be_gated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="web_search"):
        gated(session(tmp_path), [WebSearchTool()])


async def test_a_streamed_run_is_the_same(tmp_path: Path) -> None:
    skills = session(tmp_path)
    model = ScriptedModel([calls({"name": "glazing"}), [assistant_message("Done.")]])
    result = Runner.run_streamed(
        Agent(name="potter", tools=skill_tools(skills), model=model), "Glaze.", run_config=QUIET
    )
    async for _ in result.stream_events():
        pass
    assert result.final_output == "Done."
    assert SECRET in outputs(model, 1)["a0"]


async def test_the_session_is_told_which_tools_the_agent_has(tmp_path: Path) -> None:
    skills = session(tmp_path)
    weigh, _, _ = weigher()
    model = ScriptedModel([calls({"name": "glazing"}), [assistant_message("ok")], [assistant_message("ok")]])
    agent = Agent(
        name="potter",
        instructions=instructions(skills),
        tools=[*skill_tools(skills), weigh, WebSearchTool()],
        model=model,
    )
    await run(agent)
    assert skills.host_tools == {"skill", "weigh", "web_search"}
    assert "tools that you do not have: Bash. " in outputs(model, 1)["a0"]
    agent.handoffs = [Agent(name="kiln")]
    await run(agent)
    assert skills.host_tools is None
