"""Packages that the host installs for a workspace, with words of its own, from its own registries.

Only wheels and no install scripts: no code of a package runs before a program of the session imports it. Python
packages live in a virtual environment of the workspace, so that a later install sees the earlier ones.
"""

# ruff: noqa: PTH118 - plain strings, as in the workspace.

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from satchel.errors import SandboxError
from satchel.execution.certificates import snapshot_certificates
from satchel.execution.environment import find_program, host_path, launch_paths, session_environment
from satchel.execution.indexes import NodeRegistry, PythonIndex, host_entries, node_registry, python_index
from satchel.execution.linking import link_programs, own_names, place_link, show_python, write_once
from satchel.execution.options import ExecutionOptions, install_refusal
from satchel.execution.packages import Ecosystem, Package, not_allowed, read_package
from satchel.execution.recovery import rerun_with_installs
from satchel.execution.requests import CommandPlan, InstallRequest
from satchel.execution.trouble import explained, unreachable
from satchel.execution.workspace import Workspace, host_python, remove_tree
from satchel.ports.execution import Executor, Launch, Limits, Network, Outcome, Purpose

_LIMITS = Limits(
    memory_bytes=3 * 1024**3,
    processes=256,
    file_bytes=2 * 1024**3,
    written_bytes=4 * 1024**3,
    tmp_bytes=1024**3,
    open_files=4096,
)
_PROBE_S = 60.0
_PIP = ("--disable-pip-version-check", "--no-input")
_PIP_INSTALL = (
    "--only-binary=:all:", "--no-cache-dir", "--progress-bar=off", "--no-warn-script-location", "--upgrade",
    "--upgrade-strategy=only-if-needed", "--retries=2", "--timeout=20",
    # Programs keep bytecode elsewhere (PYTHONPYCACHEPREFIX): two thirds of an install's work, which nobody would read.
    "--no-compile",
)  # fmt: skip
_NPM_INSTALL = (
    "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--no-update-notifier", "--save",
    "--loglevel=error", "--fetch-retries=2", "--fetch-timeout=20000",
)  # fmt: skip
_DEFAULTS_OF_PIP = "from pip._internal.models.index import PyPI as i; print(i.simple_url, i.file_storage_domain)"
_INSTALLED = re.compile(r"^Successfully installed (?P<names>.+)$", re.MULTILINE)
_CLASH = re.compile(r"^\S{1,99} \S{1,99} requires .{1,99}, but you have .{1,99} which is incompatible\.$", re.MULTILINE)
_MOST_CLASHES = 3
_STARTED = '{"private": true}\n'
_MOST_NAMED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallResult:
    """``note`` is a sentence for the model: what is installed now, or why not and what to do next."""

    ok: bool
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tools:
    """``python`` is what packages are installed for, ``pip`` the command that installs them, () without one."""

    python: str
    pip: tuple[str, ...]
    npm: str
    needs: tuple[str, ...]


class _CannotInstallError(Exception):
    """Its text is the sentence for the model."""


class Installer:
    """Installs for the workspaces of one session, one install at a time.

    ``host`` is this process's environment: of it only the configuration of pip and npm, without passwords, and the
    certificates that it trusts are used.
    """

    def __init__(self, executor: Executor, options: ExecutionOptions, host: Mapping[str, str]) -> None:
        self._executor = executor
        self._options = options.install
        self._refusal = install_refusal(executor.confinement, options)
        self._host = dict(host)
        self._longest_s = options.install_timeout_s
        self._lock = asyncio.Lock()
        self._hosts: dict[Ecosystem, tuple[str, ...]] = {}
        self._pips: dict[str, tuple[str, ...]] = {}

    async def perform(self, plan: CommandPlan, workspace: Workspace, *, deadline_s: float) -> InstallResult:
        """Everything that a command line asked for, in order; the first failure ends it."""
        end = time.monotonic() + deadline_s
        notes: list[str] = list(plan.notes)
        for request in plan.requests:
            result = await self.install(request, workspace, deadline_s=end - time.monotonic())
            if not result.ok:
                return InstallResult(ok=False, note=f"{result.note} Nothing of this command ran.")
            notes.append(result.note)
        return InstallResult(ok=True, note="\n".join(notes))

    async def install(self, request: InstallRequest, workspace: Workspace, *, deadline_s: float) -> InstallResult:
        """Installs the packages of one request. Never raises for what a registry, an installer or a sandbox says."""
        sentence = not_allowed(request.packages, self._options.packages) or self._refusal
        if os.name == "nt":
            sentence = "Packages are installed on Linux and macOS only: use what is installed."
        if not self._options.enabled:
            sentence = "Installing packages is not enabled here."
        if sentence:
            return InstallResult(ok=False, note=sentence)
        deadline_s = min(deadline_s, self._longest_s)
        if deadline_s <= 0:
            return InstallResult(
                ok=False, note="No time was left to install packages: ask for them in a call of their own."
            )
        specs = [package.spec for package in request.packages]
        install = self._python if request.ecosystem == "python" else self._node
        try:
            # What is found out before the installer starts counts, too.
            async with asyncio.timeout(deadline_s), self._lock:
                return await install(specs, workspace, deadline_s)
        except TimeoutError:
            shown = " ".join(specs[:_MOST_NAMED])
            note = f"Installing {shown} took longer than {deadline_s:.0f} s. Ask for fewer or smaller packages."
        except _CannotInstallError as error:
            note = str(error)
        except SandboxError as error:
            note = f"The installer could not be started: {error.message}"
        except OSError as error:
            note = f"The place of packages could not be prepared: {error.strerror or error}."
        return InstallResult(ok=False, note=note)

    async def provide(
        self, packages: Sequence[str], workspace: Workspace, *, ecosystem: Ecosystem = "python"
    ) -> tuple[str, ...]:
        """Installs what a skill or a call names, all at once. The notes say what could not be had."""
        read = [read_package(ecosystem, text) for text in packages]
        notes = [entry for entry in read if isinstance(entry, str)]
        wanted = tuple(entry for entry in read if isinstance(entry, Package))
        if wanted:
            request = InstallRequest(ecosystem=ecosystem, packages=wanted)
            notes.append((await self.install(request, workspace, deadline_s=self._longest_s)).note)
        return tuple(notes)

    async def add(self, package: Package, workspace: Workspace, *, deadline_s: float) -> str:
        """Installs one package; "" when it is there, else a sentence why not."""
        request = InstallRequest(ecosystem=package.ecosystem, packages=(package,))
        result = await self.install(request, workspace, deadline_s=deadline_s)
        return "" if result.ok else result.note

    async def run(
        self, run: Callable[[float], Awaitable[Outcome]], workspace: Workspace, *, deadline_s: float
    ) -> tuple[Outcome, tuple[str, ...]]:
        """Runs, and again after each missing import that could be installed: ``rerun_with_installs``."""
        own = await asyncio.to_thread(own_names, workspace)
        return await rerun_with_installs(run, self, workspace, deadline_s=deadline_s, own=own.__contains__)

    async def _python(self, specs: Sequence[str], workspace: Workspace, deadline_s: float) -> InstallResult:
        tools = await self._tools(workspace)
        if not tools.pip:
            raise _CannotInstallError(
                "This host has no pip, so no Python package can be installed: use what is installed."
            )
        index = await asyncio.to_thread(python_index, self._host)
        environment = await self._environment_for(tools, workspace)
        hosts = await self._allowed("python", index.hosts, tools, workspace, has_own=bool(index.url))
        command = (
            *tools.pip, *_PIP, "--python", os.path.join(environment, "bin", "python"), "install", *_PIP_INSTALL,
            *_index_options(index), "--", *specs,
        )  # fmt: skip
        needs = (*tools.needs, *index.folders)
        outcome = await self._launch(command, workspace, needs, hosts, deadline_s, certificates=index.certificates)
        if outcome.exit_code != 0:
            return InstallResult(ok=False, note=explained("pip", specs, outcome, hosts, has_secret=index.has_secret))
        await asyncio.to_thread(link_programs, workspace, os.path.join(environment, "bin"))
        found = _INSTALLED.findall(outcome.stdout.text)
        clashes = _CLASH.findall(outcome.stderr.text)[:_MOST_CLASHES]
        note = " ".join((_done(specs, found[-1].split() if found else []), *clashes))
        return InstallResult(ok=True, note=note)

    async def _node(self, specs: Sequence[str], workspace: Workspace, deadline_s: float) -> InstallResult:
        tools = await self._tools(workspace)
        if not tools.npm:
            raise _CannotInstallError(
                "This host has no npm, so no JavaScript package can be installed: use what is installed."
            )
        registry = await asyncio.to_thread(node_registry, self._host)
        hosts = await self._allowed("node", registry.hosts, tools, workspace, has_own=bool(registry.url))
        prefix = workspace.node_packages
        await asyncio.to_thread(write_once, workspace.packages, os.path.join(prefix, "package.json"), _STARTED)
        cache = os.path.join(workspace.packages, ".npm")
        command = (
            tools.npm, "install", *_NPM_INSTALL, "--prefix", prefix, "--cache", cache,
            *_registry_options(registry), "--", *specs,
        )  # fmt: skip
        outcome = await self._launch(
            command, workspace, tools.needs, hosts, deadline_s, certificates=registry.certificates
        )
        if outcome.exit_code != 0:
            return InstallResult(ok=False, note=explained("npm", specs, outcome, hosts, has_secret=registry.has_secret))
        modules = os.path.join(prefix, "node_modules")
        await asyncio.to_thread(link_programs, workspace, os.path.join(modules, ".bin"))
        # Modules of the newer kind look for packages beside the program, and nowhere else.
        place = os.path.join(workspace.work, "node_modules")
        await asyncio.to_thread(place_link, workspace.work, place, modules, replaces=False)
        return InstallResult(ok=True, note=_done(specs, []))

    async def _tools(self, workspace: Workspace) -> _Tools:
        environment = await asyncio.to_thread(self._environment, workspace)
        python, needs = await asyncio.to_thread(find_program, "python", workspace, environment)
        npm, more = await asyncio.to_thread(find_program, "npm", workspace, environment)
        fallback, others = await asyncio.to_thread(
            find_program, "python3", workspace, {"PATH": environment["SYSTEM_PATH"]}
        )
        needs = tuple(dict.fromkeys((*needs, *more, *others)))
        python = python or fallback
        pip = self._pips.get(python) or await self._pip(
            (python, await asyncio.to_thread(host_python), fallback), workspace, needs
        )
        if pip:
            self._pips[python] = pip
        return _Tools(python=python, pip=pip, npm=npm, needs=needs)

    async def _pip(self, candidates: Sequence[str], workspace: Workspace, needs: Sequence[str]) -> tuple[str, ...]:
        """The first pip that answers: that of another Python installs for this one as well."""
        for candidate in dict.fromkeys(candidates):
            pip = (candidate, "-I", "-m", "pip")
            if candidate:
                outcome = await self._launch((*pip, "--version"), workspace, needs, (), _PROBE_S, purpose="probe")
                if outcome.exit_code == 0:
                    return pip
        return ()

    async def _environment_for(self, tools: _Tools, workspace: Workspace) -> str:
        """The virtual environment for that Python in the workspace; its packages are what PYTHONPATH names."""
        mark = hashlib.sha256(tools.python.encode()).hexdigest()[:8]
        folder = os.path.join(workspace.packages, f"env-{mark}")
        if not await asyncio.to_thread(os.path.isdir, folder):
            command = (tools.python, "-I", "-m", "venv", "--without-pip", "--symlinks", folder)
            outcome = await self._launch(command, workspace, tools.needs, (), _PROBE_S)
            if outcome.exit_code != 0:
                await asyncio.to_thread(remove_tree, folder)
                raise _CannotInstallError("No place for Python packages could be made here: use what is installed.")
        await asyncio.to_thread(show_python, workspace, folder)
        return folder

    async def _allowed(
        self,
        ecosystem: Ecosystem,
        configured: tuple[str, ...],
        tools: _Tools,
        workspace: Workspace,
        *,
        has_own: bool,
    ) -> tuple[str, ...]:
        """What the operator allows, or what is configured here; ``has_own``: instead of the installer's default."""
        if self._options.hosts:
            names = {_name(entry) for entry in self._options.hosts}
            outside = next((entry for entry in configured if _name(entry) not in names), "")
            if has_own and outside:
                raise _CannotInstallError(unreachable(_name(outside), self._options.hosts))
            return self._options.hosts
        if has_own:
            return configured
        if ecosystem not in self._hosts:
            self._hosts[ecosystem] = await self._defaults(ecosystem, tools, workspace)
        return tuple(dict.fromkeys((*self._hosts[ecosystem], *configured)))

    async def _defaults(self, ecosystem: Ecosystem, tools: _Tools, workspace: Workspace) -> tuple[str, ...]:
        if ecosystem == "python":
            command = (*tools.pip[:2], "-c", _DEFAULTS_OF_PIP)
        else:
            command = (tools.npm, "config", "get", "registry", "--prefix", workspace.node_packages)
        outcome = await self._launch(command, workspace, tools.needs, (), _PROBE_S, purpose="probe")
        words = outcome.stdout.text.split() if outcome.exit_code == 0 else []
        return host_entries(word if "://" in word else f"https://{word}" for word in words)

    async def _launch(
        self,
        command: tuple[str, ...],
        workspace: Workspace,
        needs: Sequence[str],
        hosts: tuple[str, ...],
        deadline_s: float,
        *,
        certificates: str = "",
        purpose: Purpose = "install",
    ) -> Outcome:
        given = {**self._host, "PIP_CERT": certificates} if certificates else self._host
        trusted = await asyncio.to_thread(snapshot_certificates, workspace, given)
        environment = await asyncio.to_thread(self._environment, workspace)
        del environment["SYSTEM_PATH"]
        readable, _ = await asyncio.to_thread(launch_paths, workspace, "install")
        scratch = os.path.join(workspace.packages, ".tmp")
        await asyncio.to_thread(os.makedirs, scratch, 0o700, exist_ok=True)
        network = Network()
        if hosts:
            network = Network(mode="hosts", hosts=hosts) if self._executor.confinement.hosts else Network(mode="open")
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

    def _environment(self, workspace: Workspace) -> dict[str, str]:
        """No file in the workspace configures an installer: its home is where only installs write."""
        system = os.pathsep.join(host_path(self._host))
        scratch = os.path.join(workspace.packages, ".tmp")
        environment = session_environment(workspace, self._host)
        for name in ("PYTHONPATH", "NODE_PATH"):
            environment.pop(name, None)
        return environment | {
            "PATH": os.pathsep.join((workspace.local_bin, workspace.shims, system)),
            "SYSTEM_PATH": system,
            "HOME": workspace.packages,
            "PWD": workspace.packages,
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), scratch),
            "PIP_CONFIG_FILE": os.devnull,
            "PYTHONNOUSERSITE": "1",
            "npm_config_userconfig": os.devnull,
            "npm_config_globalconfig": os.path.join(workspace.packages, ".npmrc-of-nobody"),
        }


def _index_options(index: PythonIndex) -> tuple[str, ...]:
    options = [f"--index-url={index.url}"] if index.url else []
    options += [f"--extra-index-url={url}" for url in index.more]
    options += [f"--find-links={folder}" for folder in index.folders]
    options += [f"--trusted-host={host}" for host in index.trusted]
    return tuple(options)


def _registry_options(registry: NodeRegistry) -> tuple[str, ...]:
    options = [f"--registry={registry.url}"] if registry.url else []
    options += [f"--{scope}:registry={url}" for scope, url in registry.scopes.items()]
    return tuple(options)


def _name(entry: str) -> str:
    """The name in an entry of hosts."""
    return entry.rpartition("//")[2].partition(":")[0].lower()


def _done(specs: Sequence[str], installed: Sequence[str]) -> str:
    shown = ", ".join(specs[:_MOST_NAMED])
    if len(specs) > _MOST_NAMED:
        shown += f" and {len(specs) - _MOST_NAMED} more"
    if not installed:
        return f"The host installed {shown}."
    versions = ", ".join(installed[:_MOST_NAMED])
    return f"The host installed {shown} ({versions}{', ...' if len(installed) > _MOST_NAMED else ''})."
