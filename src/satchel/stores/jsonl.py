"""Records as lines of JSON in a file that is only appended to."""

from __future__ import annotations

import asyncio
import json
import os
import threading

from satchel.errors import StoreError
from satchel.ports.state import AuditEntry


class JsonlAudit:
    """Appends one line for each decision to the file at ``path``, which only its owner may read.

    A line is written whole, also when several processes write to one file.

    Raises:
        StoreError: "store-unavailable" from ``append`` when the line could not be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._lock = threading.Lock()
        self._is_torn = False

    async def append(self, entry: AuditEntry) -> None:
        line = json.dumps(entry.to_dict(), ensure_ascii=True, separators=(",", ":")) + "\n"
        await asyncio.to_thread(self._write, line.encode())

    def _write(self, line: bytes) -> None:
        try:
            with self._lock:
                descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                try:
                    # Half a line must not take the next one with it.
                    line = b"\n" * self._is_torn + line
                    written = os.write(descriptor, line)
                    self._is_torn = written != len(line) and (written > 0 or self._is_torn)
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise _unavailable(self.path, str(error.strerror)) from error
        if written != len(line):
            raise _unavailable(self.path, "the disk took only a part of the line")


def _unavailable(path: str, reason: str) -> StoreError:
    return StoreError(
        "store-unavailable", f"The audit log {path} cannot be written: {reason}.", hint="Check the path and the disk."
    )
