"""What happens between the texts of an answer, as our extension of the format says it."""

from __future__ import annotations

from satchel.chat.codec.openai_chat import encode_usage
from satchel.engine.events import RoundFinished, SkillLoaded, ToolFinished, ToolStarted, TurnEvent
from satchel.gateway.extension import produced


def invocation(event: ToolFinished) -> dict[str, object]:
    """A call that was answered here, as ``InvocationBody``."""
    return {**_call(event), "ok": event.ok, "code": event.code, **produced(event)}


def step(event: TurnEvent) -> dict[str, object] | None:
    """The event as ``satchel.step`` of a chunk; None for events that the format has its own words for."""
    match event:
        case ToolStarted():
            return {"event": "tool_started", **_call(event)}
        case ToolFinished():
            return {"event": "tool_finished", **invocation(event)}
        case SkillLoaded():
            loaded = {"skill": event.ref.name, "how": event.how, "bytes": event.bytes}
            return {"event": "skill_loaded", "round": event.round, "agent": event.agent, **loaded}
        case RoundFinished():
            usage = encode_usage(event.usage) if event.usage else None
            end = {"finish": event.finish, "usage": usage}
            return {"event": "round_finished", "round": event.round, "agent": event.agent, **end}
        case _:
            return None


def _call(event: ToolStarted | ToolFinished) -> dict[str, object]:
    return {
        "round": event.round,
        "agent": event.agent,
        "call_id": event.call_id,
        "tool": event.name,
        "skill": event.skill,
        "path": event.path,
    }
