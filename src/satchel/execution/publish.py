"""Changes of several files at once: all of them, or none.

New contents are written into a directory that no program sees, and are then moved into place. What stood there
before is kept beside them until everything is done.
"""

# ruff: noqa: PTH102, PTH106, PTH118, PTH208 - plain strings and descriptors, as in the path guard.

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from satchel.errors import FileError
from satchel.execution.workspace import Workspace
from satchel.pathguard import open_parent

MAX_FILE_BYTES = 4 * 1024 * 1024
NEW_MODE = 0o644

FileStamp = tuple[int, int, int, int]
"""Device, inode, size in bytes, time of the last change in nanoseconds."""

_NEW: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_LISTED: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """A file as it was read: ``mode`` are its permission bits."""

    data: bytes
    stamp: FileStamp
    mode: int = NEW_MODE

    @property
    def text(self) -> str:
        """Every byte that is no UTF-8 stands as a surrogate, so that writing it back changes nothing."""
        return self.data.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``data`` None removes the file. ``before`` is what it replaces or removes; None: there must be nothing yet."""

    path: str
    data: bytes | None
    before: FileContent | None = None
    mode: int = NEW_MODE


def publish(workspace: Workspace, changes: Sequence[Change]) -> None:
    """Makes every change, removals first; a file that is no longer as it was read is left alone.

    Raises:
        FileError: file-exists, file-changed, file-too-large, write-failed; nothing was changed.
        PathError: of the path guard; nothing was changed.
    """
    for change in changes:
        if change.data is not None and len(change.data) > MAX_FILE_BYTES:
            raise FileError(
                "file-too-large",
                f"{change.path} would have {len(change.data)} bytes, more than the {MAX_FILE_BYTES} of one file.",
                hint="Let a program write it, run with shell.",
            )
    ordered = sorted(changes, key=lambda change: change.data is not None)
    with ExitStack() as open_until_done:
        try:
            stage = _Stage(workspace, open_until_done)
            for index, change in enumerate(ordered):
                if change.data is not None:
                    stage.write(index, change.data, change.mode)
            with ExitStack() as undo:
                for index, change in enumerate(ordered):
                    stage.move(index, change, undo)
                undo.pop_all()
        except OSError as error:
            raise FileError(
                "write-failed", f"The files could not be written ({error.strerror}), so nothing was changed."
            ) from error


class _Stage:
    """A private directory for what is to be moved into place, and for what stood there."""

    def __init__(self, workspace: Workspace, open_until_done: ExitStack) -> None:
        self._work = workspace.work
        self._open = open_until_done
        path = os.path.join(workspace.root, f"stage-{secrets.token_hex(8)}")
        os.mkdir(path, 0o700)
        self._descriptor = os.open(path, _LISTED)
        open_until_done.callback(self._remove, path)

    def write(self, index: int, data: bytes, mode: int) -> None:
        descriptor = os.open(f"new-{index}", _NEW, 0o600, dir_fd=self._descriptor)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)

    def move(self, index: int, change: Change, undo: ExitStack) -> None:
        parent, name = open_parent(self._work, change.path, create=change.data is not None)
        self._open.callback(os.close, parent)
        old, new = f"old-{index}", f"new-{index}"
        if change.before is None:
            try:
                # A link and not a move: it never takes the place of a file that appeared meanwhile.
                os.link(new, name, src_dir_fd=self._descriptor, dst_dir_fd=parent)
            except FileExistsError as error:
                raise FileError("file-exists", f"{change.path} exists already, so nothing was changed.") from error
            undo.callback(_quietly, lambda: os.unlink(name, dir_fd=parent))
            os.unlink(new, dir_fd=self._descriptor)
            return
        self._keep(parent, name, old, change)
        if change.data is None:
            os.unlink(name, dir_fd=parent)
        else:
            os.rename(new, name, src_dir_fd=self._descriptor, dst_dir_fd=parent)
        undo.callback(_quietly, lambda: os.rename(old, name, src_dir_fd=self._descriptor, dst_dir_fd=parent))

    def _keep(self, parent: int, name: str, old: str, change: Change) -> None:
        """A second name for the very file that is replaced, which also shows whether it is the one that was read."""
        changed = FileError(
            "file-changed",
            f"{change.path} was changed by something else just now, so nothing was changed.",
            hint="Read it again and repeat the change.",
        )
        try:
            os.link(name, old, src_dir_fd=parent, dst_dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError as error:
            raise changed from error
        now = os.stat(old, dir_fd=self._descriptor, follow_symlinks=False)
        stamp = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns)
        if change.before is None or not stat.S_ISREG(now.st_mode) or stamp != change.before.stamp:
            raise changed

    def _remove(self, path: str) -> None:
        _quietly(lambda: [os.unlink(name, dir_fd=self._descriptor) for name in os.listdir(self._descriptor)])
        os.close(self._descriptor)
        _quietly(lambda: os.rmdir(path))


def _quietly(step: Callable[[], object]) -> None:
    """For putting back and tidying up, where a failure must not hide the one that led here."""
    with contextlib.suppress(OSError):
        step()
