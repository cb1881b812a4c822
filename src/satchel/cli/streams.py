"""Standard streams that are closed, full or narrow: the program meets them as ordinary failures."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, BinaryIO, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer


class OutputError(OSError):
    """Standard output cannot be written. A reader that has gone is a ``BrokenPipeError`` instead."""


def prepare() -> None:
    """Makes the three streams usable. Call it once, before anything is written.

    Missing input is empty, a missing output raises ``OutputError`` when it is written to, and errors that cannot be
    shown are dropped. Characters that a stream cannot encode are written as backslash escapes.
    """
    for descriptor in range(3):
        _occupy(descriptor)
    if _is_missing(sys.stdin):
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _wrapped(sys.stdout, 1, is_quiet=False)
    sys.stderr = _wrapped(sys.stderr, 2, is_quiet=True)


def _is_missing(stream: object) -> bool:
    return stream is None


def _occupy(descriptor: int) -> None:
    """Keeps files and sockets that are opened later from becoming a standard stream."""
    try:
        os.fstat(descriptor)
    except OSError:
        # Read-only, so that output fails instead of vanishing. The lowest free number is the one that was missing.
        os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)  # noqa: FBT003


def _wrapped(stream: TextIO, descriptor: int, *, is_quiet: bool) -> TextIO:
    missing = _is_missing(stream)
    if not missing and not hasattr(stream, "buffer"):
        return stream  # A caller in this process collects the text.
    raw = io.FileIO(descriptor, "w", closefd=False) if missing else getattr(stream.buffer, "raw", stream.buffer)
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(raw, is_quiet=is_quiet)),
        encoding="utf-8" if missing else stream.encoding,
        errors="backslashreplace",
        line_buffering=is_quiet or raw.isatty(),
    )


class _Output(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase | BinaryIO, *, is_quiet: bool) -> None:
        self._raw = raw
        self._is_quiet = is_quiet

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def isatty(self) -> bool:
        return self._raw.isatty()

    def write(self, data: Buffer, /) -> int | None:
        try:
            return self._raw.write(data)
        except OSError as error:
            if self._is_quiet:
                return memoryview(data).nbytes
            if isinstance(error, BrokenPipeError):
                raise
            raise OutputError(error.errno, error.strerror) from error
