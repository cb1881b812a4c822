"""Files that programs produced, kept for a while after their workspace is gone. Safe to use from several threads."""

# ruff: noqa: PTH108, PTH118 - plain strings and descriptors, as in the path guard.

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import BinaryIO

from satchel.errors import PathError
from satchel.execution.workspace import ProducedFile, Workspace
from satchel.pathguard import open_inside, split_path
from satchel.scratch.roots import new_root, remove_root

_CHUNK = 1024 * 1024
_NO_ROOM = "had no room beside what is kept already"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A kept file. ``id`` names it on this shelf, ``run`` is the workbench that made it and ``owner`` for whom it ran.

    ``path`` is where it lay, relative to the working directory. ``expires`` is on the shelf's own clock.
    """

    id: str
    owner: str
    run: str
    path: str
    bytes: int
    expires: float

    @property
    def name(self) -> str:
        """The last part of the path, for a download: nothing in it ends a header or names a directory."""
        last = self.path.rpartition("/")[2]
        return "".join(char if char.isprintable() and char not in '"\\' else "_" for char in last) or "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotKept:
    """A produced file that cannot be had: ``reason`` goes on after its name. ``path`` can be printed."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of produced files."""

    files: tuple[Artifact, ...] = ()
    refused: tuple[NotKept, ...] = ()


class Artifacts:
    """A shelf of at most ``max_bytes`` and ``max_files``, each file for ``ttl_s`` seconds.

    The oldest of the owner who has the most make room. It is a private directory below ``base`` that ``close`` removes.
    The newer version of a path replaces the older, also when it cannot be kept itself.
    """

    def __init__(
        self,
        *,
        base: str | None = None,
        max_bytes: int = 256 * 1024 * 1024,
        max_file_bytes: int = 64 * 1024 * 1024,
        max_files: int = 1000,
        ttl_s: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = new_root("artifacts", base)
        self._max_bytes = max_bytes
        self._max_file_bytes = min(max_file_bytes, max_bytes)
        self._max_files = max_files
        self._ttl_s = ttl_s
        self._clock = clock
        self._kept: OrderedDict[str, Artifact] = OrderedDict()
        self._coming: dict[str, tuple[str, int]] = {}
        """Owner and size of what is being copied."""
        self._lock = threading.Lock()

    def keep(self, workspace: Workspace, files: Iterable[ProducedFile], *, owner: str, run: str) -> Kept:
        """Copies files of ``workspace``, as many as there is room for at once. Others wait for no copy."""
        kept: list[Artifact] = []
        refused: list[NotKept] = []
        size = 0
        for file in files:
            if len(kept) >= max(1, self._max_files):
                done = f"is one of more than {self._max_files} at once"
            else:
                done = self._keep(workspace, file.path, owner, run, self._max_bytes - size)
            if isinstance(done, Artifact):
                kept.append(done)
                size += done.bytes
            else:
                self._discard(owner, run, file.path)
                refused.append(NotKept(path=printable(file.path), reason=done))
        with self._lock:
            there = {item.id for item in kept} & self._kept.keys()
        # Where others have much, the last ones of a call may have taken the room of its first ones.
        lost = [NotKept(path=item.path, reason=_NO_ROOM) for item in kept if item.id not in there]
        return Kept(files=tuple(item for item in kept if item.id in there), refused=(*lost, *refused))

    def find(self, owner: str, run: str, path: str) -> Artifact | None:
        """The newest file of that very path, None when there never was one, it is gone or another owner's."""
        return next((item for item in self.of(owner, run) if item.path == path), None)

    def of(self, owner: str, run: str) -> tuple[Artifact, ...]:
        """What is kept of one workbench, oldest first; nothing of it for another owner."""
        with self._lock:
            self._sweep()
            return tuple(item for item in self._kept.values() if (item.owner, item.run) == (owner, run))

    def left_s(self, artifact: Artifact) -> float:
        """In how many seconds it goes by itself."""
        return max(0.0, artifact.expires - self._clock())

    def open(self, artifact_id: str) -> BinaryIO | None:
        """Opens it for reading, None when it is gone. The caller closes it; it can be read even when it expires."""
        with self._lock:
            self._sweep()
            if artifact_id not in self._kept:
                return None
            return open(self._place(artifact_id), "rb")  # noqa: PTH123 - handed to the caller

    def sweep(self) -> int:
        """Removes what has expired and returns how many are kept."""
        with self._lock:
            self._sweep()
            return len(self._kept)

    def drop(self, owner: str, run: str) -> None:
        """Removes what is kept of one workbench."""
        with self._lock:
            for item in [item for item in self._kept.values() if (item.owner, item.run) == (owner, run)]:
                self._drop(item.id)

    def close(self) -> None:
        """Removes everything. Nothing can be kept afterwards."""
        with self._lock:
            self._kept.clear()
            self._max_files = 0
            remove_root(self._root)

    def _keep(self, workspace: Workspace, path: str, owner: str, run: str, room: int) -> Artifact | str:
        """The kept file, or why there is none."""
        if printable(path) != path:
            return "has a name that is no UTF-8 text"
        if "\\" in path:  # which opens a file in a directory, perhaps a hidden one, and is saved as one
            return "has a name with a backslash"
        if not _is_plain(path):
            return "has a name that means something else on other systems"
        try:
            source = open_inside(workspace.work, path)
        except PathError:
            return "was gone when it was to be kept, or is no regular file"
        with os.fdopen(source, "rb") as reading:
            size = os.fstat(source).st_size
            if size > self._max_file_bytes:
                return f"is larger than the {_size(self._max_file_bytes)} that a kept file may have"
            if size > room:
                return f"is one of files that have more than {_size(self._max_bytes)} together"
            artifact_id = secrets.token_urlsafe(18)
            with self._lock:
                if not self._reserve(artifact_id, size, (owner, run, path)):
                    return _NO_ROOM
            kept = None
            is_whole = False
            try:
                is_whole = self._copy(reading, self._place(artifact_id), size)
            finally:
                with self._lock:
                    del self._coming[artifact_id]
                    if is_whole and self._max_files > 0:
                        expires = self._clock() + self._ttl_s
                        kept = Artifact(id=artifact_id, owner=owner, run=run, path=path, bytes=size, expires=expires)
                        self._kept[artifact_id] = kept
                    else:
                        self._unlink(artifact_id)
        return kept or "could not be copied: it changed meanwhile, or the disk had no room"

    def _reserve(self, artifact_id: str, size: int, place: tuple[str, str, str]) -> bool:
        """Whether there is room for it now; then it counts until it is kept or given up."""
        if self._max_files == 0:
            return False
        self._drop_place(*place)
        self._coming[artifact_id] = (place[0], size)
        if self._sweep():
            return True
        del self._coming[artifact_id]
        return False

    def _copy(self, reading: BinaryIO, target: str, size: int) -> bool:
        """Whether exactly so many bytes could be copied."""
        left = size
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as writing:
                while chunk := reading.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        return False
                    writing.write(chunk)
        except OSError:  # no room, or the host that serves them has run out of something
            return False
        return left == 0

    def _sweep(self) -> bool:
        """Drops what is too old, and what is too much. False when that is not enough for what is being copied."""
        now = self._clock()
        for item in [item for item in self._kept.values() if item.expires <= now]:
            self._drop(item.id)
        held: dict[str, list[int]] = {}
        for item in self._kept.values():
            held.setdefault(item.owner, []).append(item.bytes)
        coming: dict[str, list[int]] = {}
        for owner, size in self._coming.values():
            coming.setdefault(owner, []).append(size)
        while True:
            sizes = {owner: held.get(owner, []) + coming.get(owner, []) for owner in {*held, *coming}}
            if sum(map(sum, sizes.values())) > self._max_bytes:
                most = max(sizes, key=lambda owner: (sum(sizes[owner]), owner in coming))
            elif sum(map(len, sizes.values())) > self._max_files:
                most = max(sizes, key=lambda owner: (len(sizes[owner]), owner in coming))
            else:
                return True
            if not held.get(most):
                return False
            # Nobody's files go because of what somebody else makes.
            self._drop(next(item.id for item in self._kept.values() if item.owner == most))
            del held[most][0]

    def _discard(self, owner: str, run: str, path: str) -> None:
        with self._lock:
            self._drop_place(owner, run, path)

    def _drop_place(self, owner: str, run: str, path: str) -> None:
        place = owner, run, path
        for item in [item for item in self._kept.values() if (item.owner, item.run, item.path) == place]:
            self._drop(item.id)

    def _drop(self, artifact_id: str) -> None:
        self._unlink(artifact_id)
        del self._kept[artifact_id]

    def _unlink(self, artifact_id: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._place(artifact_id))

    def _place(self, artifact_id: str) -> str:
        return os.path.join(self._root, artifact_id)


def _is_plain(path: str) -> bool:
    """Whether the path guard takes it for this very path and no other."""
    try:
        return "/".join(split_path(path)) == path
    except PathError:
        return False


def _size(count: int) -> str:
    return f"{count // 1024**2} MiB" if count >= 1024**2 else f"{count} bytes"


def printable(path: str) -> str:
    """The same, with the bytes that are no text written out."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
