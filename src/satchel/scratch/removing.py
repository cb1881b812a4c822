"""Removing trees in which programs left what they liked: odd modes, links, any depth. No link is ever followed."""

# ruff: noqa: PTH101, PTH106 - plain strings and descriptors, as in the path guard.

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable
from itertools import islice

LISTED: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
"""Opens a directory, and nothing else: no link, no pipe that would have to be waited for."""
HAS_DIR_FD = os.scandir in os.supports_fd and {os.open, os.unlink, os.rmdir, os.rename} <= os.supports_dir_fd


class Effort:
    """How many entries may still be removed; ``None``: however many there are."""

    def __init__(self, most: int | None = None) -> None:
        self._left = most

    @property
    def is_spent(self) -> bool:
        return self._left is not None and self._left <= 0

    def names(self, directory: int) -> list[str]:
        """The entries of a directory, no more than may be removed."""
        if self._left is None:
            return os.listdir(directory)
        with os.scandir(directory) as entries:
            return [entry.name for entry in islice(entries, max(1, self._left))]

    def spend(self) -> None:
        if self._left is not None:
            self._left -= 1


def remove_tree(root: str, effort: Effort | None = None) -> bool:
    """Removes a directory of ours. False when something is left: it cannot be removed, or the effort was too small."""
    if HAS_DIR_FD:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            top = os.open(root, LISTED)
            try:
                remove_inside(top, effort or Effort())
            finally:
                os.close(top)
            with contextlib.suppress(OSError):
                os.rmdir(root)
    else:
        shutil.rmtree(root, onerror=_make_writable)
    return not os.path.lexists(root)


def remove_inside(top: int, effort: Effort) -> None:
    """Empties an open directory, as far as the effort goes.

    Every directory inside is moved up beside the first ones before it is emptied, so depth costs nothing.
    """
    stuck: set[str] = set()
    while not effort.is_spent:
        waiting = [name for name in effort.names(top) if name not in stuck]
        if not waiting:
            return
        for name in waiting:
            if effort.is_spent:
                return
            if not _removed(top, name, effort):
                _empty(top, name, effort)
                if not _removed(top, name, effort):
                    stuck.add(name)


def _empty(top: int, name: str, effort: Effort) -> None:
    """Removes the entries of one directory; those that are full directories themselves are moved up to ``top``."""
    try:
        _open_up(top, name)
        directory = os.open(name, LISTED, dir_fd=top)
    except OSError:
        return
    try:
        for inner in effort.names(directory):
            if effort.is_spent:
                return
            if not _removed(directory, inner, effort):
                with contextlib.suppress(OSError):
                    _open_up(directory, inner)
                    os.rename(inner, secrets.token_hex(16), src_dir_fd=directory, dst_dir_fd=top)
    finally:
        os.close(directory)


def _removed(directory: int, name: str, effort: Effort) -> bool:
    """Whether a file or an empty directory could be removed."""
    effort.spend()
    for remove in (os.unlink, os.rmdir):
        try:
            remove(name, dir_fd=directory)
        except FileNotFoundError:
            return True
        except OSError:
            continue
        return True
    return False


def _open_up(directory: int, name: str) -> None:
    """Lets us list and change a directory whose mode forbids it; a link is never followed."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, 0o700, dir_fd=directory, follow_symlinks=False)
        return
    place = os.open(name, getattr(os, "O_PATH", 0) | LISTED, dir_fd=directory)
    try:
        os.chmod(f"/proc/self/fd/{place}", 0o700)
    finally:
        os.close(place)


def _make_writable(remove: Callable[[str], object], path: str, error: object) -> None:
    """For ``rmtree`` where files may be read-only: one more try."""
    del error
    with contextlib.suppress(OSError):
        if not os.path.islink(path):  # noqa: PTH114
            os.chmod(path, stat.S_IRWXU)
        remove(path)
