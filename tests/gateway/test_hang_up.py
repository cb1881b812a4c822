"""A turn lives exactly as long as its client waits."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from starlette.types import Message, Scope

from satchel.chat.events import ModelEvent, ModelText
from satchel.chat.request import ChatRequest
from satchel.engine.events import TextDelta, TurnEvent
from satchel.errors import SatchelError, UpstreamError
from satchel.gateway.access import record_of
from satchel.gateway.response import TurnResponse
from tests.gateway.serving import DEADLINE_S, Flow, endless, runtime_over, serving, silent, soon, text_done

ASK = [{"role": "user", "content": "Hello"}]


def raw_request(base: str, body: dict[str, Any]) -> bytes:
    host = base.removeprefix("http://")
    payload = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(payload)}\r\n\r\n"
    return head.encode() + payload


async def connect(base: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = base.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("play", [silent, endless])
async def test_hanging_up_stops_the_model_whenever_it_happens(
    stream: bool, play: Callable[[ChatRequest], AsyncGenerator[ModelEvent, None]]
) -> None:
    flow = Flow(play)
    async with serving(runtime_over(flow), heartbeat_s=0) as base:
        reader, writer = await connect(base)
        writer.write(raw_request(base, {"messages": ASK, "stream": stream}))
        await soon(flow.entered)
        if stream and play is endless:
            assert b"word" in await reader.readuntil(b"word")
        assert not flow.left.is_set()
        await close(writer)
        await soon(flow.left)


async def test_hanging_up_before_the_turn_is_entered_stops_it_too() -> None:
    entering, cancelled = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def stuck(_: object) -> AsyncGenerator[AsyncIterator[TurnEvent]]:
        entering.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        yield no_events()

    runtime = runtime_over(Flow(silent))
    runtime.turn = stuck  # pyright: ignore[reportAttributeAccessIssue]
    async with serving(runtime) as base:
        _, writer = await connect(base)
        writer.write(raw_request(base, {"messages": ASK, "stream": True}))
        await soon(entering)
        await close(writer)
        await soon(cancelled)


async def test_a_client_that_leaves_while_it_sends_starts_no_turn(caplog: pytest.LogCaptureFixture) -> None:
    flow = Flow(silent)
    async with serving(runtime_over(flow)) as base:
        _, writer = await connect(base)
        writer.write(raw_request(base, {"messages": ASK})[:-5])
        await writer.drain()
        await close(writer)
    assert not flow.entered.is_set()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_headers_of_a_stream_do_not_wait_for_the_model() -> None:
    flow = Flow(silent)
    async with serving(runtime_over(flow)) as base, aiohttp.ClientSession() as session:
        body = {"messages": ASK, "stream": True}
        async with asyncio.timeout(DEADLINE_S), session.post(f"{base}/v1/chat/completions", json=body) as answer:
            assert answer.status == 200
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert answer.headers["cache-control"] == "no-cache"
            assert answer.headers["x-accel-buffering"] == "no"
            assert "content-length" not in answer.headers
            assert "content-encoding" not in answer.headers
        await soon(flow.left)


async def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    go_on = asyncio.Event()

    async def pausing(request: ChatRequest) -> AsyncGenerator[ModelEvent, None]:
        await go_on.wait()
        yield ModelText(text="at last")
        yield text_done("at last")

    flow = Flow(pausing)
    async with serving(runtime_over(flow), heartbeat_s=0.01) as base, aiohttp.ClientSession() as session:
        body = {"messages": ASK, "stream": True}
        async with asyncio.timeout(DEADLINE_S), session.post(f"{base}/v1/chat/completions", json=body) as answer:
            await answer.content.readuntil(b": ping\n\n")
            await answer.content.readuntil(b": ping\n\n")
            go_on.set()
            rest = (await answer.content.read()).decode()
    assert "at last" in rest
    assert rest.endswith("data: [DONE]\n\n")
    assert all(frame.startswith((": ping", "data: ")) for frame in rest[:-2].split("\n\n"))


async def test_a_client_that_does_not_read_slows_the_model() -> None:
    told = 0
    cap = 4000
    piece = "x" * 64 * 1024

    async def flood(request: ChatRequest) -> AsyncGenerator[ModelEvent, None]:
        nonlocal told
        while told < cap:
            told += 1
            yield ModelText(text=piece)
        yield text_done("")

    flow = Flow(flood)
    async with serving(runtime_over(flow), heartbeat_s=0.01) as base:
        reader, writer = await connect(base)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        writer.write(raw_request(base, {"messages": ASK, "stream": True}))
        await reader.readuntil(b"xxxx")
        seen, calm = -1, 0
        async with asyncio.timeout(DEADLINE_S):
            while calm < 5:
                await asyncio.sleep(0.02)
                calm = calm + 1 if told == seen else 0
                seen = told
        await close(writer)
        await soon(flow.left)
    assert told < min(cap, seen + 100)


# -- the response alone, against a server of the test's own ------------------------------------------------------------


async def no_events() -> AsyncGenerator[TurnEvent, None]:
    for event in ():
        yield event


class Plain:
    """The smallest surface there can be."""

    is_streamed = True
    media_type = "text/plain"
    heartbeat = b"~"

    def feed(self, event: TurnEvent) -> bytes:
        return event.text.encode() if isinstance(event, TextDelta) else b""

    def finish(self) -> bytes:
        return b"."

    def error(self, failure: SatchelError) -> bytes:
        return b"!" + failure.code.encode()


class Peer:
    """The other end of ASGI: keeps what was sent, holds ``send`` back while ``gate`` is closed."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.gone = asyncio.Event()
        self.scope: Scope = {"type": "http", "method": "POST", "path": "/v1/x", "headers": []}

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.gate.wait()
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


@asynccontextmanager
async def turn_of(
    events: AsyncGenerator[TurnEvent, None], log: list[str]
) -> AsyncGenerator[AsyncGenerator[TurnEvent, None]]:
    try:
        yield events
    finally:
        await asyncio.sleep(0.01)
        await events.aclose()
        log.append("left")


async def test_no_event_is_fetched_and_no_heartbeat_queued_while_a_send_is_blocked() -> None:
    fetched = 0
    blocked = asyncio.Event()
    peer, log = Peer(), list[str]()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        nonlocal fetched
        for text in "abc":
            fetched += 1
            if text == "b":
                peer.gate.clear()
                blocked.set()
            yield TextDelta(text=text)

    response = TurnResponse(turn_of(events(), log), Plain(), heartbeat_s=0.005)
    task = asyncio.create_task(response(peer.scope, peer.receive, peer.send))
    await soon(blocked)
    await asyncio.sleep(0.05)  # one heartbeat may have been on its way when the gate closed
    tasks = asyncio.all_tasks()
    await asyncio.sleep(0.05)
    assert fetched == 2
    assert peer.body.replace(b"~", b"") == b"a"
    assert asyncio.all_tasks() == tasks
    peer.gate.set()
    await task
    assert peer.body.replace(b"~", b"") == b"abc."
    assert [message.get("more_body") for message in peer.sent][-2:] == [True, False]
    assert log == ["left"]


async def test_the_turn_is_left_before_the_last_byte_and_before_the_call_returns() -> None:
    peer, log = Peer(), list[str]()

    async def send(message: Message) -> None:
        if not message.get("more_body", True):
            log.append("end")
        await peer.send(message)

    await TurnResponse(turn_of(no_events(), log), Plain(), heartbeat_s=0)(peer.scope, peer.receive, send)
    assert log == ["left", "end"]
    assert peer.body == b"."


async def test_a_disconnect_reported_with_the_last_byte_is_not_a_hang_up() -> None:
    peer, log = Peer(), list[str]()

    async def send(message: Message) -> None:
        await peer.send(message)
        if not message.get("more_body", True):
            peer.gone.set()
            await asyncio.sleep(0.01)
            log.append("sent")

    await TurnResponse(turn_of(no_events(), log), Plain(), heartbeat_s=0)(peer.scope, peer.receive, send)
    assert log == ["left", "sent"]
    assert record_of(peer.scope).outcome == "ok"


async def test_cleanup_is_waited_for_when_the_request_itself_is_cancelled_twice() -> None:
    peer, log = Peer(), list[str]()
    started = asyncio.Event()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        started.set()
        await asyncio.Event().wait()
        yield TextDelta(text="never")

    task = asyncio.create_task(
        TurnResponse(turn_of(events(), log), Plain(), heartbeat_s=0)(peer.scope, peer.receive, peer.send)
    )
    await soon(started)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["left"]


async def test_a_send_that_fails_counts_as_a_hang_up() -> None:
    peer, log = Peer(), list[str]()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        yield TextDelta(text="a")
        yield TextDelta(text="b")

    async def send(message: Message) -> None:
        if message.get("body") == b"b":
            raise BrokenPipeError
        await peer.send(message)

    await TurnResponse(turn_of(events(), log), Plain(), heartbeat_s=0)(peer.scope, peer.receive, send)
    assert log == ["left"]
    assert peer.body == b"a"
    assert record_of(peer.scope).outcome == "hung-up"


async def test_a_failure_is_raised_before_the_first_byte_and_told_after_it() -> None:
    failure = UpstreamError("upstream-failed", "No.")
    peer, log = Peer(), list[str]()

    @asynccontextmanager
    async def refused() -> AsyncGenerator[AsyncIterator[TurnEvent]]:
        raise failure
        yield no_events()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        yield TextDelta(text="a")
        raise failure

    with pytest.raises(UpstreamError):
        await TurnResponse(refused(), Plain(), heartbeat_s=0)(peer.scope, peer.receive, peer.send)
    assert peer.sent == []
    await TurnResponse(turn_of(events(), log), Plain(), heartbeat_s=0)(peer.scope, peer.receive, peer.send)
    assert peer.body == b"a!upstream-failed"
    assert record_of(peer.scope).outcome == "upstream-failed"


# -- the server's own end ----------------------------------------------------------------------------------------------


async def test_a_stream_that_the_servers_end_cuts_off_is_told_so() -> None:
    peer, log = Peer(), list[str]()
    spoken = asyncio.Event()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        yield TextDelta(text="a")
        spoken.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(
        TurnResponse(turn_of(events(), log), Plain(), heartbeat_s=0)(peer.scope, peer.receive, peer.send)
    )
    await soon(spoken)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert peer.body == b"a!upstream-cut-off"
    assert peer.sent[-1]["more_body"] is False
    assert log == ["left"]


async def test_a_client_that_does_not_read_does_not_hold_up_the_servers_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satchel.gateway.response._LAST_WORD_S", 0.01)
    peer, log = Peer(), list[str]()
    blocked = asyncio.Event()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        yield TextDelta(text="a")
        peer.gate.clear()
        blocked.set()
        yield TextDelta(text="b")

    task = asyncio.create_task(
        TurnResponse(turn_of(events(), log), Plain(), heartbeat_s=0)(peer.scope, peer.receive, peer.send)
    )
    await soon(blocked)
    task.cancel()
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert peer.body == b"a"
    assert log == ["left"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_stopping_server_ends_open_answers_without_a_crash_in_the_log(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    flow = Flow(endless)
    async with serving(runtime_over(flow), heartbeat_s=0, grace_s=0) as base:
        reader, writer = await connect(base)
        writer.write(raw_request(base, {"messages": ASK, "stream": stream}))
        await soon(flow.entered)
        if stream:
            await reader.readuntil(b"word")
    async with asyncio.timeout(DEADLINE_S):
        rest = await reader.read()
    await close(writer)
    await soon(flow.left)
    assert b"The server is shutting down." in rest
    assert rest.startswith(b"HTTP/1.1 502") is not stream
    assert rest.endswith(b"0\r\n\r\n") is stream
    assert "Exception in ASGI application" not in caplog.text
    assert " shut-down " in caplog.text
