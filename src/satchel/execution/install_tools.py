"""The pip and npm that the host calls for a workspace, and how they are called.

A program that was left in a workspace may be the runtime that packages are installed for. It never says where they come
from, and never runs in a launch that has a network: those run programs of the host alone, see nothing that a program of
the session could write, and begin in a directory that was empty.
"""

# ruff: noqa: PTH118 - plain strings, as in the workspace.

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from satchel.errors import SandboxError
from satchel.execution.certificates import OpenNetwork, snapshot_certificates
from satchel.execution.environment import find_program, host_path, launch_paths, session_environment
from satchel.execution.indexes import host_entries
from satchel.execution.linking import show_python
from satchel.execution.packages import Ecosystem
from satchel.execution.pip_start import FETCH, START
from satchel.execution.targets import PROBE, Target, read_target
from satchel.execution.workspace import Workspace, host_python
from satchel.ports.execution import Executor, Launch, Limits, Network, Outcome, Purpose
from satchel.scratch.removing import remove_tree

PROBE_S = 60.0

_LIMITS = Limits(
    memory_bytes=3 * 1024**3,
    processes=256,
    file_bytes=2 * 1024**3,
    written_bytes=4 * 1024**3,
    held_bytes=8 * 1024**3,
    tmp_bytes=1024**3,
    open_files=4096,
)
_PLACE_OF_PIP = """
import os, pip
runner = os.path.join(os.path.dirname(os.path.abspath(pip.__file__)), "__pip-runner__.py")
print(runner if os.path.isfile(runner) else "")
"""
_DEFAULTS_OF_PIP = "from pip._internal.models.index import PyPI as i; print(i.simple_url, i.file_storage_domain)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pip:
    """The program of a pip and a Python that has it, which is one of the host."""

    python: str
    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTools:
    """``python`` is what packages are installed for, ``program`` that of the pip that it runs; "" without one.

    ``fetcher`` is what asks an index where ``python`` is a program of the session, else None; ``target`` is then what
    that Python says of itself, None when it cannot be read. ``needs`` are paths that they read.
    """

    python: str
    program: str
    needs: tuple[str, ...]
    fetcher: Pip | None = None
    target: Target | None = None


class InstallTools:
    """Finds and launches them for the workspaces of one session. ``host`` is this process's environment.

    ``public_only`` as ``InstallOptions`` has it.
    """

    def __init__(self, executor: Executor, host: Mapping[str, str], *, public_only: bool = False) -> None:
        self._executor = executor
        self._host = dict(host)
        self._public_only = public_only
        self._pips: dict[str, Pip] = {}
        self._defaults: dict[Ecosystem, tuple[str, ...]] = {}

    async def find_python(self, workspace: Workspace) -> PythonTools:
        """The Python that a program of the session would call, for want of one the host's, and a pip for it."""
        python, own, needs = await asyncio.to_thread(self._pythons, workspace)
        if not _is_of_session(python, workspace):
            pip = await self._host_pip((python, *own), workspace, needs)
            return PythonTools(python=python, program=pip.program, needs=needs)
        fetcher = await self._host_pip(own, workspace, needs)
        # It may be too old or too new for the host's.
        program = await self._place_of_pip(python, workspace, needs) or fetcher.program
        target: Target | None = None
        if program:
            command = (python, "-I", "-S", "-c", PROBE, os.path.dirname(os.path.dirname(program)))  # noqa: PTH120
            outcome = await self.in_session(command, workspace, needs, purpose="probe")
            target = read_target(outcome.stdout.text) if outcome.exit_code == 0 else None
        return PythonTools(
            python=python, program=program if fetcher.program else "", needs=needs, fetcher=fetcher, target=target
        )

    async def find_npm(self, workspace: Workspace) -> tuple[str, tuple[str, ...]]:
        """The host's npm, "" without one, and the paths that it reads. A session's own is never called."""
        return await asyncio.to_thread(self._of_host, "npm", workspace)

    async def environment_for(self, tools: PythonTools, workspace: Workspace) -> str:
        """The virtual environment for that Python, "" when none can be made; PYTHONPATH names its packages."""
        version = f" {tools.target.version}" if tools.target else ""
        mark = hashlib.sha256(f"{tools.python}{version}".encode()).hexdigest()[:8]
        folder = os.path.join(workspace.packages, f"env-{mark}")
        if not await asyncio.to_thread(os.path.isdir, folder):
            is_made = False
            try:
                is_made = await self._make_environment(tools, workspace, folder)
            finally:
                if not is_made:
                    await asyncio.to_thread(remove_tree, folder)
            if not is_made:
                return ""
        await asyncio.to_thread(show_python, workspace, folder)
        return folder

    async def default_hosts(self, ecosystem: Ecosystem, workspace: Workspace) -> tuple[str, ...]:
        """The hosts that an installer without any configuration uses, by its own word; () when there is none.

        Only the host's own programs are asked: what a program of the session answers would open the network to it.
        """
        if ecosystem not in self._defaults:
            found = await self._ask_defaults(ecosystem, workspace)
            if not found:
                return ()
            self._defaults[ecosystem] = found
        return self._defaults[ecosystem]

    async def on_host(
        self,
        command: tuple[str, ...],
        workspace: Workspace,
        needs: Sequence[str],
        *,
        place: str = "",
        hosts: tuple[str, ...] = (),
        deadline_s: float = PROBE_S,
        certificates: Mapping[str, str] | None = None,
        purpose: Purpose = "install",
    ) -> Outcome:
        """Runs a program of the host to its end. It may write ``place``, where packages lie when that is "".

        ``certificates`` are bundles by the variable for them.

        Raises:
            SandboxError: it could not be started, or is a program of the session.
        """
        if _is_of_session(command[0], workspace):
            raise SandboxError("launch-failed", "A program of the session is not run with a network.")
        place = place or workspace.packages
        scratch = os.path.join(place, ".tmp")
        trusted, readable, environment = await asyncio.to_thread(self._prepared, workspace, scratch, certificates or {})
        network = Network()
        if hosts:
            narrowed = Network(mode="hosts", hosts=hosts, is_public=self._public_only)
            network = narrowed if self._executor.confinement.hosts else Network(mode="open")
        launch = Launch(
            command=command,
            purpose=purpose,
            cwd=scratch,
            env={
                **environment,
                **dict.fromkeys(("HOME", "PWD", "TMPDIR", "TEMP", "TMP"), scratch),
                **trusted.env,
            },
            readable=tuple(dict.fromkeys((*readable, *needs, *trusted.readable))),
            writable=(place,),
            network=network,
            deadline_s=deadline_s,
            limits=_LIMITS,
        )
        try:
            return await self._executor.run(launch)
        finally:
            await asyncio.to_thread(remove_tree, scratch)

    async def in_session(
        self,
        command: tuple[str, ...],
        workspace: Workspace,
        needs: Sequence[str],
        *,
        readable: tuple[str, ...] = (),
        writable: tuple[str, ...] = (),
        deadline_s: float = PROBE_S,
        purpose: Purpose = "install",
    ) -> Outcome:
        """Runs a program of the session to its end, without a network. Of what installs made it sees what is named.

        Raises:
            SandboxError: it could not be started.
        """
        given, _ = await asyncio.to_thread(launch_paths, workspace, "install")
        environment = await asyncio.to_thread(self._environment, workspace, is_of_session=True)
        launch = Launch(
            command=command,
            purpose=purpose,
            cwd=workspace.tmp,
            env=environment | {"PWD": workspace.tmp},
            readable=tuple(dict.fromkeys((workspace.work, *given, *needs, *readable))),
            writable=(workspace.tmp, *writable),
            deadline_s=deadline_s,
            limits=_LIMITS,
        )
        return await self._executor.run(launch)

    async def _make_environment(self, tools: PythonTools, workspace: Workspace, folder: str) -> bool:
        command = (tools.python, "-I", "-m", "venv", "--without-pip", "--symlinks", folder)
        if tools.fetcher is None:
            outcome = await self.on_host(command, workspace, tools.needs)
        else:
            await asyncio.to_thread(os.mkdir, folder, 0o700)
            outcome = await self.in_session(command, workspace, tools.needs, writable=(folder,))
        return outcome.exit_code == 0

    def _pythons(self, workspace: Workspace) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """That of the session, those of the host, and the paths that they read. Blocks."""
        python, needs = find_program("python", workspace, {"PATH": self._session_path(workspace)})
        fallback, more = self._of_host("python3", workspace)
        return python or fallback, (host_python(), fallback), tuple(dict.fromkeys((*needs, *more)))

    def _of_host(self, name: str, workspace: Workspace) -> tuple[str, tuple[str, ...]]:
        """Blocks."""
        return find_program(name, workspace, {"PATH": os.pathsep.join(host_path(self._host))})

    async def _host_pip(self, candidates: Sequence[str], workspace: Workspace, needs: Sequence[str]) -> Pip:
        """The first Python of the host with a pip, and that pip: it installs for other Pythons as well."""
        key = candidates[0]
        if key not in self._pips:
            for candidate in dict.fromkeys(candidates):
                program = await self._place_of_pip(candidate, workspace, needs) if candidate else ""
                if program:
                    self._pips[key] = Pip(python=candidate, program=program)
                    break
        return self._pips.get(key, Pip(python="", program=""))

    async def _place_of_pip(self, python: str, workspace: Workspace, needs: Sequence[str]) -> str:
        command = (python, "-I", "-c", _PLACE_OF_PIP)
        run = self.in_session if _is_of_session(python, workspace) else self.on_host
        outcome = await run(command, workspace, needs, purpose="probe")
        place = outcome.stdout.text.strip() if outcome.exit_code == 0 else ""
        return place if os.path.isabs(place) else ""  # noqa: PTH117

    async def _ask_defaults(self, ecosystem: Ecosystem, workspace: Workspace) -> tuple[str, ...]:
        if ecosystem == "python":
            python, needs = await asyncio.to_thread(self._of_host, "python3", workspace)
            pip = await self._host_pip((await asyncio.to_thread(host_python), python), workspace, needs)
            command = (pip.python, "-I", "-c", _DEFAULTS_OF_PIP)
        else:
            npm, needs = await self.find_npm(workspace)
            # An install may write where npm looks for a project's settings, but not here.
            command = (npm, "config", "get", "registry", "--prefix", workspace.shims)
        if not command[0]:
            return ()
        outcome = await self.on_host(command, workspace, needs, purpose="probe")
        words = outcome.stdout.text.split() if outcome.exit_code == 0 else []
        return host_entries(word if "://" in word else f"https://{word}" for word in words)

    def _prepared(
        self, workspace: Workspace, scratch: str, certificates: Mapping[str, str]
    ) -> tuple[OpenNetwork, tuple[str, ...], dict[str, str]]:
        """The certificates, the paths that are read and the environment; ``scratch`` is made anew. Blocks."""
        trusted = snapshot_certificates(workspace, {**self._host, **certificates})
        readable, _ = launch_paths(workspace, "install")
        remove_tree(scratch)
        os.mkdir(scratch, 0o700)  # noqa: PTH102
        return trusted, readable, self._environment(workspace, is_of_session=False)

    def _session_path(self, workspace: Workspace) -> str:
        """Blocks."""
        return os.pathsep.join((workspace.local_bin, workspace.shims, *host_path(self._host)))

    def _environment(self, workspace: Workspace, *, is_of_session: bool) -> dict[str, str]:
        """No file in the workspace configures an installer. Blocks."""
        environment = session_environment(workspace, self._host)
        for name in ("PYTHONPATH", "NODE_PATH", "PYTHONPYCACHEPREFIX"):
            environment.pop(name, None)
        return environment | {
            "PATH": self._session_path(workspace) if is_of_session else os.pathsep.join(host_path(self._host)),
            "PIP_CONFIG_FILE": os.devnull,
            "PYTHONNOUSERSITE": "1",
            "npm_config_userconfig": os.devnull,
            "npm_config_globalconfig": os.path.join(workspace.shims, ".npmrc-of-nobody"),
        }


def pip_command(tools: PythonTools, environment: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """What runs pip for that virtual environment, without running anything of it."""
    return (tools.python, "-I", "-S", "-c", START, environment, tools.program, *arguments)


def fetch_command(fetcher: Pip, target: Target, folder: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """What has the host's pip put the wheels for another Python into ``folder``; ``arguments`` behind ``download``."""
    start = (FETCH, target.version, target.implementation, os.path.join(folder, "nothing"), fetcher.program)
    return (fetcher.python, "-I", "-S", "-c", *start, "download", *target.options, f"--dest={folder}", *arguments)


def _is_of_session(program: str, workspace: Workspace) -> bool:
    return program.startswith(workspace.root + os.sep)
