"""A real loopback server that answers OpenAI Chat Completions by a script, for tests of whoever speaks to one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self, cast

from aiohttp import web

from satchel.chat.messages import Json

Fault = Literal["", "cut", "end", "garbage", "stall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """A call; ``fragments`` are the pieces of its arguments. "" as ``call_id`` leaves the id out."""

    name: str
    fragments: tuple[str, ...] = ("{}",)
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTurn:
    """One answer.

    ``text`` and ``reasoning`` are pieces, one chunk each. ``finish`` None is decided by the calls, "" leaves it out.
    ``chunks``, when given, are sent instead of everything else. ``delay_s`` is waited before every chunk.

    With a ``status`` other than 200 the answer is ``body`` with ``headers``. ``plain`` answers with one JSON object
    instead of a stream. ``fault`` strikes when all pieces are out and before the finish reason: "cut" drops the
    connection, "end" ends the stream properly, "garbage" sends something that is no JSON, "stall" says nothing more
    until the client hangs up.
    """

    text: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    calls: tuple[ScriptedCall, ...] = ()
    finish: str | None = None
    usage: Mapping[str, Json] | None = None
    chunks: tuple[Mapping[str, Json], ...] | None = None
    delay_s: float = 0.0
    status: int = 200
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    plain: bool = False
    fault: Fault = ""


def says(*text: str, **usage: int) -> ScriptedTurn:
    """A turn of text; keywords give its usage."""
    return ScriptedTurn(text=text, usage=dict(usage) if usage else None)


def refuses(status: int, message: str, **headers: str) -> ScriptedTurn:
    """A turn with an error status; underscores in header names stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ScriptedTurn(status=status, body={"error": {"message": message}}, headers=named)


@dataclass(slots=True)
class SeenRequest:
    """A request as it came. ``hung_up`` is set when the client left before the answer was complete."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Json]
    chunks_sent: int = 0
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)


Script = Sequence[ScriptedTurn | Callable[[dict[str, Json]], ScriptedTurn]]


class ScriptedOpenAI:
    """``async with ScriptedOpenAI([...]) as server``: each request gets the next turn; after the last it gets a 500.

    ``url`` is the base address with ``/v1``; ``requests`` are the chat requests in the order they came.
    """

    def __init__(self, script: Script = (), *, models: Sequence[Mapping[str, Json]] = ({"id": "scripted"},)) -> None:
        self._script: Iterator[ScriptedTurn | Callable[[dict[str, Json]], ScriptedTurn]] = iter(script)
        self._models = models
        self._runner: web.AppRunner | None = None
        self._is_closing = False
        self._came = asyncio.Condition()
        self.requests: list[SeenRequest] = []
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/v1/models", self._list)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = cast("tuple[str, int]", self._runner.addresses[0][:2])
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing = True
        if self._runner is not None:
            await self._runner.cleanup()

    async def wait_for_request(self, number: int = 1) -> SeenRequest:
        """The request of that number, from 1, as soon as it has come."""
        async with self._came:
            await self._came.wait_for(lambda: len(self.requests) >= number)
        return self.requests[number - 1]

    async def _list(self, request: web.Request) -> web.Response:
        del request
        return web.json_response({"object": "list", "data": [dict(model) for model in self._models]})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = cast("dict[str, Json]", await request.json())
        seen = SeenRequest(path=request.path, headers=dict(request.headers), body=body)
        async with self._came:
            self.requests.append(seen)
            self._came.notify_all()
        step = next(self._script, refuses(500, "the script has no further turn"))
        turn = step(body) if callable(step) else step
        try:
            response = await self._play(turn, request, seen)
        except (asyncio.CancelledError, ConnectionResetError):
            if not self._is_closing:
                seen.hung_up.set()
            raise
        seen.answered.set()
        return response

    async def _play(self, turn: ScriptedTurn, request: web.Request, seen: SeenRequest) -> web.StreamResponse:
        if turn.status != web.HTTPOk.status_code:
            return web.json_response(turn.body, status=turn.status, headers=turn.headers)
        if turn.plain:
            await asyncio.sleep(turn.delay_s)
            return web.json_response(_whole(turn))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **turn.headers})
        await response.prepare(request)
        for chunk in _pieces(turn):
            await _send(response, chunk, turn, seen)
        if turn.fault == "cut":
            _drop(request)
            return response
        if turn.fault == "garbage":
            await response.write(b"data: {not json\n\n")
        if turn.fault == "stall":
            await asyncio.Event().wait()
        if turn.fault == "":
            for chunk in _ending(turn):
                await _send(response, chunk, turn, seen)
            if turn.finish != "":
                await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


async def _send(response: web.StreamResponse, chunk: Mapping[str, Json], turn: ScriptedTurn, seen: SeenRequest) -> None:
    if turn.delay_s:
        await asyncio.sleep(turn.delay_s)
    text = json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
    await response.write(f"data: {text}\n\n".encode())
    seen.chunks_sent += 1


def _drop(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()


def _chunk(delta: dict[str, Json], finish: str | None = None) -> dict[str, Json]:
    choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": [choice],
    }


def _pieces(turn: ScriptedTurn) -> Iterator[Mapping[str, Json]]:
    if turn.chunks is not None:
        yield from turn.chunks
        return
    yield _chunk({"role": "assistant", "content": ""})
    for piece in turn.reasoning:
        yield _chunk({"reasoning_content": piece})
    for piece in turn.text:
        yield _chunk({"content": piece})
    for index, call in enumerate(turn.calls):
        for number, fragment in enumerate(call.fragments or ("",)):
            entry: dict[str, Json] = {"index": index, "function": {"arguments": fragment}}
            if number == 0:
                entry |= {"type": "function", "function": {"name": call.name, "arguments": fragment}}
                entry |= {"id": call.call_id} if call.call_id else {}
            yield _chunk({"tool_calls": [entry]})


def _finish(turn: ScriptedTurn) -> str:
    return turn.finish or ("tool_calls" if turn.calls else "stop")


def _ending(turn: ScriptedTurn) -> Iterator[Mapping[str, Json]]:
    if turn.chunks is None and turn.finish != "":
        yield _chunk({}, _finish(turn))
    if turn.usage is not None:
        yield {**_chunk({}), "choices": [], "usage": dict(turn.usage)}


def _whole(turn: ScriptedTurn) -> Json:
    message: dict[str, Json] = {"role": "assistant", "content": "".join(turn.text) or None}
    if turn.reasoning:
        message["reasoning_content"] = "".join(turn.reasoning)
    calls: list[Json] = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": "".join(call.fragments)},
        }
        for call in turn.calls
    ]
    if calls:
        message["tool_calls"] = calls
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(turn)}],
        "usage": dict(turn.usage) if turn.usage is not None else None,
    }
