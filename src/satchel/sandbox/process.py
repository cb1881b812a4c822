"""A started program: its output, deadline, memory and writing are bounded, and its whole group ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from satchel.errors import SandboxError
from satchel.ports.execution import Captured, Job, Launch, Outcome, Stopped
from satchel.sandbox.pipes import PipeReader
from satchel.sandbox.spawn import Child, spawn
from satchel.sandbox.watch import Watch

_Started = TypeVar("_Started", bound=Job)
_DRAIN_S = 1.0  # for what a program wrote just before it ended


class ProcessJob:
    """A ``Job`` over an operating system's process and its group.

    It is watched from its start on, whether or not anybody waits. ``on_end`` runs once when nothing is left of it.
    """

    def __init__(
        self,
        process: Child,
        launch: Launch,
        reading: tuple[_Reading, ...],
        watch: Watch,
        on_end: Callable[[], None],
    ) -> None:
        self._process = process
        self._guard = watch
        self._reading = reading
        self._on_end = on_end
        self._stopped: Stopped = ""
        self._first: int | None = None
        self._began = time.monotonic()
        self._watching = asyncio.ensure_future(self._watch(launch.deadline_s))
        self._guarding = asyncio.ensure_future(watch.run(self))

    def adopt(self, first: int) -> None:
        """Has this process, by a handle that stays the caller's and outlives this job, killed whenever the group is.

        For process 1 of a process table of its own: the kernel ends all that is in there with it.
        """
        self._first = first

    @property
    def guard(self) -> Watch:
        """What looks at its memory and at what it writes."""
        return self._guard

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> Outcome:
        try:
            return await asyncio.shield(self._watching)
        except asyncio.CancelledError:
            await self.kill()
            raise

    async def kill(self) -> None:
        self.stop("killed")
        await finished(self._watching)

    def stop(self, reason: Stopped) -> None:
        """Kills the group for this reason; the first reason counts. Does not wait."""
        if self._process.returncode is None and not self._watching.done():
            self._stopped = self._stopped or reason
            self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)

    async def _watch(self, deadline_s: float) -> Outcome:
        try:
            async with asyncio.timeout(deadline_s):
                await self._process.wait()
        except TimeoutError:
            self.stop("deadline")
        finally:
            # What the program left running in the background goes with it.
            self._kill()
            await self._process.wait()
            self._guarding.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_S):
                    for reading in self._reading:
                        await reading.reader.closed.wait()
            for reading in self._reading:
                reading.reader.close()
            self._on_end()
        # It may have written and gone between two looks; by now nothing can undo what it left behind.
        if not self._stopped and await asyncio.to_thread(self._guard.is_over_at_last):
            self._stopped = "written"
        code = self._process.returncode or 0
        stdout, *stderr = (reading.capture.captured() for reading in self._reading) if self._reading else (Captured(),)
        return Outcome(
            exit_code=None if self._stopped else code if code >= 0 else 128 - code,
            stdout=stdout,
            stderr=stderr[0] if stderr else Captured(),
            stopped=self._stopped,
            duration_s=time.monotonic() - self._began,
        )


async def start_process(
    command: Sequence[str],
    launch: Launch,
    *,
    pass_fds: Sequence[int] = (),
    on_end: Callable[[], None] = lambda: None,
    watch: Watch | None = None,
) -> ProcessJob:
    """Starts ``command`` as ``launch`` says: its environment, directory, output and deadline, in a group of its own.

    Descriptors of ``pass_fds`` stay the caller's to close. A ``watch`` that is given has begun.

    Raises:
        SandboxError: launch-failed, when the program cannot be started.
    """
    return await all_or_nothing(_start(command, launch, pass_fds, on_end, watch))


async def _start(
    command: Sequence[str],
    launch: Launch,
    pass_fds: Sequence[int],
    on_end: Callable[[], None],
    watch: Watch | None,
) -> ProcessJob:
    reading: list[_Reading] = []
    writing: list[int] = []
    if watch is None:
        watch = Watch(launch)
        await asyncio.to_thread(watch.begin)
    try:
        if launch.log_path:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
            writing.append(os.open(launch.log_path, flags, 0o600))
        else:
            for _ in range(2):
                # A pipe of our own can be closed even while a stray child still holds its other end.
                ours, theirs = os.pipe()
                writing.append(theirs)
                reading.append(_Reading(ours, launch.max_output_bytes))
        process = await spawn(
            command,
            stdout=writing[0],
            stderr=writing[-1],
            cwd=launch.cwd,
            env=launch.env,
            pass_fds=pass_fds,
        )
    except BaseException as error:
        for item in reading:
            item.reader.close()
        if not isinstance(error, OSError | ValueError | IndexError | TypeError):
            raise
        program = command[0] if command else ""
        raise SandboxError(
            "launch-failed",
            f"{program!r} could not be started: {error}.",
            hint="Is the program installed, and does the working directory exist?",
        ) from error
    finally:
        for descriptor in writing:
            os.close(descriptor)
    return ProcessJob(process, launch, tuple(reading), watch, on_end)


class _Capture:
    """The first and the last bytes that were written, half and half."""

    def __init__(self, max_bytes: int) -> None:
        self._head_bytes = max(0, max_bytes) // 2
        self._tail_bytes = max(0, max_bytes) - self._head_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def take(self, data: bytes) -> None:
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > self._tail_bytes:
            over = len(self._tail) - self._tail_bytes
            self._dropped += over
            del self._tail[:over]

    def captured(self) -> Captured:
        return Captured(head=bytes(self._head), tail=bytes(self._tail), dropped_bytes=self._dropped)


class _Reading:
    """One stream that is being read, and what is kept of it."""

    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self.capture = _Capture(max_bytes)
        self.reader = PipeReader(descriptor, self.capture.take)


async def finished(watching: asyncio.Future[Any]) -> None:
    """Waits until it is over, however it ends. A cancellation meanwhile is raised afterwards."""
    interruption: asyncio.CancelledError | None = None
    while not watching.done():
        try:
            await asyncio.wait({watching})
        except asyncio.CancelledError as error:
            interruption = error
    if interruption is not None:
        raise interruption


def argument_vector(launch: Launch) -> tuple[str, ...]:
    """The program of a launch with its arguments. Raises ``SandboxError``: launch-failed, for a command line."""
    if isinstance(launch.command, str) or not launch.command:
        raise SandboxError("launch-failed", "There is no program to run.", hint="Name one with its arguments.")
    return launch.command


async def all_or_nothing(starting: Coroutine[Any, Any, _Started]) -> _Started:
    """The job that this starts. A cancellation meanwhile takes effect when nothing is left of what was started.

    A process that is half started would be nobody's.
    """
    task = asyncio.ensure_future(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await finished(task)
        if not task.cancelled() and task.exception() is None:
            await task.result().kill()
        raise
