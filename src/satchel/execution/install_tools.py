"""The pip and npm that the host calls for a workspace, and how they are called.

What programs left in a workspace may be the runtime that packages are installed for; it never says where they come
from.
"""

# ruff: noqa: PTH118 - plain strings, as in the workspace.

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from satchel.execution.certificates import snapshot_certificates
from satchel.execution.environment import find_program, host_path, launch_paths, session_environment
from satchel.execution.indexes import host_entries
from satchel.execution.linking import show_python
from satchel.execution.packages import Ecosystem
from satchel.execution.pip_start import START
from satchel.execution.workspace import Workspace, host_python, remove_tree
from satchel.ports.execution import Executor, Launch, Limits, Network, Outcome, Purpose

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
class Tools:
    """``python`` is what packages are installed for, ``pip`` the program of the pip that does it; "" without one."""

    python: str
    pip: str
    npm: str
    needs: tuple[str, ...]


class InstallTools:
    """Finds and launches them for the workspaces of one session. ``host`` is this process's environment.

    ``public_only`` as ``InstallOptions`` has it.
    """

    def __init__(self, executor: Executor, host: Mapping[str, str], *, public_only: bool = False) -> None:
        self._executor = executor
        self._host = dict(host)
        self._public_only = public_only
        self._pips: dict[str, str] = {}
        self._defaults: dict[Ecosystem, tuple[str, ...]] = {}

    async def find(self, workspace: Workspace) -> Tools:
        """Those that a program of the session would call, for want of them the host's."""
        environment = await asyncio.to_thread(self._environment, workspace, "install")
        python, needs = await asyncio.to_thread(find_program, "python", workspace, environment)
        npm, more = await asyncio.to_thread(find_program, "npm", workspace, environment)
        fallback, others = await asyncio.to_thread(self._of_host, "python3", workspace)
        needs = tuple(dict.fromkeys((*needs, *more, *others)))
        python = python or fallback
        pip = self._pips.get(python)
        if not pip:
            candidates = (python, await asyncio.to_thread(host_python), fallback)
            pip = self._pips[python] = (await self._pip(candidates, workspace, needs))[1]
        return Tools(python=python, pip=pip, npm=npm, needs=needs)

    async def environment_for(self, tools: Tools, workspace: Workspace) -> str:
        """The virtual environment for that Python, "" when none can be made; PYTHONPATH names its packages."""
        mark = hashlib.sha256(tools.python.encode()).hexdigest()[:8]
        folder = os.path.join(workspace.packages, f"env-{mark}")
        if not await asyncio.to_thread(os.path.isdir, folder):
            command = (tools.python, "-I", "-m", "venv", "--without-pip", "--symlinks", folder)
            outcome = await self.launch(command, workspace, tools.needs)
            if outcome.exit_code != 0:
                await asyncio.to_thread(remove_tree, folder)
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

    async def launch(
        self,
        command: tuple[str, ...],
        workspace: Workspace,
        needs: Sequence[str],
        *,
        hosts: tuple[str, ...] = (),
        deadline_s: float = PROBE_S,
        certificates: Mapping[str, str] | None = None,
        purpose: Purpose = "install",
    ) -> Outcome:
        """Runs an installer, or what it needs, to its end. ``certificates`` are bundles by the variable for them.

        A probe has no program of the session on its PATH.
        """
        trusted = await asyncio.to_thread(snapshot_certificates, workspace, {**self._host, **(certificates or {})})
        environment = await asyncio.to_thread(self._environment, workspace, purpose)
        readable, _ = await asyncio.to_thread(launch_paths, workspace, "install")
        scratch = os.path.join(workspace.packages, ".tmp")
        await asyncio.to_thread(os.makedirs, scratch, 0o700, exist_ok=True)
        network = Network()
        if hosts:
            narrowed = Network(mode="hosts", hosts=hosts, is_public=self._public_only)
            network = narrowed if self._executor.confinement.hosts else Network(mode="open")
        launch = Launch(
            command=command,
            purpose=purpose,
            cwd=workspace.packages,
            env={**environment, **trusted.env},
            readable=tuple(dict.fromkeys((workspace.work, *readable, *needs, *trusted.readable))),
            writable=(workspace.packages,),
            network=network,
            deadline_s=deadline_s,
            limits=_LIMITS,
        )
        try:
            return await self._executor.run(launch)
        finally:
            await asyncio.to_thread(remove_tree, scratch)

    def _of_host(self, name: str, workspace: Workspace) -> tuple[str, tuple[str, ...]]:
        """Blocks."""
        return find_program(name, workspace, {"PATH": os.pathsep.join(host_path(self._host))})

    async def _pip(self, candidates: Sequence[str], workspace: Workspace, needs: Sequence[str]) -> tuple[str, str]:
        """The first Python with a pip, and that pip: it installs for other Pythons as well."""
        for candidate in dict.fromkeys(candidates):
            if candidate:
                command = (candidate, "-I", "-c", _PLACE_OF_PIP)
                outcome = await self.launch(command, workspace, needs, purpose="probe")
                place = outcome.stdout.text.strip() if outcome.exit_code == 0 else ""
                if os.path.isabs(place):  # noqa: PTH117
                    return candidate, place
        return "", ""

    async def _ask_defaults(self, ecosystem: Ecosystem, workspace: Workspace) -> tuple[str, ...]:
        if ecosystem == "python":
            python, needs = await asyncio.to_thread(self._of_host, "python3", workspace)
            python, _ = await self._pip((await asyncio.to_thread(host_python), python), workspace, needs)
            command = (python, "-I", "-c", _DEFAULTS_OF_PIP)
        else:
            npm, needs = await asyncio.to_thread(self._of_host, "npm", workspace)
            # An install may write where npm looks for a project's settings, but not here.
            command = (npm, "config", "get", "registry", "--prefix", workspace.shims)
        if not command[0]:
            return ()
        outcome = await self.launch(command, workspace, needs, purpose="probe")
        words = outcome.stdout.text.split() if outcome.exit_code == 0 else []
        return host_entries(word if "://" in word else f"https://{word}" for word in words)

    def _environment(self, workspace: Workspace, purpose: Purpose) -> dict[str, str]:
        """No file in the workspace configures an installer: its home is where only installs write. Blocks."""
        own = () if purpose == "probe" else (workspace.local_bin, workspace.shims)
        scratch = os.path.join(workspace.packages, ".tmp")
        environment = session_environment(workspace, self._host)
        for name in ("PYTHONPATH", "NODE_PATH"):
            environment.pop(name, None)
        return environment | {
            "PATH": os.pathsep.join((*own, *host_path(self._host))),
            "HOME": workspace.packages,
            "PWD": workspace.packages,
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), scratch),
            "PIP_CONFIG_FILE": os.devnull,
            "PYTHONNOUSERSITE": "1",
            "npm_config_userconfig": os.devnull,
            "npm_config_globalconfig": os.path.join(workspace.shims, ".npmrc-of-nobody"),
        }


def pip_command(tools: Tools, environment: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """What runs pip for that virtual environment, without running anything of it."""
    return (tools.python, "-I", "-S", "-c", START, environment, tools.pip, *arguments)
