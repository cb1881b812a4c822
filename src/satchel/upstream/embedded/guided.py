"""The embedded model as a ``ModelClient``: a model too small to call tools is made to choose.

Each round is one or two generations of the local engine. The first is a choice, held by a grammar, among what the
request's tools offer (``ToolSpec.choices``) and nothing; a choice becomes an ordinary tool call, for which the model
writes what the choice leaves open, like a script's arguments, held by a schema. When nothing is chosen the answer is
generated with no tools in the request. Client's tools without choices take part only when ``tool_choice`` asks for
one: whether a small model chooses among them well has not been measured.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

from satchel.chat.arguments import to_json
from satchel.chat.capabilities import ModelCapabilities, ModelInfo
from satchel.chat.codec._common import fresh_call_id
from satchel.chat.events import ModelCall, ModelDone, ModelEvent, Usage
from satchel.chat.messages import Json, Message, ToolUse
from satchel.chat.request import Caller, ChatRequest
from satchel.errors import UpstreamError, WeightsError
from satchel.ports.models import EmbeddedOptions, UpstreamOptions
from satchel.upstream.embedded import weights
from satchel.upstream.embedded.filling import arguments_request
from satchel.upstream.embedded.known import KnownModel, wanted
from satchel.upstream.embedded.prompts import Option, answer_request, next_step
from satchel.upstream.embedded.server import LocalServer, start_server
from satchel.upstream.embedded.threads import in_thread
from satchel.upstream.openai_chat import OpenAIChatClient

_MAX_TOKENS = 1024  # a model this small may repeat itself until the window is full


class EmbeddedClient:
    """Loads the model on first use and answers one request at a time; others wait for their turn.

    Streams raise ``UpstreamError``, ``WeightsError`` (weights-missing, weights-corrupt) and ``SetupError``
    (extra-missing).
    """

    def __init__(self, options: EmbeddedOptions, *, environ: Mapping[str, str]) -> None:
        self._options = options
        self._environ = environ
        model = wanted(options, environ)
        self._id = model.title.lower() if isinstance(model, KnownModel) else model.stem
        self._names = {"", self._id, *([model.name] if isinstance(model, KnownModel) else [])}
        self._slot = asyncio.Lock()
        self._server: LocalServer | None = None
        self._open: set[OpenAIChatClient] = set()

    async def models(self, caller: Caller = Caller()) -> tuple[ModelInfo, ...]:
        """The one model, whether it is loaded or not."""
        del caller
        return (ModelInfo(id=self._id, owned_by="satchel", context_tokens=self._options.context_tokens),)

    async def capabilities(self, model: str, caller: Caller = Caller()) -> ModelCapabilities:
        """Guided: what it may read is shown as a choice."""
        del model, caller
        return ModelCapabilities(tools="guided", reasoning_replay="drop", context_tokens=self._options.context_tokens)

    def stream(self, request: ChatRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """One round. Leaving the block closes the connection, which stops the engine within a batch."""
        return self._stream(request)

    async def aclose(self) -> None:
        """Breaks off what is being answered, stops the engine and frees its memory."""
        # The engine waits for its requests to end while it holds the interpreter: connections must be gone before.
        for client in tuple(self._open):
            await client.aclose()
        server, self._server = self._server, None
        if server is not None:
            await server.aclose()

    @asynccontextmanager
    async def _stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        if request.model not in self._names:
            raise UpstreamError(
                "model-not-found", f'There is no model "{request.model}" here.', hint=f"The model is {self._id}."
            )
        step = next_step(request, context_tokens=self._options.context_tokens)
        async with self._slot:
            usage = Usage()
            if step is not None:
                done = await self._complete(step.request())
                usage = done.usage or usage
                option = step.picked(done.message.text, _likely(done))
                if option is not None:
                    arguments, more = await self._arguments(request, option)
                    yield _call(option, arguments, usage + more)
                    return
            async with self._generate(answer_request(request, default_max_tokens=_MAX_TOKENS)) as events:
                yield _with_usage(events, usage)

    @asynccontextmanager
    async def _generate(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        """One generation of the engine on a connection of its own: it may close one after any answer."""
        if self._server is None:
            path = await in_thread(self._locate)
            self._server = await start_server(path, self._options)
        client = OpenAIChatClient(UpstreamOptions(url=self._server.url, api_key=self._server.key))
        self._open.add(client)
        try:
            async with client.stream(replace(request, model=self._id)) as events:
                yield events
        finally:
            self._open.discard(client)
            await client.aclose()

    async def _complete(self, request: ChatRequest) -> ModelDone:
        async with self._generate(request) as events:
            async for event in events:
                if isinstance(event, ModelDone):
                    return event
        raise UpstreamError("upstream-cut-off", "The embedded engine ended without a result.", retryable=True)

    def _locate(self) -> Path:
        path = weights.locate(self._options, self._environ)
        if path is None:
            raise WeightsError(
                "weights-missing",
                f"The embedded model {self._id} has not been fetched yet.",
                hint="Run `satchel model fetch`, or set SATCHEL_GGUF to a GGUF file.",
            )
        return path

    async def _arguments(self, request: ChatRequest, option: Option) -> tuple[str, Usage]:
        """The arguments of the chosen call as JSON text, and what it cost to write them."""
        fixed = dict[str, Json](option.arguments or {})
        if option.arguments is not None and not option.open:
            return to_json(fixed), Usage()
        done = await self._complete(arguments_request(request, option, default_max_tokens=_MAX_TOKENS))
        try:
            written = cast("Json", json.loads(done.message.text))
        except ValueError:
            written = None
        if not isinstance(written, dict):
            raise UpstreamError(
                "upstream-garbled",
                f'The embedded model could not write the arguments of "{option.tool.name}".',
                hint="Allow more tokens, or use a larger model with --upstream.",
            )
        return to_json({name: _given(value) for name, value in (written | fixed).items()}), done.usage or Usage()


def _given(value: Json) -> Json:
    """Without the arguments that the model said nothing of."""
    return {name: item for name, item in value.items() if item is not None} if isinstance(value, dict) else value


def _likely(done: ModelDone) -> dict[str, float]:
    """The likeliest first tokens with their probabilities, before the grammar ruled any out."""
    node: Json = dict(done.extra.get("openai-chat", {}))
    for key in ("choice", "logprobs", "content"):
        node = node.get(key) if isinstance(node, dict) else None
    first = node[0] if isinstance(node, list) and node else None
    listed = first.get("top_logprobs") if isinstance(first, dict) else None
    found: dict[str, float] = {}
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict):
            token, logprob = item.get("token"), item.get("logprob")
            if isinstance(token, str) and token and isinstance(logprob, (int, float)):
                found[token] = found.get(token, 0.0) + math.exp(min(0.0, logprob))
    return found


async def _call(option: Option, arguments: str, usage: Usage) -> AsyncIterator[ModelEvent]:
    use = ToolUse(call_id=fresh_call_id(), name=option.tool.name, arguments=arguments)
    yield ModelCall(index=0, call_id=use.call_id, name=use.name, arguments=arguments)
    yield ModelDone(finish="tool_calls", message=Message(role="assistant", parts=(use,)), usage=usage)


async def _with_usage(events: AsyncIterator[ModelEvent], before: Usage) -> AsyncIterator[ModelEvent]:
    """The answer's events, its end with what the choice before it cost as well."""
    try:
        async for event in events:
            if isinstance(event, ModelDone):
                yield replace(event, usage=before + (event.usage or Usage()))
            else:
                yield event
    except RuntimeError as error:
        # The HTTP client's word for a connection that ``aclose`` has taken away.
        raise UpstreamError("upstream-cut-off", "The embedded model was closed during its answer.") from error
