"""The shell of a scenario: real commands in the host's sandbox, after the host's word on each."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from satchel.activation.permission import Decision, ToolRequest
from satchel.errors import SandboxError
from satchel.evals.scenario import Shell
from satchel.execution.environment import launch_paths, session_environment
from satchel.execution.lease import leased_workspace
from satchel.execution.results import render_outcome
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Executor, Launch, Outcome
from satchel.skills.tool_patterns import allows_call
from satchel.tools.base import ToolResult

_DEADLINE_S = 60.0


class GuardedShell:
    """Commands run below a workspace of their own and see the skills in ``root``, at the place where they lie.

    ``hook`` is the host's word on each command; ``asked`` are those that it was asked about, ``ran`` those that were
    started.
    """

    def __init__(self, shell: Shell, executor: Executor, workspace: Workspace, root: Path) -> None:
        self._allow = shell.allow
        self._executor = executor
        self._workspace = workspace
        self._root = root
        self.asked: list[str] = []
        self.ran: list[str] = []

    def hook(self, request: ToolRequest) -> Decision:
        """What the scenario allows, whatever a skill declares."""
        self.asked.append(str(request.arguments.get("command", "")))
        return "allow" if allows_call(self._allow, request.tool, request.arguments) else "deny"

    async def run(self, command: str) -> ToolResult:
        """Runs a command that was let through. Raises ``SandboxError``."""
        self.ran.append(command.strip())
        outcome = await self.start(command)
        text = render_outcome("Ran the command", outcome, self._executor.confinement)
        return ToolResult(text=text, ok=outcome.exit_code == 0)

    async def start(self, command: str) -> Outcome:
        """One command without anybody's word. Raises ``SandboxError``."""
        return await self._executor.run(await asyncio.to_thread(self._launch, command))

    def _launch(self, command: str) -> Launch:
        readable, writable = launch_paths(self._workspace, "shell")
        return Launch(
            command=("bash", "-c", command),
            purpose="shell",
            cwd=self._workspace.work,
            env=session_environment(self._workspace, os.environ),
            readable=(*readable, str(self._root)),
            writable=writable,
            deadline_s=_DEADLINE_S,
        )


@asynccontextmanager
async def open_shell(shell: Shell, executor: Executor, root: Path) -> AsyncGenerator[GuardedShell, None]:
    """The shell, with everything in place that the scenario wants there first.

    Raises:
        SandboxError: "launch-failed" when there is no room, "sandbox-unavailable" when this host cannot prepare it.
    """
    async with AsyncExitStack() as stack:
        try:
            workspace = await stack.enter_async_context(leased_workspace())
        except OSError as error:
            raise SandboxError(
                "launch-failed", f"A working directory could not be made: {error.strerror or error}."
            ) from error
        opened = GuardedShell(shell, executor, workspace, root)
        for command in shell.before:
            outcome = await opened.start(command)
            if outcome.exit_code != 0:
                raise SandboxError(
                    "sandbox-unavailable", f"{command} failed where the scenario begins: {outcome.output.strip()}"
                )
        yield opened
