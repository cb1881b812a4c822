"""Copies of what a program sees of the host, made once a process and removed at its exit.

What it may read of ``/etc`` takes one mount of a launch then instead of one a file; and the host's root is given device
nodes that are not the host's own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from satchel.scratch.roots import new_root

_NOBODY = 65534
_MOST_BYTES = 16 * 1024**2
_MOST_ENTRIES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcCopy:
    """``root`` holds each of ``paths`` of the host at its place below ``/etc``."""

    root: str
    paths: frozenset[str]


@cache
def copy_of_etc(paths: tuple[str, ...]) -> EtcCopy:
    """Copies these paths below ``/etc``, once a process; removed at its exit. What is too large is left out.

    Raises:
        OSError: there is no place for temporary files.
    """
    root = new_root("etc")
    left = [_MOST_BYTES, _MOST_ENTRIES]
    copied: set[str] = set()
    for path in paths:
        target = Path(root, path.removeprefix("/etc/"))
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _copy(Path(path), target, left)
        except (OSError, OverflowError):
            _discard(target)
        else:
            copied.add(path)
    return EtcCopy(root=root, paths=frozenset(copied))


@cache
def copy_of_devices(names: tuple[str, ...]) -> str:
    """A directory with nodes of these devices that belong to nobody; "" where this user may not make such.

    As the owner of the host's own nodes root could change their modes, from a sandbox too.
    """
    try:
        root = new_root("etc")
        for name in names:
            node = Path(root, name)
            os.mknod(node, stat.S_IFCHR | 0o600, Path("/dev", name).stat().st_rdev)
            os.chown(node, _NOBODY, _NOBODY)
            node.chmod(0o666)
        # Fails where the file system of temporary files has no devices.
        os.close(os.open(Path(root, names[0]), os.O_WRONLY | os.O_CLOEXEC))
    except OSError:
        return ""
    return root


def _copy(source: Path, target: Path, left: list[int]) -> None:
    """Links stay links but at the top, special files are left out. Raises ``OverflowError`` when it is too much."""
    left[1] -= 1
    if min(left) < 0:
        raise OverflowError
    if source.is_dir():
        target.mkdir()
        for entry in sorted(source.iterdir()):
            if entry.is_symlink():
                left[1] -= 1
                (target / entry.name).symlink_to(entry.readlink())
            elif stat.S_ISDIR(mode := entry.lstat().st_mode) or stat.S_ISREG(mode):
                # What this user may not read, none of its programs could read either.
                with contextlib.suppress(PermissionError):
                    _copy(entry, target / entry.name, left)
        return
    left[0] -= source.stat().st_size
    if left[0] < 0:
        raise OverflowError
    shutil.copyfile(source, target)
    target.chmod(0o644)


def _discard(target: Path) -> None:
    with contextlib.suppress(OSError):
        target.unlink(missing_ok=True) if not target.is_dir() else shutil.rmtree(target)
