"""Commands of a shell that go on after their call: started, listed, ended, and never outliving their session."""

# ruff: noqa: PTH118 - plain strings, as everywhere that paths are compared.

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from satchel.execution.commandline import simple_commands
from satchel.execution.results import how_it_ended
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Executor, Job, Launch, Outcome
from satchel.skills.oneline import one_line

MAX_RUNNING = 8
LOG_BYTES = 16 * 1024 * 1024
"""A job whose log grows beyond this is ended."""

_LEFT = (
    "What this command started with & was ended when the command ended: nothing of it runs now. "
    "A program that is to go on needs a call of its own with run_in_background."
)
_LOOK_S = 0.25
_MOST_NAMES = 100
_SHOWN = 80


@dataclass(slots=True, kw_only=True)
class BackgroundJob:
    """One of them: ``log`` is relative to the working directory, ``outcome`` None while it runs."""

    number: int
    command: str
    log: str
    job: Job
    outcome: Outcome | None = None
    is_told: bool = False

    @property
    def line(self) -> str:
        """Number, state, command and log."""
        state = "running" if self.outcome is None else how_it_ended(self.outcome)
        return f"%{self.number} {state}: {self.command} (log: {self.log})"


class Jobs:
    """The background jobs of one workspace. At most 8 run at once."""

    def __init__(self, workspace: Workspace, executor: Executor) -> None:
        self._workspace = workspace
        self._executor = executor
        self._jobs: dict[int, BackgroundJob] = {}
        self._watching: set[asyncio.Task[None]] = set()
        self._taken: list[BackgroundJob] = []

    @property
    def running(self) -> tuple[BackgroundJob, ...]:
        """Those that have not ended."""
        return tuple(job for job in self._jobs.values() if job.outcome is None)

    @property
    def logs(self) -> frozenset[str]:
        """The log files, relative to the working directory."""
        return frozenset(job.log for job in self._jobs.values())

    async def start(self, launch: Launch, command: str, done: Callable[[], None]) -> BackgroundJob:
        """Starts ``launch`` with a log of its own; ``done`` is called in a thread once it has ended.

        Raises:
            SandboxError: it could not be started.
        """
        number = max(self._jobs, default=0) + 1
        log = await asyncio.to_thread(_fresh_log, self._workspace.work, number)
        path = os.path.join(self._workspace.work, log)
        job = await self._executor.start(replace(launch, log_path=path, max_output_bytes=LOG_BYTES))
        entry = BackgroundJob(number=number, command=one_line(command)[:_SHOWN], log=log, job=job)
        self._jobs[number] = entry
        task = asyncio.create_task(_watch(entry, path, done))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
        return entry

    def listing(self) -> str:
        """Every job with its state, for a model."""
        if not self._jobs:
            return "No background job was started."
        for job in self._jobs.values():
            job.is_told = job.outcome is not None
        return "\n".join(job.line for job in self._jobs.values())

    def take_ended(self) -> tuple[str, ...]:
        """A sentence for each job that ended by itself and of which nothing was said yet."""
        ended = [job for job in self._jobs.values() if job.outcome is not None and not job.is_told]
        for job in ended:
            job.is_told = True
        self._taken = ended
        return tuple(f"A background job has ended: {job.line}" for job in ended)

    def give_back(self) -> None:
        """What was taken last was told to nobody."""
        for job in self._taken:
            job.is_told = False

    async def end(self, number: int) -> BackgroundJob | None:
        """Kills one with everything that it started; None when there is no such job."""
        entry = self._jobs.get(number)
        if entry is not None:
            await entry.job.kill()
            entry.outcome = await entry.job.wait()
            entry.is_told = True
        return entry

    async def aclose(self) -> None:
        """Kills all that run; returns when nothing of them is left."""
        await asyncio.gather(*(job.job.kill() for job in self.running))
        await asyncio.gather(*self._watching)


def left_behind(command: str) -> str:
    """What is said of a command that has ended and did not wait for what it put in the background; "" for others."""
    is_left = False
    for one in simple_commands(command):
        is_wait = bool(one.words) and one.words[0].text == "wait"
        is_left = one.ended_by == "&" or (is_left and not is_wait)
    return _LEFT if is_left else ""


def about_others(command: str) -> bool:
    """Whether a command asks its own shell about jobs, which has none: ``jobs | tail``, ``kill %2; ls``."""
    for one in simple_commands(command):
        words = [word.text for word in one.words]
        if words[:1] in (["jobs"], ["fg"], ["bg"]) or (words[:1] in (["kill"], ["wait"]) and "%" in {*"".join(words)}):
            return True
    return False


async def _watch(entry: BackgroundJob, log: str, done: Callable[[], None]) -> None:
    """Waits for the end of a job, and brings it about when its log grows too large."""
    waiting = asyncio.create_task(entry.job.wait())
    is_too_large = False
    while not (await asyncio.wait((waiting,), timeout=_LOOK_S))[0]:
        if await asyncio.to_thread(_size, log) > LOG_BYTES:
            is_too_large = True
            await entry.job.kill()
    outcome = await waiting
    if is_too_large and outcome.exit_code is None:
        outcome = replace(outcome, stopped="written")
    entry.outcome = entry.outcome or outcome
    await asyncio.to_thread(done)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _fresh_log(work: str, number: int) -> str:
    """A name that nothing has yet, whatever programs put there: in the end one that nobody guesses."""
    names = [f"job-{number}.log", *(f"job-{number}-{again}.log" for again in range(2, _MOST_NAMES))]
    free = (name for name in names if not os.path.lexists(os.path.join(work, name)))
    return next(free, f"job-{number}-{secrets.token_hex(8)}.log")
