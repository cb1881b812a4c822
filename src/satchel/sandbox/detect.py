"""Which backend confines programs on this host: what is there is tried, with attacks that must fail."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from satchel.errors import SandboxError
from satchel.ports.execution import Confinement, Executor, Job, Launch, Outcome, Shell
from satchel.sandbox.bubblewrap import PLACES, BubblewrapExecutor
from satchel.sandbox.canary import TRIED_S, try_canaries
from satchel.sandbox.hosts import HostsExecutor
from satchel.sandbox.landlock import LandlockExecutor
from satchel.sandbox.namespaces import NamespaceExecutor
from satchel.sandbox.process import start_process
from satchel.sandbox.unconfined import UnconfinedExecutor

Mode = Literal["required", "preferred", "off"]

_TRIED_AGAIN_S = 60.0
_HINT = "Install bubblewrap (Debian: apt install bubblewrap) and allow user namespaces; satchel doctor says more."
_NO_ROOM = "are free where the program may write"
_MAKE_ROOM = "Make room in the directory for temporary files (TMPDIR names it) and start again."
# Words of the kernel and of bubblewrap, and what an operator can do.
_HINTS = (
    (_NO_ROOM, _MAKE_ROOM),
    ("max_*_namespaces", "Let the kernel make user namespaces: sysctl user.max_user_namespaces=15000."),
    ("unshare: No space left", "Let the kernel make user namespaces: sysctl user.max_user_namespaces=15000."),
    ("No permissions to create new namespace", "A container has to allow user namespaces in its seccomp profile."),
    ("unshare: Operation not permitted", "A container has to allow user namespaces in its seccomp profile."),
    ("setuid mode", "Take the setuid bit from bwrap (chmod u-s) where the kernel allows user namespaces."),
    ("uid map: Permission denied", "AppArmor may hold back user namespaces: it needs a profile that allows userns."),
    ("Can't mount proc", "A container has to leave /proc uncovered: --security-opt systempaths=unconfined."),
)


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


class UnavailableExecutor(Executor):
    """The ``Executor`` of a host that cannot confine what it must: it starts nothing."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    @property
    def confinement(self) -> Confinement:
        """Nothing runs, so nothing is open."""
        return Confinement(backend="none", writes=True, network=True, home=True, process_tree=True)

    @property
    def shell(self) -> Shell | None:
        return None

    @property
    def unavailable_reason(self) -> str:
        return self._reason

    async def start(self, launch: Launch) -> Job:
        raise SandboxError("sandbox-unavailable", f"{launch.command[0]} was not run. {self.unavailable_reason}")

    async def run(self, launch: Launch) -> Outcome:
        return await (await self.start(launch)).wait()


_found: dict[str, tuple[tuple[Executor, BackendReport], ...]] = {}


async def detect(mode: Mode, *, unconfined: bool = False, bwrap_floor: str = "") -> Detected:
    """The executor for ``mode`` on this host; what was found is known for the rest of the process.

    "required" takes a backend that holds everything or starts nothing, "preferred" the best that there is, "off" none.
    ``unconfined`` lets "required" choose as "preferred" does: what holds a part is better than nothing.
    ``bwrap_floor`` is the oldest version of bubblewrap to accept.
    """
    if mode == "off":
        bare = UnconfinedExecutor()
        return Detected(executor=bare, report=(_none(bare, is_chosen=True),))
    if bwrap_floor not in _found:
        _found[bwrap_floor] = await _look(bwrap_floor)
    tried = _found[bwrap_floor]
    takes_part = mode == "preferred" or unconfined
    best = _best([executor for executor, report in tried if not report.reason], takes_part=takes_part)
    bare = UnconfinedExecutor()
    if best is None and takes_part:
        best = bare
    reports = tuple(replace(report, is_chosen=executor is best) for executor, report in tried)
    if best is None:
        reasons = "; ".join(f"{report.backend}: {report.reason or 'it leaves gaps'}" for report in reports)
        hint = _MAKE_ROOM if _NO_ROOM in reasons else _HINT if sys.platform == "linux" else "satchel doctor says more."
        reason = f"There is no OS sandbox on this host that holds everything, and one is required ({reasons}). {hint}"
        return Detected(executor=UnavailableExecutor(reason), report=(*reports, _none(bare, is_chosen=False)))
    chosen = HostsExecutor(best) if best.confinement.hosts else best
    return Detected(executor=chosen, report=(*reports, _none(bare, is_chosen=best is bare)))


def _best(held: list[Executor], *, takes_part: bool) -> Executor | None:
    """The first one that holds everything and leaves nothing open, else the first that holds what is required."""
    full = [executor for executor in held if executor.confinement.is_full]
    tight = [executor for executor in full if not executor.confinement.gaps]
    return next(iter((*tight, *full, *(held if takes_part else ()))), None)


def _none(executor: Executor, *, is_chosen: bool) -> BackendReport:
    return BackendReport(backend="none", is_chosen=is_chosen, confinement=executor.confinement)


async def _look(floor: str) -> tuple[tuple[Executor, BackendReport], ...]:
    if sys.platform != "linux":
        return await _look_elsewhere()
    namespaces, landlock = NamespaceExecutor(), LandlockExecutor()

    def looks(deadline_s: float) -> tuple[Coroutine[Any, Any, tuple[Executor, BackendReport]], ...]:
        return _bubblewrap(floor, deadline_s), _tried(namespaces, deadline_s), _tried(landlock, deadline_s)

    found = tuple(await asyncio.gather(*looks(TRIED_S)))
    if any(executor.confinement.is_full and not report.reason for executor, report in found):
        return found
    # Three at once on a busy host may be late, and what is found now counts for as long as this process lives.
    return tuple([await look for look in looks(_TRIED_AGAIN_S)])


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


async def _bubblewrap(floor: str, deadline_s: float) -> tuple[Executor, BackendReport]:
    program = await asyncio.to_thread(_program)
    version = await _version(program) if program else ""
    executor = BubblewrapExecutor(program, version)
    confinement = await asyncio.to_thread(lambda: executor.confinement)  # which makes device nodes at first
    known = BackendReport(backend="bubblewrap", version=version, confinement=confinement)
    if not program:
        return executor, replace(known, reason="it is not installed", hint="Debian: apt install bubblewrap")
    if floor and _numbers(version) < _numbers(floor):
        reason = f"version {version or 'unknown'} is older than {floor}, the oldest that is accepted here"
        return executor, replace(known, reason=reason, hint="Install a newer one, or change the floor.")
    return await _tried(executor, deadline_s)


def _program() -> str:
    return next((path for path in PLACES if os.access(path, os.X_OK)), "")


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


async def _tried(executor: Executor, deadline_s: float) -> tuple[Executor, BackendReport]:
    """The backend after the canaries: it is used only when none of them got out."""
    known = executor.confinement
    report = BackendReport(backend=known.backend, version=known.version, confinement=known)
    if not executor.can_run:
        return executor, replace(report, reason=executor.unavailable_reason)
    canaries, reason = await try_canaries(executor, deadline_s)
    return executor, replace(report, canaries=canaries, reason=reason, hint=_hint(reason))


def _hint(reason: str) -> str:
    return next((hint for words, hint in _HINTS if words in reason), "")
