from __future__ import annotations

import aiohttp
import pytest

from satchel.testing.scripted_model import Reply, ScriptedModel
from tests.gateway.serving import runtime_over, serving

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:1", "Origin": "http://localhost:3000"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
    ],
)
async def test_pages_of_other_sites_are_kept_out(headers: dict[str, str], status: int) -> None:
    async with serving(runtime_over(ScriptedModel([Reply(text=("ok",))]))) as url, aiohttp.ClientSession() as http:
        async with http.post(f"{url}/v1/chat/completions", json=BODY, headers=headers) as answer:
            assert answer.status == status


async def test_a_key_opens_the_gateway_to_any_page() -> None:
    headers = {"Origin": "https://app.example", "Host": "gateway.example", "Authorization": "Bearer secret"}
    async with (
        serving(runtime_over(ScriptedModel([Reply(text=("ok",))])), keys=("secret",)) as url,
        aiohttp.ClientSession() as http,
        http.post(f"{url}/v1/chat/completions", json=BODY, headers=headers) as answer,
    ):
        assert answer.status == 200


async def test_a_refusal_before_the_first_byte_keeps_its_status_when_streamed() -> None:
    async with serving(runtime_over(ScriptedModel([]))) as url, aiohttp.ClientSession() as http:
        async with http.post(f"{url}/v1/chat/completions", json={**BODY, "stream": True}) as answer:
            assert answer.status == 502
            assert (await answer.json())["error"]["code"] == "upstream-failed"
