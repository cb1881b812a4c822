"""The one guard between a path that somebody wrote and a file: inside a skill, or inside a working directory.

Three escapes are closed: by spelling (``split_path``), by symbolic link, and by a swap between check and open. Files
are opened component by component below an open directory, never following a link; a link is resolved here, checked
to stay below the root, and walked again. What is to be written is not reached through links at all.
"""

# ruff: noqa: PTH117, PTH118 - plain strings and descriptors: pathlib hides what is resolved when.

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import Literal, NamedTuple

from satchel.errors import PathError

Place = Literal["skill", "work"]
"""What a root is, for the words of a refusal: a skill's directory, or a working directory."""

_MAX_LINKS = 16
_SHOWN = 120
_DRIVE = re.compile(r"[A-Za-z]:")

_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_PATH_ONLY: int = getattr(os, "O_PATH", 0)
_COMMON: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0) | _NO_FOLLOW
# O_PATH asks for no read permission on the directories on the way, exactly as an ordinary open does.
_DIRECTORY: int = _COMMON | getattr(os, "O_DIRECTORY", 0) | (_PATH_ONLY or os.O_RDONLY)
_LISTED: int = _COMMON | getattr(os, "O_DIRECTORY", 0) | os.O_RDONLY
# O_NONBLOCK: a FIFO that appears between the check and the open must not hang the caller.
_FILE: int = os.O_RDONLY | _COMMON | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)
_NAMES: dict[Place, tuple[str, str, str]] = {
    "skill": ("skill directory", "skill", "The skill's directory"),
    "work": ("working directory", "working directory", "The working directory"),
}
_HINTS: dict[Place, str] = {
    "skill": "Name a file of the skill relative to the skill's own directory, like references/guide.md.",
    "work": "Name a file relative to the working directory, like src/app.py.",
}
_HAS_DIR_FD = bool(_NO_FOLLOW) and os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd


class _Named(NamedTuple):
    """A path as it was written, and the place that it should be in: all that a refusal says."""

    path: str
    place: Place


def split_path(path: str, *, place: Place = "skill") -> tuple[str, ...]:
    """The segments of a path inside a root; ``()`` is the directory itself. The disk is not touched.

    Backslashes are separators too, ``./`` and empty segments do not count.

    Raises:
        PathError: "path-refused" for every spelling that could lead elsewhere on some platform.
    """
    named = _Named(path, place)
    if "\0" in path:
        raise _refused(named, "contains a NUL character")
    plain = path.replace("\\", "/")
    if plain.startswith("//"):
        raise _refused(named, "is a UNC path")
    if plain.startswith(("/", "~")):
        raise _refused(named, "is an absolute path")
    if _DRIVE.match(plain):
        raise _refused(named, "is a drive-qualified path")
    segments = tuple(segment for segment in plain.split("/") if segment not in {"", "."})
    if ".." in segments:
        raise _refused(named, f"escapes the {_NAMES[place][0]}")
    for segment in segments:
        if segment.endswith((".", " ")):
            raise _refused(named, "has a segment ending in a dot or a blank")
        if os.name == "nt" and ":" in segment:
            raise _refused(named, "names an alternate data stream")
    return segments


def is_inside(path: str, root: str) -> bool:
    """Whether the canonical ``path`` is the canonical ``root`` or lies below it."""
    return _below(path, root) is not None


def open_inside(root: str, path: str, *, place: Place = "skill", links: bool = True) -> int:
    """Opens the regular file ``path`` below the directory ``root`` for reading and returns its descriptor.

    ``root`` must be canonical (``os.path.realpath``): a root that has since become a link is refused. Links below it
    are followed as long as they end below it; with ``links`` False they are refused.

    Raises:
        PathError: "path-refused", "path-not-found" or "not-a-file".
    """
    named = _Named(path, place)
    segments = _segments(root, named)
    try:
        if _HAS_DIR_FD:
            return _open_by_descriptor(root, segments, named, links=links)
        return _open_by_name(root, segments, named, links=links)
    except (OSError, ValueError) as error:
        raise _translated(named, error) from error


def open_parent(root: str, path: str, *, place: Place = "work", create: bool = False) -> tuple[int, str]:
    """``(descriptor, name)``: the directory below ``root`` that holds ``path``, and the name of ``path`` in it.

    The directory is never reached through a link. With ``create``, missing ones are made.

    Raises:
        PathError: "path-refused", "path-not-found" or "not-a-file"; also where the platform has no directory
            descriptors, because nothing can be written safely there.
    """
    named = _Named(path, place)
    segments = _segments(root, named)
    if not _HAS_DIR_FD:
        raise _refused(named, "cannot be written safely on this platform")
    try:
        current = _open_root(root, place)
        for name in segments[:-1]:
            try:
                current = _deeper(current, name, named, create=create)
            except BaseException:
                os.close(current)
                raise
    except (OSError, ValueError) as error:
        raise _translated(named, error) from error
    return current, segments[-1]


def _segments(root: str, named: _Named) -> tuple[str, ...]:
    segments = split_path(named.path, place=named.place)
    if not root.strip():
        raise PathError("path-refused", "There is no root directory to read from.")
    if not os.path.isabs(root):
        raise PathError("path-refused", f"The root {_shown(root)} is not an absolute path.")
    if not segments:
        raise _is_directory(named)
    try:
        os.fsencode(named.path)
    except UnicodeEncodeError as error:
        raise _translated(named, error) from error
    return segments


def _deeper(current: int, name: str, named: _Named, *, create: bool) -> int:
    """The directory ``name`` in an open one, which is closed when this returns."""
    try:
        mode = os.stat(name, dir_fd=current, follow_symlinks=False).st_mode
    except FileNotFoundError:
        if not create:
            raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=current)
    else:
        if stat.S_ISLNK(mode):
            raise _refused(named, "goes through a symbolic link, and nothing is changed through one")
        if not stat.S_ISDIR(mode):
            raise _refused(named, "goes through something that is not a directory")
    deeper = os.open(name, _DIRECTORY, dir_fd=current)
    os.close(current)
    return deeper


def read_listed(directory: int, name: str, limit: int) -> bytes | None:
    """All of the regular file ``name`` of an open ``directory``, when it has at most ``limit`` bytes.

    None when it cannot be read so, a link for example: ``open_inside`` follows it, or says what is wrong.
    """
    try:
        descriptor = os.open(name, _FILE, dir_fd=directory)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        size = status.st_size
        if size > limit or not stat.S_ISREG(status.st_mode):
            return None
        data = os.read(descriptor, size + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return data if len(data) == size else None


class Directories:
    """Opens directories by their canonical paths, one after another, and never through a link.

    The parent of the last one stays open, so that its siblings cost one step each. Where the platform has no directory
    descriptors, ``usable`` is False.
    """

    usable = _HAS_DIR_FD and os.scandir in os.supports_fd

    def __init__(self) -> None:
        self._parent = ""
        self._descriptor = -1

    def open(self, path: str) -> int:
        """A descriptor of the directory ``path`` for listing it; the caller closes it.

        Raises:
            OSError: it cannot be opened, or a link has taken its place.
            PathError: the same of a directory above it.
        """
        parent, _, name = path.rpartition("/")
        if not name:
            return os.open(path, _LISTED)
        if parent != self._parent or self._descriptor < 0:
            self.close()
            self._descriptor = _open_root(parent or "/")
            self._parent = parent
        return os.open(name, _LISTED, dir_fd=self._descriptor)

    def close(self) -> None:
        """Closes what is kept open; ``open`` may be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open_by_descriptor(root: str, segments: tuple[str, ...], path: _Named, *, links: bool) -> int:
    root_fd = _open_root(root, path.place)
    try:
        for _ in range(_MAX_LINKS):
            opened, link = _descend(root_fd, segments, path)
            if link < 0:
                return opened
            if not links:
                raise _refused(path, "is or goes through a symbolic link, and nothing is changed through one")
            real = os.path.realpath(os.path.join(root, *segments[: link + 1]))
            target = _below(real, root)
            if target is None:
                raise _refused(path, f"leads out of the {_NAMES[path.place][1]} through a symbolic link")
            segments = target + segments[link + 1 :]
            if not segments:
                raise _is_directory(path)
    finally:
        os.close(root_fd)
    raise _refused(path, "goes through a symbolic link that never ends")


def _descend(root_fd: int, segments: tuple[str, ...], path: _Named) -> tuple[int, int]:
    """``(descriptor, -1)``, or ``(-1, index)`` of the first segment that is a link."""
    current = root_fd
    last = len(segments) - 1
    try:
        for index, name in enumerate(segments):
            mode = os.stat(name, dir_fd=current, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                return -1, index
            if index == last:
                _require_regular(mode, path)
                return _checked(os.open(name, _FILE, dir_fd=current), path), -1
            if not stat.S_ISDIR(mode):
                raise _missing(path)
            deeper = os.open(name, _DIRECTORY, dir_fd=current)
            if current != root_fd:
                os.close(current)
            current = deeper
    finally:
        if current != root_fd:
            os.close(current)
    raise _is_directory(path)


def _open_root(root: str, place: Place = "skill") -> int:
    parts = [part for part in root.split("/") if part]
    if "." in parts or ".." in parts:
        raise PathError("path-refused", f"The root {_shown(root)} is not a canonical path.")
    try:
        if not _PATH_ONLY:
            if os.path.realpath(root) != root:
                raise _moved_root(place)
            return os.open(root, _DIRECTORY | getattr(os, "O_NOFOLLOW_ANY", 0))
        current = os.open("/", _DIRECTORY)
        for part in parts:
            try:
                deeper = os.open(part, _DIRECTORY, dir_fd=current)
            finally:
                os.close(current)
            current = deeper
    except FileNotFoundError as error:
        raise PathError("path-not-found", f"{_NAMES[place][2]} does not exist any more.") from error
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            raise _moved_root(place) from error
        raise
    return current


def _open_by_name(root: str, segments: tuple[str, ...], path: _Named, *, links: bool) -> int:
    """For platforms without directory descriptors: resolve, check, open, and check that it is still the same file."""
    if os.path.normcase(os.path.realpath(root)) != os.path.normcase(root.rstrip("/\\") or root):
        raise _moved_root(path.place)
    real = os.path.realpath(os.path.join(root, *segments))
    if not is_inside(real, root):
        raise _refused(path, f"leads out of the {_NAMES[path.place][1]} through a symbolic link")
    if not links and not _is_same_path(real, os.path.join(root, *segments)):
        raise _refused(path, "is or goes through a symbolic link, and nothing is changed through one")
    before = os.lstat(real)
    if stat.S_ISLNK(before.st_mode):
        raise _refused(path, "goes through a symbolic link that never ends")
    _require_regular(before.st_mode, path)
    descriptor = _checked(os.open(real, _FILE | _BINARY), path)
    if os.path.samestat(before, os.fstat(descriptor)) and os.path.realpath(real) == real:
        return descriptor
    os.close(descriptor)
    raise _refused(path, "was exchanged while it was opened, perhaps for a symbolic link")


def _checked(descriptor: int, path: _Named) -> int:
    try:
        _require_regular(os.fstat(descriptor).st_mode, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(mode: int, path: _Named) -> None:
    if stat.S_ISDIR(mode):
        raise _is_directory(path)
    if not stat.S_ISREG(mode):
        raise _refused(path, "is not a regular file")


def _below(path: str, root: str) -> tuple[str, ...] | None:
    """The segments of canonical ``path`` below canonical ``root``, None when it lies elsewhere.

    Only Windows spells one directory in several cases after ``realpath``; elsewhere an odd spelling of the root
    is refused, which errs on the safe side.
    """
    base = root.rstrip("/\\")
    if os.path.normcase(path[: len(base)]) != os.path.normcase(base):
        return None
    rest = path[len(base) :]
    if rest and rest[0] != "/" and rest[0] != os.sep:
        return None
    return tuple(part for part in rest.replace(os.sep, "/").split("/") if part)


def _is_same_path(one: str, other: str) -> bool:
    return os.path.normcase(one) == os.path.normcase(other)


def _translated(path: _Named, error: OSError | ValueError) -> PathError:
    if isinstance(error, ValueError):
        return _refused(path, "is not a possible file name")
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
        return _missing(path)
    if error.errno == errno.ELOOP:
        return _refused(path, "goes through a symbolic link that never ends")
    return _refused(path, f"cannot be read ({error.strerror or 'unknown reason'})")


def _refused(named: _Named, reason: str) -> PathError:
    return PathError("path-refused", f"The path {_shown(named.path)} {reason}.", hint=_HINTS[named.place])


def _missing(named: _Named) -> PathError:
    where = "this skill" if named.place == "skill" else "the working directory"
    return PathError("path-not-found", f"The file {_shown(named.path)} does not exist in {where}.")


def _is_directory(named: _Named) -> PathError:
    return PathError("not-a-file", f"The path {_shown(named.path)} is a directory, not a file.")


def _moved_root(place: Place) -> PathError:
    return PathError("path-refused", f"{_NAMES[place][2]} is now reached through a symbolic link.")


def _shown(path: str) -> str:
    cut = path if len(path) <= _SHOWN else path[:_SHOWN] + "..."
    return '"' + "".join(char if char.isprintable() else "?" for char in cut) + '"'
