from __future__ import annotations

import asyncio
import gzip
import itertools
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.chat.events import ModelText
from satchel.chat.messages import message
from satchel.chat.request import ChatRequest
from satchel.errors import UpstreamError
from satchel.ports.models import UpstreamOptions
from satchel.testing.scripted_openai import (
    ScriptedOpenAI,
    ScriptedTurn,
    says,
)
from satchel.upstream.framing import SseParser
from satchel.upstream.http import Endpoint
from tests.upstream.talking import ASK, HEAD, KEY, client_for, collect, data, failure_of, raw_server, text_chunk

EVENTS = [b'{"a": "gr\xc3\xbc\xc3\x9fe \xf0\x9f\x98\x80"}', b"one\ntwo\n", b"[DONE]"]
STREAMS = [
    b"\xef\xbb\xbf: hello\n\n" + newline.join(lines)
    for newline in (b"\n", b"\r\n", b"\r")
    for lines in [
        [
            b"data: " + EVENTS[0], b"", b": ping", b"", b"event: x", b"data:one", b"data: two", b"id: 5", b"data", b"",
            b"", b"nonsense", b"data: [DONE]", b"", b"",
        ]
    ]
]  # fmt: skip


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 200), max_size=40))
def test_any_cut_of_the_bytes_gives_the_same_events(stream: bytes, cuts: list[int]):
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    parser = SseParser()
    seen = [event for start, end in itertools.pairwise(places) for event in parser.feed(stream[start:end])]
    assert [*seen, *parser.close()] == EVENTS


def test_an_event_is_bounded():
    parser = SseParser(max_event_bytes=10)
    assert parser.feed(b"data: 123456\n\ndata: 123456\n\n") == [b"123456", b"123456"]
    with pytest.raises(UpstreamError):
        parser.feed(b"data: 12345\ndata: 12345\n")
    with pytest.raises(UpstreamError):
        SseParser(max_event_bytes=10).feed(b"data: 12345678901")


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_bytes_cut_anywhere_on_the_wire_give_the_same_answer(size: int):
    body = (
        data(text_chunk("grüße \U0001f600")).replace(b"\n", b"\r\n")
        + data(text_chunk("!", "stop"))
        + b"data: [DONE]\n\n"
    )
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    async with raw_server(HEAD, *pieces) as url, client_for(url) as client:
        events = await collect(client)
    assert [event.text for event in events[:-1]] == ["grüße \U0001f600", "!"]


async def test_the_key_is_never_repeated_even_when_the_server_does():
    turns = [
        ScriptedTurn(chunks=({"error": {"message": f"bad key {KEY}", "type": KEY}},)),
        ScriptedTurn(status=500, body={"error": {"message": "x" * 590 + KEY, "code": KEY}}),
        ScriptedTurn(status=429, body={"error": KEY}, headers={"Retry-After": KEY}),
    ]
    async with ScriptedOpenAI(turns) as server, client_for(server.url, api_key=KEY) as client:
        for _ in turns:
            shown = json.dumps((await failure_of(client)).to_dict())
            assert KEY[:12] not in shown


async def test_an_error_body_that_never_ends_still_tells_the_status():
    head = b"HTTP/1.1 503 Busy\r\nContent-Type: text/plain\r\n\r\nbusy"
    async with raw_server(head, hold=True) as url, client_for(url, silence_s=0.1) as client:
        error = await failure_of(client)
        assert (error.code, error.data["status"]) == ("upstream-failed", 503)


# --- a hostile server


async def test_blanks_without_end_before_an_answer_are_refused():
    async with raw_server(HEAD, *[b" \n" * 4096] * 12) as url, client_for(url) as client:
        failure = await failure_of(client)
    assert failure.code == "upstream-garbled"
    assert "more than an answer can hold" in failure.message


async def test_some_blanks_before_an_answer_are_skipped():
    body = json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}).encode()
    async with raw_server(HEAD, b" \n" * 10, b"\r\n", body) as url, client_for(url) as client:
        assert (await collect(client))[0] == ModelText(text="hi")


class _Chunk(bytes):
    """Counts the bytes that are looked through for line ends."""

    seen = 0

    def splitlines(self, keepends: bool = False) -> list[bytes]:
        _Chunk.seen += len(self)
        return super().splitlines(keepends)

    def __radd__(self, other: bytes) -> bytes:
        return _Chunk(bytes(other) + bytes(self))


def test_a_line_in_many_pieces_is_searched_once():
    _Chunk.seen = 0
    parser = SseParser()
    for _ in range(1000):
        assert parser.feed(_Chunk(b"data: 5678")) == []
    assert len(parser.feed(_Chunk(b"\n\n"))) == 1
    assert _Chunk.seen == 10_002


@pytest.mark.parametrize("coding", [b"gzip", b"br", b"deflate, gzip"])
async def test_a_compressed_answer_is_refused_and_never_unpacked(coding: bytes):
    bomb = gzip.compress(b"data: " + b"x" * 1_000_000)
    for status, code in ((b"200 OK", "upstream-garbled"), (b"500 X", "upstream-failed")):
        head = b"HTTP/1.1 " + status + b"\r\nContent-Encoding: " + coding + b"\r\nConnection: close\r\n\r\n"
        async with raw_server(head + bomb) as url, client_for(url) as client:
            failure = await failure_of(client)
        assert failure.code == code
        assert "xxx" not in str(failure.to_dict())
        assert "compress" in failure.message or status != b"200 OK"


async def test_an_answer_said_to_be_plain_is_read():
    head = HEAD.replace(b"Connection", b"Content-Encoding: identity\r\nConnection")
    async with raw_server(head, data(text_chunk("hi", "stop"))) as url, client_for(url) as client:
        assert (await collect(client))[0] == ModelText(text="hi")


async def test_comments_without_end_leave_the_loop_to_others():
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    content = asyncio.StreamReader()
    content.feed_data(b": x\n" * 256 * 1024)
    content.feed_eof()
    beside = asyncio.create_task(others())
    endpoint = Endpoint(UpstreamOptions(url="http://h"))
    response: Any = SimpleNamespace(content=content)
    sizes = [len(piece) async for piece in endpoint.pieces(response)]
    beside.cancel()
    assert max(sizes) <= 16 * 1024
    assert turns >= len(sizes) - 1 > 10


async def test_only_a_large_conversation_is_encoded_in_a_thread(monkeypatch: pytest.MonkeyPatch):
    seen: list[int] = []

    async def to_thread(call: Callable[..., bytes], *args: Any) -> bytes:
        encoded = call(*args)
        seen.append(len(encoded))
        return encoded

    monkeypatch.setattr("satchel.upstream.client.asyncio.to_thread", to_thread)
    small = ASK
    long = ChatRequest(model="m", messages=(message("user", "x" * 300_000),))
    many = ChatRequest(model="m", messages=(message("user", "x"),) * 5000)
    async with ScriptedOpenAI([says("a"), says("b"), says("c")]) as server, client_for(server.url) as client:
        for request in (small, long, many):
            await collect(client, request)
        assert [len(item.body["messages"]) for item in server.requests] == [1, 1, 5000]  # pyright: ignore[reportArgumentType]
    assert len(seen) == 2
