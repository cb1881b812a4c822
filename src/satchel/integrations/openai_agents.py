"""A session as tools, instructions and a guardrail of the OpenAI Agents SDK (``satchel[openai-agents]``)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from typing import Any, cast

from agents import (
    Agent,
    FunctionTool,
    RunContextWrapper,
    Tool,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
)
from agents.tool_context import ToolContext

from satchel.activation.schema import DESCRIPTION, TOOL, tool_parameters
from satchel.chat.arguments import read_arguments
from satchel.errors import SetupError
from satchel.integrations.sessions import Sessions, listing, session_of

Instructions = Callable[[RunContextWrapper[Any], Agent[Any]], Awaitable[str]]
"""What ``Agent(instructions=...)`` takes."""


def skill_tools(session: Sessions) -> list[Tool]:
    """The tool that activates skills, for ``Agent(tools=...)``. A refusal is text for the model, never an exception.

    ``session`` may be a function of the run's context, so that one agent serves many conversations.
    """

    async def activate(context: ToolContext[Any], text: str) -> str:
        reply = await session_of(session, context.context).call(read_arguments(text))
        return reply.output

    tool = FunctionTool(
        name=TOOL,
        description=DESCRIPTION,
        params_json_schema=dict(tool_parameters()),
        on_invoke_tool=activate,
        # Strict schemas have no optional parameters, and no objects with names of their own.
        strict_json_schema=False,
    )
    return [tool]


def instructions(
    session: Sessions, base: str | Callable[[RunContextWrapper[Any], Agent[Any]], str | Awaitable[str]] = ""
) -> Instructions:
    """The list of skills behind the agent's own instructions ``base``, for ``Agent(instructions=...)``.

    It tells the session which tools the agent has, unless MCP servers or handoffs bring more of them. The function
    raises ``StoreError`` "store-unavailable" when a registry fails.
    """

    async def told(context: RunContextWrapper[Any], agent: Agent[Any]) -> str:
        own: object = base if isinstance(base, str) else base(context, agent)
        if inspect.isawaitable(own):
            own = await own
        found = session_of(session, context.context)
        brings_more = agent.mcp_servers or agent.handoffs
        found.host_tools = None if brings_more else {tool.name for tool in agent.tools}
        parts = (str(own or ""), await listing(found))
        return "\n\n".join(part for part in parts if part)

    return told


def tool_gate(session: Sessions) -> ToolInputGuardrail[Any]:
    """``session.check_call`` as a guardrail, for ``tool_input_guardrails`` of function tools and of MCP servers.

    A call that may not run is answered with the reason; the run goes on.
    """

    async def check(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        name = data.context.tool_name
        arguments = read_arguments(data.context.tool_arguments)
        if arguments is None:
            message = f"Error [INVALID_PARAM]: the arguments of {name} are not one JSON object."
            return ToolGuardrailFunctionOutput.reject_content(message)
        decision = await session_of(session, data.context.context).check_call(name, arguments)
        if decision.allowed:
            return ToolGuardrailFunctionOutput.allow()
        return ToolGuardrailFunctionOutput.reject_content(decision.output)

    return ToolInputGuardrail(guardrail_function=check, name="satchel_tool_gate")


def gated(session: Sessions, tools: Iterable[Tool]) -> list[Tool]:
    """Copies of the tools that ask ``session.check_call`` before anything else.

    Raises:
        SetupError: "setting-invalid" for a tool that is not a function tool: the SDK has no hook in front of it.
    """
    gate = tool_gate(session)
    return [_with(gate, tool) for tool in tools]


def _with(gate: ToolInputGuardrail[Any], tool: Tool) -> Tool:
    if not isinstance(tool, FunctionTool):
        name = cast("str", getattr(tool, "name", type(tool).__name__))
        raise SetupError(
            "setting-invalid",
            f"The tool {name} cannot be gated: it is not a function tool.",
            hint="Leave it out of gated(), and decide about its calls where the tool itself can be told.",
        )
    guarded = copy(tool)
    guarded.tool_input_guardrails = [gate, *(tool.tool_input_guardrails or ())]
    return guarded
