"""Confinement by Linux namespaces without a helper program: what works where bubblewrap is not installed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from satchel.ports.execution import Confinement, Executor, Launch, Limits, Outcome, Shell
from satchel.sandbox import syscalls
from satchel.sandbox.bare import BareJob, Prepared, start_bare
from satchel.sandbox.layout import (
    DEVICE_LINKS,
    DEVICES,
    HIDDEN_OF_PROC,
    HOSTNAME,
    INODES_PER_MIB,
    full_confinement,
    root_layout,
)
from satchel.sandbox.limits import own_limits
from satchel.sandbox.pids import PARENT, RESERVED_PIDS, has_own_pid_max, highest_number, make_group, process_gaps
from satchel.sandbox.process import argument_vector
from satchel.sandbox.seccomp import filter_missing, filter_program
from satchel.sandbox.shells import BASH

if TYPE_CHECKING:
    from satchel.sandbox.nsinit import Plan

MODULES = ("satchel.sandbox.syscalls", "satchel.sandbox.nsinit")
_NAMESPACES = (
    syscalls.CLONE_NEWUSER
    | syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP
)
_OUR_PROCESSES = 2  # the one that waits outside, and process 1


class NamespaceExecutor(Executor):
    """An ``Executor`` with user, mount, process, network, IPC, host name and cgroup namespaces of its own."""

    @property
    def confinement(self) -> Confinement:
        return full_confinement("namespaces", os.uname().release, process_gaps())

    @property
    def shell(self) -> Shell | None:
        return BASH

    @property
    def unavailable_reason(self) -> str:
        """What can be told without trying; a host may forbid user namespaces all the same."""
        return filter_missing()

    async def start(self, launch: Launch) -> BareJob:
        return await start_bare(MODULES, lambda: _prepared(launch), launch)

    async def run(self, launch: Launch) -> Outcome:
        return await (await self.start(launch)).wait()


def _prepared(launch: Launch) -> Prepared:
    plan = plan_of(launch)
    # Entering a group takes longer than all the rest, so the numbers of processes are the first choice.
    needs_group = os.geteuid() == 0 and not plan["pid_max"]
    group = make_group(PARENT, launch.limits.processes + _OUR_PROCESSES) if needs_group else None
    if group is None:
        return Prepared(plan=plan)
    return Prepared(plan=plan | {"entrance": group.entrance}, on_end=group.remove)


def plan_of(launch: Launch) -> Plan:
    """What the child is told. Looks at the host's directories, so it is called off the event loop.

    Raises:
        SandboxError: launch-failed, sandbox-unavailable.
    """
    program = argument_vector(launch)
    layout = root_layout(launch)
    return {
        "argv": list(program),
        "env": {os.fsencode(name): os.fsencode(value) for name, value in launch.env.items()},
        "cwd": launch.cwd,
        "entrance": "",
        "parent": os.getpid(),
        "namespaces": _NAMESPACES | (0 if launch.network.mode == "open" else syscalls.CLONE_NEWNET),
        "hostname": HOSTNAME,
        "links": list(layout.links),
        "files": list(layout.files),
        "temporary": [(path, _memory_options(size)) for path, size in layout.temporary],
        "binds": [(bind.path, bind.is_writable) for bind in layout.binds],
        "devices": list(DEVICES),
        "device_links": list(DEVICE_LINKS),
        "hidden": list(HIDDEN_OF_PROC),
        "limits": own_limits(launch.limits),
        "pid_max": _pid_max(launch.limits) if os.geteuid() == 0 else 0,
        "pids_used": RESERVED_PIDS,
        "filter": filter_program(),
    }


def _memory_options(size: int) -> dict[str, str]:
    inodes = max(1024, size // 1024**2 * INODES_PER_MIB)
    return {"mode": "1777", "size": str(size), "nr_inodes": str(inodes)}


def _pid_max(limits: Limits) -> int:
    """What bounds the processes of the host's root, whom no ``RLIMIT_NPROC`` binds; 0 where there is no such bound."""
    return highest_number(limits.processes) if has_own_pid_max() else 0
