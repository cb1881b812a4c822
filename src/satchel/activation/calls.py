"""A model's calls as SDKs hand them over, and the messages that answer them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from satchel.chat.arguments import read_arguments
from satchel.chat.messages import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call. ``arguments`` is None when they are not one JSON object."""

    shape: Literal["openai", "anthropic"]
    call_id: str
    name: str
    arguments: Mapping[str, Json] | None


def read_calls(calls: object) -> tuple[ModelCall, ...]:
    """The calls among ``calls``, which may be None: OpenAI ``tool_calls`` or Anthropic content blocks.

    They may be objects or dicts. Blocks of other types (text, thinking) are passed over.
    """
    if calls is None:
        return ()
    is_one = isinstance(calls, Mapping) or not isinstance(calls, Iterable)
    items: list[object] = [calls] if is_one else list(cast("Iterable[object]", calls))
    return tuple(call for item in items if (call := _read(item)) is not None)


def _read(item: object) -> ModelCall | None:
    call_id = str(_get(item, "id") or "")
    if _get(item, "type") == "tool_use":
        raw = _get(item, "input")
        return ModelCall(
            shape="anthropic", call_id=call_id, name=str(_get(item, "name") or ""), arguments=_arguments(raw)
        )
    function = _get(item, "function")
    if function is None:
        return None
    return ModelCall(
        shape="openai",
        call_id=call_id,
        name=str(_get(function, "name") or ""),
        arguments=_arguments(_get(function, "arguments")),
    )


def _arguments(raw: object) -> dict[str, Json] | None:
    if isinstance(raw, str):
        return read_arguments(raw)
    if isinstance(raw, Mapping):
        return {str(key): value for key, value in cast("Mapping[str, Json]", raw).items()}
    return None


def _get(item: object, key: str) -> object:
    if isinstance(item, Mapping):
        return cast("Mapping[str, object]", item).get(key)
    return getattr(item, key, None)


def answers(replies: Iterable[tuple[ModelCall, str, bool]]) -> list[Json]:
    """Messages for ``(call, text, ok)`` in this order; Anthropic takes all results in one user message."""
    messages: list[Json] = []
    results: list[Json] = []
    for call, text, ok in replies:
        if call.shape == "openai":
            messages.append({"role": "tool", "tool_call_id": call.call_id, "content": text})
            continue
        block: dict[str, Json] = {"type": "tool_result", "tool_use_id": call.call_id, "content": text}
        results.append(block if ok else {**block, "is_error": True})
    if results:
        messages.append({"role": "user", "content": results})
    return messages
