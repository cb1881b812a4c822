"""What no limit of the kernel bounds: all that a program writes together, and the memory of all its processes."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol

from satchel.errors import SandboxError
from satchel.ports.execution import Launch, Stopped
from satchel.sandbox.layout import INODES_PER_MIB

FREE_BYTES = 64 * 1024**2  # of a file system, which no program gets
_ENTRY_BYTES = 1024  # what a name and an inode take, so that empty files count
_MOST_ENTRIES = 1_000_000
_FIRST_LOOK_S, _LOOK_S = 0.05, 0.1
_WALK_S, _WALK_SHARE = 1.0, 10  # between two walks: a second, ten times the last one; earlier when space goes away
_STEPS = 16  # of the limit: that much less space asks for a walk
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


# Of its own: where other threads wait for a disk that a program fills, it has to be stopped all the same.
_lookers = ThreadPoolExecutor(2, thread_name_prefix="satchel-watch")


class Stoppable(Protocol):
    """A started program that can be ended for a reason."""

    @property
    def pid(self) -> int: ...

    def stop(self, reason: Stopped) -> None: ...


class Watch:
    """Looks at one launch every tenth of a second, off the event loop, and ends it when it has gone too far.

    ``begin`` is called before the program starts. ``inside`` is a process that has a root of its own, 0 without one:
    then the files of the directories in memory there are counted, too.
    """

    def __init__(self, launch: Launch) -> None:
        self.inside = 0
        self._limits = launch.limits
        self._roots = _outermost(launch.writable)
        self._devices: set[int] = set()
        self._at_first = self._written = self._free = 0
        self._next_walk = 0.0

    async def run(self, job: Stoppable) -> None:
        """Runs until the program is stopped or this is cancelled."""
        await asyncio.sleep(_FIRST_LOOK_S)
        while True:
            reason = await asyncio.get_running_loop().run_in_executor(_lookers, self.look, job.pid)
            if reason:
                job.stop(reason)
                return
            await asyncio.sleep(_LOOK_S)

    def look(self, pid: int) -> Stopped:
        """Why the program with this process has to end, "" when it may go on. Reads the disk."""
        pids = list(_tree(pid))
        in_memory, on_disk = self._unlinked(pids)
        most = self._limits.memory_bytes - in_memory
        # Resident pages that are shared count for each of their users; their shares are slower to read.
        if sum(map(_resident, pids)) > most and sum(map(_proportional, pids)) > most:
            return "memory"
        return "written" if self._fills_memory() or self._fills_disk(on_disk) else ""

    def is_over_at_last(self) -> bool:
        """Whether too much was written when the program had ended. Reads the disk where its space has shrunk."""
        shrunk = self._free - free_bytes(self._roots)
        if shrunk <= self._limits.written_bytes // _STEPS:
            return False
        return self._size() - self._at_first > self._limits.written_bytes

    def begin(self) -> None:
        """Looks at what is there before the program starts. Reads the disk."""
        for root in self._roots:
            with suppress(OSError):
                self._devices.add(os.stat(root).st_dev)  # noqa: PTH116
        self._free = free_bytes(self._roots)
        self._at_first = self._size()

    def _fills_disk(self, unlinked: int) -> bool:
        free, now = free_bytes(self._roots), time.monotonic()
        if self._roots and free < FREE_BYTES:
            return True
        if now >= self._next_walk or self._free - free > self._limits.written_bytes // _STEPS:
            self._written = self._size() - self._at_first
            self._free = free
            self._next_walk = now + max(_WALK_S, _WALK_SHARE * (time.monotonic() - now))
        return self._written + unlinked > self._limits.written_bytes

    def _fills_memory(self) -> bool:
        """Whether the directories in memory hold more files than their size allows for."""
        if not self.inside:
            return False
        most = max(1024, self._limits.tmp_bytes // 1024**2 * INODES_PER_MIB)
        for name in ("tmp", "dev/shm"):
            with suppress(OSError):
                seen = os.statvfs(f"/proc/{self.inside}/root/{name}")
                if seen.f_files - seen.f_ffree > most:
                    return True
        return False

    def _size(self) -> int:
        return sum(map(tree_bytes, self._roots))

    def _unlinked(self, pids: Iterable[int]) -> tuple[int, int]:
        """Bytes of the open files that have no name any more: in memory, and where the program may write."""
        found: dict[tuple[int, int], int] = {}
        for pid in pids:
            with suppress(OSError):
                for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - names only
                    with suppress(OSError):
                        seen = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
                        if not seen.st_nlink and stat.S_ISREG(seen.st_mode):
                            found[seen.st_dev, seen.st_ino] = seen.st_blocks * 512
        on_disk = sum(size for (device, _), size in found.items() if device in self._devices)
        return sum(found.values()) - on_disk, on_disk


def require_room(launch: Launch) -> None:
    """Refuses a launch whose directories have no space left. Reads the disk.

    Raises:
        SandboxError: launch-failed.
    """
    if launch.writable and free_bytes(launch.writable) < FREE_BYTES:
        raise SandboxError(
            "launch-failed",
            f"Less than {FREE_BYTES // 1024**2} MiB are free where the program may write.",
            hint="Make room on that file system.",
        )


def free_bytes(paths: Iterable[str]) -> int:
    """What is free on the fullest of their file systems for an ordinary user; 0 without paths."""
    found: list[int] = []
    for path in paths:
        with suppress(OSError):
            seen = os.statvfs(path)
            found.append(seen.f_bavail * seen.f_frsize)
    return min(found, default=0)


def tree_bytes(root: str) -> int:
    """What a directory, or a file, and all below it take on the disk. Follows no link, however the tree changes."""
    total = entries = 0
    linked: set[tuple[int, int]] = set()
    try:
        here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        with suppress(OSError):
            total = os.lstat(root).st_blocks * 512
        return total
    # A path from the top could be led elsewhere meanwhile, and is too long in a deep tree; so one step at a time.
    above: list[tuple[tuple[int, int], list[str]]] = []
    try:
        names: list[str] | None = None
        while True:
            if names is None:
                names = []
                with os.scandir(here) as listing:
                    for entry in listing:
                        entries += 1
                        if entry.is_dir(follow_symlinks=False):
                            names.append(entry.name)
                            continue
                        with suppress(OSError):
                            seen = entry.stat(follow_symlinks=False)
                            key = (seen.st_dev, seen.st_ino)
                            if seen.st_nlink == 1 or key not in linked:
                                total += seen.st_blocks * 512
                            if seen.st_nlink > 1:
                                linked.add(key)
                if entries > _MOST_ENTRIES:
                    break
            if names:
                deeper = _step(here, names.pop())
                if deeper is not None:
                    above.append((_identity(here), names))
                    os.close(here)
                    here, names = deeper, None
                continue
            if not above:
                break
            expected, names = above.pop()
            higher = _step(here, "..")
            if higher is None:
                break
            os.close(here)
            here = higher
            if _identity(here) != expected:  # moved meanwhile: the next walk sees it
                break
    except OSError:
        pass  # a part that went away meanwhile
    finally:
        os.close(here)
    return total + entries * _ENTRY_BYTES


def _step(directory: int, name: str) -> int | None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=directory)
    except OSError:
        return None


def _identity(directory: int) -> tuple[int, int]:
    seen = os.fstat(directory)
    return seen.st_dev, seen.st_ino


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    known = set(paths)
    return tuple(
        path for path in known if not any(path != other and path.startswith(f"{other.rstrip('/')}/") for other in known)
    )


def _tree(pid: int) -> Iterator[int]:
    """A process and all that descend from it, by what Linux tells; elsewhere nothing."""
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        with suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):  # noqa: PTH208
                with suppress(OSError):
                    waiting += map(int, _read(f"/proc/{one}/task/{task}/children").split())
            yield one


def _resident(pid: int) -> int:
    fields = _read_or_nothing(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _proportional(pid: int) -> int:
    for line in _read_or_nothing(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _read_or_nothing(path: str) -> bytes:
    try:
        return _read(path)
    except OSError:
        return b""


def _read(path: str) -> bytes:
    with open(path, "rb", 0) as file:  # noqa: PTH123 - read often
        return file.read()
