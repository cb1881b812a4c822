"""Speaking to the gateway's own surface as any program could: plain HTTP, and frames taken one by one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.gateway.serving import DEADLINE_S

CHAT = "/api/chat"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


class Stream:
    """The frames of one answer."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def frame(self) -> dict[str, Any]:
        """The next frame; comments are passed over."""
        async with asyncio.timeout(DEADLINE_S):
            while (block := await self.answer.content.readuntil(b"\n\n")).startswith(b":"):
                pass
        assert block.startswith(b"data: "), block
        return json.loads(block[len(b"data: ") :])

    async def rest(self) -> list[dict[str, Any]]:
        """Every frame up to the end."""
        async with asyncio.timeout(DEADLINE_S):
            blocks = (await self.answer.content.read()).split(b"\n\n")
        assert blocks.pop() == b""
        return [json.loads(block[len(b"data: ") :]) for block in blocks if not block.startswith(b":")]


@asynccontextmanager
async def streaming(base: str, body: dict[str, Any], **options: Any) -> AsyncGenerator[Stream]:
    async with aiohttp.ClientSession() as session, session.post(base + CHAT, json=body, **options) as answer:
        assert answer.status == 200, await answer.text()
        yield Stream(answer)


async def frames_of(base: str, body: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    async with streaming(base, body, **options) as stream:
        return await stream.rest()


def words(frames: list[dict[str, Any]], key: str = "text") -> str:
    return "".join(frame[key] for frame in frames if key in frame)


def one(frames: list[dict[str, Any]], key: str) -> dict[str, Any]:
    (found,) = (frame for frame in frames if key in frame)
    return found
