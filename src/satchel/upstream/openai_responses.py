"""Any server that speaks OpenAI Responses. Every generation is streamed, and none is left in the server's care."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

import aiohttp

from satchel.chat.codec import openai_responses
from satchel.chat.codec._common import Object
from satchel.chat.events import ModelEvent
from satchel.chat.request import ChatRequest
from satchel.upstream.answers import Reader, read_events
from satchel.upstream.client import Quirk, ServerClient

_SEALED = "reasoning.encrypted_content"
_KEEPING = ("store", "previous_response_id", "conversation")


class OpenAIResponsesClient(ServerClient):
    """A ``ModelClient`` for one server. Raises ``SetupError`` when the address is not one.

    The whole conversation is sent each time. A request that does not say how the server keeps it gets ``store`` false,
    and reasoning is asked for in the sealed form that can be replayed then.
    """

    path = "/responses"
    quirks = (
        Quirk(
            field=_SEALED,
            blamed=re.compile(r"encrypted.content.{0,40}not supported|reasoning\.encrypted", re.IGNORECASE),
        ),
    )

    def _encode(self, request: ChatRequest, refused: frozenset[str]) -> Object:
        body = openai_responses.encode_request(request, stream=True)
        if not any(body.get(name) is not None for name in _KEEPING):
            body["store"] = False
        include = body.pop("include", None)
        wanted = list(include) if isinstance(include, list) else []
        if body.get("store") is False and _SEALED not in wanted:
            wanted.append(_SEALED)
        if _SEALED in refused:
            wanted = [item for item in wanted if item != _SEALED]
        if wanted:
            body["include"] = wanted
        return body

    def _read(self, response: aiohttp.ClientResponse) -> AsyncGenerator[ModelEvent]:
        reader = Reader(openai_responses.StreamDecoder())
        return read_events(self._endpoint, response, reader, openai_responses.decode_answer)
