"""The shell of one workspace: command lines, one confined process each, with what carries over between them."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from satchel.errors import SandboxError, SatchelError
from satchel.execution.api_probe import probe, read_guess
from satchel.execution.attempts import Attempts, repeat_warning
from satchel.execution.benign import benign_reason
from satchel.execution.certificates import OpenNetwork, open_network
from satchel.execution.environment import launch_paths, masked, secret_values, session_environment
from satchel.execution.files import read_list
from satchel.execution.jobs import MAX_RUNNING, Jobs, about_others, left_behind
from satchel.execution.options import ExecutionOptions, code_refusal
from satchel.execution.output_paths import relative, relative_capture, relative_paths, with_text
from satchel.execution.requests import CommandPlan, plan_command
from satchel.execution.results import render_outcome, seconds, since_lines, why_it_failed
from satchel.execution.shell_call import CommandPatches, Keep, ShellInstaller, ShellRequest, ShellRun, wrong_text
from satchel.execution.shell_state import SessionState, Wrapper, inside_directory, shift_lines
from satchel.execution.tracking import FileTracker, News
from satchel.execution.workspace import ProducedFile, Workspace
from satchel.ports.execution import Captured, Executor, Launch, Network, Outcome, Shell
from satchel.skills.oneline import one_line

BACKGROUND_S = 3600.0

_JOBS_HINT = (
    "This shell knows no job of another call. Background jobs are listed by the command jobs and ended by kill %N, "
    "each as the whole command."
)
_SHORTEST_S = 0.1
_JOB_COMMAND = re.compile(r"\s*(?:(?P<list>jobs(?: -l)?)|kill (?:-\S+ )?%(?P<number>\d{1,6}))\s*")
_PATCH_NOT_FOUND = re.compile(r"^\S+: (?:line )?\d+: (apply_?-?patch): (?:command )?not found", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class _Call:
    """One command on its way: ``text`` is what runs, ``typed`` what the model wrote."""

    typed: str
    text: str
    cwd: str
    timeout_s: float
    notes: list[str]


class CodeSession:
    """What the tools of one workspace share. ``aclose`` ends everything that still runs; the workspace stays.

    ``host`` is this process's environment, of which only an allow-list is passed on. ``keep`` is told of produced
    files, ``tracker`` is what all tools of the workspace share. Making one may look for the shell on disk, so it is
    made where the workspace is made: in a thread.
    """

    def __init__(
        self,
        workspace: Workspace,
        executor: Executor,
        options: ExecutionOptions,
        *,
        host: Mapping[str, str] | None = None,
        installer: ShellInstaller | None = None,
        patches: CommandPatches | None = None,
        keep: Keep | None = None,
        tracker: FileTracker | None = None,
    ) -> None:
        self.workspace = workspace
        self.executor = executor
        self.options = options
        self.attempts = Attempts()
        self.jobs = Jobs(workspace, executor)
        self._state = SessionState(workspace)
        self._host = dict(os.environ if host is None else host)
        self._installer = installer if options.install.enabled else None
        self._patches = patches
        self._keep = keep
        self._shell = executor.shell
        self._known_cwd = workspace.work
        self._tracker = tracker or FileTracker(workspace)
        self._known_changes = 0

    @property
    def unavailable_reason(self) -> str:
        """Why no command can run here, "" when they can."""
        reason = code_refusal(self.executor, self.options)
        return reason or ("" if self._shell else "This host has no shell.")

    @property
    def dialect(self) -> str:
        """The shell that reads the commands, like "bash"."""
        return self._shell.dialect if self._shell else ""

    @property
    def has_network(self) -> bool:
        """Whether commands reach the network, by the operator's word or because nothing holds them."""
        return self.options.code_network or not self.executor.confinement.network

    async def aclose(self) -> None:
        """Ends the background jobs; returns when nothing of them is left."""
        await self.jobs.aclose()

    async def run(self, request: ShellRequest) -> ShellRun:
        """Runs a command to its end or its time limit, or starts it in the background. Cancelling kills all of it.

        Raises:
            SandboxError: it could not be started.
        """
        shell = self._shell
        if self.unavailable_reason or shell is None:
            return ShellRun(text=f"{self.unavailable_reason} The command was not run.", code="sandbox-unavailable")
        wrong = wrong_text(request.command)
        if wrong:
            return ShellRun(text=wrong, code="command-refused")
        here = await asyncio.to_thread(self._state.directory)
        cwd = await asyncio.to_thread(self._directory, request.workdir, here)
        if not cwd:
            return self._no_directory(request.workdir)
        if patched := await self._patched(request.command, cwd):
            return patched
        if answer := await self._about_jobs(request.command):
            return answer
        # Only where they are told: what is taken is not said again.
        notes = [
            *self.jobs.take_ended(),
            *self._moved(here, "The directory of the last command cannot be entered any more. "),
        ]
        plan = await asyncio.to_thread(self._plan, request.command, cwd)
        refused = plan.refusal or await self._install(plan, notes)
        if refused:
            return self._not_run(request.command, refused, notes)
        call = _Call(
            typed=request.command, text=plan.command, cwd=cwd, timeout_s=self._timeout(request, notes), notes=notes
        )
        try:
            return await (self._start if request.background else self._finish)(call, shell)
        except BaseException:
            self.jobs.give_back()
            raise

    async def _patched(self, command: str, cwd: str) -> ShellRun | None:
        try:
            done = await self._patches.patch_command(command, cwd) if self._patches else None
        except SatchelError as error:
            return ShellRun(text=f"{error.message} {error.hint}".rstrip(), code=error.code)
        if done is None:
            return None
        await self._kept([ProducedFile(path=path, bytes=0) for path in done.files])
        return ShellRun(text=done.text, ok=True, files=done.files)

    def _timeout(self, request: ShellRequest, notes: list[str]) -> float:
        default = BACKGROUND_S if request.background else self.options.shell_timeout_s
        longest = max(default, self.options.longest_shell_timeout_s)
        asked = default if request.timeout_s is None else max(_SHORTEST_S, request.timeout_s)
        if asked > longest:
            notes.append(f"The longest time limit here is {longest:.0f} s; that is what holds.")
        return min(asked, longest)

    def _directory(self, given: str, here: str) -> str:
        """Where a call begins, "" when that is no directory of the workspace. Blocks."""
        plain = given.strip()
        if not plain:
            return here
        if plain == "~" or plain.startswith("~/"):
            plain = self.workspace.work + plain[1:]
        return inside_directory(self.workspace, plain)

    def _no_directory(self, given: str) -> ShellRun:
        text = (
            f'workdir "{one_line(given)[:200]}" is no directory inside the working directory. Leave it out, or name '
            "one that exists, relative to the working directory; the command was not run."
        )
        return ShellRun(text=text, code="path-refused")

    def _plan(self, command: str, cwd: str) -> CommandPlan:
        plan = plan_command(
            command, options=self.options, read_file=lambda path: read_list(self.workspace.work, cwd, path)
        )
        if plan.requests and self._installer is None and not plan.refusal:
            refusal = "Installing packages is not enabled on this host. Nothing of this command ran."
            return replace(plan, refusal=refusal)
        return plan

    async def _install(self, plan: CommandPlan, notes: list[str]) -> str:
        """Performs what the line asks for; a sentence when that failed, and then nothing of the line runs."""
        if self._installer is None or not plan.requests:
            notes += plan.notes
            return ""
        done = await self._installer.perform(plan, self.workspace, deadline_s=self.options.install_timeout_s)
        if done.ok:
            notes.append(done.note)
        return "" if done.ok else done.note

    def _forget_attempts(self) -> None:
        """Where files are others than after the last command, to try again is no repetition."""
        if self._tracker.changes != self._known_changes:
            self._known_changes = self._tracker.changes
            self.attempts.forget()

    def _not_run(self, command: str, reason: str, notes: Sequence[str]) -> ShellRun:
        self._forget_attempts()
        warning = repeat_warning(self.attempts.record(command, failed=True))
        return ShellRun(text="\n".join((reason, *notes, *_given(warning))), code="command-refused")

    async def _about_jobs(self, command: str) -> ShellRun | None:
        """``jobs`` and ``kill %N`` are about the host's jobs: a fresh shell has none of its own."""
        match = _JOB_COMMAND.fullmatch(command)
        if match is None:
            return None
        if match["list"]:
            return self._about(await self._news(self._tracker.look), self.jobs.listing())
        number = int(match["number"])
        was_running = number in {job.number for job in self.jobs.running}
        ended = await self.jobs.end(number)
        if ended is None:
            return ShellRun(text=f"There is no background job %{number}.\n{self.jobs.listing()}", code="job-not-found")
        said = f"{'Ended' if was_running else 'It had ended before'}: {ended.line}"
        return self._about(await self._news(self._tracker.look), said)

    async def _news(self, seen: Callable[[], tuple[ProducedFile, ...]]) -> tuple[ProducedFile, ...]:
        """What jobs wrote since the last call, kept."""
        since = await asyncio.to_thread(seen)
        await self._kept(since)
        return since

    def _about(self, since: Sequence[ProducedFile], *lines: str) -> ShellRun:
        return ShellRun(text="\n".join((*lines, *since_lines(since))), ok=True, files=_paths(since))

    async def _kept(self, files: Sequence[ProducedFile]) -> None:
        if self._keep is not None and files:
            await self._keep(self.workspace, tuple(files))

    def _launch(self, call: _Call, shell: Shell, wrapper: Wrapper | None) -> Launch:
        """Blocks."""
        readable, writable = launch_paths(self.workspace, "shell")
        options = ("--noprofile", "--norc") if shell.dialect == "bash" else ()
        network = open_network(self.workspace, self._host) if self.options.code_network else OpenNetwork()
        return Launch(
            command=call.text if wrapper is None else (shell.program, *options, wrapper.path),
            purpose="shell",
            cwd=call.cwd,
            env={**session_environment(self.workspace, self._host), **network.env, "PWD": call.cwd},
            readable=(*readable, *network.readable),
            writable=writable,
            network=Network(mode="open" if self.options.code_network else "none"),
            deadline_s=call.timeout_s,
            max_output_bytes=self.options.output_bytes,
            state=self._state if wrapper is None else None,
        )

    async def _wrapper(self, call: _Call, shell: Shell, *, keeps_state: bool) -> Wrapper | None:
        if not shell.program:
            return None
        try:
            return await asyncio.to_thread(
                self._state.write_wrapper, call.text, shell, keeps_state=keeps_state, cwd=call.cwd
            )
        except OSError as error:
            raise SandboxError("launch-failed", f"The command could not be written down: {error.strerror}.") from error

    async def _start(self, call: _Call, shell: Shell) -> ShellRun:
        """Starts a background job and says how to follow and to end it."""
        if len(self.jobs.running) >= MAX_RUNNING:
            text = f"{MAX_RUNNING} background jobs run already; end one with the command kill %N first."
            return ShellRun(text="\n".join((text, *call.notes, self.jobs.listing())), code="too-many-jobs")
        wrapper = await self._wrapper(call, shell, keeps_state=False)
        if wrapper is None:
            text = "This host cannot run commands in the background."
            return ShellRun(text="\n".join((text, *call.notes)), code="command-refused")
        await asyncio.to_thread(self._tracker.begin)
        try:
            launch = await asyncio.to_thread(self._launch, call, shell, wrapper)
            job = await self.jobs.start(launch, call.typed, lambda: self._state.discard(wrapper))
            self._tracker.ignore(job.log)
        except BaseException:
            await asyncio.to_thread(self._state.discard, wrapper)
            raise
        since = await self._news(self._tracker.since)
        log = one_line(relative(f"{self.workspace.work}/{job.log}", call.cwd))
        lines = [
            *call.notes,
            f"Started in the background as job %{job.number} (sandbox: {self.executor.confinement.backend}).",
            f"It prints to {log} and is ended after {seconds(call.timeout_s)}.",
            f"Look at it with tail {log}, list jobs with jobs, end it with kill %{job.number}.",
        ]
        if not self.has_network:
            lines.append("Its network is its own: a server in it can only be reached from within the same command.")
        if self.executor.confinement.gaps:
            lines.append(f"Not confined on this host: {'; '.join(self.executor.confinement.gaps)}.")
        return self._about(since, *lines)

    async def _finish(self, call: _Call, shell: Shell) -> ShellRun:
        await asyncio.to_thread(self._tracker.begin)
        self._forget_attempts()
        wrapper = await self._wrapper(call, shell, keeps_state=True)
        launch = await asyncio.to_thread(self._launch, call, shell, wrapper)
        began = time.monotonic()
        try:
            outcome = await self._run(launch, call.notes)
        finally:
            await asyncio.to_thread(self._keep_state, wrapper, call.notes)
        news = await asyncio.to_thread(self._tracker.end)
        self._known_changes = self._tracker.changes
        await self._kept(news.files)
        shown = self._shown(outcome, wrapper, call.cwd)
        left_s = call.timeout_s - (time.monotonic() - began)
        return await self._told(call, shown, news, left_s)

    async def _run(self, launch: Launch, notes: list[str]) -> Outcome:
        async def once(deadline_s: float) -> Outcome:
            return await self.executor.run(replace(launch, deadline_s=deadline_s))

        if self._installer is None:
            return await once(launch.deadline_s)
        outcome, more = await self._installer.run(once, self.workspace, deadline_s=launch.deadline_s)
        notes += more
        return outcome

    def _keep_state(self, wrapper: Wrapper | None, notes: list[str]) -> None:
        """Blocks."""
        notes += self._state.keep(wrapper) if wrapper else self._state.reset_notes()
        notes += self._moved(self._state.directory(), "")

    def _moved(self, now: str, why: str) -> list[str]:
        if now == self._known_cwd:
            return []
        self._known_cwd = now
        return [f"{why}Working directory is now: {one_line(relative(now, self.workspace.work))}"]

    def _shown(self, outcome: Outcome, wrapper: Wrapper | None, cwd: str) -> Outcome:
        """The outcome with the command's own line numbers and with relative paths."""
        streams: list[Captured] = []
        for captured in (outcome.stdout, outcome.stderr):
            if wrapper is not None:
                captured = with_text(captured, lambda text: shift_lines(text, wrapper, self.dialect))  # noqa: PLW2901
            streams.append(relative_capture(captured, self.workspace, cwd))
        return replace(outcome, stdout=streams[0], stderr=streams[1])

    async def _told(self, call: _Call, outcome: Outcome, news: News, left_s: float) -> ShellRun:
        errors = outcome.stderr.text
        benign = benign_reason(call.text, outcome.exit_code, stderr=errors)
        ok = outcome.exit_code == 0 or bool(benign)
        hints = [repeat_warning(self.attempts.record(call.typed, failed=not ok))]
        if ok and news.made:
            self.attempts.forget()
        if outcome.stopped == "deadline":
            hints.append("It was stopped in the middle. Give it more time with timeout_ms, or run_in_background.")
        elif self.executor.confinement.process_tree:
            hints.append(left_behind(call.text))
        # Also where the line went on and ended well.
        hints.append(_patch_hint(errors))
        if self.jobs.logs and about_others(call.text):
            hints.append(_JOBS_HINT)
        if not ok and outcome.exit_code is not None:
            hints.append(await self._api_hint(errors or outcome.stdout.text, call, left_s))
        text = render_outcome(
            "Ran the command",
            outcome,
            self.executor.confinement,
            news=news,
            notes=call.notes,
            exit_note=benign,
        )
        text = "\n".join((text, *(hint for hint in hints if hint)))
        hidden = secret_values(self._host)
        return ShellRun(
            text=masked(text, hidden),
            ok=ok,
            code="" if ok else "command-failed",
            reason="" if ok else masked(why_it_failed(outcome), hidden),
            outcome=outcome,
            files=_paths(news.files),
        )

    async def _api_hint(self, printed: str, call: _Call, left_s: float) -> str:
        guess = read_guess(printed, call.text)
        if guess is None or left_s < 1:
            return ""
        found = await probe(guess, self.workspace, self.executor, self._host, cwd=call.cwd, deadline_s=left_s)
        return relative_paths(found, self.workspace, call.cwd)


def _paths(files: Sequence[ProducedFile]) -> tuple[str, ...]:
    return tuple(file.path for file in files)


def _given(*texts: str) -> list[str]:
    return [text for text in texts if text]


def _patch_hint(errors: str) -> str:
    found = _PATCH_NOT_FOUND.search(errors)
    if found is None:
        return ""
    return f"{found[1]} is no program here, so nothing was patched: call the tool apply_patch with the patch, alone."
