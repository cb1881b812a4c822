"""``skill``: activates a skill through a session, so that a runtime's turns share one conversation's skills."""

from __future__ import annotations

from satchel.activation.schema import DESCRIPTION, TOOL, tool_parameters
from satchel.activation.session import SkillSession
from satchel.chat.request import Choice, ToolSpec
from satchel.skills.oneline import one_line
from satchel.tools.base import ToolCall, ToolContext, ToolResult


class SkillActivate:
    """The tool of one session. Guided models choose among the skills that it offers and that are not active.

    Raises:
        SetupError: "setting-invalid" before ``session.discover()``, when the skills come from a registry.
    """

    def __init__(self, session: SkillSession) -> None:
        self._session = session
        self._offered = {
            skill.name: Choice(arguments={"name": skill.name}, label=one_line(skill.summary))
            for skill in session.offered
        }

    @property
    def spec(self) -> ToolSpec:
        active = {skill.name for skill in self._session.active}
        return ToolSpec(
            name=TOOL,
            description=DESCRIPTION,
            parameters=tool_parameters(),
            choices=tuple(choice for name, choice in self._offered.items() if name not in active),
        )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del context
        reply = await self._session.call(call.arguments)
        found = [skill.ref for skill in self._session.active if skill.name == reply.name] if reply.kind == "ok" else []
        return ToolResult(
            text=reply.output,
            ok=reply.ok,
            code=reply.code,
            skill=reply.name,
            loaded=found[0] if found else None,
            how="activated",
            loaded_bytes=reply.bytes,
        )
