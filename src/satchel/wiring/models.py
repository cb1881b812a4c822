"""Which model server a program speaks to."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

from satchel.errors import SetupError
from satchel.ports.models import EmbeddedOptions, ModelClient
from satchel.settings import Settings

FetchProgress = Callable[[str, int, int], None]
"""Called with the source's name, the bytes that are there and the bytes in all."""


def embedded_options(settings: Settings) -> EmbeddedOptions:
    """The embedded model's options; without an upstream ``--model`` names its weights."""
    if settings.upstream is None and settings.model:
        return replace(settings.embedded, weights=settings.model)
    return settings.embedded


def open_models(settings: Settings) -> ModelClient:
    """The client for the configured server. Raises ``SetupError`` extra-missing when its packages are not there."""
    if settings.upstream is not None:
        try:
            from satchel.upstream.openai_chat import OpenAIChatClient
        except ModuleNotFoundError as error:
            raise _extra_missing("models", error) from error
        return OpenAIChatClient(settings.upstream)
    try:
        from satchel.upstream.embedded.guided import EmbeddedClient
    except ModuleNotFoundError as error:
        raise _extra_missing("embedded", error) from error
    return EmbeddedClient(embedded_options(settings), environ=os.environ)


async def ensure_weights(settings: Settings, progress: FetchProgress) -> str:
    """The path of the embedded model's weights, fetched when missing. Raises ``WeightsError``."""
    from satchel.sandbox.unconfined import UnconfinedExecutor

    options = embedded_options(settings)
    return str(await _weights().fetch(options, UnconfinedExecutor(), progress, environ=os.environ))


def weights_status(settings: Settings) -> dict[str, object]:
    """``{"name","path","present","bytes","sha256"}`` of the embedded model's weights; reads no more than it must."""
    return _weights().status(embedded_options(settings), os.environ)


def verify_weights(settings: Settings) -> dict[str, object]:
    """Reads the whole file: ``{"path","sha256","verdict"}``. Raises ``WeightsError`` when it is missing or damaged."""
    return _weights().verify(embedded_options(settings), os.environ)


async def default_model(settings: Settings, models: ModelClient) -> str:
    """The model that a request without a name asks for. Raises ``SetupError`` when a server offers several."""
    if settings.upstream is None or settings.model:
        return "" if settings.upstream is None else settings.model
    offered = [info.id for info in await models.models()]
    if len(offered) == 1:
        return offered[0]
    shown = ", ".join(offered[:10]) or "none"
    raise SetupError("setting-invalid", f"Name a model: the server offers {shown}.", hint="--model NAME")


def _weights() -> ModuleType:
    try:
        from satchel.upstream.embedded import weights
    except ModuleNotFoundError as error:
        raise _extra_missing("embedded", error) from error
    return weights


def _extra_missing(extra: str, error: ModuleNotFoundError) -> SetupError:
    return SetupError(
        "extra-missing",
        f"The package {error.name} is needed for this and is not installed.",
        hint=f"pip install 'satchel[{extra}]'",
        data={"extra": extra, "package": error.name or ""},
    )
