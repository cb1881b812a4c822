"""HTTP/1.1 with bounds on what comes before a request is one: uvicorn's parser takes headers without end."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 64 * 1024
"""Request line and headers together; also how much of anything else that is not a body may come in one go."""
MAX_HEADERS = 128
HEAD_S = 30.0
"""How long a client may take for request line and headers."""

_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 31\r\nconnection: close\r\n\r\n"
    b"The request's head is too large"
)


class _HeadTooLargeError(Exception):
    """Stops the parser."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """Answers 431 to a head that is too large, and closes a connection whose head does not come to its end."""

    _outside_bodies = 0
    _head_bytes = 0
    _is_too_large = False
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # The parser keeps an unfinished header to itself, so what counts is how much it took without telling anything:
        # the callbacks below set the count back.
        self._outside_bodies += len(data)
        super().data_received(data)
        if self._outside_bodies > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse()

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        if self._head_timer is None:
            self._expect_head()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        # Fields after a chunked body come here too.
        self._grow(len(name) + len(value) + 4)
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            self._grow(MAX_HEAD_BYTES)

    def on_headers_complete(self) -> None:
        self._outside_bodies = 0
        self._stop_head_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._outside_bodies = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._outside_bodies = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._is_too_large:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _grow(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            self._is_too_large = True
            raise _HeadTooLargeError

    def _refuse(self) -> None:
        if self._is_idle():
            self.transport.write(_REFUSAL)
        self.transport.close()

    def _is_idle(self) -> bool:
        """Whether no answer is under way, so that nothing may be written into the middle of it."""
        return self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self._give_up)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self._is_idle():
            self.transport.close()
