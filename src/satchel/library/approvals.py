"""Which skill folders a person has approved, each bound to the bytes that it had then."""

# ruff: noqa: PTH100, PTH103, PTH105, PTH108, PTH111, PTH117, PTH118, PTH120, PTH123 - one small file, replaced in one step

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from satchel.errors import SkillError, StoreError
from satchel.library.digest import folder_digest

try:
    import fcntl
except ImportError:  # there is none on Windows
    fcntl = None

_MAX_BYTES = 4 * 1024 * 1024
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One approved folder: its canonical ``path``, its ``digest`` then, and when that was, in Unix seconds."""

    path: str
    digest: str
    time: float


def state_dir(environ: Mapping[str, str], *, platform: str = sys.platform, home: str = "") -> str:
    """``satchel`` in the user state directory of the platform."""
    own = home or os.path.expanduser("~")
    if platform == "win32":
        base = environ.get("LOCALAPPDATA") or os.path.join(own, "AppData", "Local")
    elif platform == "darwin":
        base = os.path.join(own, "Library", "Application Support")
    else:
        base = os.path.join(own, ".local", "state")
    given = environ.get("XDG_STATE_HOME", "")
    # A relative value is to be ignored, says the XDG specification.
    return os.path.join(given if os.path.isabs(given) else base, "satchel")


def approvals_file(environ: Mapping[str, str]) -> str:
    """Where ``satchel trust`` keeps its approvals."""
    return os.path.join(state_dir(environ), "trust.json")


class Approvals:
    """The approvals in the file at ``path``, read anew at every question. Nobody but its owner may write there.

    Raises:
        StoreError: "store-unavailable" when the file cannot be read or written, "state-invalid" when it holds something
            else, or somebody else may change it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def entries(self) -> tuple[Approval, ...]:
        """All of them, sorted by path."""
        return tuple(sorted(self._read().values(), key=lambda item: item.path))

    def add(self, directory: str | os.PathLike[str], *, manifest: str = "") -> Approval:
        """Approves the folder as it is now. Raises ``SkillError`` when it has no digest or another ``manifest``."""
        path = os.path.realpath(directory)
        approval = Approval(path=path, digest=folder_digest(path, manifest=manifest), time=time.time())
        with self._alone():
            self._write({**self._read(), path: approval})
        return approval

    def remove(self, directory: str | os.PathLike[str]) -> bool:
        """Takes the approval back; False when there was none. The folder may be gone."""
        with self._alone():
            kept = self._read()
            gone = kept.pop(os.path.realpath(directory), None) or kept.pop(os.path.abspath(directory), None)
            if gone is not None:
                self._write(kept)
        return gone is not None

    def covers(self, directory: str, manifest: str = "") -> bool:
        """Whether exactly the bytes in this folder were approved at exactly this place.

        ``manifest`` is the digest of a SKILL.md that was read from it: then it must be among those bytes, so that
        nobody can show one text to the reader and another to this question.
        """
        approval = self._read().get(directory)
        if approval is None:
            return False
        try:
            return folder_digest(directory, manifest=manifest) == approval.digest
        except SkillError:
            return False

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Nobody else changes the file meanwhile, or an approval that was taken back would be written again."""
        if fcntl is None:
            yield
            return
        folder = os.path.dirname(self.path) or os.curdir
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise self._unavailable(str(error.strerror)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _read(self) -> dict[str, Approval]:
        try:
            with open(self.path, "rb") as file:
                self._require_own(os.fstat(file.fileno()))
                data = file.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unavailable(str(error.strerror)) from error
        try:
            document: object = json.loads(data) if len(data) <= _MAX_BYTES else None
        except (ValueError, RecursionError):
            document = None
        fields = cast("dict[str, object]", document) if isinstance(document, dict) else {}
        approved = fields.get("approved")
        if fields.get("version") != _VERSION or not isinstance(approved, list):
            raise self._invalid("it is not a file of approvals")
        found: dict[str, Approval] = {}
        for row in cast("list[object]", approved):
            match row:
                case {"path": str(path), "digest": str(digest), "time": int() | float() as when}:
                    found[path] = Approval(path=path, digest=digest, time=float(when))
                case _:
                    raise self._invalid("an entry has another form")
        return found

    def _write(self, approvals: Mapping[str, Approval]) -> None:
        rows = [{"path": item.path, "digest": item.digest, "time": item.time} for item in approvals.values()]
        text = json.dumps({"version": _VERSION, "approved": rows}, indent=2) + "\n"
        folder = os.path.dirname(self.path) or os.curdir
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            # mkstemp makes the file readable and writable for its owner alone.
            descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".trust-")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(text.encode())
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, self.path)
            except OSError:
                os.unlink(temporary)
                raise
        except OSError as error:
            raise self._unavailable(str(error.strerror)) from error

    def _require_own(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise self._invalid("it is not a regular file")
        if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
            raise self._invalid("others may change it")

    def _unavailable(self, reason: str) -> StoreError:
        return StoreError("store-unavailable", f"The approvals in {self.path} cannot be used: {reason}.")

    def _invalid(self, reason: str) -> StoreError:
        hint = "Look at the file; remove it to begin anew, which takes every approval back."
        return StoreError("state-invalid", f"The approvals in {self.path} cannot be used: {reason}.", hint=hint)
