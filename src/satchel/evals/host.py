"""The ``skill`` tool of a session as a tool host, and beside it the shell of the scenario."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from satchel.activation.schema import TOOL
from satchel.activation.session import SkillSession
from satchel.chat.messages import Message
from satchel.chat.request import ToolSpec
from satchel.errors import SandboxError
from satchel.evals.shell import GuardedShell
from satchel.tools.base import ToolCall, ToolContext, ToolResult, failure
from satchel.tools.skill import SkillActivate

SHELL = "bash"

_SHELL_SPEC = ToolSpec(
    name=SHELL,
    description="Run one command in a shell and get its output.",
    parameters={
        "type": "object",
        "properties": {"command": {"type": "string", "description": "The command line."}},
        "required": ["command"],
        "additionalProperties": False,
    },
)


class SessionHost:
    """Answers ``skill`` from a session, and ``bash`` when there is a shell, as the session's policy allows.

    ``offers_choices`` shows guided models the names to choose from, until a skill is active.
    """

    def __init__(self, session: SkillSession, shell: GuardedShell | None) -> None:
        self._session = session
        self._shell = shell
        self._skill = SkillActivate(session)
        self._names = frozenset(skill.name for skill in session.offered)
        self.offers_choices = True

    def specs(self) -> Sequence[ToolSpec]:
        spec = self._skill.spec
        if self._session.active or not self.offers_choices:
            spec = replace(spec, choices=())
        return (spec, _SHELL_SPEC) if self._shell else (spec,)

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        if call.name == TOOL:
            result = await self._skill.run(call, context)
            # Went well and brought nothing: that is what graders ask about.
            return result if result.loaded or not result.ok else replace(result, code="already_loaded")
        if call.name == SHELL and self._shell is not None:
            return await self._run(call, self._shell)
        return failure("unknown-tool", f'there is no tool called "{call.name}".')

    async def _run(self, call: ToolCall, shell: GuardedShell) -> ToolResult:
        command = call.arguments.get("command")
        if not isinstance(command, str) or not command.strip():
            return failure("INVALID_PARAM", "command is required and must be text.")
        decision = await self._session.check_call(SHELL, call.arguments)
        if not decision.allowed:
            return ToolResult(text=decision.output, ok=False, code="PERMISSION_DENIED")
        try:
            return await shell.run(command)
        except SandboxError as error:
            return failure(error.code, f"{error.message} {error.hint}".rstrip())

    def undeclared(self) -> Collection[str]:
        return ()

    def holds_answer(self) -> bool:
        return False

    async def before_answer(self, context: ToolContext) -> Sequence[Message]:
        del context
        return ()

    def advise_unknown(self, name: str) -> str:
        return f'"{name}" is a skill, not a tool. Call {TOOL} with its name.' if name in self._names else ""

    async def aclose(self) -> None:
        return
