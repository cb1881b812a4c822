"""What comes before a request is one is bounded, however it comes."""

from __future__ import annotations

import asyncio

import pytest

from satchel.gateway.protocol import MAX_HEAD_BYTES, MAX_HEADERS, BoundedHttpProtocol
from satchel.testing.scripted_model import Reply, ScriptedModel
from tests.gateway.serving import DEADLINE_S, runtime_over, serving

START = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
BODY = b'{"messages": [{"role": "user", "content": "x"}]}'
CHUNKED = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(
    BODY
)


def filled(start: bytes, size: int) -> bytes:
    return start + b"x" * (size - len(start))


async def exchange(*pieces: bytes) -> bytes:
    """What the server says to these bytes, each in a write of its own, until it closes."""
    async with serving(runtime_over(ScriptedModel([Reply(text=("ok",))]))) as base, asyncio.timeout(DEADLINE_S):
        host, port = base.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        answer = await reader.read()
        writer.close()
    return answer


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([filled(START + b"X: ", MAX_HEAD_BYTES + 1)], id="one header without an end"),
        pytest.param([START + b"X: "] + [b"x" * 8192] * 8, id="the same in many pieces"),
        pytest.param(
            [filled(START + b"X: ", MAX_HEAD_BYTES) + b"\r\nY: %b\r\n\r\n" % (b"2" * 99)], id="whole but too large"
        ),
        pytest.param([b"GET /" + b"x" * MAX_HEAD_BYTES], id="a path without an end"),
        pytest.param(
            [START + b"".join(b"X-%d: 1\r\n" % number for number in range(MAX_HEADERS)) + b"\r\n"], id="many headers"
        ),
        pytest.param([b"\r\n" * (MAX_HEAD_BYTES // 2 + 1)], id="nothing but blank lines"),
    ],
)
async def test_a_head_beyond_the_bounds_is_refused_and_the_connection_closed(pieces: list[bytes]) -> None:
    answer = await exchange(*pieces)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert answer.endswith(b"head is too large")
    assert answer.count(b"HTTP/1.1") == 1


async def test_fields_after_a_chunked_body_are_bounded_too() -> None:
    pieces = [CHUNKED, BODY + b"\r\n0\r\nX: ", *[b"x" * 8192] * 9]
    assert await exchange(*pieces) == b""


async def test_heads_within_the_bounds_and_large_bodies_pass() -> None:
    full = filled(START + b"X: ", MAX_HEAD_BYTES - 200) + b"\r\n\r\n"
    padded = BODY + b" " * 3 * MAX_HEAD_BYTES
    post = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(padded) + padded
    last = START + b"Connection: close\r\n\r\n"
    assert (await exchange(full, post, full, last)).count(b"HTTP/1.1 200 OK") == 4


async def test_a_head_that_does_not_come_to_its_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satchel.gateway.protocol.HEAD_S", 0.05)
    assert await exchange(START) == b""
    assert await exchange() == b""
    assert BoundedHttpProtocol._head_timer is None
