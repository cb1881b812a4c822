from __future__ import annotations

import asyncio

import pytest

from satchel.chat.events import ModelDone
from satchel.chat.messages import message
from satchel.chat.request import ChatRequest
from satchel.errors import UpstreamError
from satchel.ports.models import UpstreamOptions
from satchel.upstream.openai_chat import OpenAIChatClient

ANSWER = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(ANSWER)


async def _read_request(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.split(b":")[1]))


async def _ask(client: OpenAIChatClient, text: str = "hi") -> str:
    async with client.stream(ChatRequest(model="m", messages=(message("user", text),))) as stream:
        done = [event async for event in stream][-1]
    assert isinstance(done, ModelDone)
    return done.message.text


@pytest.mark.parametrize("answers", [1, 0])
async def test_a_connection_given_up_while_idle_is_no_failure(answers: int) -> None:
    """A server that closes a connection at its second request is asked again; one that never answers is not."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for _ in range(answers):
            await _read_request(reader)
            writer.write(HEAD + ANSWER)
            await writer.drain()
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = OpenAIChatClient(UpstreamOptions(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"))
    try:
        if answers:
            assert [await _ask(client), await _ask(client)] == ["hi", "hi"]
            assert connections == 2
        else:
            with pytest.raises(UpstreamError) as caught:
                await _ask(client)
            assert caught.value.code == "upstream-cut-off"
            assert connections == 1
    finally:
        await client.aclose()
        server.close()
        await server.wait_closed()


async def test_a_connection_reset_while_a_long_request_goes_out_on_it_is_no_failure() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await _read_request(reader)
        writer.write(HEAD + ANSWER)
        await writer.drain()
        await reader.read(1)
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=32 * 1024 * 1024)
    client = OpenAIChatClient(UpstreamOptions(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"))
    try:
        assert [await _ask(client), await _ask(client, "x" * 16_000_000)] == ["hi", "hi"]
        assert connections == 2
    finally:
        await client.aclose()
        server.close()
        await server.wait_closed()
