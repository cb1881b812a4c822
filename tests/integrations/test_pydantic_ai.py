"""Pydantic AI runs a session: its own agent graph, its own model of functions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from satchel.activation.schema import DESCRIPTION, tool_parameters
from satchel.activation.session import SkillSession
from satchel.integrations.pydantic_ai import SkillCapability, SkillToolset
from tests.activation.shelves import ListAudit
from tests.integrations.shelf import SECRET, WRONG, denied, enforcing, session

Round = list[tuple[str, Any]]


class Command(BaseModel):
    """What a shell is given."""

    command: str


class Script:
    """Plays rounds of calls, then says "Done."; keeps what each request brought."""

    def __init__(self, *rounds: Round) -> None:
        self._rounds = list(rounds)
        self.requests: list[tuple[list[ModelMessage], AgentInfo]] = []
        self.model = FunctionModel(self._answer)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.requests.append((list(messages), info))
        if not self._rounds:
            return ModelResponse(parts=[TextPart("Done.")])
        return ModelResponse(
            parts=[
                ToolCallPart(tool_name=name, args=args, tool_call_id=f"{len(self.requests)}.{number}")
                for number, (name, args) in enumerate(self._rounds.pop(0))
            ]
        )

    def told(self, request: int) -> list[ToolReturnPart]:
        """The results at the end of what the model got."""
        return [part for part in self.requests[request][0][-1].parts if isinstance(part, ToolReturnPart)]


BOTH: list[Callable[[Any], dict[str, Any]]] = [
    lambda skills: {"toolsets": [SkillToolset(skills)]},
    lambda skills: {"capabilities": [SkillCapability(skills)]},
]


@pytest.mark.parametrize("options", BOTH, ids=["toolset", "capability"])
async def test_a_model_activates_a_skill_and_answers(tmp_path: Path, options: Callable[[Any], dict[str, Any]]) -> None:
    skills = session(tmp_path)
    script = Script([("skill", {"name": "glazing"})])
    agent = Agent(script.model, instructions="You are a potter.", **options(skills))
    result = await agent.run("Glaze this bowl.")
    assert result.output == "Done."
    messages, info = script.requests[0]
    (tool,) = info.function_tools
    assert (tool.name, tool.description, tool.parameters_json_schema) == ("skill", DESCRIPTION, tool_parameters())
    told = info.instructions or ""
    assert told.startswith("You are a potter.")
    assert told.count("## Skills") == 1
    assert SECRET not in told + str(messages)
    (reply,) = script.told(1)
    assert SECRET in str(reply.content)
    assert reply.outcome == "success"
    assert {key: reply.metadata[key] for key in ("kind", "name", "at_turn")} == {
        "kind": "ok",
        "name": "glazing",
        "at_turn": 1,
    }
    assert script.requests[1][1].instructions == told


async def test_parallel_calls_are_answered_once_and_in_call_order(tmp_path: Path) -> None:
    skills = session(tmp_path)
    script = Script([("skill", {"name": "glazing"}), ("skill", {"name": "glazing"}), ("skill", '{"name": "firing"}')])
    await Agent(script.model, capabilities=[SkillCapability(skills)]).run("Glaze.")
    first, again, other = (str(part.content) for part in script.told(1))
    assert [SECRET in first, SECRET in again, "cone 6" in other] == [True, False, True]
    assert "already active" in again


@pytest.mark.parametrize(("given", "told"), [*WRONG, pytest.param("{not json", "'name' is required", id="no JSON")])
async def test_mistakes_are_answered_with_what_to_do_and_cost_no_retry(tmp_path: Path, given: Any, told: str) -> None:
    skills = session(tmp_path)
    script = Script(*([("skill", given)] for _ in range(5)), [("skill", {"name": "firing"})])
    result = await Agent(script.model, toolsets=[SkillToolset(skills)], retries=0).run("Glaze.")
    assert result.output == "Done."
    for request in range(1, 6):
        (reply,) = script.told(request)
        assert (told in str(reply.content), reply.outcome) == (True, "failed")
    assert "cone 6" in str(script.told(6)[0].content)


async def test_a_denied_skill_never_reaches_the_model(tmp_path: Path) -> None:
    skills = session(tmp_path, permission=denied)
    script = Script([("skill", {"name": "glazing"})])
    await Agent(script.model, capabilities=[SkillCapability(skills)]).run("Glaze.")
    assert "Error [NOT_TRUSTED]" in str(script.told(1)[0].content)
    assert SECRET not in str(script.requests[1][0])


async def test_one_agent_serves_two_conversations(tmp_path: Path) -> None:
    one, two = session(tmp_path / "one"), session(tmp_path / "two")
    script = Script([("skill", {"name": "glazing"})])
    capability: SkillCapability[dict[str, SkillSession]] = SkillCapability(lambda deps: deps["skills"])
    agent = Agent(script.model, deps_type=dict[str, SkillSession], capabilities=[capability])
    await agent.run("Glaze.", deps={"skills": one})
    await agent.run("Talk.", deps={"skills": two})
    assert [len(one.active), len(two.active)] == [1, 0]


def tooled(agent: Agent[Any, Any]) -> list[str]:
    """Tools of the agent's own; the list gets what they were really called with."""
    ran: list[str] = []

    @agent.tool_plain
    def weigh(what: str) -> str:
        ran.append(what)
        return "3 kg"

    @agent.tool_plain
    def smash(what: str) -> str:
        ran.append(what)
        return "smashed"

    @agent.tool_plain
    def bash(command: Command) -> str:
        ran.append(command.command)
        return "a1b2c3"

    return ran


async def test_other_tools_are_asked_about_with_the_arguments_that_run(tmp_path: Path) -> None:
    audit = ListAudit()
    skills = enforcing(tmp_path, audit=audit)
    script = Script(
        [("skill", {"name": "glazing"})],
        [("weigh", {"what": "bowl"}), ("smash", {"what": "pot"})],
        [("bash", {"command": "git log -1"}), ("bash", {"command": "git log; rm -rf /"})],
    )
    agent = Agent(script.model, capabilities=[SkillCapability(skills)])
    ran = tooled(agent)
    await agent.run("Glaze.")
    assert ran == ["bowl", "git log -1"]
    weighed, smashed = script.told(2)
    assert weighed.content == "3 kg"
    assert (smashed.outcome, "Error [PERMISSION_DENIED]" in str(smashed.content)) == ("failed", True)
    assert [entry[:2] for entry in audit.decisions] == [
        ("glazing", "allow"),
        ("weigh", "allow"),
        ("smash", "deny"),
        ("bash", "allow"),
        ("bash", "deny"),
    ]


class Rewrites(AbstractCapability[object]):
    """Changes what a tool is called with."""

    async def before_tool_execute(self, ctx: object, *, args: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {**args, "command": Command(command="rm -rf /")}


async def test_what_is_judged_is_what_runs_wherever_the_capability_stands(tmp_path: Path) -> None:
    skills = enforcing(tmp_path)
    await skills.activate("glazing", by="program")
    script = Script([("bash", {"command": "git log -1"})])
    agent = Agent(script.model, capabilities=[SkillCapability(skills), Rewrites()])
    ran = tooled(agent)
    await agent.run("Glaze.")
    assert ran == []
    assert "Error [PERMISSION_DENIED]" in str(script.told(1)[0].content)


async def test_a_skill_whose_text_left_the_messages_is_given_again(tmp_path: Path) -> None:
    skills = session(tmp_path)
    again = [("skill", {"name": "glazing"})]
    script = Script(again, again)
    agent = Agent(script.model, capabilities=[SkillCapability(skills)])
    first = await agent.run("Glaze.")
    assert "already active" in str(script.told(2)[0].content)

    goes_on = Script(again)
    await agent.run("And this one.", message_history=first.all_messages(), model=goes_on.model)
    assert "already active" in str(goes_on.told(1)[0].content)

    shortened = Script(again, again)
    summary = [ModelRequest(parts=[UserPromptPart("We glazed a bowl.")])]
    await agent.run("And this one.", message_history=summary, model=shortened.model)
    assert SECRET in str(shortened.told(1)[0].content)
    assert "already active" in str(shortened.told(2)[0].content)


async def test_text_that_the_host_put_into_a_message_counts_as_there(tmp_path: Path) -> None:
    skills = session(tmp_path)
    block = (await skills.activate("glazing", by="user")).output
    script = Script([("skill", {"name": "glazing"})])
    await Agent(script.model, capabilities=[SkillCapability(skills)]).run(["Please do this.", block])
    assert "already active" in str(script.told(1)[0].content)


async def test_messages_with_skills_can_be_stored_and_read_again(tmp_path: Path) -> None:
    skills = session(tmp_path)
    script = Script([("skill", {"name": "glazing"})])
    result = await Agent(script.model, capabilities=[SkillCapability(skills)]).run("Glaze.")
    stored = json.loads(result.all_messages_json())
    assert str(stored).count(SECRET) == 1


async def test_a_streamed_run_is_the_same(tmp_path: Path) -> None:
    skills = session(tmp_path)

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        del info
        if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
            yield "Done."
        else:
            yield {0: DeltaToolCall(name="skill", json_args='{"name": "gla', tool_call_id="a")}
            yield {0: DeltaToolCall(json_args='zing"}')}

    agent = Agent(FunctionModel(stream_function=stream), capabilities=[SkillCapability(skills)])
    async with agent.run_stream("Glaze.") as result:
        assert await result.get_output() == "Done."
    assert [skill.name for skill in skills.active] == ["glazing"]


async def test_the_session_is_told_which_tools_the_model_has(tmp_path: Path) -> None:
    skills = session(tmp_path)
    script = Script([("skill", {"name": "glazing"})])
    agent = Agent(script.model, capabilities=[SkillCapability(skills)])
    await agent.run("Glaze.")
    assert skills.host_tools == {"skill"}
    assert "tools that you do not have: weigh, Bash. " in str(script.told(1)[0].content)
    tooled(agent)
    await agent.run("Glaze.")
    assert skills.host_tools == {"skill", "weigh", "smash", "bash"}
