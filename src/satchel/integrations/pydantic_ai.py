"""A session as a toolset and a capability of Pydantic AI (``satchel[pydantic-ai]``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel
from pydantic_ai import RunContext, ToolDefinition, ToolFailed, ToolReturn
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import InstructionPart, ModelMessage, ModelRequest, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import to_jsonable_python

from satchel.activation.schema import DESCRIPTION, TOOL, tool_parameters
from satchel.chat.arguments import read_arguments
from satchel.chat.messages import Json
from satchel.integrations.sessions import Sessions, facts, keep_what_is_there, listing, session_of


class _AnyInput:
    """Lets every input through: the session says better what is wrong with it, and no retry is spent on that."""

    def validate_json(
        self,
        input: str | bytes | bytearray,  # noqa: A002 - the framework's name
        *,
        allow_partial: bool | Literal["off", "on", "trailing-strings"] = False,
        **kwargs: Any,
    ) -> dict[str, Json]:
        del allow_partial, kwargs
        return read_arguments(input if isinstance(input, str) else input.decode("utf-8", "replace")) or {}

    def validate_python(
        self,
        input: Any,  # noqa: A002 - the framework's name
        *,
        allow_partial: bool | Literal["off", "on", "trailing-strings"] = False,
        **kwargs: Any,
    ) -> dict[str, Json]:
        del allow_partial, kwargs
        return dict(cast("Mapping[str, Json]", input)) if isinstance(input, Mapping) else {}


class SkillToolset(AbstractToolset[AgentDepsT]):
    """The tool that activates skills, with the list of skills in its instructions: ``Agent(toolsets=[...])``.

    A refusal is a failed result for the model; it costs no retry. ``session`` may be a function of the run's ``deps``,
    so that one agent serves many conversations. A run raises ``StoreError`` "store-unavailable" when a registry fails.
    """

    def __init__(self, session: Sessions, *, id: str | None = "satchel-skills") -> None:  # noqa: A002 - the framework's name
        self._sessions = session
        self._id = id

    @property
    def id(self) -> str | None:
        return self._id

    async def get_instructions(self, ctx: RunContext[AgentDepsT]) -> InstructionPart | None:
        text = await listing(session_of(self._sessions, ctx.deps))
        return InstructionPart(content=text, name="skills") if text else None

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        del ctx
        declared = ToolDefinition(
            name=TOOL, description=DESCRIPTION, parameters_json_schema=tool_parameters(), strict=False
        )
        return {TOOL: ToolsetTool(toolset=self, tool_def=declared, max_retries=0, args_validator=_AnyInput())}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> ToolReturn[str]:
        del name, tool
        reply = await session_of(self._sessions, ctx.deps).call(tool_args)
        if not reply.ok:
            raise ToolFailed(reply.output)
        return ToolReturn(return_value=reply.output, metadata=facts(reply))


class SkillCapability(AbstractCapability[AgentDepsT]):
    """Everything of a session for an agent: ``Agent(capabilities=[SkillCapability(session)])``.

    It brings a ``SkillToolset``; asks ``session.check_call`` before each call to any other tool that runs here (those
    that a provider runs itself cannot be asked about); lets a skill be loaded again when its text has left the
    messages; and tells the session which tools the model has.
    """

    def __init__(self, session: Sessions, *, id: str | None = "satchel-skills") -> None:  # noqa: A002 - the framework's name
        self._sessions = session
        self.id = id

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a session cannot be written into a specification."""
        return None

    def get_ordering(self) -> CapabilityOrdering:
        """Innermost, so that what is judged is what runs."""
        return CapabilityOrdering(position="innermost")

    def get_toolset(self) -> SkillToolset[AgentDepsT]:
        return SkillToolset(self._sessions, id=self.id)

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        session = session_of(self._sessions, ctx.deps)
        keep_what_is_there(session, _texts(request_context.messages))
        offered = request_context.model_request_parameters
        session.host_tools = {*offered.tool_defs, *(tool.kind for tool in offered.native_tools)}
        return request_context

    async def before_tool_execute(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
    ) -> dict[str, Any]:
        del call
        decision = await session_of(self._sessions, ctx.deps).check_call(tool_def.name, _judged(args))
        if not decision.allowed:
            raise ToolFailed(decision.output)
        return args


def _judged(args: Mapping[str, Any]) -> dict[str, Json]:
    """The validated arguments in the form that the model writes: a tool's only parameter may be a whole object."""
    values: object = dict(args)
    if len(args) == 1:
        (only,) = args.values()
        if isinstance(only, BaseModel) or is_dataclass(only):
            values = only
    return cast("dict[str, Json]", to_jsonable_python(values, fallback=str))


def _texts(messages: Sequence[ModelMessage]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, ModelRequest) and message.instructions:
            yield message.instructions
        for part in message.parts:
            content = getattr(part, "content", None)
            if isinstance(content, str):
                yield content
            elif isinstance(content, Sequence):
                items = (getattr(item, "content", item) for item in cast("Sequence[object]", content))
                yield from (item for item in items if isinstance(item, str))
