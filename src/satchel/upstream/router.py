"""Several model servers behind one face, told apart by the name of the model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from satchel.chat.capabilities import ModelCapabilities, ModelInfo
from satchel.chat.events import ModelEvent
from satchel.chat.request import Caller, ChatRequest
from satchel.errors import SatchelError, UpstreamError
from satchel.ports.models import ModelClient
from satchel.skills.names import near_names

_LISTING_S = 10.0
_LISTED_AGAIN_S = 10.0
_MOST_NAMED = 10

logger = logging.getLogger("satchel.upstream")


class Router:
    """A ``ModelClient`` over ``upstreams``, by name and in order.

    ``name/model`` is a model of the named one. Any other name belongs to the first that lists it; that one lists it as
    it is, later ones as ``name/model``. No name is the first one's own choice.
    """

    def __init__(self, upstreams: Mapping[str, ModelClient]) -> None:
        self._upstreams = dict(upstreams)
        self._listed: dict[str, tuple[ModelInfo, ...]] = {}
        self._listed_at: float | None = None

    async def models(self, caller: Caller = Caller()) -> tuple[ModelInfo, ...]:
        """What all of them list; one that does not answer is left out and logged. Raises when none answers."""
        answers = await asyncio.gather(*(self._list(name, caller) for name in self._upstreams))
        failures = [failure for failure in answers if failure is not None]
        if len(failures) == len(self._upstreams):
            raise failures[0]
        self._listed_at = asyncio.get_running_loop().time()
        return self._merged(name for name, failure in zip(self._upstreams, answers, strict=True) if failure is None)

    async def capabilities(self, model: str, caller: Caller = Caller()) -> ModelCapabilities:
        upstream, own = await self._resolve(model, caller)
        return await upstream.capabilities(own, caller)

    def stream(self, request: ChatRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """One generation of the server that has the model. Raises ``UpstreamError``, model-not-found among others."""
        return self._stream(request)

    async def aclose(self) -> None:
        """Closes all of them, also when one cannot be closed."""
        ended = await asyncio.gather(*(client.aclose() for client in self._upstreams.values()), return_exceptions=True)
        for failure in ended:
            if failure is not None:
                raise failure

    @asynccontextmanager
    async def _stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        upstream, own = await self._resolve(request.model, request.caller)
        async with upstream.stream(replace(request, model=own)) as events:
            yield events

    def _merged(self, upstreams: Iterable[str]) -> tuple[ModelInfo, ...]:
        """What those have listed, each under the name that leads to it here."""
        seen: set[str] = set()
        merged: list[ModelInfo] = []
        for name in upstreams:
            for info in self._listed.get(name, ()):
                merged.append(replace(info, id=f"{name}/{info.id}") if info.id in seen else info)
                seen.add(info.id)
        return tuple(merged)

    async def _list(self, name: str, caller: Caller) -> SatchelError | None:
        """Notes what one lists; returns its failure."""
        failure: SatchelError
        try:
            async with asyncio.timeout(_LISTING_S):
                self._listed[name] = await self._upstreams[name].models(caller)
        except TimeoutError:
            failure = UpstreamError("upstream-timeout", "It did not list its models in time.", retryable=True)
        except SatchelError as error:
            failure = error
        else:
            return None
        logger.warning("The models of upstream %s are not listed: %s", name, failure.message)
        return failure

    async def _resolve(self, model: str, caller: Caller) -> tuple[ModelClient, str]:
        """The client that has the model, and what it calls it."""
        name, slash, rest = model.partition("/")
        if slash and rest and name in self._upstreams:
            return self._upstreams[name], rest
        if not model:
            return next(iter(self._upstreams.values())), model
        holder = self._holder(model)
        if holder is None and self._is_stale():
            await self.models(caller)
            holder = self._holder(model)
        if holder is None:
            raise self._not_found(model)
        return holder, model

    def _holder(self, model: str) -> ModelClient | None:
        """The first that lists the name, or that name with the tag which Ollama's names have when they show none."""
        for wanted in (model, f"{model}:latest"):
            for name, client in self._upstreams.items():
                if any(info.id == wanted for info in self._listed.get(name, ())):
                    return client
        return None

    def _is_stale(self) -> bool:
        at = self._listed_at
        return at is None or asyncio.get_running_loop().time() - at > _LISTED_AGAIN_S

    def _not_found(self, model: str) -> UpstreamError:
        offered = [info.id for info in self._merged(self._upstreams)]
        near = near_names(model, offered)
        if near:
            hint = f"Did you mean {' or '.join(near)}?"
        else:
            more = " and more" if len(offered) > _MOST_NAMED else ""
            hint = f"Offered are {', '.join(offered[:_MOST_NAMED]) or 'none'}{more}."
        silent = [name for name in self._upstreams if name not in self._listed]
        if silent:
            hint += f" {', '.join(silent)} did not list its models; name one as {silent[0]}/MODEL."
        return UpstreamError("model-not-found", f'No upstream lists a model called "{model}".', hint=hint)
