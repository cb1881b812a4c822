"""Copies of produced files in a directory that a person named. Blocks."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from satchel.errors import PathError
from satchel.execution.artifacts import Artifact, Artifacts
from satchel.pathguard import open_parent, split_path

_LOST = "is no longer kept: much came after it, or too much time has passed"
_NO_SHELF = "was not kept: nothing was given to keep files on"

_NEW: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What became of one file: ``path`` is relative to the directory, ``problem`` says why it is not there."""

    path: str
    bytes: int
    problem: str = ""


def save(shelf: Artifacts, kept: Iterable[Artifact], folder: str, *, overwrite: bool = False) -> tuple[Saved, ...]:
    """Copies each file below ``folder``, which exists, by the path that it had in the working directory.

    What stands there is left alone, or with ``overwrite`` replaced when it is a regular file or a link, which is not
    followed. Nothing is reached through a link. Each file is there whole or not at all.
    """
    root = os.path.realpath(folder)
    return tuple(_save(shelf, item, root, overwrite=overwrite) for item in kept)


def save_made(
    shelf: Artifacts | None, owner: str, made: Mapping[str, Mapping[str, str]], folder: str, *, overwrite: bool = False
) -> tuple[Saved, ...]:
    """``save`` for all files of some runs. ``made`` has them by run and path, with why one was not kept, "" if it was.

    What the shelf does not have, or all where there is none, comes back with the reason.
    """
    saved: list[Saved] = []
    for run, files in made.items():
        kept = [item for item in shelf.of(owner, run) if item.path in files] if shelf else []
        saved += save(shelf, kept, folder, overwrite=overwrite) if shelf else ()
        there = {item.path for item in kept}
        lost = _LOST if shelf else _NO_SHELF
        saved += (
            Saved(path=path, bytes=0, problem=reason or lost) for path, reason in files.items() if path not in there
        )
    return tuple(saved)


def _save(shelf: Artifacts, item: Artifact, root: str, *, overwrite: bool) -> Saved:
    def failed(problem: str) -> Saved:
        return Saved(path=item.path, bytes=item.bytes, problem=problem)

    try:
        parts = split_path(item.path, place="work")
    except PathError as error:
        return failed(error.message)
    if any(part.startswith(".") for part in parts):
        # Programs of the person's own read such files without being asked to.
        return failed("is hidden, and such files are not copied")
    source = shelf.open(item.id)
    if source is None:
        return failed("is no longer kept")
    with source:
        try:
            parent, name = open_parent(root, item.path, create=True)
        except PathError as error:
            return failed(error.message)
        try:
            _put(source, parent, name, overwrite=overwrite)
        except FileExistsError:
            return failed("exists there already and was left as it is")
        except OSError as error:
            return failed(f"cannot be written: {error.strerror or error}")
        finally:
            os.close(parent)
    return Saved(path=item.path, bytes=item.bytes)


def _put(source: BinaryIO, parent: int, name: str, *, overwrite: bool) -> None:
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if not (overwrite and (stat.S_ISREG(mode) or stat.S_ISLNK(mode))):
            raise FileExistsError(name)
    written = f".satchel-{secrets.token_hex(8)}" if overwrite else name
    descriptor = os.open(written, _NEW, 0o666, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(source, target)
        if overwrite:
            os.rename(written, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        os.unlink(written, dir_fd=parent)
        raise
