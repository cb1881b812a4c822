"""Running a program with nothing around it, for programs that are trusted like the user who started us."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, Process

from satchel.errors import SandboxError
from satchel.ports.execution import Confinement, Launch, Outcome

_DRAIN_S = 1.0  # for what a program wrote just before it ended


class UnconfinedExecutor:
    """An ``Executor`` without confinement: a process group of its own, a deadline, bounded output, nothing more."""

    @property
    def confinement(self) -> Confinement:
        """Names every gap: there is no confinement at all."""
        return Confinement(
            backend="none",
            gaps=(
                "the program may write anywhere the host process can",
                "the program may reach the network",
                "the program may read the user's home directory",
                "a child process that leaves the process group may outlive the request",
            ),
        )

    async def run(self, launch: Launch) -> Outcome:
        """Runs to the end and returns the tail of stdout and stderr together.

        Raises:
            SandboxError: launch-failed, when the program cannot be started.
        """
        tail = _Tail(launch.max_output_bytes)
        # A pipe of our own can be closed even while a stray child still holds its other end.
        reading, writing = os.pipe()
        output, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: tail, os.fdopen(reading, "rb", 0))
        try:
            try:
                process = await _start(launch, writing)
            finally:
                os.close(writing)
            exit_code = await _wait(process, tail, launch.deadline_s)
        finally:
            output.close()
        return Outcome(exit_code=exit_code, output=tail.text())


async def _start(launch: Launch, output: int) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *launch.command,
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            cwd=launch.cwd,
            env=dict(launch.env),
            start_new_session=True,
        )
    except (OSError, ValueError, IndexError, TypeError) as error:
        program = launch.command[0] if launch.command else ""
        raise SandboxError(
            "launch-failed",
            f"{program!r} could not be started: {error}.",
            hint="Is the program installed, and does the working directory exist?",
        ) from error


class _Tail(asyncio.Protocol):
    """The last bytes that were written. ``closed`` is set when nobody can write any more."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max(0, max_bytes)
        self._bytes = bytearray()
        self.closed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._bytes += data
        if len(self._bytes) > self._max:
            del self._bytes[: len(self._bytes) - self._max]

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.closed.set()

    def text(self) -> str:
        """What was kept; a character that was cut is replaced."""
        return self._bytes.decode("utf-8", "replace")


async def _wait(process: Process, tail: _Tail, deadline_s: float) -> int | None:
    """The exit code, or None after the deadline. The whole process group is gone when this returns or raises."""
    try:
        async with asyncio.timeout(deadline_s):
            exit_code = await process.wait()
    except TimeoutError:
        exit_code = None
    finally:
        # What the program left running in the background goes with it.
        _kill_group(process)
        await _reap(process)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            await tail.closed.wait()
    return exit_code


def _kill_group(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _reap(process: Process) -> None:
    """Waits for a program that was killed. A cancellation meanwhile is raised afterwards."""
    reaping = asyncio.ensure_future(process.wait())
    interruption: asyncio.CancelledError | None = None
    while not reaping.done():
        try:
            await asyncio.shield(reaping)
        except asyncio.CancelledError as error:
            interruption = error
    if interruption is not None:
        raise interruption
