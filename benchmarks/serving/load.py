"""Clients over raw connections, cheap enough to share a core with the stub: a request, its times, its end."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from serving.stub import MARK

PATIENCE_S = 60.0
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_PROMPT = "Write a short note on how a garden is watered in a dry summer."


class LoadError(Exception):
    """An answer that is not one: a bad status, a stream that ends too early, a connection that breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Seconds since the request was written: until the first token was read, and until the end."""

    first_s: float
    total_s: float
    size: int


def body(model: str, *, stream: bool, **more: Any) -> dict[str, Any]:
    """A small Chat Completions request for a script of the stub."""
    return {"model": model, "messages": [{"role": "user", "content": _PROMPT}], "stream": stream, **more}


def request(url: str, body: Mapping[str, Any] | bytes | None, path: str = "/v1/chat/completions") -> bytes:
    """The bytes of a request; GET without a body."""
    netloc = urlsplit(url).netloc
    if body is None:
        return f"GET {path} HTTP/1.1\r\nHost: {netloc}\r\n\r\n".encode()
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {netloc}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    return f"{head}\r\nAuthorization: Bearer sk-bench\r\n\r\n".encode() + data


class Client(asyncio.Protocol):
    """One connection that is kept."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._done: asyncio.Future[Answer] | None = None
        self._began = 0.0
        self._first = 0.0
        self._size = 0
        self._head = b""
        self._tail = b""
        self._want: int | None = None
        self._is_stream = False
        self.body = bytearray()
        self.first_token = asyncio.Event()

    @classmethod
    async def open(cls, url: str) -> Client:
        """Connects."""
        host, _, port = urlsplit(url).netloc.rpartition(":")
        _, client = await asyncio.get_running_loop().create_connection(cls, host, int(port))
        return client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._fail("the connection broke")

    @property
    def is_closed(self) -> bool:
        return bool(self._transport.is_closing())

    def close(self) -> None:
        """Hangs up at once."""
        self._transport.abort()

    def start(self, data: bytes) -> asyncio.Future[Answer]:
        """Sends a request. The future fails with ``LoadError``."""
        self._done = asyncio.get_running_loop().create_future()
        self._first = 0.0
        self._size = 0
        self._head = self._tail = b""
        self._want = None
        self._is_stream = False
        self.body.clear()
        self.first_token.clear()
        self._began = time.perf_counter()
        self._transport.write(data)
        return self._done

    async def ask(self, data: bytes) -> Answer:
        """A request and its whole answer. Raises ``LoadError``, also after ``PATIENCE_S``."""
        done = self.start(data)
        timer = asyncio.get_running_loop().call_later(PATIENCE_S, self._fail, "no answer in time")
        try:
            return await done
        finally:
            timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self._done is None or self._done.done():
            return
        now = time.perf_counter()
        if self._want is None and not self._is_stream:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            head, data = self._head[:end], self._head[end + 4 :]
            status = head[9:12]
            found = _LENGTH.search(head)
            self._want = int(found[1]) if found else None
            self._is_stream = found is None
            if status != b"200":
                self._fail(f"status {status.decode()}: {data[:200]!r}")
                return
        self._size += len(data)
        recent = self._tail + data
        if not self._first and MARK in recent:
            self._first = now
            self.first_token.set()
        self._tail = recent[-64:]
        if self._want is not None:
            self.body += data
            is_done = self._size >= self._want
        else:
            is_done = recent.endswith(b"\r\n0\r\n\r\n")
            if is_done and b"[DONE]" not in self._tail:
                self._fail(f"a stream that failed: {self._tail!r}")
                return
        if is_done:
            first = (self._first or now) - self._began
            self._done.set_result(Answer(first_s=first, total_s=now - self._began, size=self._size))

    def _fail(self, why: str) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(LoadError(why))


async def fetch_json(url: str, path: str) -> Any:
    """What the stub, or another server, tells at ``path``."""
    client = await Client.open(url)
    try:
        await client.ask(request(url, None, path))
        return json.loads(client.body)
    finally:
        client.close()


async def in_turn(url: str, data: bytes, count: int) -> list[Answer]:
    """One request after the other on one connection."""
    client = await Client.open(url)
    try:
        return [await client.ask(data) for _ in range(count)]
    finally:
        client.close()


async def side_by_side(url: str, data: bytes, *, streams: int, each: int, over_s: float) -> list[Answer]:
    """``streams`` connections, each with ``each`` answers in turn; their starts are spread over ``over_s``."""
    rng = random.Random(streams)  # noqa: S311

    async def one(delay_s: float) -> list[Answer]:
        await asyncio.sleep(delay_s)
        return await in_turn(url, data, each)

    done = await asyncio.gather(*(one(rng.random() * over_s) for _ in range(streams)))
    return [answer for answers in done for answer in answers]


async def saturate(
    url: str, data: bytes, *, connections: int, warm_s: float, seconds: float, at_start: Callable[[], None]
) -> tuple[int, float]:
    """``(answers, seconds)`` with every connection always busy; ``at_start`` is called when the counting begins.

    A slow server gets longer: until it has answered each connection twice.
    """
    count = 0
    is_over = False

    async def one() -> None:
        nonlocal count
        client = await Client.open(url)
        try:
            while not is_over:
                await client.ask(data)
                count += not is_over
        finally:
            client.close()

    async def warm_and_enough() -> float:
        nonlocal count, is_over
        await asyncio.sleep(warm_s)
        count = 0
        at_start()
        began = time.perf_counter()
        while (spent := time.perf_counter() - began) < seconds or count < 2 * connections:
            if busy.done():
                await busy
            await asyncio.sleep(0.01)
        is_over = True
        return spent

    busy = asyncio.gather(*(one() for _ in range(connections)))
    try:
        spent = await warm_and_enough()
        counted = count
        await busy
    finally:
        busy.cancel()
    return counted, spent


async def patiently(check: Callable[[], Awaitable[bool]], *, within_s: float, every_s: float = 0.02) -> bool:
    """Whether ``check`` came true in time."""
    until = time.monotonic() + within_s
    while not await check():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(every_s)
    return True
