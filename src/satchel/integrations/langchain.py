"""A session as a tool and a middleware of LangChain's agents, deepagents among them (``satchel[langchain]``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import ArgsSchema, BaseTool, ToolException
from langgraph.prebuilt.tool_node import ToolCallRequest, ToolRuntime
from langgraph.runtime import get_runtime
from langgraph.types import Command
from pydantic import PrivateAttr

from satchel.activation.reply import Activation
from satchel.activation.schema import DESCRIPTION, TOOL, tool_parameters
from satchel.activation.session import SkillSession
from satchel.chat.messages import Json
from satchel.integrations.sessions import Sessions, facts, keep_what_is_there, listing, session_of
from satchel.sync import run_sync


class SkillTool(BaseTool):
    """The tool that activates skills, for a graph of your own; its instructions are ``session.system_message()``.

    A refusal is a message of the status "error". The message's artifact says ``kind``, ``name``, ``digest`` and
    ``at_turn``. ``session`` may be a function of the run's ``context``.
    """

    name: str = TOOL
    description: str = DESCRIPTION
    args_schema: ArgsSchema | None = tool_parameters()
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    _sessions: Sessions = PrivateAttr()

    def __init__(self, session: Sessions) -> None:
        super().__init__(handle_tool_error=True)
        self._sessions = session

    # "self" by position only, so that a model may write any key.
    def _run(self, /, **tool_input: Any) -> tuple[str, dict[str, Json]]:
        return _told(run_sync(self._session().call(tool_input)))

    async def _arun(self, /, **tool_input: Any) -> tuple[str, dict[str, Json]]:
        return _told(await self._session().call(tool_input))

    def _session(self) -> SkillSession:
        if isinstance(self._sessions, SkillSession):
            return self._sessions
        return self._sessions(get_runtime().context)


def _told(reply: Activation) -> tuple[str, dict[str, Json]]:
    if not reply.ok:
        raise ToolException(reply.output)
    return reply.output, facts(reply)


class SkillMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Everything of a session for an agent: ``create_agent(..., middleware=[SkillMiddleware(session)])``.

    It brings a ``SkillTool``; puts the list of skills behind the system message; asks ``session.check_call`` before
    each call to any other tool; lets a skill be loaded again when its text has left the messages; and tells the session
    which tools the model has. ``session`` may be a function of the run's ``context``, so that one agent serves many
    conversations.

    Of several middlewares it stands last, where it sees messages and calls as they are sent and run. A model request
    raises ``StoreError`` "store-unavailable" when a registry fails.
    """

    def __init__(self, session: Sessions) -> None:
        super().__init__()
        self._sessions = session
        self.tools = [SkillTool(session)]

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(run_sync(self._with_skills(request)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        return await handler(await self._with_skills(request))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        refusal = run_sync(self._refusal(request))
        return handler(request) if refusal is None else refusal

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        refusal = await self._refusal(request)
        return await handler(request) if refusal is None else refusal

    async def _with_skills(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        session = session_of(self._sessions, request.runtime.context)
        told = request.system_message
        messages = request.messages if told is None else [told, *request.messages]
        keep_what_is_there(session, (str(message.text) for message in messages))
        session.host_tools = {_name(item) for item in request.tools}
        text = await listing(session)
        return request.override(system_message=_extended(told, text)) if text else request

    async def _refusal(self, request: ToolCallRequest) -> ToolMessage | None:
        call = request.tool_call
        session = session_of(self._sessions, cast("ToolRuntime[Any, Any]", request.runtime).context)
        decision = await session.check_call(call["name"], call["args"])
        if decision.allowed:
            return None
        return ToolMessage(content=decision.output, name=call["name"], tool_call_id=call["id"], status="error")


def _name(tool: BaseTool | dict[str, Any]) -> str:
    if isinstance(tool, BaseTool):
        return tool.name
    function = tool.get("function")
    return str(cast("dict[str, Any]", function if isinstance(function, dict) else tool).get("name") or tool.get("type"))


def _extended(told: SystemMessage | None, text: str) -> SystemMessage:
    if told is None:
        return SystemMessage(content=text)
    content = told.content
    if isinstance(content, str):
        return told.model_copy(update={"content": f"{content}\n\n{text}" if content else text})
    block = cast("dict[str, Any]", {"type": "text", "text": text})
    return told.model_copy(update={"content": [*content, block]})
