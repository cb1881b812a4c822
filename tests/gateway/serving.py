"""A real server on a loopback port in the test's own loop, around a real runtime over scripted parts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from openai import AsyncOpenAI

from satchel.chat.capabilities import ModelCapabilities, ModelInfo
from satchel.chat.events import ModelDone, ModelEvent, ModelText, Usage
from satchel.chat.messages import Message, Text
from satchel.chat.request import Caller, ChatRequest, ToolSpec
from satchel.engine.host import ToolBox
from satchel.engine.runtime import HostContext, Runtime
from satchel.errors import PathError, SkillError
from satchel.gateway.app import create_app
from satchel.gateway.options import ServerOptions
from satchel.gateway.protocol import BoundedHttpProtocol
from satchel.ports.models import ModelClient
from satchel.skills.catalog import Catalog
from satchel.skills.model import LoadedSkill, Page, SkillRef
from satchel.tools.base import ToolCall, ToolContext, ToolResult

DEADLINE_S = 20.0
"""How long a test waits for something that has to happen; reached only when it fails."""


class Flow:
    """A model server whose one generation is an async generator of the test; tells when its block is entered and left."""

    def __init__(self, play: Callable[[ChatRequest], AsyncGenerator[ModelEvent, None]]) -> None:
        self._play = play
        self.entered = asyncio.Event()
        self.left = asyncio.Event()

    async def models(self, caller: Caller = Caller()) -> tuple[ModelInfo, ...]:
        del caller
        return ()

    async def capabilities(self, model: str, caller: Caller = Caller()) -> ModelCapabilities:
        del model, caller
        return ModelCapabilities()

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        events = self._play(request)
        self.entered.set()
        try:
            yield events
        finally:
            try:
                await events.aclose()
                # A real adapter closes a connection here, which takes more than one turn of the loop.
                await asyncio.sleep(0.01)
            finally:
                self.left.set()

    async def aclose(self) -> None:
        return


class Shelf:
    """Skills in memory."""

    label = "shelf"
    may_shadow = True

    def __init__(self, *skills: LoadedSkill, gone: Sequence[str] = ()) -> None:
        self._skills = {item.name: item for item in skills}
        self._gone = set(gone)

    async def scan(self, *, since: str | None = None) -> Catalog | None:
        return None if since else Catalog(revision="1", skills=tuple(item.skill for item in self._skills.values()))

    async def load(self, ref: SkillRef) -> LoadedSkill:
        if ref.name in self._gone:
            raise SkillError("skill-not-found", f"The folder of {ref.name} is gone.")
        return self._skills[ref.name]

    async def read(self, ref: SkillRef, path: str, *, offset: int = 0, max_bytes: int) -> Page:
        raise PathError("path-not-found", f"{path} is not here.")


class ReadTool:
    """Puts a skill of the shelf in front of the model."""

    spec = ToolSpec(name="skills_read", parameters={"type": "object", "properties": {}, "required": []})

    def __init__(self, context: HostContext) -> None:
        self._context = context

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        name = str(call.arguments.get("skill"))
        skill = next(skill for skill in self._context.reach.reachable if skill.name == name)
        loaded = await self._context.source.load(skill.ref)
        return ToolResult(text=loaded.body, skill=name, loaded=skill.ref, loaded_bytes=loaded.manifest_bytes)


def runtime_over(models: ModelClient, source: Shelf | None = None) -> Runtime:
    return Runtime(models=models, source=source, hosts=lambda context: (ToolBox([ReadTool(context)]),))


def text_done(text: str) -> ModelDone:
    said = Message(role="assistant", parts=(Text(text=text),))
    return ModelDone(finish="stop", message=said, usage=Usage(prompt_tokens=3, completion_tokens=2))


async def endless(request: ChatRequest) -> AsyncGenerator[ModelEvent, None]:
    """Says one word and then nothing more."""
    yield ModelText(text="word")
    await asyncio.Event().wait()


async def silent(request: ChatRequest) -> AsyncGenerator[ModelEvent, None]:
    """Never says anything."""
    await asyncio.Event().wait()
    yield text_done("")


@asynccontextmanager
async def serving(runtime: Runtime, *, grace_s: int = 5, **options: Any) -> AsyncGenerator[str]:
    """The base URL of a running gateway, which stops with the block, after ``grace_s`` at the latest."""

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Runtime]:
        try:
            yield runtime
        finally:
            await runtime.aclose()

    app = create_app(opened, ServerOptions(**options))
    config = uvicorn.Config(
        app,
        http=BoundedHttpProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=grace_s,
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            while not server.started and not task.done():  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.005)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


def client_of(base: str, **options: Any) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{base}/v1", api_key=options.pop("api_key", "none"), max_retries=0, **options)


async def soon(event: asyncio.Event) -> None:
    """Waits for something that must happen."""
    async with asyncio.timeout(DEADLINE_S):
        await event.wait()
