"""Bounds that no kernel setting gives: the memory of all processes of a launch, and all that it writes."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from satchel.ports.execution import Launch, Stopped

_EVERY_S = 0.5
_MOST_ENTRIES = 200_000  # of writable directories, beyond which their size is not known and nothing more may be added
_FREE_BYTES = 64 * 1024**2  # what stays free on a disk


async def watch(pid: int, launch: Launch, stop: Callable[[Stopped], None]) -> None:
    """Stops what runs below ``pid`` when it goes past the launch's bounds. Runs until it is cancelled."""
    before = await asyncio.to_thread(_written, launch.writable)
    while True:
        await asyncio.sleep(_EVERY_S)
        if await asyncio.to_thread(_memory, pid) > launch.limits.memory_bytes:
            stop("memory")
        elif await asyncio.to_thread(_is_over, launch, before):
            stop("written")


def _is_over(launch: Launch, before: int) -> bool:
    if _written(launch.writable) - before > launch.limits.written_bytes:
        return True
    for path in launch.writable:
        with contextlib.suppress(OSError):
            disk = os.statvfs(path)
            if disk.f_bavail * disk.f_frsize < _FREE_BYTES:
                return True
    return False


def _written(paths: Sequence[str]) -> int:
    """Bytes on disk below ``paths``. No link is followed; what is removed meanwhile counts nothing."""
    total = entries = 0
    seen: set[tuple[int, int]] = set()
    for path in paths:
        for entry in _entries(path):
            entries += 1
            if entries > _MOST_ENTRIES:
                return 1 << 62
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if found.st_nlink == 1 or (found.st_dev, found.st_ino) not in seen:
                    total += found.st_blocks * 512
                if found.st_nlink > 1:
                    seen.add((found.st_dev, found.st_ino))
    return total


def _entries(path: str) -> Iterator[os.DirEntry[str]]:
    waiting = [path]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as listed:
            for entry in listed:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _memory(pid: int) -> int:
    """Bytes in memory of ``pid`` and all below it, shared pages in shares."""
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(OSError, ValueError, IndexError):
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text(encoding="ascii", errors="replace")
            total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) * 1024
        with contextlib.suppress(OSError, ValueError):
            for task in os.listdir(f"/proc/{one}/task"):  # noqa: PTH208
                children = Path(f"/proc/{one}/task/{task}/children").read_text(encoding="ascii")
                waiting += [int(child) for child in children.split()]
    return total
