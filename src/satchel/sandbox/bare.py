"""Running modules of ours in a child that has nothing but the standard library, quickly and without a path to them."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import marshal
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.abc import InspectLoader
from types import CodeType

from satchel.errors import SandboxError
from satchel.ports.execution import Launch, Outcome, Stopped
from satchel.sandbox.outer import OuterJob
from satchel.sandbox.pipes import everything
from satchel.sandbox.process import ProcessJob, start_process
from satchel.sandbox.spawn import in_starter
from satchel.sandbox.watch import require_room

_ENDING_S = 5.0  # for the kernel to end what is inside

# The modules are put where their imports of each other look first, so that their packages need not be there.
_START = """
import marshal, os, sys
with open(int(sys.argv[1]), "rb") as handed:
    modules, plan = marshal.load(handed)
status = int(sys.argv[2])
os.set_inheritable(status, False)
for name, code in modules:
    parent, _, last = name.rpartition(".")
    package = sys.modules.setdefault(parent, type(sys)(parent))
    module = sys.modules[name] = type(sys)(name)
    setattr(package, last, module)
    exec(code, module.__dict__)
module.main(plan, status)
"""


def _nothing() -> None:
    """Nothing is left to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A launch made ready: the plan for the child, and what is done off the event loop when nothing is left of it."""

    plan: Mapping[str, object]
    on_end: Callable[[], None] = _nothing


def command(plan: int, status: int) -> tuple[str, ...]:
    """Runs ``main`` of the last module of what the descriptor ``plan`` holds; ``status`` is where it tells its fate."""
    return (sys.executable, "-I", "-S", "-c", _START, str(plan), str(status))


def handed(modules: tuple[str, ...], plan: Mapping[str, object]) -> bytes:
    """What the descriptor ``plan`` has to hold: the code of ``modules`` in order, and a plan of plain values."""
    return marshal.dumps(([(name, _code(name)) for name in modules], dict(plan)))


def in_memory(content: bytes) -> int:
    """A descriptor from which ``content`` can be read."""
    handle = os.memfd_create("plan", os.MFD_CLOEXEC)
    os.write(handle, content)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


@cache
def _code(name: str) -> CodeType:
    spec = importlib.util.find_spec(name)
    loader = spec.loader if spec else None
    code = loader.get_code(name) if isinstance(loader, InspectLoader) else None
    if code is None:
        raise ModuleNotFoundError(name=name)
    return code


class BareJob(OuterJob):
    """A ``Job`` whose program runs below a child of ours that confined itself first.

    It has ended when process 1 of the program's own process table has: only then is nothing left inside.
    """

    def __init__(self, job: ProcessJob, first: int | None, on_end: Callable[[], None] | None) -> None:
        if first is not None:
            job.adopt(first)
        super().__init__(job, _ended_with(job, first, on_end))
        self._bare = job

    def stop(self, reason: Stopped) -> None:
        """Kills it for this reason; the first reason counts. Does not wait."""
        self._bare.stop(reason)


async def _ended_with(job: ProcessJob, first: int | None, on_end: Callable[[], None] | None) -> Outcome:
    try:
        return await job.wait()
    finally:
        if first is not None:
            await ended(first)
        if on_end is not None:
            await asyncio.to_thread(on_end)


async def ended(first: int) -> None:
    """Ends process 1, waits until the kernel has ended everything inside with it, and closes this handle on it."""
    with contextlib.suppress(ProcessLookupError):
        # It may have been too young to learn that its parent was killed.
        signal.pidfd_send_signal(first, signal.SIGKILL)
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(first, over.set)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ENDING_S):
                await over.wait()
    finally:
        loop.remove_reader(first)
        # Its parent may have ended first. Then it falls to us where we are the first process of a container.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, first, os.WEXITED | os.WNOHANG)  # noqa: ASYNC222 - it does not wait
        os.close(first)


async def start_bare(modules: tuple[str, ...], prepare: Callable[[], Prepared], launch: Launch) -> BareJob:
    """Starts the program of a launch below a child that runs ``modules``; ``prepare`` is called off the event loop.

    Returns when the program has taken the child's place.

    Raises:
        SandboxError: sandbox-unavailable, when the child could not confine itself; launch-failed.
    """

    def checked() -> Prepared:
        require_room(launch)
        return prepare()

    plan_fd, on_end = await in_starter(partial(_made, modules, checked), _let_go)
    async with contextlib.AsyncExitStack() as undo:
        undo.push_async_callback(asyncio.to_thread, on_end)
        job, reading = await _spawn(plan_fd, launch)
        try:
            first, failure = _read_status(await everything(reading))
        except BaseException:
            await job.kill()
            raise
        undo.pop_all()
    started = BareJob(job, first, on_end)
    if failure:
        await started.kill()
        raise _refusal(failure, launch)
    return started


async def _spawn(plan_fd: int, launch: Launch) -> tuple[ProcessJob, int]:
    reading, writing = os.pipe()
    try:
        # What the program is to find in its environment has no say in how the child outside of it starts.
        child = replace(launch, env={}, cwd="/")
        return await start_process(command(plan_fd, writing), child, pass_fds=(plan_fd, writing)), reading
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(plan_fd)
        os.close(writing)


def _made(modules: tuple[str, ...], prepare: Callable[[], Prepared]) -> tuple[int, Callable[[], None]]:
    prepared = prepare()
    try:
        return in_memory(handed(modules, prepared.plan)), prepared.on_end
    except BaseException:
        prepared.on_end()
        raise


def _let_go(made: tuple[int, Callable[[], None]]) -> None:
    plan_fd, on_end = made
    os.close(plan_fd)
    on_end()


def program_missing(program: str, reason: str) -> SandboxError:
    """The error for a program that is not there."""
    return SandboxError(
        "launch-failed",
        f"{program!r} could not be started: {reason}.",
        hint="Is the program installed where the sandbox shows it?",
    )


def _refusal(failure: str, launch: Launch) -> SandboxError:
    kind, _, reason = failure.partition(": ")
    if kind == "program":
        return program_missing(launch.command[0], reason)
    return SandboxError(
        "sandbox-unavailable",
        f"The sandbox could not be set up: {reason}.",
        hint="satchel doctor says what this host offers.",
    )


def _read_status(status: bytes) -> tuple[int | None, str]:
    """A handle on process 1, and what failed."""
    first: int | None = None
    failure = ""
    for line in status.decode("utf-8", "replace").splitlines():
        if line.isdigit():
            with contextlib.suppress(ProcessLookupError):  # ended and reaped by now
                first = os.pidfd_open(int(line))
        else:
            failure = failure or line
    return first, failure
