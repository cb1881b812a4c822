"""A real loopback server that answers by a script, for tests of whoever speaks to one.

It speaks OpenAI Chat Completions and, on their own paths, OpenAI Responses, Ollama and Anthropic Messages.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self, cast

from aiohttp import web

from satchel.chat.messages import Json
from satchel.testing.scripted_formats import FORMS, Form

Fault = Literal["", "cut", "reset", "end", "garbage", "stall"]
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """A call; ``fragments`` are the pieces of its arguments. "" as ``call_id`` leaves the id out."""

    name: str
    fragments: tuple[str, ...] = ("{}",)
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTurn:
    """One answer.

    ``text`` and ``reasoning`` are pieces, one chunk each; ``sealed`` is what goes with the reasoning to be sent back
    unread. ``finish`` is the format's own word: None is decided by the calls, "" leaves the end of the stream out.
    ``usage`` is in the format's own words. ``chunks``, when given, are sent instead of everything else. ``delay_s`` is
    waited before every chunk.

    With a ``status`` other than 200 the answer is ``body`` with ``headers``. ``plain`` answers with one JSON object
    instead of a stream. ``fault`` strikes when all pieces are out and before the finish reason: "cut" drops the
    connection, "reset" does so without a farewell, "end" ends the stream properly, "garbage" sends something that is no
    JSON, "stall" says nothing more until the client hangs up.

    ``play`` makes the whole answer by itself, at its own pace.
    """

    text: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    sealed: str = ""
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
    play: Callable[[Stage], Awaitable[None]] | None = None


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


class Stage:
    """One answer in the hands of a ``play``. ``form`` writes the format that was asked for; ``seen`` is the request."""

    def __init__(self, request: web.Request, seen: SeenRequest) -> None:
        self._request = request
        self._response: web.StreamResponse | None = None
        self.form: Form = FORMS[request.path]
        self.seen = seen

    async def open(self, media_type: str = "", *, status: int = 200) -> web.StreamResponse:
        """Sends the head, unless it is out. The media type is the format's own by default."""
        if self._response is None:
            headers = {"Content-Type": media_type or self.form.media_type}
            self._response = web.StreamResponse(status=status, headers=headers)
            await self._response.prepare(self._request)
        return self._response

    async def write(self, data: bytes) -> None:
        """Sends bytes as they are; waits while the client does not read."""
        await (await self.open()).write(data)

    async def send(self, message: Mapping[str, Json]) -> None:
        """Sends one message of the format."""
        await self.write(self.form.frame(message))
        self.seen.chunks_sent += 1


Script = Sequence[ScriptedTurn | Callable[[dict[str, Json]], ScriptedTurn]]


class ScriptedOpenAI:
    """``async with ScriptedOpenAI([...]) as server``: each request gets the next turn; after the last it gets a 500.

    ``url`` is the base address with ``/v1``, ``root`` the one without; ``requests`` are the chat requests in the order
    they came. ``shows`` is what ``/api/show`` says of a model.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        models: Sequence[Mapping[str, Json]] = ({"id": "scripted"},),
        shows: Mapping[str, Mapping[str, Json]] | None = None,
    ) -> None:
        self._script: Iterator[ScriptedTurn | Callable[[dict[str, Json]], ScriptedTurn]] = iter(script)
        self._models = models
        self._shows = shows or {}
        self._runner: web.AppRunner | None = None
        self._is_closing = False
        self._came = asyncio.Condition()
        self.requests: list[SeenRequest] = []
        self.listings: list[SeenRequest] = []
        self.url = ""
        self.root = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/v1/models", self._list)
        app.router.add_get("/api/tags", self._list)
        app.router.add_post("/api/show", self._show)
        for path in FORMS:
            app.router.add_post(path, self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = cast("tuple[str, int]", self._runner.addresses[0][:2])
        self.root = f"http://{host}:{port}"
        self.url = f"{self.root}/v1"
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
        """All models at once, or in pages where a page's size is asked for."""
        self.listings.append(SeenRequest(path=request.path_qs, headers=dict(request.headers), body={}))
        if request.path == "/api/tags":
            return web.json_response({"models": [_entry(model) for model in self._models]})
        listed = [dict(model) for model in self._models]
        if "limit" not in request.query:
            return web.json_response({"object": "list", "data": listed})
        ids = [model["id"] for model in listed]
        start = ids.index(request.query["after_id"]) + 1 if "after_id" in request.query else 0
        page = listed[start : start + 2]
        has_more = start + len(page) < len(listed)
        return web.json_response({"data": page, "has_more": has_more, "last_id": page[-1]["id"] if page else None})

    async def _show(self, request: web.Request) -> web.Response:
        body = cast("dict[str, Json]", await request.json())
        self.listings.append(SeenRequest(path=request.path, headers=dict(request.headers), body=body))
        found = self._shows.get(str(body.get("model")))
        if found is None:
            return web.json_response({"error": f"model '{body.get('model')}' not found"}, status=404)
        return web.json_response(dict(found))

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
        if turn.play is not None:
            stage = Stage(request, seen)
            await turn.play(stage)
            response = await stage.open()
            await response.write_eof()
            return response
        form = FORMS[request.path]
        if turn.plain:
            await asyncio.sleep(turn.delay_s)
            return web.json_response(form.whole(turn))
        response = web.StreamResponse(headers={"Content-Type": form.media_type, **turn.headers})
        await response.prepare(request)
        for chunk in form.pieces(turn) if turn.chunks is None else turn.chunks:
            await _send(response, form, chunk, turn, seen)
        if turn.fault in {"cut", "reset"}:
            _drop(request, is_reset=turn.fault == "reset")
            return response
        if turn.fault == "garbage":
            await response.write(b"{not json\n" if form.is_lines else b"data: {not json\n\n")
        if turn.fault == "stall":
            await asyncio.Event().wait()
        if turn.fault == "":
            for chunk in form.ending(turn) if turn.chunks is None else ():
                await _send(response, form, chunk, turn, seen)
            if turn.finish != "":
                await response.write(form.end)
        await response.write_eof()
        return response


async def _send(
    response: web.StreamResponse, form: Form, chunk: Mapping[str, Json], turn: ScriptedTurn, seen: SeenRequest
) -> None:
    if turn.delay_s:
        await asyncio.sleep(turn.delay_s)
    await response.write(form.frame(chunk))
    seen.chunks_sent += 1


def _drop(request: web.Request, *, is_reset: bool) -> None:
    if request.transport is None:
        return
    if is_reset:
        request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        request.transport.abort()
    else:
        request.transport.close()


def _entry(model: Mapping[str, Json]) -> Json:
    return {"name": model.get("id"), "model": model.get("id")}
