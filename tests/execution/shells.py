"""A session over a real workspace, for the tests of the shell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from satchel.execution.options import ExecutionOptions
from satchel.execution.shell import CodeSession
from satchel.execution.shell_call import CommandPatches, ShellInstaller, ShellRequest, ShellRun
from satchel.execution.workspace import create_workspace, remove_workspace
from satchel.ports.execution import Confinement, Executor, Shell
from satchel.sandbox.unconfined import UnconfinedExecutor

OPTIONS = ExecutionOptions(code=True, unconfined=True)
BASH = Shell()
HOST = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


class Claiming(UnconfinedExecutor):
    """Says of itself what a test wants to hear."""

    def __init__(self, shell: Shell | None = BASH) -> None:
        self._claimed = Confinement(backend="full", writes=True, network=True, home=True, process_tree=True)
        self._shell = shell

    @property
    def confinement(self) -> Confinement:
        return self._claimed

    @property
    def shell(self) -> Shell | None:
        return self._shell


@asynccontextmanager
async def session(
    base: Path,
    *,
    options: ExecutionOptions = OPTIONS,
    executor: Executor | None = None,
    host: Mapping[str, str] = HOST,
    installer: ShellInstaller | None = None,
    patches: CommandPatches | None = None,
) -> AsyncGenerator[CodeSession]:
    """A session in a fresh workspace below ``base``; both are gone afterwards."""
    workspace = await asyncio.to_thread(create_workspace, str(base))
    held = executor or UnconfinedExecutor()
    made = await asyncio.to_thread(
        lambda: CodeSession(workspace, held, options, host=host, installer=installer, patches=patches)
    )
    try:
        yield made
    finally:
        await made.aclose()
        assert await asyncio.to_thread(remove_workspace, workspace)


async def run(made: CodeSession, command: str, **more: object) -> ShellRun:
    """One command to its end."""
    return await made.run(ShellRequest(command=command, **more))  # pyright: ignore[reportArgumentType]


def printed(done: ShellRun) -> str:
    """What the command printed on stdout."""
    assert done.outcome is not None, done.text
    return done.outcome.stdout.text


def left_in(made: CodeSession) -> list[str]:
    """Names of everything in the working directory."""
    return sorted(str(path.relative_to(made.workspace.work)) for path in Path(made.workspace.work).rglob("*"))


def read(made: CodeSession, name: str) -> str:
    """A file of the working directory, "" when there is none."""
    file = Path(made.workspace.work, name)
    return file.read_text(encoding="utf-8") if file.is_file() else ""
