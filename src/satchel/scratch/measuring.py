"""What a tree takes on the disk, however its programs change it meanwhile."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

_ENTRY_BYTES = 1024  # what a name and an inode take, so that empty files count
_MOST_ENTRIES = 1_000_000


def measure(root: str) -> tuple[int, bool]:
    """What a directory, or a file, and all below it take on the disk, and whether all of it was seen.

    Follows no link, however the tree changes.
    """
    tree = _Measured()
    try:
        here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        with suppress(OSError):
            seen = os.lstat(root)
            return seen.st_blocks * 512, not stat.S_ISDIR(seen.st_mode)
        return 0, False
    # A path from the top could be led elsewhere meanwhile, and is too long in a deep tree; so one step at a time.
    above: list[tuple[tuple[int, int], list[str]]] = []
    try:
        names: list[str] | None = None
        while True:
            if names is None:
                names = tree.add(here)
                if tree.entries > _MOST_ENTRIES:
                    tree.is_whole = False
                    break
            if names:
                deeper = _step(here, names.pop())
                if deeper is None:
                    tree.is_whole = False
                else:
                    above.append((_identity(here), names))
                    os.close(here)
                    here, names = deeper, None
                continue
            if not above:
                break
            expected, names = above.pop()
            higher = _step(here, "..")
            if higher is None:
                tree.is_whole = False
                break
            os.close(here)
            here = higher
            if _identity(here) != expected:  # moved meanwhile: the next walk sees it
                tree.is_whole = False
                break
    except OSError:
        tree.is_whole = False  # a part that went away meanwhile
    finally:
        os.close(here)
    return tree.bytes + tree.entries * _ENTRY_BYTES, tree.is_whole


class _Measured:
    """What was seen of a tree so far."""

    def __init__(self) -> None:
        self.bytes = self.entries = 0
        self.is_whole = True
        self._linked: set[tuple[int, int]] = set()

    def add(self, directory: int) -> list[str]:
        """Counts what lies in a directory; returns the names of the directories there. Raises ``OSError``."""
        names: list[str] = []
        with os.scandir(directory) as listing:
            for entry in listing:
                self.entries += 1
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                    continue
                try:
                    seen = entry.stat(follow_symlinks=False)
                except OSError:  # away meanwhile, or in a directory that shows its names alone
                    self.is_whole = False
                    continue
                key = (seen.st_dev, seen.st_ino)
                if seen.st_nlink == 1 or key not in self._linked:
                    self.bytes += seen.st_blocks * 512
                if seen.st_nlink > 1:
                    self._linked.add(key)
        return names


def _step(directory: int, name: str) -> int | None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=directory)
    except OSError:
        return None


def _identity(directory: int) -> tuple[int, int]:
    seen = os.fstat(directory)
    return seen.st_dev, seen.st_ino
