"""What is known of model families, as rows: whether tools reach the model, and what comes back of its reasoning.

Offering a tool takes two halves: the server writes the declaration into the prompt, and it reads the call out of the
reply. A family that lacks either gets none, and skills are written into the prompt instead. A server that says itself
what a model can do is believed before any row, and a setting before both.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from satchel.chat.capabilities import ModelCapabilities
from satchel.ports.models import UpstreamOptions

Replay = Literal["text", "opaque", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One row. ``names`` is looked for at the start of a model's name, without its publisher and in lower case.

    ``declared``: declarations of tools are rendered. ``parsed``: calls are read out of the reply. ``tool_role``:
    results are rendered. ``reasoning_replay`` is how reasoning goes back where the wire format carries it as text.
    ``diffusion`` models write all of an answer at once: there is no turn in which they could wait for a result.
    """

    id: str
    names: str
    declared: bool = True
    parsed: bool = True
    tool_role: bool = True
    reasoning_replay: Replay = "text"
    diffusion: bool = False

    @property
    def tools(self) -> Literal["native", "none"]:
        """Tools are offered when both halves are there."""
        return "native" if self.declared and self.parsed else "none"


FAMILIES: tuple[Family, ...] = (
    # Families whose usual template or parser lacks a half.
    Family(id="mistral3", names=r"mistral[-_.]?3(?![0-9]|b\b)", declared=False, parsed=False, tool_role=False),
    Family(
        id="hunyuan-dense",
        names=r"hunyuan[-_]?(dense|v1[-_]dense|(0\.5|1\.8|4|7)b)",
        declared=False,
        parsed=False,
        tool_role=False,
    ),
    Family(
        id="diffusion-gemma",
        names=r"diffusion[-_]?gemma",
        declared=False,
        parsed=False,
        tool_role=False,
        reasoning_replay="drop",
        diffusion=True,
    ),
    # Families with open weights that do the whole round trip.
    Family(id="qwen4exp", names=r"qwen[-_]?4-?exp|qwen[-_]?3\.8-flash-next"),
    Family(id="qwen35", names=r"qwen[-_]?3[._]?[568]|qwen3-?next|qwen3-?vl|bonsai-?2"),
    Family(id="gemma4", names=r"gemma[-_]?4"),
    Family(id="gpt-oss", names=r"gpt[-_]?oss"),
    Family(id="nemotron-h", names=r"nemotron[-_]?(h|3|nano)"),
    Family(id="muse-glimmer", names=r"muse[-_]?glimmer"),
    Family(id="deepseek4", names=r"deepseek[-_]?(v)?4"),
    Family(id="glm5", names=r"(chat)?glm[-_]?5"),
    # Families as their vendors and common servers serve them.
    Family(id="gpt", names=r"(chat)?gpt[-_]?[345]|codex", reasoning_replay="opaque"),
    Family(id="o", names=r"o[1-9]\b", reasoning_replay="opaque"),
    Family(id="claude", names=r"claude", reasoning_replay="opaque"),
    Family(id="gemini", names=r"gemini", reasoning_replay="opaque"),
    Family(id="grok", names=r"grok", reasoning_replay="opaque"),
    Family(id="deepseek", names=r"deepseek"),
    Family(id="qwen", names=r"qwen[-_]?(2\.5|3|max|plus|turbo|flash)|qwq"),
    Family(id="llama", names=r"llama[-_]?(3\.[1-3]|4)"),
    Family(
        id="mistral",
        names=r"(mistral|ministral|magistral|devstral|codestral|pixtral)[-_]?(large|medium|small|nemo|latest|[0-9])",
    ),
    Family(id="kimi", names=r"kimi|moonshot"),
    Family(id="glm", names=r"(chat)?glm[-_]?4"),
    Family(id="minimax", names=r"minimax"),
    Family(id="command", names=r"command-[ar]"),
    Family(id="granite", names=r"granite[-_]?[34]"),
)
"""The first row that fits a name holds."""

_PATTERNS = tuple((re.compile(row.names), row) for row in FAMILIES)
_SEALED_KINDS = {"responses", "anthropic"}
_LONGEST = 256


def family_of(model: str) -> Family | None:
    """The row of a model by its name, such as "gpt-oss:20b" or "openai/gpt-oss-20b"; None when there is none."""
    name = model[-_LONGEST:].casefold().rstrip("/").rpartition("/")[2]
    return next((row for pattern, row in _PATTERNS if pattern.match(name)), None)


def capabilities_of(
    model: str,
    options: UpstreamOptions,
    *,
    said: Collection[str] | None = None,
    context_tokens: int | None = None,
) -> ModelCapabilities:
    """What a model can carry behind this server.

    Args:
        model: Its name.
        options: The server. One that speaks OpenAI's or Anthropic's API is taken to read calls, whatever the model,
            unless a row says otherwise; Ollama is not, unless it or a row says so.
        said: What the server says that the model can do, in Ollama's words; None when it says nothing.
        context_tokens: The context window, None when unknown.
    """
    row = family_of(model)
    tools: Literal["native", "none"] = "none" if options.kind == "ollama" else "native"
    if row is not None:
        tools = row.tools
    if said is not None:
        tools = "native" if "tools" in said else "none"
    if options.tools != "auto":
        tools = options.tools
    replay: Replay = row.reasoning_replay if row is not None else "text"
    if options.kind in _SEALED_KINDS and replay != "drop":
        replay = "opaque"
    return ModelCapabilities(
        tools=tools,
        # A server that reads calls renders the answers to them.
        tool_role=tools == "native" or (row is not None and row.tool_role),
        reasoning_replay=replay,
        client_tools=tools == "native" or row is None or not row.diffusion,
        context_tokens=context_tokens,
    )
