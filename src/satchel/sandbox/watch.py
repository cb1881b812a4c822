"""What no limit of the kernel bounds: all that a program writes together, and the memory of all its processes."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol

from satchel.errors import SandboxError
from satchel.ports.execution import Launch, Stopped
from satchel.sandbox.layout import INODES_PER_MIB
from satchel.scratch.measuring import measure

FREE_BYTES = 64 * 1024**2  # of a file system, which no program gets
_LEAST_BYTES = 1024**2  # that a program may write however full its directories are, so that it can make room
_FIRST_LOOK_S, _LOOK_S = 0.05, 0.1
_WALK_S, _WALK_SHARE = 1.0, 10  # between two walks: a second, ten times the last one; earlier when space goes away
_STEPS = 16  # of the limit: that much less space asks for a walk
_IN_MEMORY = 2  # directories in memory that a program may fill
_SENT = re.compile(rb"^scm_fds:\s*[1-9]", re.MULTILINE)
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

    Some files cannot be measured from outside: those that are only mapped, or on their way through a socket, or in a
    directory that nobody may read. A program that has such counts for what the whole host has lost since it started.
    """

    def __init__(self, launch: Launch) -> None:
        self.inside = 0
        self._limits = launch.limits
        self._roots = _outermost(launch.writable)
        self._devices: dict[int, str] = {}  # of the roots, with one root on each
        self._most_free: dict[int, int] = {}
        self._free: dict[int, int] = {}  # at the last walk
        self._least_shared = 0
        self._at_first = self._written = 0
        self._most = launch.limits.written_bytes
        self._is_whole = True
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
        tree = dict(process_tree(pid))
        in_memory, on_disk = self._unlinked(tree)
        grown, lost = self._grown(), self._lost(self._most_free)
        hidden = max(0, grown - _IN_MEMORY * self._limits.tmp_bytes - in_memory)
        is_lost = lost > self._limits.written_bytes
        if (hidden or is_lost) and not may_hide(tree):
            hidden, is_lost = 0, is_lost and not self._is_whole
        if self._fills(tree, in_memory + hidden):
            return "memory"
        return "written" if is_lost or self._fills_inside() or self._fills_disk(on_disk) else ""

    def is_over_at_last(self) -> bool:
        """Whether too much was written when the program had ended. Reads the disk where its space has shrunk."""
        if self._lost(self._free) <= self._most // _STEPS:
            return False
        if self._size() - self._at_first > self._most:
            return True
        return not self._is_whole and self._lost(self._most_free) > self._limits.written_bytes

    def begin(self) -> None:
        """Looks at what is there before the program starts. Reads the disk."""
        for root in self._roots:
            with suppress(OSError):
                self._devices.setdefault(os.stat(root).st_dev, root)  # noqa: PTH116
        self._free = self._free_now()
        self._most_free = dict(self._free)
        self._least_shared = _shared_memory()
        self._at_first = self._size()
        self._most = min(self._limits.written_bytes, max(_LEAST_BYTES, self._limits.held_bytes - self._at_first))

    def _fills(self, tree: Iterable[int], files: int) -> bool:
        """Whether its processes and these files in memory take too much together."""
        # Resident pages that are shared count for each of their users; their shares are slower to read.
        if sum(map(_resident, tree)) + files <= self._limits.memory_bytes:
            return False
        own = mapped = 0
        for pid in tree:
            share, of_files = _proportional(pid)
            own += share - of_files
            mapped += of_files
        return own + max(mapped, files) > self._limits.memory_bytes

    def _fills_disk(self, unlinked: int) -> bool:
        free, now = self._free_now(), time.monotonic()
        if min(free.values(), default=FREE_BYTES) < FREE_BYTES:
            return True
        if now >= self._next_walk or self._lost(self._free) > self._most // _STEPS:
            self._written = self._size() - self._at_first
            self._free = free
            self._next_walk = now + max(_WALK_S, _WALK_SHARE * (time.monotonic() - now))
        return self._written + unlinked > self._most

    def _fills_inside(self) -> bool:
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
        measured = [measure(root) for root in self._roots]
        self._is_whole = all(is_whole for _, is_whole in measured)
        return sum(size for size, _ in measured)

    def _free_now(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for device, root in self._devices.items():
            with suppress(OSError):
                found[device] = _free_at(root)
        return found

    def _lost(self, before: dict[int, int]) -> int:
        """What all file systems have less than ``before``, together."""
        now = self._free_now()
        for device, free in now.items():
            self._most_free[device] = max(free, self._most_free.get(device, 0))
        return sum(max(0, before.get(device, 0) - free) for device, free in now.items())

    def _grown(self) -> int:
        now = _shared_memory()
        self._least_shared = min(self._least_shared, now)
        return now - self._least_shared

    def _unlinked(self, pids: Iterable[int]) -> tuple[int, int]:
        """Bytes of the open files that have no name any more: in memory, and where the program may write."""
        found: dict[tuple[int, int], int] = {}
        for pid in pids:
            for path, seen in _open_files(pid):
                del path
                if not seen.st_nlink and stat.S_ISREG(seen.st_mode):
                    found[seen.st_dev, seen.st_ino] = seen.st_blocks * 512
        on_disk = sum(size for (device, _), size in found.items() if device in self._devices)
        return sum(found.values()) - on_disk, on_disk


def require_room(launch: Launch) -> None:
    """Refuses a launch whose directories have no space left. Reads the disk.

    Raises:
        SandboxError: launch-failed.
    """
    if any(_free_at(path) < FREE_BYTES for path in launch.writable if os.path.exists(path)):  # noqa: PTH110
        raise SandboxError(
            "launch-failed",
            f"Less than {FREE_BYTES // 1024**2} MiB are free where the program may write.",
            hint="Make room on that file system.",
        )


def _free_at(path: str) -> int:
    """What is free on its file system for an ordinary user."""
    seen = os.statvfs(path)
    return seen.f_bavail * seen.f_frsize


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    known = set(paths)
    return tuple(
        path for path in known if not any(path != other and path.startswith(f"{other.rstrip('/')}/") for other in known)
    )


def process_tree(pid: int) -> Iterator[tuple[int, list[int]]]:
    """A process and all that descend from it, each with its threads, by what Linux tells; elsewhere nothing."""
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        with suppress(OSError):
            threads = [int(name) for name in os.listdir(f"/proc/{one}/task")]  # noqa: PTH208
            for thread in threads:
                with suppress(OSError):
                    waiting += map(int, _read(f"/proc/{one}/task/{thread}/children").split())
            yield one, threads


def may_hide(tree: Mapping[int, list[int]]) -> bool:
    """Whether one of these has files that its open ones do not show: mapped, sent, or open in a thread alone."""
    shown = {(seen.st_dev, seen.st_ino) for pid in tree for _, seen in _open_files(pid)}
    for pid, threads in tree.items():
        if any(mapped not in shown for mapped in _mapped_without_name(_living(pid))):
            return True
        for thread in threads:
            for path, seen in _open_files(thread):
                if not seen.st_nlink and (seen.st_dev, seen.st_ino) not in shown:
                    return True
                if stat.S_ISSOCK(seen.st_mode) and _SENT.search(_read_or_nothing(path.replace("/fd/", "/fdinfo/"))):
                    return True
    return False


def _mapped_without_name(pid: int) -> Iterator[tuple[int, int]]:
    """Device and inode of each file whose name was gone when it was mapped, or has gone since."""
    for line in _read_or_nothing(f"/proc/{pid}/maps").splitlines():
        if line.endswith(b" (deleted)"):
            major, _, minor = line.split()[3].partition(b":")
            yield os.makedev(int(major, 16), int(minor, 16)), int(line.split()[4])


def _open_files(thread: int) -> Iterator[tuple[str, os.stat_result]]:
    with suppress(OSError):
        for name in os.listdir(f"/proc/{thread}/fd"):  # noqa: PTH208 - names only
            path = f"/proc/{thread}/fd/{name}"
            with suppress(OSError):
                yield path, os.stat(path)  # noqa: PTH116


def _living(pid: int) -> int:
    """The process, or a thread of it that lives: the first one may have ended, and shows no memory then."""
    if not _has_memory(pid):
        with suppress(OSError):
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):  # noqa: PTH208
                if _has_memory(thread):
                    return thread
    return pid


def _has_memory(thread: int) -> bool:
    return _read_or_nothing(f"/proc/{thread}/statm").partition(b" ")[0] not in {b"", b"0"}


def _resident(pid: int) -> int:
    fields = _read_or_nothing(f"/proc/{_living(pid)}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _proportional(pid: int) -> tuple[int, int]:
    """Its shares of all its pages, and of those of them that belong to files in memory."""
    sizes: dict[bytes, int] = {}
    for line in _read_or_nothing(f"/proc/{_living(pid)}/smaps_rollup").splitlines()[1:]:
        name, size, *_ = line.split()
        sizes[name] = int(size) * 1024
    return sizes.get(b"Pss:", 0), sizes.get(b"Pss_Shmem:", 0)


def _shared_memory() -> int:
    """Bytes of all the files in memory of this host, what was swapped out of anything included."""
    sizes = {line.split()[0]: int(line.split()[1]) for line in _read_or_nothing("/proc/meminfo").splitlines()}
    swapped = sizes.get(b"SwapTotal:", 0) - sizes.get(b"SwapFree:", 0)
    return (sizes.get(b"Shmem:", 0) + swapped) * 1024


def _read_or_nothing(path: str) -> bytes:
    try:
        return _read(path)
    except OSError:
        return b""


def _read(path: str) -> bytes:
    with open(path, "rb", 0) as file:  # noqa: PTH123 - read often
        return file.read()
