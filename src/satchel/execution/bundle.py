"""A skill's files as a directory for a program: private copies, where its own directory cannot serve."""

# ruff: noqa: PTH102, PTH103, PTH118, PTH120, PTH211 - plain strings and descriptors, as in the path guard.

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Mapping

from satchel.errors import PathError
from satchel.execution.interpreters import extension
from satchel.pathguard import open_inside, split_path
from satchel.scratch.roots import new_root, remove_root

LARGEST_SCRIPT = 1024 * 1024
_SHELL_ENDINGS = frozenset({".sh", ".bash", ""})


def read_script(directory: str, path: str) -> bytes:
    """The script ``path`` of the skill in ``directory``, at most 1 MiB.

    Raises:
        PathError: what the guard refuses; "path-refused" also for hidden files and larger ones.
    """
    if any(segment.startswith(".") for segment in split_path(path)):
        raise PathError("path-refused", f'The path "{path}" is a hidden file, and those are not run.')
    descriptor = open_inside(directory, path)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(LARGEST_SCRIPT + 1)
    if len(data) > LARGEST_SCRIPT:
        raise PathError("path-refused", f'The script "{path}" is larger than {LARGEST_SCRIPT} bytes.')
    return data


def private_copy(files: Mapping[str, bytes], base: str | None = None) -> str:
    """A new directory, for us alone, that holds ``files`` by their relative paths; the caller removes it.

    Raises:
        PathError: "path-refused" for a path that leads out of it.
        OSError: it cannot be written.
    """
    with _made(base) as root:
        for path, data in files.items():
            target = os.path.join(root, *split_path(path))
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            _write(target, data)
        return root


def unix_copy(directory: str, path: str, base: str | None = None) -> str:
    """The skill in ``directory`` again, for a shell: scripts beside ``path`` have Unix line ends there.

    Everything else are links to the skill's own files. The caller removes it.
    """
    with _made(base) as root:
        here, copy = directory, root
        *folders, _ = split_path(path)
        for folder in (*folders, ""):
            if folder:
                os.mkdir(os.path.join(copy, folder), 0o700)
            for name in sorted(os.listdir(here)):  # noqa: PTH208 - plain strings
                if name != folder:
                    _link_or_convert(directory, os.path.join(here, name), os.path.join(copy, name), convert=not folder)
            here, copy = os.path.join(here, folder), os.path.join(copy, folder)
        return root


@contextlib.contextmanager
def _made(base: str | None) -> Generator[str]:
    """A new directory, gone again when it cannot be filled."""
    root = new_root("skill", base)
    try:
        yield root
    except BaseException:
        remove_root(root)
        raise


def _link_or_convert(directory: str, source: str, target: str, *, convert: bool) -> None:
    if convert and extension(source) in _SHELL_ENDINGS:
        try:
            data = read_script(directory, os.path.relpath(source, directory))
        except PathError:
            data = b""
        if b"\r\n" in data and b"\0" not in data:
            _write(target, data.replace(b"\r\n", b"\n"))
            return
    os.symlink(source, target)


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
