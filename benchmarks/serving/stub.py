"""A model server by script, fast enough to stand behind everything that is measured.

    python stub.py --core 1

Prints ``{"port": N}`` and serves until its standard input ends. A request's ``model`` names the script. ``GET /stats``
tells how many answers are under way and when, on the machine's monotonic clock, the client of a request with a
``user`` field was seen to have hung up; ``GET /bodies`` the last requests for "skill", as they came.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import uvloop


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One answer: ``first_s`` until the first token, ``gap_s`` between tokens. 0 and 0 is all at once.

    The head of a stream goes out at once, or with the first token when it ``is_late``.
    """

    tokens: int
    first_s: float = 0.0
    gap_s: float = 0.0
    is_late: bool = False


SCRIPTS = {
    "paced": Script(tokens=50, first_s=0.02, gap_s=0.01),
    "quick": Script(tokens=20),
    "skill": Script(tokens=10, first_s=0.02, gap_s=0.01),
    "endless": Script(tokens=6000, first_s=0.02, gap_s=0.01),
    "silent": Script(tokens=1, first_s=60.0, is_late=True),
}
MARK = b"tok0 "
"""The text of the first token, which a client looks for."""
SKILL = "bench-skill"
"""The skill that the script "skill" reads before it answers."""

_CALL = {
    "index": 0,
    "id": "call_bench",
    "type": "function",
    "function": {"name": "skills_read", "arguments": json.dumps({"skill": SKILL})},
}
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"
_USAGE = {"prompt_tokens": 20, "completion_tokens": 50, "total_tokens": 70}


def _head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-stub", "object": kind, "created": 1700000000, "model": "stub"}


def _sse(value: Any) -> bytes:
    data = b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _delta(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _sse({**_head("chat.completion.chunk"), "choices": [choice]})


_TOKENS = [
    _delta({"role": "assistant", "content": "tok0 "}),
    *(_delta({"content": f"word{number} "}) for number in range(1, 6000)),
]
_STOP = _delta({}, "stop")
_CALL_CHUNKS = [_delta({"role": "assistant", "tool_calls": [_CALL]})]
_CALLED = _delta({}, "tool_calls")
_USAGE_CHUNK = _sse({**_head("chat.completion.chunk"), "choices": [], "usage": _USAGE})
_DONE = _sse(b"[DONE]")


def _whole(count: int, *, is_call: bool) -> bytes:
    text = "".join(["tok0 ", *(f"word{number} " for number in range(1, count))])
    message = {"role": "assistant", "content": None if is_call else text} | ({"tool_calls": [_CALL]} if is_call else {})
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if is_call else "stop"}
    return _json({**_head("chat.completion"), "choices": [choice], "usage": _USAGE})


def _json(value: Any, status: str = "200 OK") -> bytes:
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@dataclass(slots=True)
class Books:
    """What the stub has seen."""

    open: int = 0
    active: int = 0
    requests: int = 0
    lost: dict[str, float] = field(default_factory=dict[str, float])
    bodies: deque[bytes] = field(default_factory=lambda: deque[bytes](maxlen=2))


class Connection(asyncio.Protocol):
    """One client: a request at a time."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._input = bytearray()
        self._pieces: list[bytes] = []
        self._sent = 0
        self._due = 0.0
        self._gap = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_active = False
        self._tag = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._books.open += 1

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._books.open -= 1
        if self._timer is not None:
            self._timer.cancel()
        if self._is_active:
            self._books.active -= 1
            if self._tag:
                self._books.lost[self._tag] = time.monotonic()

    def data_received(self, data: bytes) -> None:
        self._input += data
        end = self._input.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._input[:end])
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if len(self._input) < end + 4 + length:
            return
        body = bytes(self._input[end + 4 : end + 4 + length])
        del self._input[: end + 4 + length]
        method, path, _ = head.split(b"\r\n", 1)[0].split(b" ")
        if method == b"POST":
            self._answer(body)
        else:
            self._transport.write(self._tell(path))

    def _tell(self, path: bytes) -> bytes:
        books = self._books
        match path:
            case b"/stats":
                seen = {"open": books.open - 1, "active": books.active, "requests": books.requests, "lost": books.lost}
                return _json(seen)
            case b"/bodies":
                return _json([body.decode() for body in books.bodies])
            case b"/v1/models":
                return _json({"object": "list", "data": [{"id": name, "object": "model"} for name in SCRIPTS]})
            case _:
                return _json({"error": {"message": "there is nothing here"}}, "404 Not Found")

    def _answer(self, raw: bytes) -> None:
        self._books.requests += 1
        body: dict[str, Any] = json.loads(raw)
        name = body["model"]
        script = SCRIPTS[name]
        is_call = False
        if name == "skill":
            self._books.bodies.append(raw)
            is_call = body["messages"][-1]["role"] != "tool"
        self._tag = body.get("user") or ""
        if body.get("stream"):
            tokens = _CALL_CHUNKS if is_call else _TOKENS[: script.tokens]
            asked: dict[str, Any] = body.get("stream_options") or {}
            usage = [_USAGE_CHUNK] if asked.get("include_usage") else []
            self._pieces = [*tokens, b"".join((_CALLED if is_call else _STOP, *usage, _DONE, _END))]
            self._gap = script.gap_s
            if not script.first_s:
                self._transport.write(b"".join((_STREAM_HEAD, *self._pieces)))
                return
            if script.is_late:
                self._pieces[0] = _STREAM_HEAD + self._pieces[0]
            else:
                self._transport.write(_STREAM_HEAD)
            delay = script.first_s
        else:
            self._pieces = [_whole(script.tokens, is_call=is_call)]
            delay = script.first_s + script.gap_s * (script.tokens - 1)
            if not delay:
                self._transport.write(self._pieces[0])
                return
        self._is_active = True
        self._books.active += 1
        self._sent = 0
        self._due = self._loop.time() + delay
        self._timer = self._loop.call_at(self._due, self._step)

    def _step(self) -> None:
        """Sends what is due; the end goes out with the last token."""
        left = len(self._pieces) - self._sent
        if left <= 2:
            self._transport.write(b"".join(self._pieces[self._sent :]))
            self._is_active = False
            self._books.active -= 1
            return
        self._transport.write(self._pieces[self._sent])
        self._sent += 1
        self._due += self._gap
        self._timer = self._loop.call_at(self._due, self._step)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    books = Books()
    server = await loop.create_server(lambda: Connection(books), "127.0.0.1", 0, backlog=1024)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", type=int)
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())


if __name__ == "__main__":
    main()
