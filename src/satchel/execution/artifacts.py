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
from itertools import islice
from typing import BinaryIO

from satchel.errors import PathError
from satchel.execution.workspace import ProducedFile, Workspace
from satchel.pathguard import open_inside
from satchel.scratch.roots import new_root, remove_root

_CHUNK = 1024 * 1024


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


class Artifacts:
    """A shelf of at most ``max_bytes`` and ``max_files``, each file for ``ttl_s`` seconds.

    The oldest of the owner who has the most make room. It is a private directory below ``base`` that ``close`` removes.
    The newer version of a path replaces the older.
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
        self._lock = threading.Lock()

    def keep(
        self, workspace: Workspace, files: Iterable[ProducedFile], *, owner: str, run: str
    ) -> tuple[Artifact, ...]:
        """Copies files of ``workspace``. What is gone, no regular file any more or too large is left out."""
        # More would only push out the first of them.
        found = (self._keep(workspace, file.path, owner, run) for file in islice(files, self._max_files))
        return tuple(kept for kept in found if kept is not None)

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

    def close(self) -> None:
        """Removes everything. Nothing can be kept afterwards."""
        with self._lock:
            self._kept.clear()
            self._max_files = 0
            remove_root(self._root)

    def _keep(self, workspace: Workspace, path: str, owner: str, run: str) -> Artifact | None:
        artifact_id = secrets.token_urlsafe(18)
        try:
            source = open_inside(workspace.work, path)
        except PathError:
            return None
        with os.fdopen(source, "rb") as reading, self._lock:
            if self._max_files == 0:
                return None
            size = self._copy(reading, self._place(artifact_id))
            if size is None:
                return None
            same = owner, run, path
            for item in [item for item in self._kept.values() if (item.owner, item.run, item.path) == same]:
                self._drop(item.id)
            expires = self._clock() + self._ttl_s
            kept = Artifact(id=artifact_id, owner=owner, run=run, path=path, bytes=size, expires=expires)
            self._kept[artifact_id] = kept
            self._sweep()
            return kept

    def _copy(self, reading: BinaryIO, target: str) -> int | None:
        """How many bytes were copied; None when there are too many or no room, and then nothing is left of them."""
        size = 0
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as writing:
                while chunk := reading.read(_CHUNK):
                    size += len(chunk)
                    if size > self._max_file_bytes:
                        break
                    writing.write(chunk)
        except OSError:  # no room, or the host that serves them has run out of something
            size = self._max_file_bytes + 1
        if size > self._max_file_bytes:
            with contextlib.suppress(OSError):
                os.unlink(target)
            return None
        return size

    def _sweep(self) -> None:
        now = self._clock()
        for item in [item for item in self._kept.values() if item.expires <= now]:
            self._drop(item.id)
        held: dict[str, list[int]] = {}
        for item in self._kept.values():
            held.setdefault(item.owner, []).append(item.bytes)
        while self._kept:
            if sum(map(sum, held.values())) > self._max_bytes:
                most = max(held, key=lambda owner: sum(held[owner]))
            elif len(self._kept) > self._max_files:
                most = max(held, key=lambda owner: len(held[owner]))
            else:
                return
            # Nobody's files go because of what somebody else makes.
            self._drop(next(item.id for item in self._kept.values() if item.owner == most))
            del held[most][0]

    def _drop(self, artifact_id: str) -> int:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._place(artifact_id))
        return self._kept.pop(artifact_id).bytes

    def _place(self, artifact_id: str) -> str:
        return os.path.join(self._root, artifact_id)
