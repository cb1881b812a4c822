"""The files of a workspace's working directory, read and written by the host while programs may change them.

Programs may have left anything there: links, pipes, devices, other files than a moment ago. Nothing is reached or
written through a link that leads out, nothing but a regular file is opened, and everything is bounded.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from satchel.errors import FileError, PathError
from satchel.execution.diagnosis import quoted
from satchel.execution.publish import MAX_FILE_BYTES, Change, FileContent, publish
from satchel.execution.workspace import Workspace
from satchel.pathguard import open_inside, open_parent, split_path
from satchel.skills.names import near_names

_MOST_NAMES = 500
_LARGEST_LIST = 256 * 1024  # of a file that names packages
# What is said of a file stands on lines of its own, and a name must not make more of them.
_UNNAMED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LISTED: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class WorkFiles:
    """Synchronous: callers in a loop use a thread. Paths are relative to ``work``, with forward slashes."""

    workspace: Workspace

    def relative(self, path: str, folder: str = "") -> str:
        """The one spelling of ``path``, which may also be absolute within ``work`` or begin with ``~/``.

        A relative one is meant in ``folder``. The disk is not touched.

        Raises:
            PathError: path-refused, or not-a-file for the directory itself.
        """
        given = path.strip()
        plain = self._within(given)
        if folder and not given.startswith(("/", "~")):
            plain = f"{self._within(folder.strip())}/{plain}"
        segments = split_path(plain, place="work")
        if not segments:
            raise PathError("not-a-file", "The working directory is a directory, not a file.")
        named = "/".join(segments)
        if _UNNAMED.search(named):
            raise PathError(
                "path-refused",
                f"The file name {quoted(named)} has characters that no text of one line can show.",
                hint="Give the file another name with shell.",
            )
        return named

    def read(self, path: str) -> FileContent:
        """A whole file, also through links that end within ``work``.

        Raises:
            PathError: path-refused, path-not-found, not-a-file, binary-file.
            FileError: file-too-large.
        """
        return self._read(path, links=True)

    def read_to_change(self, path: str) -> FileContent:
        """The same without any link on the way, because a change would not go through one."""
        return self._read(path, links=False)

    def exists(self, path: str) -> bool:
        """Whether anything at all has that name."""
        try:
            parent, name = open_parent(self.workspace.work, path)
        except PathError as error:
            if error.code == "path-not-found":
                return False
            raise
        try:
            os.stat(name, dir_fd=parent, follow_symlinks=False)
        except OSError:
            return False
        finally:
            os.close(parent)
        return True

    def publish(self, changes: Sequence[Change]) -> None:
        """Makes all of the changes, or none and raises ``FileError`` or ``PathError``."""
        publish(self.workspace, changes)

    def near(self, path: str) -> tuple[str, ...]:
        """Names of files beside a missing ``path`` that may have been meant, as paths; () when there are none."""
        folder, slash, name = path.rpartition("/")
        try:
            # A name that need not be there: only the directory is opened.
            parent, _ = open_parent(self.workspace.work, f"{folder}/x" if slash else "x")
        except PathError:
            return ()
        try:
            listed = os.open(".", _LISTED, dir_fd=parent)
            try:
                with os.scandir(listed) as entries:
                    names = [entry.name for entry in islice(entries, _MOST_NAMES) if not _UNNAMED.search(entry.name)]
            finally:
                os.close(listed)
        except OSError:
            return ()
        finally:
            os.close(parent)
        return tuple(folder + slash + found for found in near_names(name, sorted(names)))

    def _within(self, path: str) -> str:
        plain = path.replace("\\", "/")
        work = self.workspace.work.replace("\\", "/")
        if plain in {work, "~"}:
            return "."
        for root in (work + "/", "~/"):
            if plain.startswith(root):
                return plain[len(root) :].lstrip("/") or "."
        return plain

    def _read(self, path: str, *, links: bool) -> FileContent:
        descriptor = open_inside(self.workspace.work, path, place="work", links=links)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            try:
                data = b"" if status.st_size > MAX_FILE_BYTES else file.read(MAX_FILE_BYTES + 1)
            except OSError as error:
                raise PathError("path-refused", f'The file "{path}" cannot be read ({error.strerror}).') from error
        if status.st_size > MAX_FILE_BYTES or len(data) > MAX_FILE_BYTES:
            raise FileError(
                "file-too-large",
                f"{path} has {status.st_size} bytes, more than the {MAX_FILE_BYTES} that the file tools handle.",
                hint="Look at a part of it with shell, for example with head, tail or grep -n.",
            )
        if b"\0" in data:
            raise PathError(
                "binary-file",
                f"The file {path} is not a text file.",
                hint="Examine it with a program, run with shell.",
            )
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        return FileContent(data=data, stamp=stamp, mode=stat.S_IMODE(status.st_mode) & 0o777)


def read_list(work: str, cwd: str, path: str) -> str | None:
    """A file that names packages, below ``work`` or ``cwd`` and of bounded size. Blocks."""
    given = f"{work}{path[1:]}" if path.startswith("~/") else path
    full = os.path.normpath(f"{cwd}/{given}" if not given.startswith("/") else given)
    root = work if full.startswith(f"{work}/") else cwd
    if not full.startswith(f"{root}/"):
        return None
    try:
        descriptor = open_inside(root, full[len(root) + 1 :])
    except PathError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(_LARGEST_LIST + 1)
    return data.decode("utf-8", "replace") if len(data) <= _LARGEST_LIST else None
