"""Any server that speaks Anthropic Messages. Every generation is streamed."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from urllib.parse import quote

import aiohttp

from satchel.chat.capabilities import ModelInfo
from satchel.chat.codec import anthropic
from satchel.chat.codec._common import Object
from satchel.chat.events import ModelEvent
from satchel.chat.request import Caller, ChatRequest, ToolPolicy, ToolSpec
from satchel.upstream.answers import Reader, read_events
from satchel.upstream.client import ServerClient, read_models

_VERSION = "2023-06-01"
_BETA = re.compile(r"[A-Za-z0-9._-]{1,128}")
_MAX_BETAS = 32
_PAGES = 20
_LEAST_THINKING = 1024


class AnthropicClient(ServerClient):
    """A ``ModelClient`` for one server. Raises ``SetupError`` when the address is not one."""

    path = "/v1/messages"
    optional = "/v1"

    def _headers(self, caller: Caller) -> dict[str, str]:
        headers = {"anthropic-version": _VERSION}
        if key := self._key(caller):
            headers["x-api-key"] = key
        if betas := [name for name in caller.betas if _BETA.fullmatch(name)][:_MAX_BETAS]:
            headers["anthropic-beta"] = ",".join(betas)
        return headers

    def _encode(self, request: ChatRequest, refused: frozenset[str]) -> Object:
        del refused
        body = anthropic.encode_request(_declaring_calls(request), stream=True)
        _fit_thinking(body)
        return body

    def _read(self, response: aiohttp.ClientResponse) -> AsyncGenerator[ModelEvent]:
        return read_events(self._endpoint, response, Reader(anthropic.StreamDecoder()), anthropic.decode_answer)

    async def _list(self, caller: Caller) -> tuple[ModelInfo, ...]:
        found: list[ModelInfo] = []
        path = "/v1/models?limit=1000"
        for _ in range(_PAGES):
            raw = await self._fetch("GET", path, caller)
            found.extend(read_models(raw))
            last = raw.get("last_id") if isinstance(raw, dict) and raw.get("has_more") is True else None
            if not isinstance(last, str) or not last:
                break
            path = f"/v1/models?limit=1000&after_id={quote(last, safe='')}"
        return tuple(found)


def _declaring_calls(request: ChatRequest) -> ChatRequest:
    """The request with what its conversation has called declared: this API refuses calls without any tools."""
    called = sorted({use.name for said in request.messages for use in said.tool_uses})
    if request.tool_names or not called:
        return request
    return replace(request, tools=tuple(ToolSpec(name=name) for name in called), tool_choice=ToolPolicy(mode="none"))


def _fit_thinking(body: Object) -> None:
    """Keeps the thinking budget below the token limit, which shrinks from round to round; else the request fails."""
    thinking, limit = body.get("thinking"), body.get("max_tokens")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if not isinstance(thinking, dict) or not isinstance(budget, int) or not isinstance(limit, int) or budget < limit:
        return
    if limit > _LEAST_THINKING:
        body["thinking"] = {**thinking, "budget_tokens": limit - 1}
    else:
        del body["thinking"]
