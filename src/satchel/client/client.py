"""A chat client that brings skills to any OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit, urlunsplit

from satchel.activation.registry import Skills
from satchel.chat.messages import Json
from satchel.client.records import Delivery, SkillsChatRequest, SkillsChatResponse
from satchel.client.server import ServerEvents
from satchel.client.stream import SkillsChatStream
from satchel.engine.limits import LoopLimits, usual_rounds
from satchel.engine.request import Principal, SkillSelection, TurnRequest
from satchel.engine.runtime import Runtime
from satchel.errors import SetupError, UpstreamError
from satchel.execution.options import ExecutionOptions
from satchel.execution.saving import Saved, save_made
from satchel.execution.workbench import Execution
from satchel.ports.models import UpstreamOptions
from satchel.wiring.client import local_runtime, serves_skills
from satchel.wiring.execution import open_execution
from satchel.wiring.models import open_upstream

_STAND_DOWN: dict[str, Json] = {"skills": [], "skills_discovery": False, "multi_agent": False}
"""Tells a Satchel server that the loop runs here; servers that do not know these fields may refuse them."""


class SkillsChatClient:
    """Skills for a conversation with ``endpoint``, in one event loop (or through ``satchel.run_sync``).

    Args:
        endpoint: An OpenAI-compatible server. Without a path ``/v1`` is added: ``http://localhost:8321``,
            ``https://api.example.com/v1``.
        api_key: Sent as a bearer key.
        default_model: What requests without a model ask for; "" takes the first that the server lists.
        delivery: "server": the endpoint is a Satchel gateway and runs the loop with its own skills. "local": the loop
            runs here, with ``skills``, over any endpoint. "auto" asks the endpoint once whether it lists skills:
            "server" if so, else "local".
        skills: For local delivery: directories, a ``Library``, a ``SkillRegistry``, a ``SkillSource``, or several of
            these in order of precedence.
        discovery: Whether skills that a request does not select are offered too.
        execution: In local delivery, what may run for the model; nothing without it. ``ExecutionOptions`` run it in the
            sandbox of this machine, which is looked for with the first request; an ``Execution`` is over an
            ``Executor`` of one's own, and its ``close()`` is the caller's. Files that programs make are kept for
            ``save``; an ``Execution`` keeps them on the ``Artifacts`` that it was given.
        max_rounds: In local delivery, how many generations of an answer may read skills and run things; None is 8, and
            24 where models may run code.
        timeout_s: Bound on a whole answer in seconds; None leaves it open. ``connect_s`` bounds the connection,
            ``silence_s`` the time without a byte.

    Raises ``SetupError`` for an address that is none, and when ``satchel[models]`` is not installed.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        api_key: str = "",
        default_model: str = "",
        delivery: Literal["auto", "server", "local"] = "auto",
        skills: Skills | Iterable[Skills] | None = None,
        discovery: bool = True,
        execution: Execution | ExecutionOptions | None = None,
        max_rounds: int | None = None,
        timeout_s: float | None = None,
        connect_s: float = 10.0,
        silence_s: float = 300.0,
    ) -> None:
        if delivery == "local" and skills is None:
            raise _no_skills("Local delivery needs skills.")
        self._options = UpstreamOptions(url=_base(endpoint), api_key=api_key, connect_s=connect_s, silence_s=silence_s)
        self._models = open_upstream(self._options)
        self._default_model = default_model
        self._wanted = delivery
        self._discovery = discovery
        self._timeout_s = timeout_s
        self._server = Runtime(models=self._models)
        own = execution if isinstance(execution, Execution) else None
        self._allowed = own.options if own else execution if isinstance(execution, ExecutionOptions) else None
        has_code = self._allowed is not None and self._allowed.code
        limits = LoopLimits(max_rounds=usual_rounds(has_code=has_code) if max_rounds is None else max_rounds)
        self._local = None if skills is None else local_runtime(self._models, skills, limits=limits, execution=own)
        self._held = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._probe: asyncio.Task[bool] | None = None

    async def complete(self, request: SkillsChatRequest) -> SkillsChatResponse:
        """The whole answer. Raises ``SatchelError``: the endpoint's failure, an unknown skill, a wrong request."""
        async with self.stream(request) as events:
            async for _ in events:
                pass
            return events.response

    @asynccontextmanager
    async def stream(self, request: SkillsChatRequest) -> AsyncGenerator[SkillsChatStream, None]:
        """``async with client.stream(request) as events: async for event in events``.

        The events are those of ``satchel.events``; ``events.response`` is the whole answer at the end. Leaving the
        block stops the endpoint's generation.
        """
        runtime, delivery, fields = await self._deliver(request)
        turn_request = self._turn(request, delivery, fields)
        server = ServerEvents(request.skills) if delivery == "server" else None
        async with runtime.turn(turn_request) as turn:
            yield SkillsChatStream(turn, delivery, server)

    async def save(
        self, response: SkillsChatResponse, folder: str | Path, *, overwrite: bool = False
    ) -> tuple[Saved, ...]:
        """Copies the files that programs made for an answer of local delivery below ``folder``, which is made.

        They are kept for an hour, and until this client is closed. A file that is there already is left as it is,
        unless ``overwrite``. Says of each what became of it: ``path``, ``bytes``, ``problem`` where it is not there.

        Raises ``SetupError`` when ``folder`` cannot be made, and for an answer whose files are at its server.
        """
        if response.delivery == "server":
            raise SetupError(
                "setting-invalid",
                "The files of this answer are at the server that ran the loop.",
                hint="Get them from /api/code/artifacts/{run}/{path} there, with the same key.",
            )
        made: dict[str, dict[str, str]] = {}
        for item in (*response.skill_invocations, response):
            files = {**dict.fromkeys(item.files, ""), **{lost.path: lost.reason for lost in item.not_kept}}
            made.setdefault(item.run, {}).update(files)
        execution = self._local.execution if self._local else None
        shelf = execution.artifacts if execution else None
        try:
            await asyncio.to_thread(Path(folder).mkdir, parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError("setting-invalid", f"{folder} cannot be made: {error.strerror}.") from error
        return await asyncio.to_thread(save_made, shelf, Principal().id, made, os.fspath(folder), overwrite=overwrite)

    async def aclose(self) -> None:
        """Closes the connections, and removes what programs made."""
        if self._probe is not None and not self._probe.done():
            self._probe.cancel()
            await asyncio.wait((self._probe,))
        await self._held.aclose()
        await self._models.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _deliver(self, request: SkillsChatRequest) -> tuple[Runtime, Delivery, dict[str, Json]]:
        """Who runs the loop, and the fields that tell the endpoint so."""
        if self._wanted == "server":
            return self._server, "server", self._asks(request)
        understands = await self._understands()
        if self._wanted == "auto" and understands:
            return self._server, "server", self._asks(request)
        if self._local is None:
            raise _no_skills("The endpoint does not serve skills, and this client has none of its own.")
        await self._look_for_sandbox(self._local)
        return self._local, "local", dict(_STAND_DOWN) if understands else {}

    async def _look_for_sandbox(self, runtime: Runtime) -> None:
        if self._allowed is None:
            return
        async with self._opening:
            if runtime.execution is None:
                runtime.execution = await self._held.enter_async_context(open_execution(self._allowed))

    async def _understands(self) -> bool:
        """Whether the endpoint knows our fields: asked once, by however many requests begin together.

        A failure is not kept: the next request asks again.
        """
        if self._probe is None or (self._probe.done() and (self._probe.cancelled() or self._probe.exception())):
            self._probe = asyncio.create_task(serves_skills(self._options))
            self._probe.add_done_callback(_seen)
        try:
            return await asyncio.shield(self._probe)
        except UpstreamError as error:
            if self._wanted == "local" and error.code == "upstream-auth":
                # Some keys may chat and list nothing.
                return False
            raise

    def _asks(self, request: SkillsChatRequest) -> dict[str, Json]:
        fields: dict[str, Json] = {
            "skills": list(request.skills),
            "skills_discovery": self._discovers(request),
            "stream_options": {"include_steps": True},
        }
        if request.multi_agent is not None:
            fields["multi_agent"] = request.multi_agent
        if request.continuation:
            fields["skills_continuation"] = request.continuation
        return fields

    def _discovers(self, request: SkillsChatRequest) -> bool:
        return self._discovery if request.discovery is None else request.discovery

    def _turn(self, request: SkillsChatRequest, delivery: Delivery, fields: dict[str, Json]) -> TurnRequest:
        chat = request.chat()
        kept = {**chat.extra.get("openai-chat", {}), **fields}
        chat = replace(chat, model=chat.model or self._default_model, extra={**chat.extra, "openai-chat": kept})
        selection = SkillSelection(discovery=False)
        if delivery == "local":
            selection = SkillSelection(names=tuple(request.skills), discovery=self._discovers(request))
        return TurnRequest(chat=chat, skills=selection, deadline_s=self._timeout_s)


def _seen(probe: asyncio.Task[bool]) -> None:
    """Whoever waited may have been cancelled: a failure that nobody hears of is none."""
    if not probe.cancelled():
        probe.exception()


def _base(endpoint: str) -> str:
    """The endpoint with its version segment: added only where no path says otherwise."""
    try:
        parts = urlsplit(endpoint.strip())
    except ValueError:
        return endpoint
    return urlunsplit(parts._replace(path="/v1")) if parts.path in {"", "/"} else endpoint.strip()


def _no_skills(message: str) -> SetupError:
    return SetupError(
        "setting-invalid",
        message,
        hint='Give the client skills="path/to/skills", or the address of a Satchel gateway.',
    )
