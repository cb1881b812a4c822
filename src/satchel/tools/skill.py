"""``skill``: activates a skill through a session, so that a runtime's turns share one conversation's skills."""

from __future__ import annotations

from satchel.activation.schema import DESCRIPTION, TOOL, tool_parameters
from satchel.activation.session import SkillSession
from satchel.chat.messages import Json
from satchel.chat.request import Choice, ToolSpec
from satchel.skills.model import Argument, Skill
from satchel.skills.oneline import one_line
from satchel.tools.base import ToolCall, ToolContext, ToolResult

_MOST_ARGUMENTS = 32


class SkillActivate:
    """The tool of one session. Guided models choose among the skills that it offers and that are not active.

    Raises:
        SetupError: "setting-invalid" before ``session.discover()``, when the skills come from a registry.
    """

    def __init__(self, session: SkillSession) -> None:
        self._session = session
        self._offered = {
            skill.name: Choice(arguments={"name": skill.name}, label=one_line(skill.summary), open=_open(skill))
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


def _open(skill: Skill) -> dict[str, Json]:
    """The named arguments that a skill declares, as a schema with null for those that are left out."""
    if not skill.arguments_by_name or len(skill.arguments) > _MOST_ARGUMENTS:
        return {}
    properties: dict[str, Json] = {argument.name: _property(argument) for argument in skill.arguments}
    return {"arguments": {"type": "object", "properties": properties, "required": list(properties)}}


def _property(argument: Argument) -> dict[str, Json]:
    kind: dict[str, Json] = (
        {"enum": [*argument.choices, None]} if argument.type == "enum" else {"type": [argument.type, "null"]}
    )
    return kind | ({"description": one_line(argument.description)} if argument.description else {})
