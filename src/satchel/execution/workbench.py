"""What runs for one conversation or one request: its workspace, and the sessions that its tools share."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from satchel.errors import SandboxError
from satchel.execution.artifacts import Artifacts, NotKept, printable
from satchel.execution.bulk import copied
from satchel.execution.file_session import FileSession
from satchel.execution.installs import Installer
from satchel.execution.lease import leased_workspace
from satchel.execution.ledger import ReadLedger
from satchel.execution.options import ExecutionOptions, code_refusal
from satchel.execution.room import Room, RoomyExecutor
from satchel.execution.scripts import ScriptRunner
from satchel.execution.shell import CodeSession
from satchel.execution.syntax import SyntaxChecker
from satchel.execution.tracking import FileTracker
from satchel.execution.workspace import ProducedFile, Workspace
from satchel.ports.execution import Executor
from satchel.scratch.graves import settle

logger = logging.getLogger("satchel.execution")

_SETTLED_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What programs in the background have written: ``files`` can be had by their paths, ``not_kept`` cannot."""

    files: tuple[str, ...] = ()
    not_kept: tuple[NotKept, ...] = ()


class Workbench:
    """``scripts`` is None when skills' scripts may not run, ``code`` and ``files`` when models may run no code.

    ``run_id`` names what it produced on the shelf of artifacts, where it is ``owner``'s alone. Tools of one workbench
    are used one at a time, in ``lock``: what a call left there is what the next one finds.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.run_id = f"run_{secrets.token_urlsafe(18)}"
        self.lock = asyncio.Lock()
        self.scripts: ScriptRunner | None = None
        self.code: CodeSession | None = None
        self.files: FileSession | None = None
        self.artifacts: Artifacts | None = None
        self.tracker: FileTracker | None = None
        self.not_kept: tuple[NotKept, ...] = ()
        """Of the call that has ``lock``."""
        self._stack = AsyncExitStack()

    @property
    def shelf_id(self) -> str:
        """What produced files can be fetched under, "" where none are kept."""
        return self.run_id if self.artifacts is not None else ""

    def owns(self, stack: AsyncExitStack) -> None:
        """Takes over what ``stack`` holds: it lasts until ``aclose``."""
        self._stack = stack.pop_all()

    async def keep(self, workspace: Workspace, files: Sequence[ProducedFile]) -> None:
        """Puts produced files on the shelf, where there is one. What is not kept stands in ``not_kept``."""
        if self.artifacts is not None:
            keep = partial(self.artifacts.keep, workspace, files, owner=self.owner, run=self.run_id)
            kept = await copied(keep)
            self.not_kept = (*self.not_kept, *kept.refused)

    async def keep_written(self, paths: Sequence[str]) -> None:
        """``keep`` for files that a tool of ours wrote in the workspace."""
        if self.code is not None:
            await self.keep(self.code.workspace, [ProducedFile(path=path, bytes=0) for path in paths])

    async def collect(self) -> Collected:
        """Keeps what runs in the background has written and no call has told of.

        The model hears of them in the result of its next call.
        """
        async with self.lock:
            self.not_kept = ()
            return await self._collect()

    async def _collect(self) -> Collected:
        code, tracker = self.code, self.tracker
        # Where nothing runs beside a call, there is nothing to look for.
        if code is None or tracker is None or not (code.jobs.logs or tracker.is_open):
            return Collected()
        found = await asyncio.to_thread(tracker.collect)
        if found:
            await self.keep(code.workspace, found)
        refused = {item.path for item in self.not_kept}
        files = tuple(file.path for file in found if printable(file.path) not in refused)
        return Collected(files=files, not_kept=self.not_kept)

    async def forget(self) -> None:
        """Removes what was kept of it."""
        if self.artifacts is not None:
            await asyncio.to_thread(self.artifacts.drop, self.owner, self.run_id)

    async def aclose(self) -> None:
        """Ends what still runs, keeps what it has written and removes the workspace."""
        try:
            if self.code is not None:
                await self.code.aclose()
            await self._collect()
        finally:
            await self._stack.aclose()


class Execution:
    """What this host runs for models: the executor, what the operator allows, and the shelf of what was produced.

    ``host`` is the environment of this process, of which only an allow-list is passed on. Workspaces are made below
    ``base``, the directory for temporary files when it is None; together they hold at most half of what was free there
    when the first program ran or the first file was written.
    """

    def __init__(
        self,
        executor: Executor,
        options: ExecutionOptions,
        *,
        host: Mapping[str, str] | None = None,
        artifacts: Artifacts | None = None,
        base: str | None = None,
    ) -> None:
        self.executor = executor
        self._room = Room(base)
        self._roomy = RoomyExecutor(executor, self._room)
        self.options = options
        self.artifacts = artifacts
        self._host = dict(os.environ if host is None else host)
        self._base = base

    async def open(self, owner: str) -> Workbench:
        """A workbench on behalf of ``owner``; ``aclose`` is the caller's.

        Raises ``SandboxError`` when there is no room for a workspace.
        """
        options = self.options
        async with AsyncExitStack() as stack:
            bench = Workbench(owner)
            bench.artifacts = self.artifacts
            keep = bench.keep if self.artifacts is not None else None
            installer = Installer(self._roomy, options, self._host)
            workspace = None
            if options.code:
                try:
                    workspace = await stack.enter_async_context(leased_workspace(self._base))
                except OSError as error:
                    raise SandboxError(
                        "launch-failed",
                        f"A working directory could not be made: {error.strerror or error}.",
                        hint="Is there room in the directory for temporary files?",
                    ) from error
                # A parser is a program too: it reads what a model wrote only where that could be run.
                may_run = not code_refusal(self.executor, options)
                checker = SyntaxChecker(self.executor, workspace, self._host) if may_run else None
                bench.tracker = FileTracker(workspace)
                ledger = ReadLedger(is_enforced=options.read_first)
                bench.files = FileSession(
                    workspace, ledger=ledger, checker=checker, tracker=bench.tracker, room=self._room
                )
                # It looks for the shell on disk.
                bench.code = await asyncio.to_thread(
                    CodeSession,
                    workspace,
                    self._roomy,
                    options,
                    host=self._host,
                    installer=installer,
                    patches=bench.files,
                    keep=keep,
                    tracker=bench.tracker,
                )
            if options.scripts:
                bench.scripts = ScriptRunner(
                    self._roomy,
                    options,
                    workspace=workspace,
                    packages=installer,
                    host=self._host,
                    keep=keep,
                    base=self._base,
                    tracker=bench.tracker,
                )
            bench.owns(stack)
            return bench

    def close(self) -> None:
        """Removes what was kept, and waits a while until what programs left behind is gone. Blocks."""
        if self.artifacts is not None:
            self.artifacts.close()
        if left := settle(_SETTLED_S):
            logger.warning("%d directories of programs are still being removed; the next start goes on with it.", left)
