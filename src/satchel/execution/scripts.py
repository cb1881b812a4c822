"""Running what a skill ships: the file, its interpreter, its environment, and what the model is told of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Protocol

from satchel.errors import PathError
from satchel.execution.bundle import read_script, unix_copy
from satchel.execution.certificates import OpenNetwork, open_network
from satchel.execution.declared import REQUIREMENTS, header_packages, required_packages
from satchel.execution.environment import (
    find_program,
    is_provider_key,
    launch_paths,
    masked,
    secret_values,
    session_environment,
)
from satchel.execution.interpreters import allowed_endings, extension, interpreter, is_shell
from satchel.execution.lease import leased, leased_workspace
from satchel.execution.options import ExecutionOptions, code_refusal, refusal
from satchel.execution.output_paths import relative_paths, skill_paths, with_text
from satchel.execution.recovery import missing_package
from satchel.execution.results import render_outcome, why_it_failed
from satchel.execution.tracking import FileTracker
from satchel.execution.workspace import ProducedFile, Workspace
from satchel.pathguard import open_inside, split_path
from satchel.ports.execution import Executor, Launch, Network, Outcome
from satchel.scratch.graves import bury
from satchel.skills.oneline import one_line

SKILL_DIR = "SKILL_DIR"
Ecosystem = Literal["python", "node"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRequest:
    """``directory`` is the skill's, canonical, and ``path`` lies in it; ``packages`` are asked for by the model.

    ``is_sent``: the skill came with a request, so its name says nothing of who wrote it.
    """

    skill: str
    directory: str
    path: str
    arguments: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    is_sent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRun:
    """What became of it: ``text`` is for the model. ``outcome`` is None when nothing was started.

    ``produced`` are the files that it made, and those that the background wrote since the last call.
    ``reason`` is why it failed in one line, "" where nothing tells.
    """

    text: str
    code: str = ""
    reason: str = ""
    outcome: Outcome | None = None
    produced: tuple[ProducedFile, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the script ran to its end and said that it went well."""
        return self.outcome is not None and self.outcome.exit_code == 0


class ScriptPackages(Protocol):
    """What installs packages for scripts, when the operator allows that. Notes are sentences for the model."""

    async def provide(self, packages: Sequence[str], workspace: Workspace, *, ecosystem: Ecosystem) -> Sequence[str]:
        """Installs what is named and not there yet. Never raises for a package that cannot be had: the notes say so."""
        ...

    async def run(
        self,
        run: Callable[[float], Awaitable[Outcome]],
        workspace: Workspace,
        *,
        deadline_s: float,
        folders: Sequence[str],
    ) -> tuple[Outcome, Sequence[str]]:
        """Runs, and again after each missing import that it could install, within ``deadline_s`` in all.

        What has the name of a file in ``folders`` is no package.
        """
        ...


Keep = Callable[[Workspace, tuple[ProducedFile, ...]], Awaitable[None]]


class ScriptRunner:
    """Runs scripts in one workspace, or each in a scratch of its own.

    ``keep`` is told of produced files before a scratch is removed, ``tracker`` is what tools of a workspace share.
    ``host`` is this process's environment, of which only an allow-list and what was granted to the skill is passed on.
    ``base`` is where scratches are made.
    """

    def __init__(
        self,
        executor: Executor,
        options: ExecutionOptions,
        *,
        workspace: Workspace | None = None,
        packages: ScriptPackages | None = None,
        host: Mapping[str, str] | None = None,
        keep: Keep | None = None,
        base: str | None = None,
        tracker: FileTracker | None = None,
    ) -> None:
        self._executor = executor
        self._options = options
        self._workspace = workspace
        self._packages = packages if options.install.enabled else None
        self._host = dict(os.environ if host is None else host)
        self._keep = keep
        self._base = base
        self._tracker = tracker
        self._provided: set[str] = set()

    @property
    def interpreters(self) -> Mapping[str, tuple[str, ...]]:
        """The command by the ending of the file."""
        return self._options.interpreters

    @property
    def unavailable_reason(self) -> str:
        """Why no script can run here, "" when they can."""
        return refusal(self._executor, self._options.sandbox)

    @property
    def terms(self) -> str:
        """What a model must know of how scripts run here."""
        network = "The network is open to it" if self._has_network else "It has no network"
        return f"{network}; files that it makes belong into its working directory."

    @property
    def _has_network(self) -> bool:
        return self._options.scripts_network or not self._executor.confinement.network

    async def has_file(self, name: str) -> bool:
        """Whether a file of exactly that name lies in the working directory that scripts share."""
        if self._workspace is None or "/" in name or "\0" in name:
            return False
        return await asyncio.to_thread(_is_file, self._workspace.work, name)

    async def run(self, request: ScriptRequest) -> ScriptRun:
        """Runs it to its end or its deadline; cancelling kills everything that it started.

        Raises:
            PathError: the path is refused or leads to no file.
            SandboxError: it could not be started.
        """
        # A script that a client sent is code like any that a model writes: no operator installed it.
        reason = code_refusal(self._executor, self._options) if request.is_sent else self.unavailable_reason
        if reason:
            return ScriptRun(text=f"{reason} The script was not run.", code="sandbox-unavailable")
        source = await asyncio.to_thread(read_script, request.directory, request.path)
        command = interpreter(request.path, source, self._options.interpreters)
        if not command:
            return self._no_interpreter(request.path)
        async with self._place() as workspace, _readable(request, source, command) as directory:
            launch = await asyncio.to_thread(self._launch, request, workspace, command, directory)
            if launch is None:
                text = f"{command[0]} is not installed on this host, so {request.path} cannot be run."
                return ScriptRun(text=text, code="interpreter-missing")
            return await self._finish(request, source, workspace, launch)

    def _place(self) -> AbstractAsyncContextManager[Workspace]:
        if self._workspace is not None:
            return nullcontext(self._workspace)
        return leased_workspace(self._base, persistent=False)

    def _launch(
        self, request: ScriptRequest, workspace: Workspace, command: tuple[str, ...], directory: str
    ) -> Launch | None:
        """What to start, None when the interpreter is not there. ``directory`` is where the script is run from."""
        granted = () if request.is_sent else self._options.grants.get(request.skill, ())
        allowed = (name for name in granted if self._options.grants_provider_keys or not is_provider_key(name))
        given = {name: self._host[name] for name in allowed if name in self._host}
        network = open_network(workspace, self._host) if self._options.scripts_network else OpenNetwork()
        environment = {**given, **session_environment(workspace, self._host), **network.env, SKILL_DIR: directory}
        # Authors write scripts that import each other from the skill's root, where their own harness starts them.
        environment["PYTHONPATH"] += os.pathsep + directory
        shell = self._executor.shell
        program, needs = command[0], ()
        if shell is None or not shell.is_in_process:
            program, needs = find_program(command[0], workspace, environment)
        if not program:
            return None
        readable, writable = launch_paths(workspace, "script")
        script = os.path.join(directory, *split_path(request.path))  # noqa: PTH118 - a string is what is launched
        return Launch(
            command=(program, *command[1:], script, *request.arguments),
            purpose="script",
            cwd=workspace.work,
            env=environment,
            readable=tuple(dict.fromkeys((*readable, *needs, *network.readable, request.directory, directory))),
            writable=writable,
            network=Network(mode="open" if self._options.scripts_network else "none"),
            deadline_s=self._options.script_timeout_s,
            max_output_bytes=self._options.output_bytes,
        )

    async def _finish(self, request: ScriptRequest, source: bytes, workspace: Workspace, launch: Launch) -> ScriptRun:
        declared = await asyncio.to_thread(_declared, request, source)
        tracker = self._tracker or FileTracker(workspace, was_empty=False)
        await asyncio.to_thread(tracker.begin)
        notes = await self._provide(request, (*request.packages, *declared), workspace)

        async def once(deadline_s: float) -> Outcome:
            return await self._executor.run(replace(launch, deadline_s=deadline_s))

        if self._packages is None:
            outcome = await once(launch.deadline_s)
            missing = missing_package(outcome)
            wanted = (*request.packages, *declared, *([missing.name] if missing else ()))
            if outcome.exit_code and wanted:
                named = one_line(", ".join(dict.fromkeys(wanted)))
                notes.append(f"This script asks for packages ({named}); installing is not enabled on this host.")
        else:
            outcome, more = await self._packages.run(
                once, workspace, deadline_s=launch.deadline_s, folders=(request.directory,)
            )
            notes += more
        news = await asyncio.to_thread(tracker.end)
        if self._keep is not None and news.files:
            await self._keep(workspace, news.files)
        shown = _as_told(outcome, workspace, (request.directory, launch.env[SKILL_DIR]))
        text = render_outcome(
            f"Ran {one_line('/'.join(split_path(request.path)))}",
            shown,
            self._executor.confinement,
            news=news,
            notes=notes,
        )
        if news.made and self._keep is None and not workspace.is_persistent:
            text += "\nThese files are gone now: nothing is kept between calls on this host."
        code = "" if outcome.exit_code == 0 else "script-failed"
        hidden = secret_values(self._host, also=self._options.grants.get(request.skill, ()))
        reason = masked(why_it_failed(shown), hidden) if code else ""
        return ScriptRun(text=masked(text, hidden), code=code, reason=reason, outcome=outcome, produced=news.files)

    async def _provide(self, request: ScriptRequest, wanted: Sequence[str], workspace: Workspace) -> list[str]:
        """Installs what is named, each name once in a workspace that stays."""
        done = self._provided if workspace.is_persistent else set[str]()
        fresh = [name for name in dict.fromkeys(wanted) if name not in done]
        if self._packages is None or not fresh:
            return []
        done.update(fresh)
        ecosystem: Ecosystem = "node" if extension(request.path) in {".js", ".mjs"} else "python"
        return list(await self._packages.provide(fresh, workspace, ecosystem=ecosystem))

    def _no_interpreter(self, path: str) -> ScriptRun:
        endings = allowed_endings(self._options.interpreters)
        text = f"{path} is not a script that this host runs. Scripts that can be run end in: {endings}."
        return ScriptRun(text=text, code="script-not-runnable")


def _is_file(work: str, name: str) -> bool:
    """No link out of the working directory is followed: it would tell which files the host has."""
    try:
        os.close(open_inside(work, name, place="work"))
    except PathError:
        return False
    return True


def _readable(request: ScriptRequest, source: bytes, command: Sequence[str]) -> AbstractAsyncContextManager[str]:
    """The skill's directory; a copy with Unix line ends for a shell script that was saved with others."""
    if is_shell(command) and b"\r\n" in source:
        return leased(partial(unix_copy, request.directory, request.path), bury)
    return nullcontext(request.directory)


def _as_told(outcome: Outcome, workspace: Workspace, directories: Sequence[str]) -> Outcome:
    """What was printed, without the paths of this host: as they are in the working directory and in the skill."""

    def told(text: str) -> str:
        for directory in directories:
            text = skill_paths(text, directory, f"${SKILL_DIR}")
        return relative_paths(text, workspace, workspace.work)

    return replace(outcome, stdout=with_text(outcome.stdout, told), stderr=with_text(outcome.stderr, told))


def _declared(request: ScriptRequest, source: bytes) -> tuple[str, ...]:
    """What a Python script's header and the requirements files at the skill's root and beside it name."""
    if extension(request.path) not in {".py", ""}:
        return ()
    names = list(header_packages(source.decode("utf-8", "replace")))
    folder = request.path.replace("\\", "/").rpartition("/")[0]
    for path in dict.fromkeys((REQUIREMENTS, f"{folder}/{REQUIREMENTS}" if folder else REQUIREMENTS)):
        with contextlib.suppress(PathError):
            names += required_packages(read_script(request.directory, path).decode("utf-8", "replace"))
    return tuple(dict.fromkeys(names))
