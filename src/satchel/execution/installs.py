"""Packages that the host installs for a workspace, with words of its own, from its own registries.

Only wheels and no install scripts: no code of a package runs before a program of the session imports it. Python
packages live in a virtual environment of the workspace, so that a later install sees the earlier ones.
"""

# ruff: noqa: PTH118 - plain strings, as in the workspace.

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from tempfile import mkdtemp

from satchel.errors import SandboxError
from satchel.execution.indexes import NodeRegistry, PythonIndex, node_registry, python_index
from satchel.execution.install_tools import InstallTools, PythonTools, fetch_command, pip_command
from satchel.execution.lease import leased
from satchel.execution.linking import keep_interpreters, link_programs, own_names, place_link, write_once
from satchel.execution.options import ExecutionOptions, install_refusal
from satchel.execution.output_paths import relative_capture
from satchel.execution.packages import Ecosystem, Package, not_allowed, outside_list, read_package
from satchel.execution.recovery import rerun_with_installs
from satchel.execution.requests import CommandPlan, InstallRequest
from satchel.execution.trouble import NO_GIT, explained, unreachable
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Executor, Outcome
from satchel.scratch.removing import remove_tree

_PIP = ("--disable-pip-version-check", "--no-input")
_PIP_FETCH = ("--only-binary=:all:", "--no-cache-dir", "--progress-bar=off", "--retries=2", "--timeout=20")
_PIP_INSTALL = (
    *_PIP_FETCH, "--no-warn-script-location", "--upgrade", "--upgrade-strategy=only-if-needed",
    # Programs keep bytecode elsewhere (PYTHONPYCACHEPREFIX): two thirds of an install's work, which nobody would read.
    "--no-compile",
)  # fmt: skip
_NPM_INSTALL = (
    "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--no-update-notifier", "--save",
    "--loglevel=error", "--fetch-retries=2", "--fetch-timeout=20000",
    # What comes of a repository is prepared by another npm, and that one reads the settings in it: they name programs.
    "--allow-git=none", f"--git={NO_GIT}",
)  # fmt: skip
_UNUSABLE = (
    "{} is configured on this host with a registry that is no http address, so nothing is installed from elsewhere. "
    "The operator can correct it; use what is installed instead."
)
_STRANGE = (
    "The python in .local/bin does not say which packages it can use, so none can be chosen for it. "
    "Remove it to install for the Python of this host, or use what is installed."
)
_INSTALLED = re.compile(r"^Successfully installed (?P<names>.+)$", re.MULTILINE)
_IGNORED = re.compile(r"^Ignoring (\S{1,99}): markers '(.{1,300})' don't match your environment$", re.MULTILINE)
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
class _PipCall:
    """Packages for one Python; ``end`` is on the clock of ``time.monotonic``."""

    tools: PythonTools
    specs: tuple[str, ...]
    workspace: Workspace
    index: PythonIndex
    hosts: tuple[str, ...]
    environment: str
    end: float

    @property
    def left_s(self) -> float:
        return self.end - time.monotonic()


class _CannotInstallError(Exception):
    """Its text is the sentence for the model."""


class Installer:
    """Installs for the workspaces of one session, one install at a time.

    ``host`` is this process's environment: of it only the configuration of pip and npm, without passwords, and the
    certificates that it trusts are used.
    """

    def __init__(self, executor: Executor, options: ExecutionOptions, host: Mapping[str, str]) -> None:
        self._options = options.install
        self._refusal = install_refusal(executor.confinement, options)
        self._host = dict(host)
        self._longest_s = options.install_timeout_s
        self._lock = asyncio.Lock()
        self._tools = InstallTools(executor, host, public_only=options.install.public_only)

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
        """Installs what a skill or a call names, all at once. The notes say what could not be had.

        A script runs with what could be had, so one name that is refused does not keep it from the others.
        """
        read = [read_package(ecosystem, text) for text in packages]
        notes = [entry for entry in read if isinstance(entry, str)]
        named = [entry for entry in read if isinstance(entry, Package)]
        outside = outside_list(named, self._options.packages)
        if outside:
            notes.append(not_allowed(outside, self._options.packages))
        wanted = tuple(package for package in named if package not in outside)
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
        self,
        run: Callable[[float], Awaitable[Outcome]],
        workspace: Workspace,
        *,
        deadline_s: float,
        folders: Sequence[str] = (),
    ) -> tuple[Outcome, tuple[str, ...]]:
        """Runs, and again after each missing import that could be installed: ``rerun_with_installs``.

        What has the name of a file in the working directory or in ``folders`` is no package, and where these hold too
        much to be sure of that, nothing is.
        """

        async def own() -> frozenset[str] | None:
            found = [await asyncio.to_thread(own_names, folder) for folder in (workspace.work, *folders)]
            known = [names for names in found if names is not None]
            return frozenset[str]().union(*known) if len(known) == len(found) else None

        return await rerun_with_installs(run, self, workspace, deadline_s=deadline_s, own=own)

    async def _python(self, specs: Sequence[str], workspace: Workspace, deadline_s: float) -> InstallResult:
        end = time.monotonic() + deadline_s
        tools = await self._tools.find_python(workspace)
        if not tools.program:
            raise _CannotInstallError(
                "This host has no pip, so no Python package can be installed: use what is installed."
            )
        if tools.fetcher and not tools.target:
            raise _CannotInstallError(_STRANGE)
        index = await asyncio.to_thread(python_index, self._host)
        if index.is_unusable:
            raise _CannotInstallError(_UNUSABLE.format("pip"))
        hosts = await self._allowed("python", index.hosts, workspace, has_own=bool(index.url) or index.is_offline)
        environment = await self._tools.environment_for(tools, workspace)
        if not environment:
            raise _CannotInstallError("No place for Python packages could be made here: use what is installed.")
        programs = os.path.join(environment, "bin")
        async with keep_interpreters(workspace, programs):
            outcome = await self._pip(_PipCall(
                tools=tools, specs=tuple(specs), workspace=workspace, index=index, hosts=hosts,
                environment=environment, end=end,
            ))  # fmt: skip
        if outcome.exit_code != 0:
            note = explained("pip", specs, _shown(outcome, workspace), hosts, has_secret=index.has_secret)
            return InstallResult(ok=False, note=note)
        await asyncio.to_thread(link_programs, workspace, programs)
        return InstallResult(ok=True, note=_told_by_pip(specs, outcome))

    async def _pip(self, call: _PipCall) -> Outcome:
        """One launch for a Python of the host. For one of the session the host fetches, and then it has no network."""
        tools, workspace = call.tools, call.workspace
        if tools.fetcher is None or tools.target is None:
            arguments = (*_PIP, "install", *_PIP_INSTALL, *_index_options(call.index), "--", *call.specs)
            return await self._ask_index(call, pip_command(tools, call.environment, arguments))
        async with leased(partial(mkdtemp, prefix="wheels-", dir=workspace.packages), remove_tree) as wheels:
            arguments = (*_PIP, *_PIP_FETCH, *_index_options(call.index), "--", *call.specs)
            command = fetch_command(tools.fetcher, tools.target, wheels, arguments)
            fetched = await self._ask_index(call, command, place=wheels)
            if fetched.exit_code != 0:
                return fetched
            arguments = (*_PIP, "install", *_PIP_INSTALL, "--no-index", f"--find-links={wheels}", "--", *call.specs)
            return await self._tools.in_session(
                pip_command(tools, call.environment, arguments), workspace, tools.needs,
                readable=(wheels,), writable=(call.environment,), deadline_s=call.left_s,
            )  # fmt: skip

    async def _ask_index(self, call: _PipCall, command: tuple[str, ...], *, place: str = "") -> Outcome:
        index = call.index
        return await self._tools.on_host(
            command, call.workspace, (*call.tools.needs, *index.folders), place=place, hosts=call.hosts,
            deadline_s=call.left_s, certificates={"PIP_CERT": index.certificates} if index.certificates else None,
        )  # fmt: skip

    async def _node(self, specs: Sequence[str], workspace: Workspace, deadline_s: float) -> InstallResult:
        npm, needs = await self._tools.find_npm(workspace)
        if not npm:
            raise _CannotInstallError(
                "This host has no npm, so no JavaScript package can be installed: use what is installed."
            )
        registry = await asyncio.to_thread(node_registry, self._host)
        if registry.is_unusable:
            raise _CannotInstallError(_UNUSABLE.format("npm"))
        hosts = await self._allowed("node", registry.hosts, workspace, has_own=bool(registry.url))
        prefix = workspace.node_packages
        await asyncio.to_thread(write_once, workspace.packages, os.path.join(prefix, "package.json"), _STARTED)
        cache = os.path.join(workspace.packages, ".npm")
        command = (
            npm, "install", *_NPM_INSTALL, "--prefix", prefix, "--cache", cache,
            *_registry_options(registry), "--", *specs,
        )  # fmt: skip
        outcome = await self._tools.on_host(
            command, workspace, needs, hosts=hosts, deadline_s=deadline_s,
            certificates={"NODE_EXTRA_CA_CERTS": registry.certificates} if registry.certificates else None,
        )  # fmt: skip
        if outcome.exit_code != 0:
            note = explained("npm", specs, _shown(outcome, workspace), hosts, has_secret=registry.has_secret)
            return InstallResult(ok=False, note=note)
        modules = os.path.join(prefix, "node_modules")
        await asyncio.to_thread(link_programs, workspace, os.path.join(modules, ".bin"))
        # Modules of the newer kind look for packages beside the program, and nowhere else.
        place = os.path.join(workspace.work, "node_modules")
        await asyncio.to_thread(place_link, workspace.work, place, modules, replaces=False)
        return InstallResult(ok=True, note=_done(specs, []))

    async def _allowed(
        self, ecosystem: Ecosystem, configured: tuple[str, ...], workspace: Workspace, *, has_own: bool
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
        hosts = await self._tools.default_hosts(ecosystem, workspace)
        if not hosts:
            raise _CannotInstallError(
                "Where packages come from is not known on this host. The operator can name the hosts; use what is "
                "installed instead."
            )
        return tuple(dict.fromkeys((*hosts, *configured)))


def _shown(outcome: Outcome, workspace: Workspace) -> Outcome:
    """With paths as the programs of the session see them."""
    return replace(
        outcome,
        stdout=relative_capture(outcome.stdout, workspace, workspace.work),
        stderr=relative_capture(outcome.stderr, workspace, workspace.work),
    )


def _index_options(index: PythonIndex) -> tuple[str, ...]:
    options = ["--no-index"] if index.is_offline else []
    options += [f"--index-url={index.url}"] if index.url else []
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


def _told_by_pip(specs: Sequence[str], outcome: Outcome) -> str:
    """What pip says it did, which is less than it was asked for where something was there or is not for this Python."""
    ignored = _IGNORED.findall(outcome.stdout.text)
    left_out = [spec for spec in specs if _is_ignored(spec, ignored)]
    wanted = [spec for spec in specs if spec not in left_out]
    found = _INSTALLED.findall(outcome.stdout.text)
    notes: list[str] = []
    if found:
        notes.append(_done(wanted, found[-1].split()))
    elif wanted:
        verb = "was" if len(wanted) == 1 else "were"
        notes.append(f"{_listed(wanted)} {verb} installed already.")
    if left_out:
        notes.append(f"Not installed, by the condition behind its name: {_listed(left_out)}.")
    return " ".join((*notes, *_CLASH.findall(outcome.stderr.text)[:_MOST_CLASHES]))


def _is_ignored(spec: str, ignored: Iterable[tuple[str, str]]) -> bool:
    asked, _, condition = spec.partition(";")
    return any(
        re.match(rf"{re.escape(name)}(?![\w.-])", asked) and _bare(marker) == _bare(condition)
        for name, marker in ignored
    )


def _bare(marker: str) -> str:
    """Without what pip writes in its own way."""
    return re.sub(r"[\s'\"()]", "", marker)


def _done(specs: Sequence[str], installed: Sequence[str]) -> str:
    if not installed:
        return f"The host installed {_listed(specs)}."
    versions = ", ".join(installed[:_MOST_NAMED])
    return f"The host installed {_listed(specs)} ({versions}{', ...' if len(installed) > _MOST_NAMED else ''})."


def _listed(specs: Sequence[str]) -> str:
    more = len(specs) - _MOST_NAMED
    return ", ".join(specs[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
