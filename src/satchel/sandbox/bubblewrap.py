"""Confinement by bubblewrap: the same root as the namespace backend's, built by a small program made for it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import resource
import stat
import struct
import termios
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from satchel.errors import SandboxError
from satchel.ports.execution import Confinement, Executor, Launch, Limits, Outcome, Shell
from satchel.sandbox.bare import BareJob, in_memory, program_missing
from satchel.sandbox.etc import copy_of_devices, copy_of_etc
from satchel.sandbox.layout import DEVICES, HOSTNAME, Layout, full_confinement, root_layout, system_paths
from satchel.sandbox.limits import own_limits
from satchel.sandbox.pids import (
    PARENT,
    RESERVED_PIDS,
    PidsGroup,
    has_own_pid_max,
    highest_number,
    make_group,
    process_gaps,
)
from satchel.sandbox.pipes import everything
from satchel.sandbox.process import ProcessJob, all_or_nothing, argument_vector, finished, start_process
from satchel.sandbox.seccomp import filter_missing, filter_program
from satchel.sandbox.shells import BASH
from satchel.sandbox.spawn import in_starter, turn
from satchel.sandbox.watch import Watch, require_room

PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")  # a search path could name anybody's program
_OF_KEYS = frozenset({"keys", "key-users"})
GAP_DEVICES = "the script may change the modes of the host's devices"
_OUR_PROCESSES = 1  # process 1
_USUAL_PATH = "/usr/bin:/bin"
_ETC_PLACE = "/run/etc"
_FIRST_TO_GO = b"500\n"  # when the host runs out of memory
_FIONREAD = getattr(termios, "FIONREAD", 0x541B)


class BubblewrapExecutor(Executor):
    """An ``Executor`` over a program of ``PLACES``. What holds on this host is for ``detect`` to find out.

    bwrap adds ``PWD``, the working directory, to the environment of the program.
    """

    def __init__(self, program: str = PLACES[0], version: str = "") -> None:
        self._program = program
        self._version = version

    @property
    def confinement(self) -> Confinement:
        devices = () if os.geteuid() or copy_of_devices(DEVICES) else (GAP_DEVICES,)
        return full_confinement("bubblewrap", self._version, process_gaps() + devices)

    @property
    def shell(self) -> Shell | None:
        return BASH

    @property
    def unavailable_reason(self) -> str:
        """What can be told without trying; a host may forbid user namespaces all the same."""
        return filter_missing()

    async def start(self, launch: Launch) -> BareJob:
        return await all_or_nothing(self._start(launch))

    async def _start(self, launch: Launch) -> BareJob:
        async with turn():
            prepared = await in_starter(partial(_prepared, launch), _Prepared.close)
            try:
                job, telling, going = await self._spawn(prepared, launch)
            finally:
                prepared.close()
        first: int | None = None
        is_set_up, reason = False, "bwrap did not say why"
        bounds = _Bounds(launch.limits)
        try:
            told = await everything(telling)
            inside = int(json.loads(told)["child-pid"]) if told else 0
            if inside:
                first = os.pidfd_open(inside)
                job.adopt(first)
                await bounds.set(inside)
                is_set_up = await _has_gone(going)
                job.guard.inside = inside if is_set_up else 0  # until then its root is the host's
        except OSError as error:
            reason = str(error)
            if first is not None:  # process 1 would go on without its bounds
                job.stop("killed")
        except BaseException:
            await BareJob(job, first, bounds.on_end).kill()
            raise
        finally:
            os.close(going)
        started = BareJob(job, first, bounds.on_end)
        if not is_set_up:
            raise _unavailable((await started.wait()).stderr.text.strip() or reason)
        return started

    async def run(self, launch: Launch) -> Outcome:
        return await (await self.start(launch)).wait()

    async def _spawn(self, prepared: _Prepared, launch: Launch) -> tuple[ProcessJob, int, int]:
        """The job, where bwrap tells of process 1, and where it is told to go on."""
        telling, tell = os.pipe()
        go, going = os.pipe()
        os.set_blocking(going, False)
        argv = [self._program, "--args", str(prepared.arguments), "--info-fd", str(tell), "--block-fd", str(go), "--"]
        # Process 1 keeps the environment in which bwrap was started.
        outside = replace(launch, env={}, cwd="/")
        try:
            job = await start_process(
                (*argv, *launch.command),
                outside,
                pass_fds=(prepared.arguments, *prepared.descriptors, tell, go),
                watch=prepared.watch,
            )
        except BaseException:
            os.close(telling)
            os.close(going)
            raise
        finally:
            os.close(tell)
            os.close(go)
        return job, telling, going


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    arguments: int
    descriptors: tuple[int, ...]
    watch: Watch

    def close(self) -> None:
        for descriptor in (self.arguments, *self.descriptors):
            os.close(descriptor)


def _prepared(launch: Launch) -> _Prepared:
    """Everything that is looked up or written before bwrap starts, off the event loop."""
    argument_vector(launch)
    require_room(launch)
    layout = root_layout(launch)
    _refuse_links(layout)
    _require_program(launch, layout)
    with contextlib.ExitStack() as opened:
        descriptors: list[int] = []

        def opened_on(content: bytes) -> int:
            handle = in_memory(content)
            opened.callback(os.close, handle)
            return handle

        def handed(content: bytes) -> str:
            descriptors.append(opened_on(content))
            return str(descriptors[-1])

        arguments = list(_arguments(launch, layout, handed))
        if any("\0" in text for text in arguments):
            raise SandboxError("launch-failed", "The environment has a value with a NUL character.")
        written = opened_on(os.fsencode("\0".join(arguments)))
        watch = Watch(launch)
        watch.begin()
        opened.pop_all()
    return _Prepared(arguments=written, descriptors=tuple(descriptors), watch=watch)


def _arguments(launch: Launch, layout: Layout, handed: Callable[[bytes], str]) -> Iterator[str]:
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session")
    if launch.network.mode == "open":
        yield "--share-net"
    yield from ("--cap-drop", "ALL", "--hostname", HOSTNAME, "--clearenv")
    for name, value in launch.env.items():
        if not name or "=" in name:
            raise SandboxError("launch-failed", f"{name!r} is no name of an environment variable.")
        yield from ("--setenv", name, value)
    for path in ("/etc", "/run", "/var", "/home"):
        yield from ("--perms", "0755", "--dir", path)
    for path, target in layout.links:
        yield from ("--symlink", target, path)
    for path, content in layout.files:
        yield from ("--perms", "0644", "--file", handed(content), path)
    yield from ("--dev", "/dev")
    for path, size in layout.temporary:
        yield from ("--perms", "1777", "--size", str(size), "--tmpfs", path)
    yield from _system()
    system = system_paths()[1]
    for bind in layout.binds:
        if bind.path not in system:
            yield from ("--bind" if bind.is_writable else "--ro-bind", bind.path, bind.path)
    yield from ("--proc", "/proc", "--file", handed(_FIRST_TO_GO), "/proc/self/oom_score_adj")
    if os.geteuid() == 0:
        if has_own_pid_max():
            # While it can be written still; it is of the new process table.
            highest = highest_number(launch.limits.processes)
            for name, number in (("pid_max", highest), ("ns_last_pid", RESERVED_PIDS)):
                yield from ("--file", handed(f"{number}\n".encode()), f"/proc/sys/kernel/{name}")
        yield from _own_devices()
    yield from _hidden()
    for path in ("/dev", "/proc", "/"):
        yield from ("--remount-ro", path)
    yield from ("--chdir", launch.cwd, "--seccomp", handed(filter_program()))


@cache
def _system() -> tuple[str, ...]:
    """What every launch sees of the host."""
    paths = system_paths()[1]
    etc = copy_of_etc(tuple(path for path in paths if path.startswith("/etc/")))
    arguments = ["--ro-bind", etc.root, _ETC_PLACE]
    for path in paths:
        if path in etc.paths:
            arguments += ["--symlink", f"{_ETC_PLACE}/{path.removeprefix('/etc/')}", path]
        else:
            arguments += ["--ro-bind", path, path]
    return tuple(arguments)


@cache
def _own_devices() -> tuple[str, ...]:
    """What the host's root could do as the owner of its devices, which an ordinary user cannot."""
    nodes = copy_of_devices(DEVICES)
    return tuple(word for name in DEVICES if nodes for word in ("--dev-bind", f"{nodes}/{name}", f"/dev/{name}"))


@cache
def _hidden() -> tuple[str, ...]:
    """What tells of the host's keys, and what of the kernel only the host's root could read, such as its memory."""
    kept: list[str] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            mode = entry.lstat().st_mode
            is_for_root = os.geteuid() == 0 and not mode & stat.S_IROTH
            if stat.S_ISREG(mode) and (is_for_root or entry.name in _OF_KEYS):
                kept += ("--ro-bind", "/dev/null", str(entry))
    return tuple(kept)


def _refuse_links(layout: Layout) -> None:
    """No place of a mount leads through a link below another mount: bwrap would follow it, to a place of the host."""
    given = [bind for bind in layout.binds if bind.path not in system_paths()[1]]
    for bind in given:
        for other in layout.binds:
            if bind.path.startswith(f"{other.path}/"):
                below = bind.path[len(other.path) :]
                if os.path.realpath(bind.path) != os.path.realpath(other.path) + below:
                    raise SandboxError(
                        "launch-failed",
                        f"{bind.path} leads through a link in {other.path}.",
                        hint="Name other paths for this program.",
                    )


def _require_program(launch: Launch, layout: Layout) -> None:
    """What bwrap prints when a program is not there looks like the program's own output."""
    name = launch.command[0]
    searched = launch.env.get("PATH", _USUAL_PATH).split(":")
    system = system_paths()[1]
    given = [f"{os.path.realpath(bind.path)}/" for bind in layout.binds if bind.path not in system]
    shown = (*given, *(f"{path}/" for path in system))
    for folder in [""] if "/" in name else searched:
        path = Path(launch.cwd, folder, name)
        if os.access(path, os.X_OK) and path.is_file():
            places = (os.path.realpath(path.parent), os.path.realpath(path))
            if all(any(f"{place}/".startswith(root) for root in shown) for place in places):
                return
    raise program_missing(name, "No such file, or none that may be run, where the sandbox shows it")


class _Bounds:
    """The limits of process 1, and so of all that it will start, set while it waits for us."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._group: PidsGroup | None = None

    async def set(self, inside: int) -> None:
        """Raises ``OSError``."""
        for number, value in own_limits(self._limits):
            _, hard = resource.getrlimit(number)
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.prlimit(inside, number, (bound, bound))
        if os.geteuid() or has_own_pid_max():
            return
        entering = asyncio.ensure_future(asyncio.to_thread(self._enter, inside))
        try:
            await asyncio.shield(entering)
        except asyncio.CancelledError:
            await finished(entering)  # or nobody would remove the group
            raise

    @property
    def on_end(self) -> Callable[[], None] | None:
        """What is left to be done when nothing is left inside."""
        return self._group.remove if self._group else None

    def _enter(self, inside: int) -> None:
        self._group = make_group(PARENT, self._limits.processes + _OUR_PROCESSES)
        if self._group is not None:
            Path(self._group.entrance).write_text(str(inside), encoding="ascii")


async def _has_gone(going: int) -> bool:
    """Lets process 1 go on; whether it came so far that it read this, which is when its root is complete."""
    loop, closed = asyncio.get_running_loop(), asyncio.Event()
    try:
        os.write(going, b"\n")
    except BrokenPipeError:
        return False
    loop.add_reader(going, closed.set)  # nobody holds the other end any more
    try:
        await closed.wait()
    finally:
        loop.remove_reader(going)
    (unread,) = struct.unpack("i", fcntl.ioctl(going, _FIONREAD, bytes(4)))
    return unread == 0


def _unavailable(reason: str) -> SandboxError:
    return SandboxError(
        "sandbox-unavailable",
        f"The sandbox could not be set up: {reason.removeprefix('bwrap: ')}.",
        hint="satchel doctor says what this host offers.",
    )
