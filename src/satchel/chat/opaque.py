"""What can be told of parts that are kept unread: which are calls that wait for an answer, and what counts as content.

Calls that the model server runs itself come without a ``call_id`` or with their output beside them.
"""

from __future__ import annotations

from satchel.chat.messages import Json, Media, Message, Opaque

_BESIDE_TEXT = ("refusal", "audio")


def open_calls(said: Message) -> tuple[str, ...]:
    """The ids of the calls in an assistant's message that are no functions, and that its client has to answer."""
    calls: dict[str, None] = {}
    answered: set[Json] = set()
    for part in said.parts:
        if not isinstance(part, Opaque) or not isinstance(part.raw, dict):
            continue
        match part.format, part.raw:
            case "openai-chat", {"tool_calls": {"id": str(call_id)}}:
                calls[call_id] = None
            case "openai-responses", {"type": "mcp_approval_request", "id": str(call_id)}:
                calls[call_id] = None
            case "openai-responses", {"type": str(kind), "call_id": str(call_id)} if kind.endswith("_call"):
                calls[call_id] = None
            case "openai-responses", {"type": str(kind), "call_id": str(call_id)} if kind.endswith("_output"):
                answered.add(call_id)
            case _:
                continue
    return tuple(call_id for call_id in calls if call_id not in answered)


def says_nothing(said: Message) -> bool:
    """Whether a message has no content for a reader: reasoning and calls of functions are none."""
    if said.text.strip() or any(isinstance(part, Opaque | Media) for part in said.parts):
        return False
    return not any(fields.get(name) for fields in said.extra.values() for name in _BESIDE_TEXT)
