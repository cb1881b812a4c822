"""The restriction of a request to some of its tools, ``{"type": "allowed_tools"}``: it outlives a forced call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from satchel.chat.messages import Format, Json
from satchel.chat.request import ChatRequest


def with_allowed(chat: ChatRequest, names: Iterable[str], *, mode: Literal["auto", "required"]) -> ChatRequest:
    """The request with these functions among the allowed ones; unchanged when it restricts nothing.

    ``mode`` replaces the restriction's own and belongs to ``tool_choice`` as well.
    """
    added = tuple(names)
    extra = {form: _widened(form, fields, added, mode) for form, fields in chat.extra.items()}
    return replace(chat, extra=extra)


def _widened(form: Format, fields: Mapping[str, Json], names: Iterable[str], mode: str) -> Mapping[str, Json]:
    choice = fields.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return fields
    is_nested = form == "openai-chat"
    inner = choice.get("allowed_tools") if is_nested else choice
    if not isinstance(inner, dict):
        return fields
    held = inner.get("tools")
    tools: list[Json] = list(held) if isinstance(held, list) else []
    for name in names:
        own: Json = (
            {"type": "function", "function": {"name": name}} if is_nested else {"type": "function", "name": name}
        )
        if own not in tools:
            tools.append(own)
    now: Json = {**inner, "mode": mode, "tools": tools}
    return {**fields, "tool_choice": {**choice, "allowed_tools": now} if is_nested else now}
