"""Any server that speaks OpenAI Chat Completions. Every generation is streamed."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

import aiohttp

from satchel.chat.codec import openai_chat
from satchel.chat.codec._common import Object
from satchel.chat.events import ModelDone, ModelEvent
from satchel.chat.request import ChatRequest
from satchel.upstream.answers import Reader, read_events
from satchel.upstream.client import Quirk, ServerClient

_DONE = b"[DONE]"
_USAGE = "stream_options"
_LIMIT = "max_tokens"


class OpenAIChatClient(ServerClient):
    """A ``ModelClient`` for one server. Raises ``SetupError`` when the address is not one."""

    path = "/chat/completions"
    quirks = (
        Quirk(field=_USAGE, blamed=re.compile("stream_options|include_usage")),
        Quirk(field=_LIMIT, blamed=re.compile("max_tokens.*max_completion_tokens", re.DOTALL)),
    )

    def _encode(self, request: ChatRequest, refused: frozenset[str]) -> Object:
        body = openai_chat.encode_request(request, stream=True)
        if _USAGE in refused:
            body.pop("stream_options", None)
        else:
            options = body.get("stream_options")
            body["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
        if _LIMIT in refused and _LIMIT in body:
            limits = (body.pop(_LIMIT), body.get("max_completion_tokens"))
            body["max_completion_tokens"] = min(limit for limit in limits if isinstance(limit, int))
        return body

    def _read(self, response: aiohttp.ClientResponse) -> AsyncGenerator[ModelEvent]:
        return read_events(self._endpoint, response, _Reader(), openai_chat.decode_answer)


class _Reader(Reader):
    """Usage may follow the finish reason, so the end is the end marker; some servers send nothing else for an end."""

    def __init__(self) -> None:
        self._chat = openai_chat.StreamDecoder()
        super().__init__(self._chat)

    def feed(self, data: bytes) -> list[ModelEvent]:
        if data.strip() == _DONE:
            self.is_ended = self.has_read = True
            return []
        events = super().feed(data)
        self.is_ended = False
        return events

    def finish(self) -> ModelDone:
        return self._chat.finish(ended=self.is_ended)
