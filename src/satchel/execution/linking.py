"""Links to what was installed, and small files beside it, in directories of a workspace that only the host arranges."""

# ruff: noqa: PTH105, PTH108, PTH118, PTH120, PTH208, PTH211 - plain strings, as in the workspace.

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterable

from satchel.execution.workspace import Workspace

_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_NOT_REPLACED = re.compile(r"python[\d.]*|pip[\d.]*|node|npm|npx|sh|bash|activate.*|Activate.*", re.IGNORECASE)
_MOST_PROGRAMS = 2000
_DEEPEST = 3
_MOST_ENTRIES = 5000


def link_programs(workspace: Workspace, folders: Iterable[str]) -> None:
    """Puts the programs of installed packages on PATH. A package never takes the place of an interpreter or a shell."""
    for folder in folders:
        names: list[str] = []
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            names = sorted(os.listdir(folder))[:_MOST_PROGRAMS]
        for name in names:
            if _PROGRAM.fullmatch(name) and not _NOT_REPLACED.fullmatch(name):
                place_link(os.path.join(workspace.packages_bin, name), os.path.join(folder, name), replaces=True)


def place_link(path: str, target: str, *, replaces: bool = False) -> None:
    """A relative link at ``path``; what is there already stays, unless it is a link or a file and ``replaces``."""
    if os.path.lexists(path) and not replaces:
        return
    aside = os.path.join(os.path.dirname(path), f".{secrets.token_hex(8)}")
    os.symlink(os.path.relpath(target, os.path.dirname(path)), aside)
    try:
        os.replace(aside, path)
    except OSError:
        os.unlink(aside)
        raise


def write_once(path: str, text: str) -> None:
    """A new file, unless there is one."""
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


def own_names(workspace: Workspace) -> frozenset[str]:
    """What programs of the workspace import of their own: names of its Python and JavaScript files and folders."""
    found: set[str] = set()
    left = _MOST_ENTRIES
    waiting = [(workspace.work, 0)]
    while waiting:
        folder, depth = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return frozenset(found)
                if entry.name.startswith(".") or entry.name == "node_modules":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    found.add(entry.name)
                    if depth < _DEEPEST:
                        waiting.append((entry.path, depth + 1))
                else:
                    stem, dot, ending = entry.name.rpartition(".")
                    if dot and ending in {"py", "js", "mjs", "cjs", "so"}:
                        found.add(stem)
    return frozenset(found)
