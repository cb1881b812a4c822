"""What confines programs on this host: the one way in which wiring and commands ask for it."""

from __future__ import annotations

from satchel.execution.options import ExecutionOptions
from satchel.sandbox.detect import BackendReport, Detected, detect

__all__ = ["BackendReport", "Detected", "find_sandbox"]


async def find_sandbox(options: ExecutionOptions) -> Detected:
    """Looks at what this host has and tries it; later calls in this process know the answer."""
    return await detect(options.sandbox, unconfined=options.unconfined, bwrap_floor=options.bwrap_floor)
