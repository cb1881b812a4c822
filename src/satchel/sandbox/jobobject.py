"""What Windows offers: a job object that bounds the processes of a program, their memory and their number.

It confines neither files nor the network, so a host that requires confinement does not run with it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from satchel.errors import SandboxError
from satchel.ports.execution import GAP_HOME, GAP_NETWORK, GAP_WRITES, Confinement, Executor, Launch, Outcome, Shell
from satchel.sandbox.process import ProcessJob, argument_vector, start_process

_TEXT = Path(__file__).with_name("jobinit.py").read_text(encoding="utf-8")


class JobObjectExecutor(Executor):
    """An ``Executor`` whose programs end with their request, and are held back by nothing else."""

    @property
    def confinement(self) -> Confinement:
        return Confinement(backend="jobobject", process_tree=True, gaps=(GAP_WRITES, GAP_NETWORK, GAP_HOME))

    @property
    def shell(self) -> Shell | None:
        """None: command lines are written for bash, which is no part of Windows."""
        return None

    @property
    def unavailable_reason(self) -> str:
        return "" if sys.platform == "win32" else "Job objects are a part of Windows."

    async def start(self, launch: Launch) -> ProcessJob:
        if not self.can_run:
            raise SandboxError("sandbox-unavailable", self.unavailable_reason)
        return await start_process(command(launch), launch)

    async def run(self, launch: Launch) -> Outcome:
        return await (await self.start(launch)).wait()


def command(launch: Launch) -> tuple[str, ...]:
    """The argument vector that runs a launch in a job of its own.

    Raises:
        SandboxError: launch-failed, when there is no program to run.
    """
    program = argument_vector(launch)
    limits = launch.limits
    numbers = (limits.processes, limits.memory_bytes, limits.cpu_s, os.getpid())
    return (sys.executable, "-I", "-S", "-c", _TEXT, *map(str, numbers), *program)
