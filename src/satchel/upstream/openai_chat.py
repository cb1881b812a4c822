"""Any server that speaks OpenAI Chat Completions. Every generation is streamed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace
from http import HTTPStatus

import aiohttp

from satchel.chat.capabilities import ModelCapabilities, ModelInfo
from satchel.chat.codec import openai_chat
from satchel.chat.codec._common import count, garbled_answer
from satchel.chat.codec.failures import read_failure
from satchel.chat.events import ModelCall, ModelDone, ModelEvent, ModelReasoning, ModelText
from satchel.chat.messages import Json, Media, Reasoning, Text, ToolOutput, ToolUse
from satchel.chat.request import Caller, ChatRequest
from satchel.errors import RequestError, UpstreamError
from satchel.ports.models import UpstreamOptions
from satchel.upstream.http import Endpoint, SseParser, cut_off, read_json, too_large, without_key

_CONTEXT_FIELDS = ("context_length", "max_model_len", "context_window", "max_context_length", "n_ctx")
_DONE = b"[DONE]"
_MAX_BLANKS = 64 * 1024
_LARGE = 256 * 1024


class _Learned:
    """What the server has shown of itself, shared by all clients that speak to it."""

    def __init__(self) -> None:
        self.takes_stream_options = True
        self.models: tuple[ModelInfo, ...] = ()


class OpenAIChatClient:
    """A ``ModelClient`` for one server. Raises ``SetupError`` when the address is not one."""

    def __init__(self, options: UpstreamOptions) -> None:
        self._options = options
        self._endpoint = Endpoint(options)
        self._learned = _Learned()

    async def models(self, caller: Caller = Caller()) -> tuple[ModelInfo, ...]:
        """What the server lists. Raises ``UpstreamError``."""
        key = self._options.api_key or caller.key
        response = await self._endpoint.request("GET", "/models", api_key=key)
        try:
            if response.status != HTTPStatus.OK:
                raise await self._endpoint.failure(response, secret=key)
            async with aclosing(self._endpoint.pieces(response)) as pieces:
                raw = read_json(b"".join([piece async for piece in pieces]))
        finally:
            response.close()
        self._learned.models = _read_models(raw)
        return self._learned.models

    def capabilities(self, model: str) -> ModelCapabilities:
        """Native tools; the context window as far as ``models`` has told it."""
        known = self._learned.models
        info = next((item for item in known if item.id == model), None)
        if info is None and not model and known:
            info = known[0]
        return ModelCapabilities(context_tokens=info.context_tokens if info else None)

    def stream(self, request: ChatRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """One generation. Leaving the block closes the connection at once."""
        return self._stream(request)

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    def _key(self, request: ChatRequest) -> str:
        return self._options.api_key or request.caller.key

    @asynccontextmanager
    async def _stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        response = await self._ask(await self._with_model(request))
        try:
            async with aclosing(_events(self._endpoint, response, self._key(request))) as events:
                yield events
        finally:
            response.close()

    async def _with_model(self, request: ChatRequest) -> ChatRequest:
        """The request with the server's first model when it names none; servers that list none need no name."""
        if request.model:
            return request
        known = self._learned.models
        if not known:
            try:
                known = await self.models(request.caller)
            except UpstreamError as error:
                if error.code not in {"upstream-rejected", "upstream-garbled", "model-not-found"}:
                    raise
        return replace(request, model=known[0].id) if known else request

    async def _ask(self, request: ChatRequest) -> aiohttp.ClientResponse:
        takes = self._learned.takes_stream_options
        body = await asyncio.to_thread(_encode, request, takes) if _is_large(request) else _encode(request, takes)
        key = self._key(request)
        response = await self._endpoint.request("POST", "/chat/completions", api_key=key, body=body)
        if response.status == HTTPStatus.OK:
            return response
        try:
            failure = await self._endpoint.failure(response, model=request.model, secret=key)
        finally:
            response.close()
        if self._learned.takes_stream_options and failure.data.get("status") in _REFUSALS and _blames(failure):
            self._learned.takes_stream_options = False
            return await self._ask(request)
        raise failure


_REFUSALS = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}


def _blames(failure: UpstreamError) -> bool:
    return "stream_options" in failure.message or "include_usage" in failure.message


def _is_large(request: ChatRequest) -> bool:
    """Whether encoding would hold up the loop."""
    size = 256 * len(request.tools)
    for item in request.messages:
        size += 64
        for part in item.parts:
            match part:
                case Text(text=text) | Reasoning(text=text) | ToolOutput(text=text):
                    size += 64 + len(text)
                case ToolUse(arguments=arguments):
                    size += 64 + len(arguments)
                case Media(data=data, url=url):
                    size += 64 + len(data) + len(url)
                case _:
                    size += 1024
        if size > _LARGE:
            return True
    return False


def _encode(request: ChatRequest, takes_stream_options: bool) -> bytes:
    body = openai_chat.encode_request(request, stream=True)
    if takes_stream_options:
        options = body.get("stream_options")
        body["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    else:
        body.pop("stream_options", None)
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise RequestError("invalid-request", "The request holds a number that JSON cannot carry.") from error
    return text.encode("utf-8", "replace")


async def _events(endpoint: Endpoint, response: aiohttp.ClientResponse, api_key: str) -> AsyncGenerator[ModelEvent]:
    """The events of an answer; what the server says of its failures never shows the key."""
    try:
        async with aclosing(_read(endpoint, response)) as events:
            async for event in events:
                yield event
    except UpstreamError as error:
        raise without_key(error, api_key) from error.__cause__


async def _read(endpoint: Endpoint, response: aiohttp.ClientResponse) -> AsyncGenerator[ModelEvent]:
    """The events of an answer, whether it is a stream or, against what was asked for, one JSON object."""
    async with aclosing(endpoint.pieces(response)) as pieces:
        piece = await _first_words(pieces)
        if piece.lstrip().startswith(b"{"):
            rest = [item async for item in pieces]
            for event in _whole(b"".join([piece, *rest])):
                yield event
            return
        parser = SseParser()
        reader = _Reader()
        is_empty = not piece
        while piece:
            for data in parser.feed(piece):
                for event in reader.feed(data):
                    yield event
                if reader.is_ended:
                    yield reader.finish()
                    return
            piece = await _next(pieces, reader)
        for data in parser.close():
            for event in reader.feed_last(data):
                yield event
        if not reader.has_read and not is_empty:
            raise _no_stream(endpoint.shown)
        yield reader.finish()


async def _first_words(pieces: AsyncIterator[bytes]) -> bytes:
    """The body from its first piece on that is not blank. Raises ``UpstreamError`` for blanks without end."""
    blanks = 0
    async for piece in pieces:
        if piece.strip():
            return piece
        blanks += len(piece)
        if blanks > _MAX_BLANKS:
            break
    else:
        return b""
    raise too_large()


async def _next(pieces: AsyncIterator[bytes], reader: _Reader) -> bytes:
    """The next piece, empty at the end. A connection that breaks after the model has finished has broken nothing."""
    try:
        return await anext(pieces, b"")
    except UpstreamError:
        if reader.is_finished:
            return b""
        raise


class _Reader:
    """Events out of the data of server-sent events."""

    def __init__(self) -> None:
        self._decoder = openai_chat.StreamDecoder()
        self.is_ended = False
        self.has_read = False

    @property
    def is_finished(self) -> bool:
        return self._decoder.is_finished

    def feed(self, data: bytes) -> list[ModelEvent]:
        if data.strip() == _DONE:
            self.is_ended = self.has_read = True
            return []
        raw = read_json(data)
        if not isinstance(raw, dict):
            raise garbled_answer("", "an object")
        self.has_read = True
        try:
            return self._decoder.feed(raw)
        except RecursionError as error:
            raise garbled_answer("", "nested less deeply") from error

    def feed_last(self, data: bytes) -> list[ModelEvent]:
        """What came without an end; half an event means that the connection was cut."""
        try:
            return self.feed(data)
        except UpstreamError as error:
            if error.code == "upstream-garbled":
                raise cut_off() from error
            raise

    def finish(self) -> ModelDone:
        return self._decoder.finish(ended=self.is_ended)


def _whole(data: bytes) -> list[ModelEvent]:
    """The events of an answer that came as one JSON object."""
    raw = read_json(data)
    if not isinstance(raw, dict):
        raise garbled_answer("", "an object")
    if raw.get("error"):
        raise read_failure(raw)
    done = openai_chat.decode_answer(raw)
    events: list[ModelEvent] = [
        ModelReasoning(text=part.text) for part in done.message.parts if isinstance(part, Reasoning)
    ]
    if done.message.text:
        events.append(ModelText(text=done.message.text))
    events.extend(
        ModelCall(index=index, call_id=use.call_id, name=use.name, arguments=use.arguments)
        for index, use in enumerate(done.message.tool_uses)
    )
    return [*events, done]


def _no_stream(shown: str) -> UpstreamError:
    return UpstreamError(
        "upstream-garbled",
        f"What answers at {shown} is not a stream of this kind of API.",
        hint="Check the address: it is the base of the API, often ending in /v1.",
    )


def _read_models(raw: Json) -> tuple[ModelInfo, ...]:
    """A model list: ``{"data": [...]}``, ``{"models": [...]}`` or the array alone; odd entries are left out."""
    items = (raw.get("data") or raw.get("models")) if isinstance(raw, dict) else raw
    if items is None and isinstance(raw, dict):
        items = []
    if not isinstance(items, list):
        raise garbled_answer("data", "an array")
    return tuple(info for item in items if isinstance(item, dict) and (info := _read_model(item)))


def _read_model(item: Mapping[str, Json]) -> ModelInfo | None:
    name = item.get("id") or item.get("name") or item.get("model")
    if not isinstance(name, str):
        return None
    owner = item.get("owned_by")
    meta = item.get("meta")
    sizes = [item.get(key) for key in _CONTEXT_FIELDS]
    if isinstance(meta, dict):
        sizes.append(meta.get("n_ctx"))
    return ModelInfo(
        id=name,
        owned_by=owner if isinstance(owner, str) else "",
        created=count(item.get("created")),
        context_tokens=next((size for raw_size in sizes if (size := count(raw_size))), None),
    )
