"""Model servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from satchel.chat.capabilities import ModelCapabilities, ModelInfo
from satchel.chat.events import ModelEvent
from satchel.chat.request import Caller, ChatRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedOptions:
    """The model that runs in this process. ``weights`` is a GGUF file, "large", "small" or "" for the default.

    ``name`` tells it apart from model servers. ``cache_dir`` holds downloaded weights; ``threads`` 0 means one for each
    core up to eight.
    """

    name: str = ""
    weights: str = ""
    cache_dir: str = ""
    threads: int = 0
    context_tokens: int = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamOptions:
    """A model server to speak to. ``url`` is its base address, with the version segment where the API has one.

    ``name`` tells several servers apart. ``api_key`` is sent as the API wants it; without one, each caller's own key
    is. ``tools`` decides whether its models are given tools; "auto" leaves that to what is known of them. ``connect_s``
    bounds the connection, ``silence_s`` the time without a byte; a generation as a whole has no limit here.
    """

    name: str = ""
    kind: Literal["openai", "responses", "ollama", "anthropic"] = "openai"
    url: str = ""
    api_key: str = field(default="", repr=False)
    tools: Literal["auto", "native", "none"] = "auto"
    connect_s: float = 10.0
    silence_s: float = 300.0


class ModelClient(Protocol):
    """One model server, or several behind one face."""

    async def models(self, caller: Caller = Caller()) -> tuple[ModelInfo, ...]:
        """What ``caller`` can ask for."""
        ...

    async def capabilities(self, model: str, caller: Caller = Caller()) -> ModelCapabilities:
        """What the named model can carry; "" names the default model. Raises ``UpstreamError``."""
        ...

    def stream(self, request: ChatRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """One generation. Leaving the block stops it at the server. Raises ``UpstreamError``."""
        ...

    async def aclose(self) -> None:
        """Releases connections and engines."""
        ...
