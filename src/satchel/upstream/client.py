"""What clients of every kind of model server share: keys, listings, one streamed generation, what a server refuses."""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import ClassVar

import aiohttp

from satchel.chat.capabilities import ModelCapabilities, ModelInfo
from satchel.chat.codec._common import Object, count, garbled_answer
from satchel.chat.codec.failures import read_failure
from satchel.chat.events import ModelEvent
from satchel.chat.messages import Json, Media, Reasoning, Text, ToolOutput, ToolUse
from satchel.chat.request import Caller, ChatRequest
from satchel.errors import RequestError, UpstreamError
from satchel.ports.models import UpstreamOptions
from satchel.upstream.families import capabilities_of
from satchel.upstream.http import Endpoint, read_json, without_key

_CONTEXT_FIELDS = (
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "n_ctx",
)
_LARGE = 256 * 1024
_MOST_REFUSED = 1024
_REFUSALS = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
_UNLISTED = {"upstream-rejected", "upstream-garbled", "model-not-found"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """A field that some servers or models refuse and that a request can do without.

    ``blamed`` is looked for in the refusal; the request is then sent once more without the field. When that helped, all
    later ones for that model are sent without it.
    """

    field: str
    blamed: re.Pattern[str]


class ServerClient(ABC):
    """A ``ModelClient`` for one server. Raises ``SetupError`` when the address is not one.

    A kind of server says its paths, how a body is written and how an answer is read.
    """

    path: ClassVar[str]
    quirks: ClassVar[tuple[Quirk, ...]] = ()
    optional: ClassVar[str] = ""

    def __init__(self, options: UpstreamOptions) -> None:
        self._options = options
        self._endpoint = Endpoint(options, optional=self.optional)
        self._known: tuple[ModelInfo, ...] = ()
        self._refused: set[tuple[str, str]] = set()

    async def models(self, caller: Caller = Caller()) -> tuple[ModelInfo, ...]:
        """What the server lists. Raises ``UpstreamError``."""
        self._known = await self._list(caller)
        return self._known

    async def capabilities(self, model: str, caller: Caller = Caller()) -> ModelCapabilities:
        """As the model's family and the settings say; the context window as far as ``models`` has told it."""
        del caller
        info = self._info(model)
        return capabilities_of(info.id if info else model, self._options, context_tokens=_window(info))

    def stream(self, request: ChatRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """One generation. Leaving the block closes the connection at once."""
        return self._stream(request)

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    @abstractmethod
    def _encode(self, request: ChatRequest, refused: frozenset[str]) -> Object:
        """The body of a streamed request, without the fields that the server refused before."""

    @abstractmethod
    def _read(self, response: aiohttp.ClientResponse) -> AsyncGenerator[ModelEvent]:
        """The events of an answer."""

    async def _list(self, caller: Caller) -> tuple[ModelInfo, ...]:
        return read_models(await self._fetch("GET", "/models", caller))

    def _headers(self, caller: Caller) -> dict[str, str]:
        key = self._key(caller)
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _key(self, caller: Caller) -> str:
        return self._options.api_key or caller.key

    def _info(self, model: str) -> ModelInfo | None:
        if not model and self._known:
            return self._known[0]
        return next((item for item in self._known if item.id == model), None)

    async def _fetch(self, method: str, path: str, caller: Caller, body: bytes | None = None) -> Json:
        """The JSON that is served there. Raises ``UpstreamError``."""
        response = await self._endpoint.request(method, path, headers=self._headers(caller), body=body)
        try:
            if response.status != HTTPStatus.OK:
                raise self._explained(await self._endpoint.failure(response, secret=self._key(caller)), caller)
            async with aclosing(self._endpoint.pieces(response)) as pieces:
                return read_json(b"".join([piece async for piece in pieces]))
        finally:
            response.close()

    @asynccontextmanager
    async def _stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        named = replace(request, model=await self._named(request.model, request.caller))
        response = await self._ask(named)
        try:
            async with aclosing(self._masked(response, self._key(request.caller))) as events:
                yield events
        finally:
            response.close()

    async def _masked(self, response: aiohttp.ClientResponse, key: str) -> AsyncGenerator[ModelEvent]:
        """The events of an answer; what the server says of its failures never shows the key."""
        try:
            async with aclosing(self._read(response)) as events:
                async for event in events:
                    yield event
        except UpstreamError as error:
            raise without_key(error, key) from error.__cause__

    async def _named(self, model: str, caller: Caller) -> str:
        """The name, or the server's first model when there is none; a server that lists none needs no name."""
        if model:
            return model
        known = self._known
        if not known:
            try:
                known = await self.models(caller)
            except UpstreamError as error:
                if error.code not in _UNLISTED:
                    raise
        return known[0].id if known else model

    async def _ask(self, request: ChatRequest) -> aiohttp.ClientResponse:
        refused = frozenset(field for model, field in self._refused if model == request.model)
        while True:
            body = (
                await asyncio.to_thread(self._body, request, refused)
                if _is_large(request)
                else self._body(request, refused)
            )
            response = await self._endpoint.request("POST", self.path, headers=self._headers(request.caller), body=body)
            if response.status == HTTPStatus.OK:
                self._note_refused(request.model, refused)
                return response
            try:
                said = await self._endpoint.said(response)
            finally:
                response.close()
            field = self._blamed(read_failure(said, status=response.status))
            if not field or field in refused:
                failure = read_failure(
                    said,
                    status=response.status,
                    retry_after=response.headers.get("Retry-After", ""),
                    model=request.model,
                    secret=self._key(request.caller),
                )
                raise self._explained(failure, request.caller)
            refused |= {field}

    def _note_refused(self, model: str, fields: frozenset[str]) -> None:
        if len(self._refused) >= _MOST_REFUSED:
            # Clients choose the names of models; whatever still holds is learned again.
            self._refused.clear()
        self._refused.update((model, field) for field in fields)

    def _explained(self, failure: UpstreamError, caller: Caller) -> UpstreamError:
        """The failure; that of a key which is the caller's own says so."""
        if failure.code != "upstream-auth" or self._options.api_key or not caller.key:
            return failure
        return UpstreamError(
            failure.code,
            failure.message,
            hint="The key that you sent is passed on to this model server: send one that it knows.",
            data={**failure.data, "is_callers_key": True},
        )

    def _blamed(self, failure: UpstreamError) -> str:
        """The field that can be left out next time, "" when the refusal is about something else.

        Wants the server's words as they are: a key may be spelled like one of the fields.
        """
        if failure.data.get("status") not in _REFUSALS:
            return ""
        return next((quirk.field for quirk in self.quirks if quirk.blamed.search(failure.message)), "")

    def _body(self, request: ChatRequest, refused: frozenset[str]) -> bytes:
        try:
            text = json.dumps(
                self._encode(request, refused), ensure_ascii=False, allow_nan=False, separators=(",", ":")
            )
        except ValueError as error:
            raise RequestError("invalid-request", "The request holds a number that JSON cannot carry.") from error
        return text.encode("utf-8", "replace")


def _window(info: ModelInfo | None) -> int | None:
    return info.context_tokens if info else None


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


def read_models(raw: Json) -> tuple[ModelInfo, ...]:
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
