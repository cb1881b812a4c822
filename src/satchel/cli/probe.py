"""Asks a live model what it can carry, in a few short requests, and compares that with what is known of its family."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.events import ModelDone
from satchel.chat.messages import Message, Reasoning, ToolOutput, ToolUse, message
from satchel.chat.request import ChatRequest, ToolPolicy, ToolSpec
from satchel.errors import UpstreamError
from satchel.ports.models import ModelClient

_MAX_TOKENS = 2048  # enough for a model that reasons before it says one word
_WRITE_DOWN = ToolSpec(
    name="note_word",
    description="Notes one word.",
    parameters={"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
_LOOK_UP = ToolSpec(
    name="look_up_word",
    description="Gives the word of the day.",
    parameters={"type": "object", "properties": {}},
)
_REFUSALS = {"upstream-rejected", "upstream-failed", "upstream-garbled"}

Verdict = Literal["agrees", "contradicts", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """One capability: what is declared of it, what was seen, and how the two compare ("open" when nothing follows)."""

    upstream: str
    model: str
    capability: str
    declared: str
    observed: str
    verdict: Verdict
    note: str = ""


async def probe(client: ModelClient, model: str, *, upstream: str) -> tuple[Probed, ...]:
    """Probes one model. Raises ``UpstreamError`` when the server does not answer at all, or refuses the key."""
    declared = await client.capabilities(model)
    called, calls = await _tools(client, model)
    answered, results = await _tool_role(client, model)
    heeded, system = await _system(client, model)
    done = [item for item in (calls, results, system) if item is not None]
    rows = (
        _row("tools", declared.tools, called, {"native": "native", "none": "none"}),
        _row("tool_role", _word(declared.tool_role), answered, {"yes": "yes", "no": "no"}),
        _row("system", "yes", heeded, {"yes": "yes", "no": "no"}),
        _usage(done),
        _seen_reasoning(declared, done),
    )
    return tuple(replace(row, upstream=upstream, model=model) for row in rows)


async def _tools(client: ModelClient, model: str) -> tuple[str, ModelDone | None]:
    """A call of a simple tool: "native" when it comes as a call, "none" when it does not."""
    asked = message("user", 'Call the tool note_word with the word "marble". Say nothing else.')
    request = ChatRequest(model=model, messages=(asked,), tools=(_WRITE_DOWN,), max_tokens=_MAX_TOKENS)
    forced = replace(request, tool_choice=ToolPolicy(mode="named", name=_WRITE_DOWN.name))
    done: ModelDone | None = None
    for attempt in (forced, request):
        done = await _ask(client, attempt) or done
        if done is not None and _WRITE_DOWN.name in [use.name for use in done.message.tool_uses]:
            return "native", done
    return "none", done


async def _tool_role(client: ModelClient, model: str) -> tuple[str, ModelDone | None]:
    """A result that only the tool's message holds: "yes" when the model can tell it."""
    canary = _canary()
    use = ToolUse(call_id="call_probe1", name=_LOOK_UP.name, arguments="{}")
    messages = (
        message("user", "What is the word of the day? Look it up, then answer with that word alone."),
        Message(role="assistant", parts=(use,)),
        Message(role="tool", parts=(ToolOutput(call_id=use.call_id, name=use.name, text=canary),)),
    )
    request = ChatRequest(model=model, messages=messages, tools=(_LOOK_UP,), max_tokens=_MAX_TOKENS)
    return _told(await _ask(client, request), canary)


async def _system(client: ModelClient, model: str) -> tuple[str, ModelDone | None]:
    """A word that only the system message holds."""
    canary = _canary()
    messages = (
        message("system", f"The word of the day is {canary}."),
        message("user", "What is the word of the day? Answer with that word alone."),
    )
    return _told(await _ask(client, ChatRequest(model=model, messages=messages, max_tokens=_MAX_TOKENS)), canary)


async def _ask(client: ModelClient, request: ChatRequest) -> ModelDone | None:
    """The end of one answer, None when the server does not take such a request."""
    try:
        async with client.stream(request) as events:
            async for event in events:
                if isinstance(event, ModelDone):
                    return event
    except UpstreamError as error:
        if error.code not in _REFUSALS:
            raise
    return None


def _told(done: ModelDone | None, canary: str) -> tuple[str, ModelDone | None]:
    if done is None:
        return "refused", None
    if canary in done.message.text.casefold():
        return "yes", done
    return ("no" if done.message.text.strip() else "unclear"), done


def _canary() -> str:
    """A word that nobody guesses and every tokenizer can spell."""
    return "".join(secrets.choice(pair) for pair in ("bdgkl", "aeiou", "mnprs", "aeiou", "tvzfw", "aeiou", "lmnrs"))


def _row(capability: str, declared: str, observed: str, known: dict[str, str]) -> Probed:
    meaning = known.get(observed)
    if observed == "refused":
        meaning = "no"
    verdict: Verdict = "open" if meaning is None else "agrees" if meaning == declared else "contradicts"
    return Probed(
        upstream="", model="", capability=capability, declared=declared, observed=observed, verdict=verdict,
        note=_NOTES.get((capability, observed), "") if verdict == "contradicts" else "",
    )  # fmt: skip


def _usage(done: Sequence[ModelDone]) -> Probed:
    is_told = any(item.usage is not None and item.usage.prompt_tokens for item in done)
    note = "" if is_told or not done else "Budgets of tokens are kept by an estimate."
    return Probed(
        upstream="", model="", capability="usage", declared="-", observed=_word(is_told), verdict="open", note=note
    )


def _seen_reasoning(declared: ModelCapabilities, done: Sequence[ModelDone]) -> Probed:
    parts = [part for item in done for part in item.message.parts if isinstance(part, Reasoning)]
    seen = "opaque" if any(part.opaque for part in parts) else "text" if any(part.text for part in parts) else "none"
    return Probed(
        upstream="", model="", capability="reasoning", declared=declared.reasoning_replay, observed=seen, verdict="open"
    )


def _word(value: bool) -> str:
    return "yes" if value else "no"


_NOTES = {
    ("tools", "native"): "It calls tools; --model-tools native gives them to it.",
    ("tools", "none"): "No call came back. Is the server started with a parser for this model's calls? "
    "If it has none, --model-tools none writes skills into the prompt.",
    ("tool_role", "yes"): "Results reach it as such; --model-tools native gives it tools.",
    ("tool_role", "no"): "It could not tell what a tool's result held: its chat template may leave results out.",
    ("tool_role", "refused"): "The server refuses a conversation with a tool's result.",
    ("system", "no"): "It could not tell what the system message held, and skills are announced there.",
    ("system", "refused"): "The server refuses a system message, and skills are announced there.",
}
