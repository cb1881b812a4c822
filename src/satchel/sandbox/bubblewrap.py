"""Confinement by bubblewrap, the first choice on Linux."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from satchel.errors import SandboxError
from satchel.ports.execution import Confinement, Launch, Limits, Outcome, Shell
from satchel.sandbox.bare import BareJob, everything, in_memory, program_missing
from satchel.sandbox.layout import HIDDEN_OF_PROC, HOSTNAME, Layout, root_layout
from satchel.sandbox.pids import PARENT, make_group
from satchel.sandbox.process import start_process
from satchel.sandbox.seccomp import filter_program
from satchel.sandbox.shells import BASH

PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
PRLIMIT = "/usr/bin/prlimit"
_LOCKED_BYTES = 8 * 1024**2
_OUTSIDE = 3  # processes of ours in the group: bwrap twice, and prlimit
_ENTER = 'echo 0 >"$1" && shift && exec "$@"'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A command with the descriptors that it needs, and what is done when nothing is left of it."""

    command: tuple[str, ...]
    descriptors: tuple[int, ...]
    on_end: Callable[[], None]


class BubblewrapExecutor:
    """An ``Executor`` with every namespace, no capability, the system call filter and bounds inside."""

    def __init__(self, program: str, version: str = "") -> None:
        self._program = program
        self._version = version

    @property
    def confinement(self) -> Confinement:
        # A read-only mount of a device cannot be used as a device, so its mode is open to whoever owns the node.
        gaps = () if os.geteuid() else ("the modes of the host's device nodes may be changed",)
        gaps += () if os.geteuid() or PARENT else ("the number of processes is not bounded",)
        return Confinement(
            backend="bubblewrap",
            version=self._version,
            writes=True,
            network=True,
            home=True,
            process_tree=True,
            hosts=True,
            gaps=gaps,
        )

    @property
    def shell(self) -> Shell | None:
        return BASH

    @property
    def unavailable_reason(self) -> str:
        return ""

    async def start(self, launch: Launch) -> BareJob:
        making = asyncio.ensure_future(asyncio.to_thread(self._made, launch))
        try:
            made = await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(_let_go)
            raise
        reading, writing = os.pipe()
        try:
            child = replace(launch, env={}, cwd="/")
            command = tuple(str(writing) if word == _STATUS else word for word in made.command)
            job = await start_process(command, child, pass_fds=(*made.descriptors, writing))
        except BaseException:
            os.close(reading)
            await asyncio.to_thread(made.on_end)
            raise
        finally:
            os.close(writing)
            _close(made.descriptors)
        try:
            first = _first(await everything(reading))
        except BaseException:
            await job.kill()
            await asyncio.to_thread(made.on_end)
            raise
        return BareJob(job, first, made.on_end, launch)

    async def run(self, launch: Launch) -> Outcome:
        return await (await self.start(launch)).wait()

    def _made(self, launch: Launch) -> _Made:
        """Looks at the host's directories and makes the descriptors. Blocks."""
        if isinstance(launch.command, str) or not launch.command:
            raise SandboxError("launch-failed", "There is no program to run.", hint="Name one with its arguments.")
        if not shutil.which(launch.command[0], path=launch.env.get("PATH", "")):
            raise program_missing(launch.command[0], "No such file or directory")
        layout = root_layout(launch)
        opened: list[int] = []
        try:
            words = _words(launch, layout, lambda content: _opened(opened, content))
            arguments = _opened(opened, b"\0".join(os.fsencode(word) for word in words) + b"\0")
            filtered = _opened(opened, filter_program())
        except BaseException:
            _close(opened)
            raise
        group = make_group(PARENT, launch.limits.processes + _OUTSIDE) if os.geteuid() == 0 else None
        command = (
            *(("/bin/sh", "-c", _ENTER, "sh", group.entrance) if group else ()),
            self._program,
            "--args",
            str(arguments),
            "--seccomp",
            str(filtered),
            "--info-fd",
            _STATUS,
            "--",
            *_limited(launch.limits),
            *launch.command,
        )
        return _Made(command=command, descriptors=tuple(opened), on_end=group.remove if group else _nothing)


_STATUS = "{status}"


def _nothing() -> None:
    """Nothing is left to be done."""


def _words(launch: Launch, layout: Layout, held: Callable[[bytes], int]) -> list[str]:
    """The options. Targets are only ever made in what is new or read-only: programs had no hand in it."""
    words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    words += [] if launch.network.mode == "open" else ["--unshare-net"]
    words += ["--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", HOSTNAME]
    words += ["--clearenv"]
    for name, value in launch.env.items():
        words += ["--setenv", name, value]
    for path, target in layout.links:
        words += ["--symlink", target, path]
    for path, content in layout.files:
        words += ["--perms", "0644", "--ro-bind-data", str(held(content)), path]
    words += ["--dev", "/dev"]
    for path, size in layout.temporary:
        words += ["--size", str(size), "--perms", "1777", "--tmpfs", path]
    for bind in layout.binds:
        words += ["--bind" if bind.is_writable else "--ro-bind", bind.path, bind.path]
    for path in ("/run", "/var", "/home"):
        words += ["--dir", path]
    words += ["--proc", "/proc"]
    for name in HIDDEN_OF_PROC:
        if os.path.isdir(f"/proc/{name}"):  # noqa: PTH112
            words += ["--size", "4096", "--perms", "0555", "--tmpfs", f"/proc/{name}"]
        elif os.path.exists(f"/proc/{name}"):  # noqa: PTH110
            words += ["--ro-bind", "/dev/null", f"/proc/{name}"]
    for path in ("/dev", "/proc", "/"):
        words += ["--remount-ro", path]
    return [*words, "--chdir", launch.cwd]


def _limited(limits: Limits) -> tuple[str, ...]:
    """Set inside, where processes are counted from none."""
    bounds = {
        "data": limits.memory_bytes,
        "cpu": limits.cpu_s,
        "fsize": limits.file_bytes,
        "nofile": limits.open_files,
        "memlock": _LOCKED_BYTES,
        "core": 0,
        "nproc": limits.processes,
    }
    return (PRLIMIT, *(f"--{name}={value}" for name, value in bounds.items()), "--")


def _first(status: bytes) -> int | None:
    """A handle on process 1 inside."""
    with contextlib.suppress(ValueError, KeyError, TypeError, ProcessLookupError):
        return os.pidfd_open(int(json.loads(status)["child-pid"]))
    return None  # it has ended already


def _opened(opened: list[int], content: bytes) -> int:
    descriptor = in_memory(content)
    opened.append(descriptor)
    return descriptor


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _let_go(making: asyncio.Future[_Made]) -> None:
    if not making.cancelled() and making.exception() is None:
        made = making.result()
        _close(made.descriptors)
        making.get_loop().run_in_executor(None, made.on_end)
