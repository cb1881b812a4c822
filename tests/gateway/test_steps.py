from __future__ import annotations

import json
from typing import Any

import aiohttp

from tests.client.endpoints import ANSWER, READ, gateway


async def streamed(url: str, **options: bool) -> list[dict[str, Any]]:
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True, "stream_options": options}
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/chat/completions", json=body) as answer:
        lines = (await answer.text()).splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


async def test_steps_are_told_to_those_who_ask_and_in_their_place() -> None:
    async with gateway(READ, ANSWER) as (url, _):
        seen = await streamed(url, include_steps=True, include_usage=True)
    told = [
        chunk["satchel"]["step"]["event"] if "step" in chunk.get("satchel", {}) else "text"
        for chunk in seen
        if not chunk["choices"] or chunk["choices"][0]["delta"].get("content")
    ]
    assert told == [
        *("text", "text", "round_finished", "tool_started", "skill_loaded", "tool_finished"),
        *("text", "text", "round_finished", "text"),
    ]
    assert seen[-1]["satchel"]["invocations"] == [
        {
            "round": 1,
            "agent": "/root",
            "call_id": "call_skills_read",
            "tool": "skills_read",
            "skill": "invoice",
            "path": "",
            "ok": True,
            "code": "",
        }
    ]


async def test_nobody_else_is_told() -> None:
    async with gateway(READ, ANSWER) as (url, _):
        seen = await streamed(url)
    assert all(chunk["choices"] for chunk in seen)


async def test_a_wrong_wish_is_refused() -> None:
    async with gateway(ANSWER) as (url, _), aiohttp.ClientSession() as session:
        body = {"messages": [{"role": "user", "content": "hi"}], "stream_options": {"include_steps": "yes"}}
        async with session.post(f"{url}/v1/chat/completions", json=body) as answer:
            assert answer.status == 400
            assert "stream_options.include_steps" in (await answer.json())["error"]["message"]
