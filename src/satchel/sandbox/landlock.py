"""Confinement by Landlock and the system call filter alone: for hosts without user namespaces, and only a part.

Files, sockets and signals are held back. A program shares the host's process table and may outlive its request, and the
mode and times of files outside can be changed, so a host that requires confinement does not run with it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from satchel.errors import SandboxError
from satchel.ports.execution import GAP_PROCESSES, Confinement, Executor, Launch, Outcome, Shell
from satchel.sandbox import syscalls
from satchel.sandbox.bare import BareJob, Prepared, start_bare
from satchel.sandbox.layout import DEVICES, checked_paths, system_paths
from satchel.sandbox.limits import shared_limits
from satchel.sandbox.pids import GAP_NUMBER
from satchel.sandbox.process import argument_vector
from satchel.sandbox.seccomp import filter_missing, filter_program
from satchel.sandbox.shells import BASH

if TYPE_CHECKING:
    from satchel.sandbox.llinit import Plan

MODULES = ("satchel.sandbox.syscalls", "satchel.sandbox.llinit")

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_DEVICES = 1 << 6 | 1 << 11
_BASIC = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_TCP = 3
_SCOPES = 3  # abstract sockets, signals
_REFER_ABI, _TRUNCATE_ABI, _TCP_ABI, _IOCTL_ABI, _SCOPE_ABI = 2, 3, 4, 5, 6
# Of the process table: what programs ask about the machine, nothing of other processes.
_OF_PROC = ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "sys/kernel/osrelease", "uptime", "version")


class LandlockExecutor(Executor):
    """An ``Executor`` that holds back a part, see its ``confinement``."""

    def __init__(self) -> None:
        self._abi = syscalls.landlock_abi()

    @property
    def confinement(self) -> Confinement:
        return confinement(self._abi)

    @property
    def shell(self) -> Shell | None:
        return BASH

    @property
    def unavailable_reason(self) -> str:
        if not self._abi:
            return "This kernel has no Landlock, or it is not turned on."
        return filter_missing()

    async def start(self, launch: Launch) -> BareJob:
        if not self.can_run:
            raise SandboxError("sandbox-unavailable", self.unavailable_reason)
        return await start_bare(MODULES, lambda: Prepared(plan=plan_of(launch, self._abi)), launch)

    async def run(self, launch: Launch) -> Outcome:
        return await (await self.start(launch)).wait()


def confinement(abi: int) -> Confinement:
    """What is held back by a kernel whose Landlock is that old."""
    gaps = [
        GAP_PROCESSES,
        "the script may change the mode and the times of files outside, and see that they exist",
        "the script sees which other processes run",
        GAP_NUMBER,
    ]
    if abi < _TRUNCATE_ABI:
        gaps.append("the script may empty files outside")
    if abi < _SCOPE_ABI:
        gaps.append("the script may send signals to other processes of the same user")
    # Writes are not all held back while modes and times are not.
    return Confinement(backend="landlock", version=str(abi), network=True, home=True, gaps=tuple(gaps))


def plan_of(launch: Launch, abi: int) -> Plan:
    """What the child is told. Looks at the host's directories, so it is called off the event loop.

    Raises:
        SandboxError: launch-failed, sandbox-unavailable.
    """
    program = argument_vector(launch)
    if launch.network.mode == "hosts":
        raise SandboxError(
            "sandbox-unavailable",
            "The network cannot be narrowed to hosts here.",
            hint="Use bubblewrap or the namespace backend, see satchel doctor.",
        )
    is_open = launch.network.mode == "open"
    files = _files(abi)
    wanted = [(path, _READING) for path in system_paths()[1]]
    wanted += [(path, _READ_FILE) for path in (f"/proc/{name}" for name in _OF_PROC)]
    wanted += [(path, _READ_FILE) for path in _names(is_open=is_open)]
    wanted += [(f"/dev/{name}", _READ_FILE | _WRITE_FILE | _IOCTL_DEVICE) for name in DEVICES]
    wanted += [(bind.path, ~_MAKE_DEVICES if bind.is_writable else _READING) for bind in checked_paths(launch)]
    return {
        "argv": list(program),
        "env": {os.fsencode(name): os.fsencode(value) for name, value in launch.env.items()},
        "cwd": launch.cwd,
        "parent": os.getpid(),
        "files": files,
        "network": _TCP if abi >= _TCP_ABI and not is_open else 0,
        "scopes": _SCOPES if abi >= _SCOPE_ABI else 0,
        "rules": [(path, rights & files & kind) for path, rights in wanted if (kind := _kind(path))],
        "limits": shared_limits(launch.limits),
        "filter": filter_program(has_sockets=is_open),
    }


def _files(abi: int) -> int:
    newer = ((_REFER_ABI, _REFER), (_TRUNCATE_ABI, _TRUNCATE), (_IOCTL_ABI, _IOCTL_DEVICE))
    return _BASIC | sum(right for since, right in newer if abi >= since)


def _names(*, is_open: bool) -> tuple[str, ...]:
    # git does not run where it finds a configuration of the system that it may not read.
    names = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/gitconfig")
    return (*names, "/etc/resolv.conf") if is_open else names


def _kind(path: str) -> int:
    """The rights that can be given on a path: all for a directory, none for what is not there."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return 0
    return -1 if stat.S_ISDIR(mode) else _OF_FILES
