"""Endpoints for a client to meet: our own gateway, and servers that answer its probe in every other way."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

from aiohttp import web

from satchel.testing.scripted_model import Reply, ScriptedModel, call
from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn
from tests.gateway.serving import runtime_over, serving
from tests.gateway.shelf import shelf

READ = Reply(
    text=("Let me ", "look."),
    reasoning=("hm",),
    calls=(call("skills_read", '{"skill": "invoice", "path": "SKILL.md"}'),),
)
ANSWER = Reply(text=("The prefix ", "is ZX-9."))
WIRE_READ = ScriptedTurn(
    text=("Let me ", "look."),
    reasoning=("hm",),
    calls=(ScriptedCall(name="skills_read", fragments=('{"skill": "invoice"}',), call_id="call_1"),),
    usage={"prompt_tokens": 10, "completion_tokens": 5},
)
WIRE_ANSWER = ScriptedTurn(text=("The prefix ", "is ZX-9."), usage={"prompt_tokens": 20, "completion_tokens": 6})

LISTING: dict[str, Any] = {
    "object": "list",
    "data": [{"id": "pdf", "object": "skill", "name": "pdf", "description": "d", "origin": "discovered"}],
}
VENDOR: dict[str, Any] = {
    "object": "list",
    "data": [{"id": "skill_1", "object": "skill", "name": "pdf", "description": "d", "latest_version": "1"}],
    "has_more": False,
}
STANDS_DOWN = {"skills": [], "skills_discovery": False, "multi_agent": False}
_KNOWN = {"model", "messages", "tools", "tool_choice", "stream", "stream_options", "max_tokens", "temperature"}


@asynccontextmanager
async def gateway(*replies: Any, **options: Any) -> AsyncGenerator[tuple[str, ScriptedModel]]:
    """Our own gateway with two skills over a scripted model."""
    model = ScriptedModel(list(replies))
    async with serving(runtime_over(model, shelf()), **options) as url:
        yield url, model


class Probed(ScriptedOpenAI):
    """An OpenAI-compatible server by a script whose answer to ``GET /v1/skills`` is a test's; ``probes`` counts them.

    ``strict`` refuses request fields that the format does not have, as some servers do.
    """

    def __init__(self, *script: Any, answer: Any = None, status: int = 404, strict: bool = True) -> None:
        super().__init__(script)
        self.answer = answer
        self.status = status
        self.strict = strict
        self.probes = 0

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/v1/models", self._list)
        app.router.add_get("/v1/skills", self._skills)
        app.router.add_post("/v1/chat/completions", self._guarded)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    @property
    def last(self) -> dict[str, Any]:
        return self.requests[-1].body

    async def _skills(self, request: web.Request) -> web.Response:
        self.probes += 1
        if isinstance(self.answer, str):
            return web.Response(text=self.answer, status=self.status, content_type="text/html")
        return web.json_response(self.answer, status=self.status)

    async def _guarded(self, request: web.Request) -> web.StreamResponse:
        unknown = sorted((await request.json()).keys() - _KNOWN)
        if self.strict and unknown:
            return web.json_response({"error": {"message": f"Unknown fields: {unknown}"}}, status=400)
        return await self._answer(request)


def ours_in(body: Mapping[str, Any]) -> dict[str, Any]:
    """Our own fields in a request body."""
    return {key: value for key, value in body.items() if key.startswith("skills") or key == "multi_agent"}
