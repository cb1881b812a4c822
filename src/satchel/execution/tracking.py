"""Which files of a working directory are new: what a call made, and what came between two calls.

Programs in the background write when they like, so a look at the directory before and after each call is not enough:
what was there after the last one counts too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from satchel.errors import PathError
from satchel.execution.workspace import ProducedFile, Snapshot, Stamp, Workspace, stamp_of, walk
from satchel.pathguard import open_parent


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """``made`` by a call, and ``since`` the call before it by what runs in the background. Sorted by path."""

    made: tuple[ProducedFile, ...] = ()
    since: tuple[ProducedFile, ...] = ()

    @property
    def files(self) -> tuple[ProducedFile, ...]:
        """All of them, each once."""
        return (*self.made, *self.since)


class FileTracker:
    """Of one workspace, for all tools that are used in it one at a time. Every look at the disk blocks.

    ``was_empty`` False: whatever is there when the first call begins is no news.
    """

    def __init__(self, workspace: Workspace, *, was_empty: bool = True) -> None:
        self._workspace = workspace
        self._is_known = was_empty
        self._ignored: set[str] = set()
        # As the model knows the files, and as those who fetch them know the ones that the model has not heard of.
        self._left: dict[str, Stamp] = {}
        self._collected: dict[str, Stamp] = {}
        self._begun: Snapshot = {}
        self._began_ns = 0
        self._saw_all = True
        # A directory too large to be seen whole shows other files each time: they need not be new.
        self._was_whole = self._is_whole = True
        self.is_open = False
        self.changes = 0

    def ignore(self, path: str) -> None:
        """Never counts a file: the log of a job grows by itself."""
        self._ignored.add(path)

    def begin(self) -> None:
        """A call begins. ``is_open`` until ``end``; ``changes`` has grown when files are others than when one ended."""
        self._began_ns = time.time_ns()
        self._begun = self._look()
        self._saw_all = self._is_whole
        if not self._is_known:
            self._settle(self._begun)
        self.changes += self._begun != self._left
        self.is_open = True

    def end(self) -> News:
        """The call has ended: what it made, and what was there already when it began and nobody had heard of."""
        since = self._news(self._begun)
        now = self._look()
        made = [path for path, stamp in now.items() if self._is_made(path, stamp)]
        self.changes += now != self._begun
        told = [path for path in since if path in now and self._begun[path] == now[path]]
        self._settle(now)
        return News(made=_files(now, made), since=_files(now, told))

    def look(self) -> tuple[ProducedFile, ...]:
        """What has come since the last call, for the result of one that runs nothing."""
        self.begin()
        return self.since()

    def since(self) -> tuple[ProducedFile, ...]:
        """The same for one that made nothing itself: what had come when it began."""
        since = self._news(self._begun)
        self._settle(self._begun)
        return _files(self._begun, since)

    def collect(self) -> tuple[ProducedFile, ...]:
        """The same for those who fetch files, each state of a file once. The model hears of it in its next result."""
        now = self._look()
        fresh = [path for path in self._news(now) if self._collected.get(path) != now[path]]
        self._collected.update({path: now[path] for path in fresh})
        return _files(now, fresh)

    def wrote(self, paths: Iterable[str]) -> None:
        """A tool of ours changed or removed these files, and its result says so."""
        for path in paths:
            stamp = _stamp(self._workspace.work, path)
            if stamp is None:
                self._left.pop(path, None)
            else:
                self._left[path] = stamp
            self.changes += 1

    def _look(self) -> Snapshot:
        found, self._is_whole = walk(self._workspace)
        return {path: stamp for path, stamp in found.items() if path not in self._ignored}

    def _is_made(self, path: str, stamp: Stamp) -> bool:
        before = self._begun.get(path)
        # What was removed may have left others to be seen that were there before.
        is_new = before is not None or self._saw_all or stamp[1] >= self._began_ns
        return is_new and before != stamp

    def _news(self, now: Snapshot) -> list[str]:
        if not (self._was_whole and self._is_whole):
            return []
        return [path for path, stamp in now.items() if self._left.get(path) != stamp]

    def _settle(self, now: Snapshot) -> None:
        self._left, self._was_whole, self._is_known = dict(now), self._is_whole, True
        self._collected.clear()
        self.is_open = False


def _files(now: Mapping[str, Stamp], paths: Iterable[str]) -> tuple[ProducedFile, ...]:
    return tuple(ProducedFile(path=path, bytes=now[path][0]) for path in sorted(paths))


def _stamp(work: str, path: str) -> Stamp | None:
    try:
        parent, name = open_parent(work, path)
    except PathError:
        return None
    try:
        return stamp_of(os.stat(name, dir_fd=parent, follow_symlinks=False))
    except OSError:
        return None
    finally:
        os.close(parent)
