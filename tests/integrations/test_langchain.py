"""LangChain and deepagents run a session: their own agents, LangChain's own fake model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import PrivateAttr

from satchel.activation.session import SkillSession
from satchel.integrations.langchain import SkillMiddleware, SkillTool
from tests.activation.shelves import ListAudit
from tests.integrations.shelf import SECRET, WRONG, denied, enforcing, session

ASK: Any = {"messages": [{"role": "user", "content": "Glaze this bowl."}]}


class Found(TypedDict):
    """A run's context."""

    skills: SkillSession


class Script(GenericFakeChatModel):
    """Plays rounds of calls, then says "Done."; keeps what each request brought and which tools were bound."""

    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _bound: list[Any] = PrivateAttr(default_factory=list)

    def __init__(self, *rounds: list[tuple[str, Any]]) -> None:
        replies = [
            AIMessage(
                content="",
                tool_calls=[
                    {"name": name, "args": args, "id": f"{number}.{index}", "type": "tool_call"}
                    for index, (name, args) in enumerate(calls)
                ],
            )
            for number, calls in enumerate(rounds, 1)
        ]
        super().__init__(messages=iter([*replies, *(AIMessage(content="Done.") for _ in range(9))]))

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        self._bound[:] = [convert_to_openai_tool(item) for item in tools]
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self._requests.append(messages)
        return super()._generate(messages, *args, **kwargs)

    def told(self, request: int) -> list[ToolMessage]:
        """The results at the end of what the model got, in order."""
        found: list[ToolMessage] = []
        for message in reversed(self._requests[request]):
            if not isinstance(message, ToolMessage):
                break
            found.insert(0, message)
        return found

    def system(self, request: int) -> str:
        first = self._requests[request][0]
        return str(first.text) if isinstance(first, SystemMessage) else ""


async def test_a_model_activates_a_skill_and_answers(tmp_path: Path) -> None:
    skills = session(tmp_path)
    script = Script([("skill", {"name": "glazing"})])
    agent = create_agent(script, system_prompt="You are a potter.", middleware=[SkillMiddleware(skills)])
    result = await agent.ainvoke(ASK)
    assert result["messages"][-1].content == "Done."
    assert script._bound == skills.tools("openai")
    assert script.system(0).startswith("You are a potter.\n\n## Skills")
    assert SECRET not in script.system(0)
    (reply,) = script.told(1)
    assert SECRET in reply.content
    assert (reply.status, reply.artifact["kind"], reply.artifact["name"]) == ("success", "ok", "glazing")
    assert script.system(1) == script.system(0)


def test_a_program_without_a_loop_does_the_same(tmp_path: Path) -> None:
    skills = enforcing(tmp_path)
    script = Script(
        [("skill", {"name": "glazing"}), ("skill", {"name": "glazing"})], [("weigh", {"what": "bowl"}), ("smash", {})]
    )
    weigh, smash, ran = own_tools()
    agent = create_agent(script, tools=[weigh, smash], middleware=[SkillMiddleware(skills)])
    result = agent.invoke(ASK)
    assert result["messages"][-1].content == "Done."
    assert sorted(SECRET in str(reply.content) for reply in script.told(1)) == [False, True]
    assert ran == ["bowl"]


async def test_without_instructions_of_its_own_the_agent_has_the_list(tmp_path: Path) -> None:
    script = Script()
    await create_agent(script, middleware=[SkillMiddleware(session(tmp_path))]).ainvoke(ASK)
    assert script.system(0).startswith("## Skills")


async def test_a_system_message_of_blocks_keeps_its_blocks(tmp_path: Path) -> None:
    block: dict[str, Any] = {"type": "text", "text": "You are a potter.", "cache_control": {"type": "ephemeral"}}
    script = Script()
    agent = create_agent(
        script, system_prompt=SystemMessage(content=[block]), middleware=[SkillMiddleware(session(tmp_path))]
    )
    await agent.ainvoke(ASK)
    first, listed = script._requests[0][0].content
    assert first == block
    assert listed["text"].startswith("## Skills")  # pyright: ignore[reportArgumentType, reportIndexIssue]


async def test_an_agent_without_skills_is_told_nothing(tmp_path: Path) -> None:
    script = Script()
    await create_agent(script, middleware=[SkillMiddleware(SkillSession(tmp_path))]).ainvoke(ASK)
    assert script.system(0) == ""


async def test_parallel_calls_are_answered_once_and_in_call_order(tmp_path: Path) -> None:
    skills = session(tmp_path)
    script = Script([("skill", {"name": "glazing"}), ("skill", {"name": "glazing"}), ("skill", {"name": "firing"})])
    await create_agent(script, middleware=[SkillMiddleware(skills)]).ainvoke(ASK)
    first, again, other = (str(reply.content) for reply in script.told(1))
    assert [SECRET in first, SECRET in again, "cone 6" in other] == [True, False, True]
    assert "already active" in again


@pytest.mark.parametrize(("given", "told"), WRONG)
async def test_a_mistake_is_answered_with_what_to_do(tmp_path: Path, given: Any, told: str) -> None:
    skills = session(tmp_path)
    script = Script([("skill", given)], [("skill", {"name": "firing"})])
    await create_agent(script, middleware=[SkillMiddleware(skills)]).ainvoke(ASK)
    (reply,) = script.told(1)
    assert (told in str(reply.content), reply.status) == (True, "error")
    assert "cone 6" in str(script.told(2)[0].content)


async def test_a_denied_skill_never_reaches_the_model(tmp_path: Path) -> None:
    script = Script([("skill", {"name": "glazing"})])
    await create_agent(script, middleware=[SkillMiddleware(session(tmp_path, permission=denied))]).ainvoke(ASK)
    assert "Error [NOT_TRUSTED]" in str(script.told(1)[0].content)
    assert SECRET not in str(script._requests[1])


@pytest.mark.parametrize("is_sync", [False, True])
async def test_one_agent_serves_two_conversations(tmp_path: Path, is_sync: bool) -> None:
    one, two = session(tmp_path / "one"), session(tmp_path / "two")
    script = Script([("skill", {"name": "glazing"})])
    agent = create_agent(script, middleware=[SkillMiddleware(lambda context: context["skills"])], context_schema=Found)
    for skills in (one, two):
        context: Any = {"skills": skills}
        if is_sync:
            await asyncio.to_thread(agent.invoke, ASK, context=context)
        else:
            await agent.ainvoke(ASK, context=context)
    assert [len(one.active), len(two.active)] == [1, 0]


def own_tools() -> tuple[Any, Any, list[str]]:
    """Two tools of the agent's own, and what they were really called with."""
    ran: list[str] = []

    @tool
    def weigh(what: str) -> str:
        """Weighs."""
        ran.append(what)
        return "3 kg"

    @tool
    def smash(what: str = "") -> str:
        """Smashes."""
        ran.append(what)
        return "smashed"

    return weigh, smash, ran


async def test_other_tools_are_asked_about(tmp_path: Path) -> None:
    audit = ListAudit()
    skills = enforcing(tmp_path, audit=audit)
    script = Script([("skill", {"name": "glazing"})], [("weigh", {"what": "bowl"}), ("smash", {"what": "pot"})])
    weigh, smash, ran = own_tools()
    await create_agent(script, tools=[weigh, smash], middleware=[SkillMiddleware(skills)]).ainvoke(ASK)
    assert ran == ["bowl"]
    weighed, smashed = script.told(2)
    assert weighed.content == "3 kg"
    assert (smashed.status, smashed.name, "PERMISSION_DENIED" in str(smashed.content)) == ("error", "smash", True)
    assert [entry[:2] for entry in audit.decisions] == [("glazing", "allow"), ("weigh", "allow"), ("smash", "deny")]


class Shortens(AgentMiddleware):
    """Sends only the last messages, as a summarising middleware does."""

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
        return await handler(request.override(messages=request.messages[-2:]))


async def test_a_skill_whose_text_left_the_messages_is_given_again(tmp_path: Path) -> None:
    skills = session(tmp_path)
    glazing, other = [("skill", {"name": "glazing"})], [("skill", {"name": "firing"})]
    script = Script(glazing, glazing, other, glazing)
    agent = create_agent(script, middleware=[Shortens(), SkillMiddleware(skills)])
    await agent.ainvoke(ASK)
    assert SECRET in str(script.told(1)[0].content)
    assert "already active" in str(script.told(2)[0].content)
    assert "cone 6" in str(script.told(3)[0].content)
    assert SECRET in str(script.told(4)[0].content)


@pytest.mark.parametrize("is_found", [False, True])
async def test_the_tool_stands_in_a_graph_of_ones_own(tmp_path: Path, is_found: bool) -> None:
    skills = session(tmp_path)

    graph: Any = StateGraph(MessagesState, context_schema=Found)
    graph.add_node("tools", ToolNode([SkillTool((lambda context: context["skills"]) if is_found else skills)]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    calls = [{"name": "skill", "args": {"name": "glazing"}, "id": "a", "type": "tool_call"}]
    state = {"messages": [AIMessage(content="", tool_calls=calls)]}
    result = await graph.compile().ainvoke(state, context={"skills": skills})
    assert SECRET in result["messages"][-1].content


async def test_a_deep_agent_activates_skills_too(tmp_path: Path) -> None:
    skills = session(tmp_path)
    script = Script([("skill", {"name": "glazing"}), ("skill", {"name": "nope"})], [("write_todos", {"todos": []})])
    agent = create_deep_agent(model=script, system_prompt="You are a potter.", middleware=[SkillMiddleware(skills)])
    result = await agent.ainvoke(ASK)
    assert result["messages"][-1].content == "Done."
    assert "## Skills" in script.system(0)
    found, missing = script.told(1)
    assert SECRET in str(found.content)
    assert missing.status == "error"


async def test_the_session_is_told_which_tools_the_model_has(tmp_path: Path) -> None:
    skills = session(tmp_path)
    weigh, smash, _ = own_tools()
    script = Script([("skill", {"name": "glazing"})])
    await create_agent(script, tools=[weigh, smash], middleware=[SkillMiddleware(skills)]).ainvoke(ASK)
    assert skills.host_tools == {"skill", "weigh", "smash"}
    assert "tools that you do not have: Bash. " in str(script.told(1)[0].content)
