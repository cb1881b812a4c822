"""What confines programs on this host, for commands that show it or try it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from satchel.ports.execution import Confinement, Executor
from satchel.sandbox.detect import BackendReport, detect
from satchel.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One way to confine programs. ``reason`` says why it cannot be used here, "" when it can; ``hint`` what to do.

    ``canaries`` says of each attack that was tried in it whether it was stopped.
    """

    name: str
    version: str = ""
    is_used: bool = False
    reason: str = ""
    hint: str = ""
    canaries: Mapping[str, bool] = field(default_factory=dict[str, bool])
    confinement: Confinement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """``executor`` starts programs under the present settings; ``backends`` are all that were looked at."""

    executor: Executor
    backends: tuple[Backend, ...]


async def find_sandbox(settings: Settings) -> Sandbox:
    """Looks at what this host has and tries it; later calls in this process know the answer."""
    chosen = settings.execution
    detected = await detect(chosen.sandbox, unconfined=chosen.unconfined, bwrap_floor=chosen.bwrap_floor)
    return Sandbox(executor=detected.executor, backends=tuple(_backend(row) for row in detected.report))


def _backend(row: BackendReport) -> Backend:
    return Backend(
        name=row.backend,
        version=row.version,
        is_used=row.is_chosen,
        reason=row.reason,
        hint=row.hint,
        canaries=row.canaries,
        confinement=row.confinement,
    )
