"""What the tests of the Anthropic surface share."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
from anthropic import AsyncAnthropic

ASK: list[Any] = [{"role": "user", "content": "Number this bill."}]
WEATHER: Any = {"name": "weather", "input_schema": {"type": "object"}}
PLAIN: Any = {"model": "m", "max_tokens": 1000, "messages": ASK}


def client_of(base: str, **options: Any) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=base, api_key=options.pop("api_key", "none"), max_retries=0, **options)


async def events(base: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The data of every event; each is named by its type."""
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{base}/v1/messages", json={**PLAIN, "stream": True, **body}) as answer:
            assert answer.status == 200
            text = (await answer.read()).decode()
    assert text.endswith("\n\n")
    return [event_of(frame) for frame in text[:-2].split("\n\n")]


def event_of(frame: str) -> dict[str, Any]:
    name, data = frame.split("\n")
    event = json.loads(data.removeprefix("data: "))
    assert name == f"event: {event['type']}"
    return event


def check_blocks(said: list[dict[str, Any]]) -> None:
    """Every index has one start and one stop, no delta comes after its stop, and indexes count from 0."""
    state: dict[int, str] = {}
    for event in said:
        index: Any = event.get("index")
        match event["type"]:
            case "content_block_start":
                assert index == len(state)
                state[index] = "open"
            case "content_block_delta":
                assert state[event["index"]] == "open"
            case "content_block_stop":
                assert state[event["index"]] == "open"
                state[event["index"]] = "closed"
            case _:
                assert index is None
    assert set(state.values()) <= {"closed"}
