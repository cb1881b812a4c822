"""Clients and servers that several tests of the OpenAI client share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from satchel.chat.messages import message
from satchel.chat.request import ChatRequest
from satchel.errors import UpstreamError
from satchel.ports.models import ModelClient, UpstreamOptions
from satchel.upstream.openai_chat import OpenAIChatClient

ASK = ChatRequest(model="m", messages=(message("user", "hello"),))
KEY = "sk-secret-1234567890"


@asynccontextmanager
async def client_for(url: str, **options: Any) -> AsyncGenerator[OpenAIChatClient]:
    client = OpenAIChatClient(UpstreamOptions(url=url, **options))
    try:
        yield client
    finally:
        await client.aclose()


async def collect(client: ModelClient, request: ChatRequest = ASK) -> list[Any]:
    async with client.stream(request) as events:
        return [event async for event in events]


async def failure_of(client: ModelClient, request: ChatRequest = ASK) -> UpstreamError:
    with pytest.raises(UpstreamError) as caught:
        await collect(client, request)
    return caught.value


@asynccontextmanager
async def raw_server(
    *pieces: bytes, hold: bool = False, before: Callable[[bytes], None] = lambda _: None
) -> AsyncGenerator[str]:
    """A server that answers any request with these bytes, each in a write of its own, and then closes."""

    handlers: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            before(head)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if hold:
                await reader.read()
        except ConnectionError:
            return
        finally:
            writer.transport.abort() if hold else writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1"
        for task in handlers:
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        await asyncio.sleep(0)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def data(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()) + b"\n\n"


def text_chunk(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


# --- what is asked and what comes back
