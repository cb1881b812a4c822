"""A client that does not read holds up the model server, not memory."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from satchel.testing.scripted_openai import ScriptedTurn, SeenRequest, Stage
from tests.program.standing import Gateway
from tests.program.surfaces import CHAT, DEADLINE_S, SURFACES, Surface, body_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

PIECE = "0123456789abcdef" * 4096
PIECES = 64_000_000 // len(PIECE)
IN_FLIGHT = 48 * 1024 * 1024
"""More than kernels keep for three sockets (one of them up to 32 MiB here and there), and less than the answer."""
GROWTH = 16 * 1024 * 1024
"""Allocators keep some MB that depend on how the pieces fell; an answer that is kept takes more than twice of this."""
_CALM = 10


async def _flood(stage: Stage) -> None:
    pieces = stage.form.pieces(ScriptedTurn(text=(PIECE,) * PIECES))
    for message in pieces:
        await stage.send(message)
    for message in stage.form.ending(ScriptedTurn()):
        await stage.send(message)
    await stage.write(stage.form.end)


@asynccontextmanager
async def stalled(gateway: Gateway, surface: Surface) -> AsyncGenerator[tuple[asyncio.StreamReader, SeenRequest]]:
    """A client that has read the head and the first words, and reads no more; the model server has come to a halt."""
    gateway.next(ScriptedTurn(play=_flood))
    address = urlsplit(gateway.bases.of(surface))
    body = json.dumps(body_of(surface, "openai/scripted", stream=True)).encode()
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        raw.setblocking(False)  # noqa: FBT003 - its only spelling
        await asyncio.get_running_loop().sock_connect(raw, (address.hostname, address.port))
        reader, writer = await asyncio.open_connection(sock=raw, limit=2**20)
        head = f"POST {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        try:
            async with asyncio.timeout(DEADLINE_S):
                assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
                await reader.readuntil(b"\r\n\r\n")
                seen = await gateway.model.wait_for_request()
                await _halted(seen)
            yield reader, seen
        finally:
            writer.transport.abort()


async def _halted(seen: SeenRequest) -> None:
    sent, calm = -1, 0
    while calm < _CALM:
        await asyncio.sleep(0.02)
        calm = calm + 1 if seen.chunks_sent == sent else 0
        sent = seen.chunks_sent


async def _unchunked(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)


async def test_an_answer_waits_for_its_client_and_then_arrives_whole(gateway: Gateway) -> None:
    async with stalled(gateway, CHAT):
        # What is made once, with the first request of this size, is made now.
        pass
    before = gateway.resident()
    text, last = hashlib.sha256(), b""
    async with stalled(gateway, CHAT) as (reader, seen):
        assert seen.chunks_sent * len(PIECE) < IN_FLIGHT
        assert gateway.resident() - before < GROWTH
        rest = b""
        async for piece in _unchunked(reader):
            *frames, rest = (rest + piece).split(b"\n\n")
            for frame in frames:
                last = frame.removeprefix(b"data: ")
                choices = json.loads(last)["choices"] if last != b"[DONE]" else ()
                for choice in choices:
                    text.update((choice["delta"].get("content") or "").encode())
        assert (last, rest) == (b"[DONE]", b"")
        await seen.answered.wait()
    assert text.digest() == hashlib.sha256(PIECE.encode() * PIECES).digest()


@pytest.mark.parametrize("surface", SURFACES, ids=str)
async def test_a_client_that_leaves_while_it_holds_up_is_seen(gateway: Gateway, surface: Surface) -> None:
    async with stalled(gateway, surface) as (_, seen):
        assert seen.chunks_sent * len(PIECE) < IN_FLIGHT
        assert not seen.hung_up.is_set()
    async with asyncio.timeout(DEADLINE_S):
        await seen.hung_up.wait()


async def test_nothing_is_left_of_them(gateway: Gateway) -> None:
    async with stalled(gateway, CHAT):
        pass
    assert await gateway.settled() == gateway.idle
