"""Where the block goes: the one place that every chat template renders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.messages import Message, Part, Text, message

_FIRST_ROLES = frozenset({"system", "developer"})


def place(messages: Sequence[Message], block: str, capabilities: ModelCapabilities) -> tuple[Message, ...]:
    """The messages with ``block`` at the end of a leading system or developer message, or as a new system message.

    Everything else stays as it is; an empty block changes nothing.
    """
    del capabilities  # merging into the first message is all that any of them asks for so far
    if not block:
        return tuple(messages)
    if not messages or messages[0].role not in _FIRST_ROLES:
        return (message("system", block), *messages)
    first = messages[0]
    return (replace(first, parts=_appended(first.parts, block)), *messages[1:])


def _appended(parts: tuple[Part, ...], block: str) -> tuple[Part, ...]:
    if not any(isinstance(part, Text) and part.text.strip() for part in parts):
        kept = tuple(part for part in parts if not isinstance(part, Text) or part.extra)
        return (*kept, Text(text=block))
    last = parts[-1]
    if isinstance(last, Text) and not last.extra:
        text = last.text.rstrip()
        own = text.lstrip() if len(parts) == 1 else text
        return (*parts[:-1], replace(last, text=f"{own}\n\n{block}"))
    # A part with a cache mark keeps it at the end of the caller's own text, so the block is a part of its own.
    return (*parts, Text(text=f"\n\n{block}"))
