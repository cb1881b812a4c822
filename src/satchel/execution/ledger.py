"""What a conversation has read, so that a file is not changed by somebody who has not seen it as it is now."""

from __future__ import annotations

import hashlib
from typing import TypeVar

from satchel.errors import FileError

_MOST_FILES = 2000
_Key = TypeVar("_Key")


class ReadLedger:
    """``is_enforced``: changing a file that was not read, or that changed since, is refused. Compares contents."""

    def __init__(self, *, is_enforced: bool = False) -> None:
        self.is_enforced = is_enforced
        self._known: dict[str, bytes] = {}
        self._shown: dict[tuple[str, int, int], bytes] = {}

    def read(self, path: str, data: bytes, start: int, count: int) -> bool:
        """Notes a reading of ``count`` lines from ``start`` on. True when the very same was read the last time.

        It is True once in a row: who asks a third time may have lost what was read.
        """
        digest = self.wrote(path, data)
        if self._shown.get((path, start, count)) == digest:
            del self._shown[path, start, count]
            return True
        _put(self._shown, (path, start, count), digest)
        return False

    def wrote(self, path: str, data: bytes) -> bytes:
        """Notes that the model knows ``data`` as the content of ``path``. Returns its digest."""
        digest = hashlib.sha256(data).digest()
        _put(self._known, path, digest)
        return digest

    def check(self, path: str, data: bytes) -> None:
        """Whether a file with that content may be changed.

        Raises:
            FileError: NOT_READ_THIS_SESSION or STALE_READ, when the ledger is enforced.
        """
        if not self.is_enforced:
            return
        known = self._known.get(path)
        if known is None:
            raise FileError(
                "NOT_READ_THIS_SESSION",
                f"{path} was not read in this session, so it was not changed.",
                hint=f'Read it first with read_file(path="{path}"), then repeat the change.',
            )
        if known != hashlib.sha256(data).digest():
            raise FileError(
                "STALE_READ",
                f"{path} has changed since it was last read, so it was not changed.",
                hint=f'Read it again with read_file(path="{path}"), then make the change on what it holds now.',
            )


def _put(kept: dict[_Key, bytes], key: _Key, digest: bytes) -> None:
    kept.pop(key, None)
    kept[key] = digest
    while len(kept) > _MOST_FILES:
        del kept[next(iter(kept))]
