"""Which model servers a program speaks to."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from satchel.errors import SetupError
from satchel.ports.models import EmbeddedOptions, ModelClient, UpstreamOptions
from satchel.wiring.extras import extra_missing

if TYPE_CHECKING:
    # A client of one's own program needs no settings, nor what they are checked with.
    from satchel.settings import Settings

FetchProgress = Callable[[str, int, int], None]
"""Called with the source's name, the bytes that are there and the bytes in all."""

_CLIENTS = {
    "openai": ("satchel.upstream.openai_chat", "OpenAIChatClient"),
    "responses": ("satchel.upstream.openai_responses", "OpenAIResponsesClient"),
    "ollama": ("satchel.upstream.ollama", "OllamaClient"),
    "anthropic": ("satchel.upstream.anthropic", "AnthropicClient"),
}


def embedded_models(settings: Settings) -> tuple[EmbeddedOptions, ...]:
    """The models that run in this process; where there is no upstream at all it is one, and ``--model`` its weights."""
    if not settings.upstreams:
        return (replace(settings.embedded, weights=settings.model or settings.embedded.weights),)
    return tuple(options for options in settings.upstreams if isinstance(options, EmbeddedOptions))


def open_models(settings: Settings) -> ModelClient:
    """The client for all configured servers. Raises ``SetupError``, extra-missing when packages are not there."""
    upstreams = settings.upstreams or embedded_models(settings)
    if len(upstreams) == 1:
        return open_upstream(upstreams[0])
    from satchel.upstream.router import Router

    return Router({options.name: open_upstream(options) for options in upstreams})


def open_upstream(options: UpstreamOptions | EmbeddedOptions) -> ModelClient:
    """The client for one of them. Raises ``SetupError``."""
    if isinstance(options, UpstreamOptions):
        module, name = _CLIENTS[options.kind]
        try:
            client = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            raise extra_missing("models", error) from error
        return client(options)
    try:
        from satchel.upstream.embedded.guided import EmbeddedClient
    except ModuleNotFoundError as error:
        raise extra_missing("embedded", error) from error
    return EmbeddedClient(options, environ=os.environ)


def describe(options: UpstreamOptions | EmbeddedOptions) -> str:
    """One of them in a few words; without the query of its address, which may hold a key."""
    if isinstance(options, EmbeddedOptions):
        return "embedded, on this machine"
    try:
        parts = urlsplit(options.url)
    except ValueError:
        return options.kind
    return f"{options.kind} {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


async def ensure_weights(settings: Settings, progress: FetchProgress) -> tuple[str, ...]:
    """The paths of the embedded models' weights, fetched when missing. Raises ``WeightsError``."""
    wanted = embedded_models(settings)
    if not wanted:
        return ()
    from satchel.sandbox.unconfined import UnconfinedExecutor

    executor = UnconfinedExecutor()
    return tuple([str(await _weights().fetch(options, executor, progress, environ=os.environ)) for options in wanted])


def weights_status(options: EmbeddedOptions) -> dict[str, object]:
    """``{"name","path","present","bytes","sha256"}`` of an embedded model's weights; reads no more than it must."""
    return _weights().status(options, os.environ)


def verify_weights(options: EmbeddedOptions) -> dict[str, object]:
    """Reads the whole file: ``{"path","sha256","verdict"}``. Raises ``WeightsError`` when it is missing or damaged."""
    return _weights().verify(options, os.environ)


async def default_model(settings: Settings, models: ModelClient) -> str:
    """The model that a request without a name asks for. Raises ``SetupError`` when there are several."""
    if not settings.upstreams or settings.model:
        return settings.model if settings.upstreams else ""
    offered = [info.id for info in await models.models()]
    if len(offered) == 1:
        return offered[0]
    shown = ", ".join(offered[:10]) or "none"
    raise SetupError("setting-invalid", f"Name a model: the server offers {shown}.", hint="--model NAME")


def _weights() -> ModuleType:
    try:
        from satchel.upstream.embedded import weights
    except ModuleNotFoundError as error:
        raise extra_missing("embedded", error) from error
    return weights
