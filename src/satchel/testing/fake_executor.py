"""An executor that runs nothing and prints what a table says."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase

from satchel.ports.execution import Captured, Confinement, Executor, Launch, Outcome, Shell

_NOT_FOUND = 127


class FakeExecutor(Executor):
    """``outputs`` are pairs of a glob over the whole command line and what such a command ends with.

    The first glob that matches counts; a command that none matches is "not found". A command that is given to a shell
    (``bash -c TEXT``) is matched as its text. ``launches`` holds everything that was asked for.
    """

    def __init__(self, outputs: Sequence[tuple[str, Outcome]] = ()) -> None:
        self._outputs = tuple(outputs)
        self.launches: list[Launch] = []

    @property
    def confinement(self) -> Confinement:
        """Nothing runs, so everything is held back."""
        return Confinement(backend="fake", writes=True, network=True, home=True, process_tree=True)

    @property
    def shell(self) -> Shell | None:
        return Shell()

    @property
    def unavailable_reason(self) -> str:
        return ""

    async def start(self, launch: Launch) -> FakeJob:
        """A job that has ended already."""
        return FakeJob(await self.run(launch))

    async def run(self, launch: Launch) -> Outcome:
        """What the table says. Never raises."""
        self.launches.append(launch)
        line = command_line(launch)
        for glob, outcome in self._outputs:
            if fnmatchcase(line, glob):
                return outcome
        return printed(f"{line.partition(' ')[0]}: not found", exit_code=_NOT_FOUND)


class FakeJob:
    """The ``Job`` of a program that never ran."""

    pid = 0

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    async def wait(self) -> Outcome:
        """What the table says."""
        return self._outcome

    async def kill(self) -> None:
        """Nothing runs."""


def printed(text: str, *, exit_code: int | None = 0) -> Outcome:
    """A program that printed ``text`` on stdout and ended so."""
    return Outcome(exit_code=exit_code, stdout=Captured(head=text.encode()))


def command_line(launch: Launch) -> str:
    """The command as it would be typed."""
    command = launch.command
    if isinstance(command, str):
        return command.strip()
    if command[:2] == ("bash", "-c") and len(command) > len(("bash", "-c")):
        return command[2].strip()
    return shlex.join(command)
