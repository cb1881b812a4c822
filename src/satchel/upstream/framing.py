"""Cutting a server's bytes into messages: server-sent events, or one JSON text a line. Both are bounded."""

from __future__ import annotations

from satchel.errors import UpstreamError

MAX_EVENT_BYTES = 8 * 1024 * 1024


def too_large() -> UpstreamError:
    """The error for an answer beyond every bound."""
    return UpstreamError("upstream-garbled", "The model server sent more than an answer can hold.")


class SseParser:
    """Server-sent events out of bytes, however the bytes were cut.

    Lines end in LF, CR or CRLF; events end at an empty line; several ``data`` lines are joined by a line feed.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._tail = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._is_start = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of each event that is now complete. Raises ``UpstreamError`` for one that is too large."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        lines = chunk.splitlines(keepends=True)
        rest = lines.pop() if lines and not lines[-1].endswith((b"\n", b"\r")) else b""
        if lines:
            lines[0] = bytes(self._tail) + lines[0]
            self._tail.clear()
        self._tail += rest
        events: list[bytes] = []
        for line in lines:
            self._line(line.rstrip(b"\r\n"), events)
        if self._size + len(self._tail) > self._max:
            raise too_large()
        return events

    def close(self) -> list[bytes]:
        """What is left when the bytes end without an empty line."""
        events: list[bytes] = []
        self._line(bytes(self._tail), events)
        self._tail.clear()
        self._line(b"", events)
        return events

    def _line(self, line: bytes, events: list[bytes]) -> None:
        if self._is_start:
            self._is_start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            if self._data:
                events.append(b"\n".join(self._data))
                self._data = []
                self._size = 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._size += len(value) + 1
            if self._size > self._max:
                raise too_large()


class LineParser:
    """Lines out of bytes, however the bytes were cut. Blank lines are none."""

    def __init__(self, *, max_line_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_line_bytes
        self._tail = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Each line that is now complete. Raises ``UpstreamError`` for one that is too large."""
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(self._tail) + lines[0]
            self._tail.clear()
        self._tail += rest
        if len(self._tail) > self._max or any(len(line) > self._max for line in lines):
            raise too_large()
        return [line for line in lines if line.strip()]

    def close(self) -> list[bytes]:
        """What is left when the bytes end without a line feed."""
        line = bytes(self._tail)
        self._tail.clear()
        return [line] if line.strip() else []
