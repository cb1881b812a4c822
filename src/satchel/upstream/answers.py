"""Model events out of an answer's bytes, whatever its wire format, streamed or not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Protocol

import aiohttp

from satchel.chat.codec._common import garbled_answer
from satchel.chat.codec.failures import read_failure
from satchel.chat.events import ModelCall, ModelDone, ModelEvent, ModelReasoning, ModelText
from satchel.chat.messages import Json, Reasoning
from satchel.errors import UpstreamError
from satchel.upstream.framing import LineParser, SseParser, too_large
from satchel.upstream.http import Endpoint, cut_off, read_json

_MAX_BLANKS = 64 * 1024


class Decoder(Protocol):
    """A stream's messages to events, as the codecs have it."""

    @property
    def is_finished(self) -> bool: ...
    def feed(self, event: Mapping[str, Json]) -> list[ModelEvent]: ...
    def finish(self) -> ModelDone: ...


class Reader:
    """Events out of the messages of a stream. ``is_ended`` is set by the last one that means anything."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self.is_ended = False
        self.has_read = False

    @property
    def is_finished(self) -> bool:
        """Whether the model has said all, so that a connection that breaks now has broken nothing."""
        return self._decoder.is_finished

    def feed(self, data: bytes) -> list[ModelEvent]:
        """What one message adds. Raises ``UpstreamError``."""
        raw = read_json(data)
        if not isinstance(raw, dict):
            raise garbled_answer("", "an object")
        self.has_read = True
        try:
            events = self._decoder.feed(raw)
        except RecursionError as error:
            raise garbled_answer("", "nested less deeply") from error
        self.is_ended = self.is_finished
        return events

    def feed_last(self, data: bytes) -> list[ModelEvent]:
        """What came without an end; half a message means that the connection was cut."""
        try:
            return self.feed(data)
        except UpstreamError as error:
            if error.code == "upstream-garbled":
                raise cut_off() from error
            raise

    def finish(self) -> ModelDone:
        """The whole answer. Raises ``UpstreamError`` (upstream-cut-off) when the stream did not come to its end."""
        return self._decoder.finish()


async def read_events(
    endpoint: Endpoint,
    response: aiohttp.ClientResponse,
    reader: Reader,
    decode_answer: Callable[[Mapping[str, Json]], ModelDone],
) -> AsyncGenerator[ModelEvent]:
    """The events of a stream of server-sent events or, against what was asked for, of one JSON object."""
    async with aclosing(endpoint.pieces(response)) as pieces:
        piece = await _first_words(pieces)
        if piece.lstrip().startswith(b"{"):
            rest = [item async for item in pieces]
            for event in _whole(b"".join([piece, *rest]), decode_answer):
                yield event
            return
        async for event in _streamed(piece, pieces, SseParser(), reader, endpoint.shown):
            yield event


async def read_lines(
    endpoint: Endpoint, response: aiohttp.ClientResponse, reader: Reader
) -> AsyncGenerator[ModelEvent]:
    """The events of a stream of JSON lines. An answer that is not streamed is one line of the same shape."""
    async with aclosing(endpoint.pieces(response)) as pieces:
        piece = await _first_words(pieces)
        async for event in _streamed(piece, pieces, LineParser(), reader, endpoint.shown):
            yield event


async def _streamed(
    piece: bytes, pieces: AsyncIterator[bytes], parser: SseParser | LineParser, reader: Reader, shown: str
) -> AsyncGenerator[ModelEvent]:
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
        raise _no_stream(shown)
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


async def _next(pieces: AsyncIterator[bytes], reader: Reader) -> bytes:
    """The next piece, empty at the end. A connection that breaks after the model has finished has broken nothing."""
    try:
        return await anext(pieces, b"")
    except UpstreamError:
        if reader.is_finished:
            return b""
        raise


def _whole(data: bytes, decode_answer: Callable[[Mapping[str, Json]], ModelDone]) -> list[ModelEvent]:
    """The events of an answer that came as one JSON object."""
    raw = read_json(data)
    if not isinstance(raw, dict):
        raise garbled_answer("", "an object")
    if raw.get("error"):
        raise read_failure(raw)
    try:
        done = decode_answer(raw)
    except RecursionError as error:
        raise garbled_answer("", "nested less deeply") from error
    events: list[ModelEvent] = [
        ModelReasoning(text=part.text, opaque=part.opaque) for part in done.message.parts if isinstance(part, Reasoning)
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
