"""What a shell is asked and what it answers, and what it needs of others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from satchel.execution.requests import CommandPlan
from satchel.execution.workspace import ProducedFile, Workspace
from satchel.ports.execution import Outcome

MAX_COMMAND_CHARS = 256 * 1024


class InstallAnswer(Protocol):
    """What became of the installs of a command line; ``note`` has a line for each, for the model."""

    @property
    def ok(self) -> bool: ...

    @property
    def note(self) -> str: ...


class ShellInstaller(Protocol):
    """What installs packages for commands, when the operator allows that."""

    async def perform(self, plan: CommandPlan, workspace: Workspace, *, deadline_s: float) -> InstallAnswer:
        """Installs all that a command line asked for. Never raises for a package that cannot be had."""
        ...

    async def run(
        self, run: Callable[[float], Awaitable[Outcome]], workspace: Workspace, *, deadline_s: float
    ) -> tuple[Outcome, Sequence[str]]:
        """Runs, and again after each missing import that it could install, within ``deadline_s`` in all."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellRequest:
    """A command as it was typed. ``workdir`` is relative to the working directory, "" for where the last one ended.

    ``timeout_s`` None is the operator's default.
    """

    command: str
    workdir: str = ""
    timeout_s: float | None = None
    background: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellRun:
    """What became of it: ``text`` is for the model. ``outcome`` is None when no command was run to its end.

    ``files`` are those that were made or changed, relative to the working directory. ``reason`` is why it failed in one
    line, "" where nothing tells.
    """

    text: str
    ok: bool = False
    code: str = ""
    reason: str = ""
    outcome: Outcome | None = None
    files: tuple[str, ...] = ()


class PatchAnswer(Protocol):
    """What became of a patch: a text for the model, and the files that were written."""

    @property
    def text(self) -> str: ...

    @property
    def files(self) -> tuple[str, ...]: ...


class CommandPatches(Protocol):
    """What applies patches that models give to the shell as ``apply_patch <<'EOF'``."""

    async def patch_command(self, command: str, cwd: str) -> PatchAnswer | None:
        """What became of a command line that is such a call in ``cwd``; None for every other one.

        Raises:
            SatchelError: the patch does not fit; nothing was changed.
        """
        ...


Keep = Callable[[Workspace, tuple[ProducedFile, ...]], Awaitable[None]]


def wrong_text(command: str) -> str:
    """Why a text is no command, "" when it may be one."""
    if not command.strip():
        return "shell needs a command, like ls -la."
    if "\0" in command or any("\ud800" <= char <= "\udfff" for char in command):
        return "The command has characters that no shell can read; nothing was run. Write it without them."
    if len(command) > MAX_COMMAND_CHARS:
        return f"The command is longer than {MAX_COMMAND_CHARS} characters; write a file first and run that."
    return ""
