"""What a model can carry, as data: the prompt and the loop follow it, nothing else decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCapabilities:
    """One model's row.

    ``tools``: "native" (declarations are rendered and calls are parsed), "guided" (the adapter makes the model
    choose among ``ToolSpec.choices``; it shows them itself, so no catalogue is put into the prompt) or "none".

    ``tool_role``: whether the chat template renders results; otherwise they become user messages.
    ``system_merge``: "first" merges the block into a leading system or developer message.
    ``reasoning_replay``: whether reasoning goes back upstream inside the tool loop.
    ``client_tools``: False refuses a request that declares tools of its own, instead of handing them on for nothing.
    ``context_tokens``: size of the context window, None when unknown.
    """

    tools: Literal["native", "guided", "none"] = "native"
    tool_role: bool = True
    system_merge: Literal["first"] = "first"
    reasoning_replay: Literal["text", "opaque", "drop"] = "text"
    client_tools: bool = True
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """A model that can be asked for. ``created`` is in Unix seconds, 0 when unknown."""

    id: str
    owned_by: str = ""
    created: int = 0
    context_tokens: int | None = None
