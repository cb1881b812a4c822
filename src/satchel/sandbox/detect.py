"""Which backend confines programs on this host: what is there is tried, with attacks that must fail."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from satchel.errors import SandboxError
from satchel.ports.execution import Confinement, Executor, Job, Launch, Outcome, Shell
from satchel.sandbox.bubblewrap import PLACES, PRLIMIT, BubblewrapExecutor
from satchel.sandbox.hosts import HostsExecutor
from satchel.sandbox.landlock import LandlockExecutor
from satchel.sandbox.namespaces import NamespaceExecutor
from satchel.sandbox.process import start_process
from satchel.sandbox.shells import BASH
from satchel.sandbox.unconfined import UnconfinedExecutor

Mode = Literal["required", "preferred", "off"]

_TRIED_S = 10.0
_HINT = "Install bubblewrap (Debian: apt install bubblewrap) and allow user namespaces; satchel doctor says more."
# Each line says "name open" when an attack worked. Settings of the kernel are opened for writing and not written.
_CANARIES = """
probe() { if eval "$2" 2>/dev/null; then echo "$1 open"; else echo "$1 blocked"; fi; }
echo works > mine || exit 9
probe outside '( read -r word < "$OUTSIDE/secret" )'
probe write '( echo x > "$OUTSIDE/new" )'
probe link '( echo x > planted/new )'
probe read-only '( echo x > "$READABLE/new" )'
probe network '( exec 3<>"/dev/tcp/127.0.0.1/$PORT" )'
probe processes '[ -e "/proc/$HOST/exe" ] && kill -0 "$HOST"'
probe kernel-settings '[ -w /proc/sys/kernel/core_pattern ] && ( : >> /proc/sys/kernel/core_pattern )'
probe namespaces 'unshare --user true'
"""
CANARIES = ("outside", "write", "link", "read-only", "network", "processes", "kernel-settings", "namespaces")
_MAY_BE_OPEN: Mapping[str, frozenset[str]] = {"landlock": frozenset({"processes"})}


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendReport:
    """One backend as it was found: ``reason`` says why it is not used, ``canaries`` whether each attack was stopped."""

    backend: str
    version: str = ""
    is_chosen: bool = False
    reason: str = ""
    hint: str = ""
    canaries: dict[str, bool] = field(default_factory=dict[str, bool])
    confinement: Confinement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """``executor`` is what launches go through, ``report`` what was tried, in the order of preference."""

    executor: Executor
    report: tuple[BackendReport, ...]


class UnavailableExecutor:
    """The ``Executor`` of a host that cannot confine what it must: it starts nothing."""

    def __init__(self, reason: str) -> None:
        self.unavailable_reason = reason

    @property
    def confinement(self) -> Confinement:
        """Nothing runs, so nothing is open."""
        return Confinement(backend="none", writes=True, network=True, home=True, process_tree=True)

    @property
    def shell(self) -> Shell | None:
        return None

    async def start(self, launch: Launch) -> Job:
        raise SandboxError("sandbox-unavailable", f"{launch.command[0]} was not run. {self.unavailable_reason}")

    async def run(self, launch: Launch) -> Outcome:
        return await (await self.start(launch)).wait()


_found: dict[str, tuple[tuple[Executor, BackendReport], ...]] = {}


async def detect(mode: Mode, *, unconfined: bool = False, bwrap_floor: str = "") -> Detected:
    """The executor for ``mode`` on this host; what was found is known for the rest of the process.

    "required" takes a backend that holds everything or starts nothing, "preferred" the best that there is, "off" none.
    ``unconfined`` lets "required" fall to none too. ``bwrap_floor`` is the oldest version of bubblewrap to accept.
    """
    if mode == "off":
        bare = UnconfinedExecutor()
        return Detected(executor=bare, report=(_none(bare, is_chosen=True),))
    if bwrap_floor not in _found:
        _found[bwrap_floor] = await _look(bwrap_floor)
    tried = _found[bwrap_floor]
    best: Executor | None = None
    for executor, report in tried:
        if not report.reason and (mode == "preferred" or executor.confinement.is_full):
            best = executor
            break
    bare = UnconfinedExecutor()
    if best is None and (mode == "preferred" or unconfined):
        best = bare
    reports = tuple(replace(report, is_chosen=executor is best) for executor, report in tried)
    if best is None:
        reasons = "; ".join(f"{report.backend}: {report.reason or 'it leaves gaps'}" for report in reports)
        reason = f"There is no OS sandbox on this host that holds everything, and one is required ({reasons}). {_HINT}"
        return Detected(executor=UnavailableExecutor(reason), report=(*reports, _none(bare, is_chosen=False)))
    chosen = HostsExecutor(best) if best.confinement.hosts else best
    return Detected(executor=chosen, report=(*reports, _none(bare, is_chosen=best is bare)))


def _none(executor: Executor, *, is_chosen: bool) -> BackendReport:
    return BackendReport(backend="none", is_chosen=is_chosen, confinement=executor.confinement)


async def _look(floor: str) -> tuple[tuple[Executor, BackendReport], ...]:
    if sys.platform != "linux":
        return await _look_elsewhere()
    bubblewrap = await _bubblewrap(floor)
    namespaces = await _tried(NamespaceExecutor())
    landlock = await _tried(LandlockExecutor())
    # Root owns the host's device nodes, and bubblewrap leaves their modes to it: for root the other one holds more.
    both = (namespaces, bubblewrap) if os.geteuid() == 0 else (bubblewrap, namespaces)
    return (*both, landlock)


async def _look_elsewhere() -> tuple[tuple[Executor, BackendReport], ...]:
    if sys.platform == "darwin":
        from satchel.sandbox.seatbelt import SeatbeltExecutor

        found: Executor = SeatbeltExecutor()
    elif sys.platform == "win32":
        from satchel.sandbox.jobobject import JobObjectExecutor

        found = JobObjectExecutor()
    else:
        return ()
    known = found.confinement
    report = BackendReport(
        backend=known.backend, version=known.version, reason=found.unavailable_reason, confinement=known
    )
    return ((found, report),)


async def _bubblewrap(floor: str) -> tuple[Executor, BackendReport]:
    program, has_prlimit = await asyncio.to_thread(_programs)
    version = await _version(program) if program else ""
    executor = BubblewrapExecutor(program, version)
    known = BackendReport(backend="bubblewrap", version=version, confinement=executor.confinement)
    if not program:
        return executor, replace(known, reason="it is not installed", hint="Debian: apt install bubblewrap")
    if not has_prlimit:
        return executor, replace(known, reason=f"{PRLIMIT} is not there", hint="Debian: apt install util-linux")
    if floor and _numbers(version) < _numbers(floor):
        reason = f"version {version or 'unknown'} is older than {floor}, the oldest that is accepted here"
        return executor, replace(known, reason=reason, hint="Install a newer one, or change the floor.")
    return await _tried(executor)


def _programs() -> tuple[str, bool]:
    program = next((path for path in PLACES if os.access(path, os.X_OK)), "")
    return program, os.access(PRLIMIT, os.X_OK)


async def _version(program: str) -> str:
    """As the program says it, within three seconds."""
    launch = Launch(command=(program, "--version"), purpose="probe", cwd="/", deadline_s=3.0, max_output_bytes=4096)
    try:
        outcome = await (await start_process((program, "--version"), launch)).wait()
    except SandboxError:
        return ""
    found = re.search(r"\d+(?:\.\d+)+", outcome.stdout.text)
    return found[0] if found else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


async def _tried(executor: Executor) -> tuple[Executor, BackendReport]:
    """The backend after the canaries: it is used only when none of them got out."""
    known = executor.confinement
    report = BackendReport(backend=known.backend, version=known.version, confinement=known)
    if executor.unavailable_reason:
        return executor, replace(report, reason=executor.unavailable_reason)
    folder = await asyncio.to_thread(_folder)
    try:
        canaries, reason = await _canaries(executor, Path(folder))
    except (OSError, SandboxError) as error:
        canaries, reason = {}, str(error)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return executor, replace(report, canaries=canaries, reason=reason)


async def _canaries(executor: Executor, folder: Path) -> tuple[dict[str, bool], str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        launch = await asyncio.to_thread(_laid_out, folder, listener.getsockname()[1])
        outcome = await executor.run(launch)
    said = dict(line.split(" ", 1) for line in outcome.stdout.text.splitlines() if " " in line)
    if outcome.exit_code != 0 or set(said) != set(CANARIES):
        words = (outcome.stderr.text or outcome.stdout.text).strip().splitlines()
        return {}, f"a program does not run in it: {words[-1][:200] if words else outcome.stopped or 'no word'}"
    leaked = await asyncio.to_thread(_leaked, folder)
    stopped = {name: said[name] == "blocked" and not (leaked and name in {"write", "link"}) for name in CANARIES}
    may = _MAY_BE_OPEN.get(executor.confinement.backend, frozenset())
    escaped = [name for name, held in stopped.items() if not held and name not in may]
    return stopped, f"an attack worked in it: {', '.join(escaped)}" if escaped else ""


def _folder() -> str:
    return os.path.realpath(tempfile.mkdtemp(prefix="satchel-canary-"))


def _laid_out(folder: Path, port: int) -> Launch:
    for name in ("work", "readable", "outside"):
        (folder / name).mkdir()
    (folder / "outside" / "secret").write_text("x", encoding="ascii")
    # Where an older bubblewrap would follow a link while it makes the targets of its mounts.
    (folder / "work" / "planted").symlink_to(folder / "outside")
    variables = {"OUTSIDE": str(folder / "outside"), "READABLE": str(folder / "readable"), "PORT": str(port)}
    return Launch(
        command=(BASH.program if BASH else "/bin/sh", "-c", _CANARIES),
        purpose="probe",
        cwd=str(folder / "work"),
        env={"PATH": "/usr/bin:/bin", "HOST": str(os.getpid()), **variables},
        readable=(str(folder / "readable"),),
        writable=(str(folder / "work"),),
        deadline_s=_TRIED_S,
    )


def _leaked(folder: Path) -> bool:
    return {entry.name for entry in (folder / "outside").iterdir()} != {"secret"}
