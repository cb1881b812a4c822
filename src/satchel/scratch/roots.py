"""Where every temporary directory of this process is: below one of its own, which is locked for as long as it lives.

The lock is on the directory itself, so it goes with the process however that ends, and whoever starts next knows whose
directories nobody needs any more. Safe to use from several threads; blocks.
"""

# ruff: noqa: PTH102, PTH106, PTH118 - plain strings and descriptors, as in the path guard.

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import re
import secrets
import stat
import tempfile
import threading
from dataclasses import dataclass

from satchel.scratch.measuring import measure
from satchel.scratch.removing import HAS_DIR_FD, LISTED, Effort, remove_inside, remove_tree

try:
    import fcntl
except ImportError:  # Windows has no lock on a directory, and nothing is swept there
    fcntl = None

_NAME = re.compile(r"satchel-[0-9a-f]{10}")
_AT_ONCE = 2000
"""Entries that a start removes before it goes on; the rest of what it found goes meanwhile."""
_AT_EXIT = 100_000
"""Entries that an exit removes; the next start finds the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Home:
    """``lock`` is the open directory, -1 where directories cannot be opened; a child that was forked has another."""

    path: str
    lock: int
    process: int


_guard = threading.Lock()
_homes: dict[str, _Home] = {}
_numbers = itertools.count(1)


def new_root(kind: str, base: str | None = None) -> str:
    """A new empty directory for us alone (0700, a canonical path); ``kind`` begins its name. ``remove_root`` ends it.

    It is made in ``base``, the place for temporary files when None, which is swept first when this process has nothing
    there yet. Raises ``OSError``.
    """
    where = os.path.realpath(base or tempfile.gettempdir())
    with _guard:
        home = _homes.get(where)
        if home is not None and home.process == os.getpid():
            with contextlib.suppress(FileNotFoundError):  # somebody tidies here too
                return _made(home, kind)
            _close(home)
        home = _homes[where] = _new_home(where)
        root = _made(home, kind)
    sweep(where)
    return root


def remove_root(root: str, effort: Effort | None = None) -> bool:
    """Removes it as ``remove_tree`` does, and the directory of this process with its last one."""
    is_gone = remove_tree(root, effort)
    if is_gone:
        with _guard:
            for where, home in _homes.items():
                if home.path == os.path.dirname(root):  # noqa: PTH120
                    with contextlib.suppress(OSError):  # not the last one
                        os.rmdir(home.path)
                        _close(home)
                        del _homes[where]
                    break
    return is_gone


def held_bytes(base: str | None = None) -> int:
    """What all directories of this process in ``base`` take on the disk, those that are being removed among them."""
    home = _homes.get(os.path.realpath(base or tempfile.gettempdir()))
    if home is None:
        return 0
    try:
        names = os.listdir(home.path)  # noqa: PTH208
    except FileNotFoundError:  # the last one has just gone
        return 0
    return sum(measure(os.path.join(home.path, name))[0] for name in names)


def sweep(base: str, at_once: int = _AT_ONCE) -> None:
    """Removes what processes of this user left in ``base`` that live no more.

    A thread of its own goes on with what is more than ``at_once`` entries. Whatever else has such a name is left alone:
    links, files, directories of other users or that others may enter, and those whose lock is held.
    """
    effort = Effort(at_once)
    left: list[tuple[str, int]] = []
    for path in _candidates(base):
        lock = _claimed(path)
        if lock is None:
            continue
        try:
            remove_inside(lock, effort)
        except OSError:  # somebody else's rubbish stops nobody
            os.close(lock)
            continue
        if effort.is_spent:
            left.append((path, lock))
        else:
            _end(path, lock)
    if left:
        try:
            threading.Thread(target=_finish, args=(left,), name="satchel-sweep", daemon=True).start()
        except RuntimeError:  # the host has no thread for it: the next start will
            for _, lock in left:
                os.close(lock)


def _made(home: _Home, kind: str) -> str:
    """Numbers do, where nobody else comes; they are short, since a socket's path is bounded and one is made below."""
    root = os.path.join(home.path, f"{kind}-{next(_numbers)}")
    os.mkdir(root, 0o700)
    return root


def _finish(left: list[tuple[str, int]]) -> None:
    for path, lock in left:
        with contextlib.suppress(OSError):
            remove_inside(lock, Effort())
        _end(path, lock)


def _end(path: str, lock: int) -> None:
    with contextlib.suppress(OSError):  # something in it cannot be removed
        os.rmdir(path)
    os.close(lock)


def _candidates(base: str) -> list[str]:
    if fcntl is None or not HAS_DIR_FD:
        return []
    try:
        with os.scandir(base) as entries:
            return [entry.path for entry in entries if _NAME.fullmatch(entry.name)]
    except OSError:  # it may be a place where one can make a directory and see none
        return []


def _claimed(path: str) -> int | None:
    """The open directory with its lock, when it is one of ours that nobody holds."""
    try:
        lock = os.open(path, LISTED)
    except OSError:
        return None
    status = os.fstat(lock)
    is_ours = status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == stat.S_IRWXU
    if is_ours and _locked(lock):
        return lock
    os.close(lock)
    return None


def _locked(descriptor: int) -> bool | None:
    """None where there are no locks on directories, so that nobody can conclude anything from one."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _new_home(where: str) -> _Home:
    """Whoever sweeps may come between the making and the lock: then there is nothing in it yet, and another is made."""
    while True:
        path = os.path.join(where, f"satchel-{secrets.token_hex(5)}")
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            continue
        if not HAS_DIR_FD:
            return _Home(path=path, lock=-1, process=os.getpid())
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(path, LISTED)
            if _locked(lock) is not False and _is_still(path, lock):
                return _Home(path=path, lock=lock, process=os.getpid())
            os.close(lock)


def _is_still(path: str, lock: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(lock))  # noqa: PTH116
    except FileNotFoundError:
        return False


def _close(home: _Home) -> None:
    if home.lock >= 0:
        os.close(home.lock)


@atexit.register
def _remove_all() -> None:
    for home in list(_homes.values()):
        if home.process == os.getpid():  # not in a child that was forked
            remove_tree(home.path, Effort(_AT_EXIT))
