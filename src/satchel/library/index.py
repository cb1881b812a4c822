"""The files of one skill: an index of paths, sizes and kinds, under ceilings. Links are left out."""

# ruff: noqa: PTH118 - strings and scandir, as in the walk.

from __future__ import annotations

import os
from collections import deque

from satchel.errors import PathError
from satchel.pathguard import open_inside
from satchel.skills.diagnostics import finding
from satchel.skills.dialect import Dialect
from satchel.skills.files import SNIFF_BYTES, classify, is_manifest, looks_like_text, text_by_name
from satchel.skills.model import Diagnostic, SkillFile

_SKIPPED = frozenset({"node_modules", "__pycache__"})
_MAX_DEPTH = 32


def index_files(directory: str, dialect: Dialect) -> tuple[tuple[SkillFile, ...], tuple[Diagnostic, ...]]:
    """``(files sorted by path, findings)`` of the canonical ``directory``.

    Hidden names, dependencies and byte code are left out. Reaching a ceiling is a finding, and the walk stops there. A
    skill inside is a finding where the dialect does not register it.
    """
    limits = dialect.limits
    sizes: list[tuple[str, int]] = []
    findings: list[Diagnostic] = []
    total = 0
    waiting = deque([("", 0)])
    while waiting:
        prefix, depth = waiting.popleft()
        for name, size in _list(os.path.join(directory, prefix) if prefix else directory):
            path = f"{prefix}/{name}" if prefix else name
            if size is None:
                if depth < _MAX_DEPTH:
                    waiting.append((path, depth + 1))
                continue
            sizes.append((path, size))
            total += size
            if limits.file_bytes is not None and size > limits.file_bytes:
                message = f"{path} is larger than {limits.file_bytes} bytes."
                findings.append(finding("file-too-large", os.path.join(directory, path), message))
            if prefix and dialect.nested == "stop" and is_manifest(name):
                message = f"{path} is readable as a file of this skill, but not registered as a skill."
                findings.append(finding("nested-skill", os.path.join(directory, path), message))
            if len(sizes) > limits.files:
                message = f"The skill holds more than {limits.files} files."
                return (), (finding("too-many-files", directory, message),)
            if total > limits.skill_bytes:
                message = f"The skill's files are larger than {limits.skill_bytes} bytes together."
                return (), (finding("skill-too-large", directory, message),)
    return tuple(_described(directory, path, size) for path, size in sorted(sizes)), tuple(findings)


def _list(path: str) -> list[tuple[str, int | None]]:
    """``(name, size)`` of what lies in a directory; the size of a directory is None."""
    listed: list[tuple[str, int | None]] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith(".") or entry.is_symlink():
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED:
                        listed.append((entry.name, None))
                elif entry.is_file(follow_symlinks=False) and _is_text_name(entry.name):
                    listed.append((entry.name, entry.stat(follow_symlinks=False).st_size))
    except OSError:
        # A directory that vanished or may not be listed holds nothing that could be read either.
        return []
    return listed


def _is_text_name(name: str) -> bool:
    """Whether the name can be written down: a name that is not UTF-8 could never be asked for."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _described(directory: str, path: str, size: int) -> SkillFile:
    is_text = text_by_name(path)
    if is_text is None:
        is_text = size == 0 or _sniffed(directory, path)
    return SkillFile(path=path, kind=classify(path, is_text=is_text), bytes=size, is_text=is_text)


def _sniffed(directory: str, path: str) -> bool:
    try:
        descriptor = open_inside(directory, path)
    except PathError:
        return False
    try:
        return looks_like_text(os.read(descriptor, SNIFF_BYTES))
    except OSError:
        return False
    finally:
        os.close(descriptor)
