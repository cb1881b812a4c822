"""One digest for everything in a skill's folder, so that an approval ends with the first byte that changes."""

# ruff: noqa: PTH112, PTH115, PTH117, PTH118, PTH120 - strings and scandir, as in the walk.

from __future__ import annotations

import hashlib
import os
import stat

from satchel.errors import PathError, SkillError
from satchel.pathguard import is_inside, open_inside
from satchel.skills.dialect import Limits
from satchel.skills.files import is_manifest

_CHUNK = 1024 * 1024
_MAX_DEPTH = 64


_LIMITS = Limits()


def folder_digest(directory: str, *, manifest: str = "") -> str:
    """``sha256:<hex>`` over the path, kind, execute bit and bytes of everything below the canonical ``directory``.

    Hidden files count. A link counts by where it points, which must be inside: what lies elsewhere may change. With
    ``manifest``, a digest of the same form, the SKILL.md must have it.

    Raises:
        SkillError: "skill-not-found" without a directory; "skill-invalid" when it holds too much, something that is
            neither a file nor a folder nor a link, or a link that leads out, cannot be read, or has another SKILL.md.
    """
    if not os.path.isdir(directory):
        raise SkillError("skill-not-found", f"There is no directory {directory}.", hint="Name a skill's directory.")
    total = hashlib.sha256(b"satchel folder 1\n")
    count, size = 0, 0
    is_met = not manifest
    try:
        for path, entry in _everything(directory, "", 0):
            count += 1
            status = entry.stat(follow_symlinks=False)
            size += status.st_size
            if count > _LIMITS.files or size > _LIMITS.skill_bytes:
                raise _unusable(directory, "it holds too many files, or too large ones")
            kind, content = _described(directory, path, status)
            is_met = is_met or (is_manifest(path) and kind != "link" and manifest == f"sha256:{content}")
            total.update(f"{len(path)}:{path}\0{kind}\0{content}\n".encode("utf-8", "surrogateescape"))
    except (OSError, PathError) as error:
        raise _unusable(directory, error.message if isinstance(error, PathError) else str(error.strerror)) from error
    if not is_met:
        raise _unusable(directory, "its SKILL.md is not the one that was read")
    return f"sha256:{total.hexdigest()}"


def _everything(directory: str, prefix: str, depth: int) -> list[tuple[str, os.DirEntry[str]]]:
    """Everything that is no folder, with its path, sorted; an empty folder is nothing."""
    if depth > _MAX_DEPTH:
        raise _unusable(directory, "its folders lie too deep")
    found: list[tuple[str, os.DirEntry[str]]] = []
    with os.scandir(os.path.join(directory, prefix) if prefix else directory) as entries:
        for entry in sorted(entries, key=lambda item: item.name):
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_dir(follow_symlinks=False):
                found += _everything(directory, path, depth + 1)
            else:
                found.append((path, entry))
    return found


def _described(directory: str, path: str, status: os.stat_result) -> tuple[str, str]:
    """What kind of thing it is, and the SHA-256 of what it holds."""
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(os.path.join(directory, path))
        if not _stays_inside(directory, os.path.dirname(path), target):
            raise _unusable(directory, f"{path} is a link that leads out of it")
        return "link", hashlib.sha256(os.fsencode(target)).hexdigest()
    if stat.S_ISREG(status.st_mode):
        return "program" if status.st_mode & 0o111 else "file", _content(directory, path)
    raise _unusable(directory, f"{path} is neither a file nor a link")


def _stays_inside(directory: str, folder: str, target: str) -> bool:
    """Whether every step on the way of a link in ``folder`` is below the canonical ``directory``."""
    if os.path.isabs(target):
        return False
    place = os.path.join(directory, folder)
    for part in target.split("/"):
        place = os.path.realpath(os.path.join(place, part))
        if not is_inside(place, directory):
            return False
    return True


def _content(directory: str, path: str) -> str:
    sha = hashlib.sha256()
    descriptor = open_inside(directory, path)
    try:
        while chunk := os.read(descriptor, _CHUNK):
            sha.update(chunk)
    finally:
        os.close(descriptor)
    return sha.hexdigest()


def _unusable(directory: str, reason: str) -> SkillError:
    return SkillError("skill-invalid", f"The folder {directory} has no digest: {reason}.")
