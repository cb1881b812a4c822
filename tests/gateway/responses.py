"""How the tests of the Responses surface look at the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

import aiohttp
from pydantic import BaseModel, TypeAdapter

T = TypeVar("T")


class Wire:
    """Plain requests; ``key`` is sent as a bearer key."""

    def __init__(self, base: str, key: str = "") -> None:
        self._url = f"{base}/v1/responses"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def ask(self, method: str, body: Any = None, *, path: str = "") -> tuple[int, dict[str, Any]]:
        async with (
            aiohttp.ClientSession(headers=self._headers) as session,
            session.request(method, self._url + path, json=body) as answer,
        ):
            return answer.status, await answer.json()

    async def post(self, body: dict[str, Any]) -> dict[str, Any]:
        status, got = await self.ask("POST", body)
        assert status == 200, got
        return got

    async def status(self, method: str, body: Any = None, *, path: str = "") -> int:
        return (await self.ask(method, body, path=path))[0]


async def events_of(base: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a streamed answer, whose names and frames are checked on the way."""
    async with aiohttp.ClientSession() as session, session.post(f"{base}/v1/responses", json=body) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        text = (await answer.read()).decode()
    assert text.endswith("\n\n")
    assert "[DONE]" not in text
    events: list[dict[str, Any]] = []
    for frame in text[:-2].split("\n\n"):
        name, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def strict(kind: TypeAdapter[Any], value: dict[str, Any]) -> None:
    """Fails unless the official model takes the value, types and all, and gives it back without loss."""
    parsed = kind.validate_json(json.dumps(value), strict=True)
    assert isinstance(parsed, BaseModel)
    assert json.loads(parsed.model_dump_json(exclude_unset=True, by_alias=True)) == value


async def in_thread(function: Callable[[str], T], base: str) -> T:
    """Runs a synchronous client beside the server's loop."""
    return await asyncio.to_thread(function, base)
