"""What bounds the number of processes where ``RLIMIT_NPROC`` does not: for the host's root."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

GAP_NUMBER = "the number of processes is not bounded"
RESERVED_PIDS = 300  # numbers below are given out once only, so all count as used
_NUMBERS_PER_PROCESSOR = 8  # a kernel takes no fewer
_PREFIX = "satchel-"
_PID_MAX_PER_NAMESPACE = (6, 14)  # before, a write would reach the host's own setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PidsGroup:
    """A control group of one launch. A process that writes "0" to ``entrance`` is in it, with all that it starts."""

    path: str

    @property
    def entrance(self) -> str:
        return f"{self.path}/cgroup.procs"

    def remove(self) -> None:
        """Once nothing is left in it; does nothing for a group that is gone or still used."""
        with contextlib.suppress(OSError):
            Path(self.path).rmdir()


def find_parent(own: str = "/proc/self/cgroup", mounts: str = "/proc/self/mounts") -> str:
    """A directory in which this process may make groups that bound processes, "" when there is none."""
    try:
        lines = [line.split(":", 2) for line in Path(own).read_text(encoding="utf-8").splitlines()]
        mounted = [line.split() for line in Path(mounts).read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    for _, controllers, path in lines:
        if controllers and "pids" not in controllers.split(","):
            continue
        for _, at, kind, options, *_ in mounted:
            if controllers and kind == "cgroup" and "pids" in options.split(","):
                places = [path]
            elif not controllers and kind == "cgroup2":
                # A group that holds processes may not bound others; those beside it may.
                places = [path, path.rpartition("/")[0]]
            else:
                continue
            for place in places:
                found = at + place.rstrip("/")
                if os.access(found, os.W_OK) and (controllers or _hands_down(found)):
                    return found
    return ""


def has_own_pid_max() -> bool:
    """Whether each process table of this kernel has a highest number of its own."""
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return version is not None and (int(version[1]), int(version[2])) >= _PID_MAX_PER_NAMESPACE


def highest_number(processes: int) -> int:
    """The highest number of a process table for that many processes and threads."""
    return max(RESERVED_PIDS + processes, _NUMBERS_PER_PROCESSOR * (os.cpu_count() or 1))


def make_group(parent: str, processes: int) -> PidsGroup | None:
    """A group for that many processes and threads, None where it cannot be made. Removes what a killed host left."""
    if not parent:
        return None
    _sweep(Path(parent))
    group = Path(parent) / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    try:
        group.mkdir()
    except OSError:
        return None
    made = PidsGroup(path=str(group))
    try:
        (group / "pids.max").write_text(str(processes), encoding="ascii")
    except OSError:
        made.remove()
        return None
    return made


def _hands_down(directory: str) -> bool:
    try:
        return "pids" in (Path(directory) / "cgroup.subtree_control").read_text(encoding="ascii").split()
    except OSError:
        return False


def _sweep(parent: Path) -> None:
    with contextlib.suppress(OSError):
        for group in parent.glob(f"{_PREFIX}*-*"):
            owner = group.name.removeprefix(_PREFIX).partition("-")[0]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                PidsGroup(path=str(group)).remove()


# Where groups are made. Looked for once, so that an executor may be made and asked anywhere.
PARENT = find_parent()


def process_gaps() -> tuple[str, ...]:
    """What to tell where nothing bounds the processes of a backend with a process table of its own."""
    return () if os.geteuid() or PARENT or has_own_pid_max() else (GAP_NUMBER,)
