"""Links to what was installed, and small files beside it, made by the host in directories that an install could write.

An install runs programs of a workspace when a model put a runtime of its own there, so every directory is opened step
by step from the one that is ours, and never through a link.
"""

# ruff: noqa: PTH118, PTH206, PTH208 - plain strings and descriptors, as in the workspace.

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import AsyncGenerator, Generator

from satchel.execution.workspace import Workspace

_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_NOT_REPLACED = re.compile(r"python[\d.]*|pip[\d.]*|node|npm|npx|sh|bash|activate.*", re.IGNORECASE)
_INTERPRETER = re.compile(r"python[\d.]*")
_MOST_PROGRAMS = 2000
_DEEPEST = 3
_MOST_ENTRIES = 20_000
_DIRECTORY: int = (
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)


def link_programs(workspace: Workspace, folder: str) -> None:
    """Puts the programs in ``folder``, below ``packages``, on PATH; never in place of an interpreter or a shell.

    Raises:
        OSError: the directory of programs was replaced.
    """
    try:
        with _opened(workspace.packages, folder) as directory:
            names = sorted(os.listdir(directory))[:_MOST_PROGRAMS]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if _PROGRAM.fullmatch(name) and not _NOT_REPLACED.fullmatch(name):
            place_link(workspace.packages, os.path.join(workspace.packages_bin, name), os.path.join(folder, name))


def show_python(workspace: Workspace, environment: str) -> None:
    """Makes ``python_packages`` a link to the packages of that virtual environment.

    Raises:
        OSError: there are none.
    """
    libraries = os.path.join(environment, "lib")
    with _opened(workspace.packages, libraries) as directory:
        versions = [name for name in sorted(os.listdir(directory)) if re.fullmatch(r"python3\.\d{1,2}", name)]
    if not versions:
        raise FileNotFoundError(2, "the environment has no packages", libraries)
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
        _opened(workspace.root, workspace.packages) as ours,
    ):
        os.rmdir(os.path.basename(workspace.python_packages), dir_fd=ours)  # noqa: PTH119
    target = os.path.join(libraries, versions[-1], "site-packages")
    place_link(workspace.packages, workspace.python_packages, target)


def place_link(root: str, path: str, target: str, *, replaces: bool = True) -> None:
    """A relative link at ``path``, below ``root``; what is there already stays unless ``replaces``.

    Raises:
        OSError: a directory on the way is a link, or one is in its place.
    """
    folder, name = os.path.split(path)
    with _opened(root, folder) as directory:
        if not replaces and name in os.listdir(directory):
            return
        _replace_link(directory, name, os.path.relpath(target, folder))


@contextlib.asynccontextmanager
async def keep_interpreters(workspace: Workspace, folder: str) -> AsyncGenerator[None]:
    """The links to interpreters in ``folder``, below ``packages``, are at the end what they were at the beginning.

    A package may bring a program called ``python``, which every program of other packages would then be run by.

    Raises:
        OSError: the directory was replaced.
    """
    before = await asyncio.to_thread(_interpreters, workspace, folder)
    try:
        yield
    finally:
        after = await asyncio.to_thread(_interpreters, workspace, folder)
        for name, target in before.items():
            if after.get(name) != target:
                await asyncio.to_thread(_put_back, workspace, folder, name, target)


def _interpreters(workspace: Workspace, folder: str) -> dict[str, str]:
    with _opened(workspace.packages, folder) as directory:
        names = [name for name in os.listdir(directory) if _INTERPRETER.fullmatch(name)]
        found: dict[str, str] = {}
        for name in names:
            with contextlib.suppress(OSError):  # no link
                found[name] = os.readlink(name, dir_fd=directory)
        return found


def _put_back(workspace: Workspace, folder: str, name: str, target: str) -> None:
    with _opened(workspace.packages, folder) as directory:
        _replace_link(directory, name, target)


def _replace_link(directory: int, name: str, target: str) -> None:
    aside = f".{secrets.token_hex(8)}"
    os.symlink(target, aside, dir_fd=directory)
    try:
        os.replace(aside, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        os.unlink(aside, dir_fd=directory)
        raise


def write_once(root: str, path: str, text: str) -> None:
    """A new file at ``path``, below ``root``, unless there is something."""
    folder, name = os.path.split(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    with contextlib.suppress(FileExistsError), _opened(root, folder) as directory:
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=directory), "w", encoding="utf-8") as file:
            file.write(text)


def own_names(root: str) -> frozenset[str] | None:
    """What programs import of their own from below ``root``: names of its Python and JavaScript files and folders.

    None when there is too much to be looked through.
    """
    found: set[str] = set()
    left = _MOST_ENTRIES
    waiting = [(root, 0)]
    while waiting:
        folder, depth = waiting.pop()
        with contextlib.suppress(OSError), _opened(root, folder) as directory, os.scandir(directory) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return None
                if entry.name.startswith(".") or entry.name == "node_modules":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    found.add(entry.name)
                    if depth < _DEEPEST:
                        waiting.append((os.path.join(folder, entry.name), depth + 1))
                else:
                    stem, dot, ending = entry.name.rpartition(".")
                    if dot and ending in {"py", "js", "mjs", "cjs", "so"}:
                        found.add(stem)
    return frozenset(found)


@contextlib.contextmanager
def _opened(root: str, folder: str) -> Generator[int]:
    """A descriptor of ``folder``, which is ``root`` or lies below it; no step from ``root`` on is through a link."""
    below = os.path.relpath(folder, root)
    current = os.open(root, _DIRECTORY)
    try:
        for name in () if below == os.curdir else below.split(os.sep):
            deeper = os.open(name, _DIRECTORY, dir_fd=current)
            os.close(current)
            current = deeper
        yield current
    finally:
        os.close(current)
