"""Running a program with nothing around it, for programs that are trusted like the user who started us."""

from __future__ import annotations

from satchel.ports.execution import (
    GAP_HOME,
    GAP_NETWORK,
    GAP_PROCESSES,
    GAP_WRITES,
    Confinement,
    Executor,
    Launch,
    Outcome,
    Shell,
)
from satchel.sandbox.process import ProcessJob, argument_vector, start_process
from satchel.sandbox.shells import BASH


class UnconfinedExecutor(Executor):
    """An ``Executor`` without confinement: a process group of its own, a deadline, bounded output, nothing more."""

    @property
    def confinement(self) -> Confinement:
        """Names every gap: there is no confinement at all."""
        return Confinement(backend="none", gaps=(GAP_WRITES, GAP_NETWORK, GAP_HOME, GAP_PROCESSES))

    @property
    def shell(self) -> Shell | None:
        return BASH

    @property
    def unavailable_reason(self) -> str:
        return ""

    async def start(self, launch: Launch) -> ProcessJob:
        return await start_process(argument_vector(launch), launch)

    async def run(self, launch: Launch) -> Outcome:
        return await (await self.start(launch)).wait()
