"""Ollama's own API. Every generation is streamed."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator

import aiohttp

from satchel.chat.capabilities import ModelCapabilities, ModelInfo
from satchel.chat.codec import ollama
from satchel.chat.codec._common import Object, count
from satchel.chat.events import ModelEvent
from satchel.chat.messages import Json
from satchel.chat.request import Caller, ChatRequest
from satchel.errors import UpstreamError
from satchel.ports.models import UpstreamOptions
from satchel.upstream.answers import Reader, read_lines
from satchel.upstream.client import ServerClient, read_models
from satchel.upstream.families import capabilities_of

_WINDOW = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
_MOST_SHOWN = 1024


class OllamaClient(ServerClient):
    """A ``ModelClient`` for one server. Raises ``SetupError`` when the address is not one.

    What a model can do is asked of the server, once a model.
    """

    path = "/api/chat"
    optional = "/api"

    def __init__(self, options: UpstreamOptions) -> None:
        super().__init__(options)
        self._shown: dict[str, Object] = {}

    async def capabilities(self, model: str, caller: Caller = Caller()) -> ModelCapabilities:
        """As the server says of the model; where it does not say, as the model's family is known."""
        model = await self._named(model, caller)
        shown = await self._show(model, caller) if model else {}
        listed = shown.get("capabilities")
        can = frozenset(str(item) for item in listed) if isinstance(listed, list) else None
        return capabilities_of(model, self._options, said=can, context_tokens=_window(shown))

    async def _show(self, model: str, caller: Caller) -> Object:
        """What the server says of a model. A server that cannot say it is no failure, and is asked again."""
        if model not in self._shown:
            body = json.dumps({"model": model}).encode()
            try:
                raw = await self._fetch("POST", "/api/show", caller, body)
            except UpstreamError as error:
                if error.code not in {"upstream-rejected", "upstream-garbled", "model-not-found"}:
                    raise
                raw = None
            if not isinstance(raw, dict):
                return {}
            if len(self._shown) >= _MOST_SHOWN:
                self._shown.clear()
            self._shown[model] = {key: raw.get(key) for key in ("capabilities", "parameters", "model_info")}
        return self._shown[model]

    async def _list(self, caller: Caller) -> tuple[ModelInfo, ...]:
        return read_models(await self._fetch("GET", "/api/tags", caller))

    def _encode(self, request: ChatRequest, refused: frozenset[str]) -> Object:
        del refused
        body = ollama.encode_request(request, stream=True)
        if request.sampling.is_code:
            # This server has a penalty unless it is told otherwise; what a client asked for stays.
            options = body.get("options")
            body = {**body, "options": {"repeat_penalty": 1.0, **(options if isinstance(options, dict) else {})}}
        return {**body, "stream": True}

    def _read(self, response: aiohttp.ClientResponse) -> AsyncGenerator[ModelEvent]:
        return read_lines(self._endpoint, response, Reader(ollama.StreamDecoder()))


def _window(shown: Object) -> int | None:
    """The context window: as the model is set up to be run, else as large as it was trained for."""
    parameters = shown.get("parameters")
    if isinstance(parameters, str) and (found := _WINDOW.search(parameters)):
        return int(found[1]) or None
    info = shown.get("model_info")
    sizes: list[Json] = (
        [value for key, value in info.items() if key.endswith(".context_length")] if isinstance(info, dict) else []
    )
    return next((size for raw in sizes if (size := count(raw))), None)
