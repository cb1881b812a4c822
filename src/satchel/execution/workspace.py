"""A private directory that one conversation's programs share, and what they left in it.

What lies below ``work``, ``tmp`` and ``state`` was written by confined programs: no link there is ever followed.
"""

# ruff: noqa: PTH102, PTH118, PTH119 - plain strings and descriptors, as in the path guard.

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import stat
import sys
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from satchel.scratch.removing import HAS_DIR_FD, LISTED
from satchel.scratch.roots import new_root, remove_root

_MOST_ENTRIES = 20_000
_DEEPEST = 32
MOST_SHOWN = 40
"""Produced files that one result names."""

_HOST_FOLDERS = frozenset({"__pycache__", "node_modules"})
_BYTECODE = (".pyc", ".pyo")

Stamp = tuple[int, int, int]
"""Size in bytes, time of the last change in nanoseconds, inode."""

Snapshot = Mapping[str, Stamp]
"""The regular files of ``Workspace.work`` by their relative paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """``root`` is a private directory (0700, canonical); everything below it is ours.

    A workspace that is not persistent is the scratch of a single call, and nothing else is offered in it.
    """

    root: str
    id: str
    is_persistent: bool = True

    @property
    def work(self) -> str:
        """The working directory and HOME; where output belongs."""
        return os.path.join(self.root, "work")

    @property
    def tmp(self) -> str:
        """TMPDIR."""
        return os.path.join(self.root, "tmp")

    @property
    def state(self) -> str:
        """What a shell saved of its state; programs may write it."""
        return os.path.join(self.root, "state")

    @property
    def calls(self) -> str:
        """The scripts of the shell's calls. Read-only inside, so that no program changes what another call runs."""
        return os.path.join(self.root, "calls")

    @property
    def packages(self) -> str:
        """What was installed; only an install may write it."""
        return os.path.join(self.root, "packages")

    @property
    def python_packages(self) -> str:
        """Installed Python packages: an entry of PYTHONPATH, the target of an install."""
        return os.path.join(self.packages, "python")

    @property
    def node_packages(self) -> str:
        """The prefix of an npm install; its ``node_modules`` is NODE_PATH."""
        return os.path.join(self.packages, "node")

    @property
    def packages_bin(self) -> str:
        """Programs of installed packages, first on PATH."""
        return os.path.join(self.packages, "bin")

    @property
    def local_bin(self) -> str:
        """Programs that a model put there itself, before the host's on PATH."""
        return os.path.join(self.work, ".local", "bin")

    @property
    def shims(self) -> str:
        """``python`` and ``python3`` of the host, so that both always exist and are the same. Read-only inside."""
        return os.path.join(self.root, "shims")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducedFile:
    """A file that a program made or changed: ``path`` relative to ``work`` with forward slashes."""

    path: str
    bytes: int


def create_workspace(base: str | None = None, *, persistent: bool = True) -> Workspace:
    """A new one below ``base``, the system's temporary directory when None. Raises ``OSError``."""
    root = new_root("work", base)
    workspace = Workspace(root=root, id=secrets.token_urlsafe(16), is_persistent=persistent)
    folders = (
        workspace.work,
        workspace.tmp,
        workspace.state,
        workspace.calls,
        workspace.packages,
        workspace.python_packages,
        workspace.node_packages,
        workspace.packages_bin,
        workspace.shims,
    )
    try:
        for folder in folders:
            os.mkdir(folder, 0o700)
        _write_shims(workspace.shims)
    except OSError:
        remove_root(root)
        raise
    return workspace


def make_enterable(workspace: Workspace) -> None:
    """Gives the owner back what a program took away from the directories that the next program begins in."""
    with contextlib.suppress(OSError):
        root = os.open(workspace.root, LISTED)
        try:
            for folder in (workspace.work, workspace.tmp, workspace.state):
                name = os.path.basename(folder)
                status = os.stat(name, dir_fd=root, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
                    os.chmod(name, 0o700, dir_fd=root)
        finally:
            os.close(root)


def remove_workspace(workspace: Workspace) -> bool:
    """Removes it with whatever programs left there: odd modes, links, trees of any depth. Nothing outside is touched.

    False when something could not be removed.
    """
    return remove_root(workspace.root)


def walk(workspace: Workspace) -> tuple[Snapshot, bool]:
    """``(the files of work as they are now, whether these are all)``: at most some thousands.

    What is hidden, bytecode, or below a directory of installed packages is left out, and what lies very deep.
    """
    return _files(workspace.work)


def snapshot(workspace: Workspace) -> Snapshot:
    """The files of ``walk``."""
    return walk(workspace)[0]


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a file."""
    return status.st_size, status.st_mtime_ns, status.st_ino


def changed_files(workspace: Workspace, before: Snapshot) -> tuple[ProducedFile, ...]:
    """What is new or different since ``before``, sorted by path. Bytecode and dotfiles do not count."""
    now = snapshot(workspace)
    changed = sorted(path for path, stamp in now.items() if before.get(path) != stamp)
    return tuple(ProducedFile(path=path, bytes=now[path][0]) for path in changed)


def host_python() -> str:
    """The Python that runs us, below a canonical directory and not resolved itself: its virtual environment counts."""
    folder, name = os.path.split(sys.executable)
    return os.path.join(os.path.realpath(folder), name)


def _write_shims(folder: str) -> None:
    """Programs and not links to the Python that runs us, because a link would lose its virtual environment."""
    if os.name == "nt":
        text, names = f'@"{host_python()}" %*\r\n', ("python.bat", "python3.bat")
    else:
        text, names = f'#!/bin/sh\nexec {shlex.quote(host_python())} "$@"\n', ("python", "python3")
    for name in names:
        descriptor = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)


def _files(work: str) -> tuple[dict[str, Stamp], bool]:
    found: dict[str, Stamp] = {}
    left = _MOST_ENTRIES
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        at = waiting.pop()
        for entry, status in _listed(work, at):
            left -= 1
            if left < 0:
                return found, False
            path = (*at, entry)
            if stat.S_ISDIR(status.st_mode):
                if entry not in _HOST_FOLDERS and len(path) < _DEEPEST:
                    waiting.append(path)
            elif stat.S_ISREG(status.st_mode) and not entry.endswith(_BYTECODE):
                found["/".join(path)] = stamp_of(status)
    return found, True


def _listed(work: str, at: tuple[str, ...]) -> list[tuple[str, os.stat_result]]:
    """Names and states of one directory, reached step by step and never through a link; [] when it is gone."""
    found: list[tuple[str, os.stat_result]] = []
    try:
        with _opened(work, at) as directory, os.scandir(directory) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    with contextlib.suppress(FileNotFoundError):
                        found.append((entry.name, entry.stat(follow_symlinks=False)))
                if len(found) > _MOST_ENTRIES:
                    break
    except OSError:
        return found
    return found


@contextlib.contextmanager
def _opened(work: str, at: tuple[str, ...]) -> Generator[int | str]:
    if not HAS_DIR_FD:
        place = os.path.join(work, *at)
        if os.path.realpath(place) != place:
            raise NotADirectoryError(place)
        yield place
        return
    current = os.open(work, LISTED)
    try:
        for name in at:
            deeper = os.open(name, LISTED, dir_fd=current)
            os.close(current)
            current = deeper
        yield current
    finally:
        os.close(current)
