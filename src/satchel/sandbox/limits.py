"""The bounds of one launch as the ``RLIMIT`` numbers and values of a Unix system."""

from __future__ import annotations

import resource

from satchel.ports.execution import Limits

_LOCKED_BYTES = 8 * 1024**2


def shared_limits(limits: Limits) -> list[tuple[int, int]]:
    """For a program that is counted together with the host's own processes of this user."""
    return [
        (resource.RLIMIT_DATA, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_MEMLOCK, _LOCKED_BYTES),
        (resource.RLIMIT_CORE, 0),
    ]


def own_limits(limits: Limits) -> list[tuple[int, int]]:
    """For a program in a user namespace of its own, where processes are counted from none."""
    return [*shared_limits(limits), (resource.RLIMIT_NPROC, limits.processes)]
