"""What is kept beside a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One decision about a skill or about a tool call made while skills are active.

    ``time`` is in Unix seconds. ``by`` asked for it; ``who`` decided: the "hook", a "trusted-root", a remembered
    "approval", the "unsafe-flag", the "policy" of the session, a skill's "pre-approval". ``digest`` is the skill's,
    ``tool`` the call's name, ``code`` why a refusal refuses.
    """

    time: float
    session: str
    event: Literal["activate", "tool"]
    decision: Literal["allow", "deny"]
    who: str
    by: str = "model"
    skill: str = ""
    digest: str = ""
    tool: str = ""
    code: str = ""
    reason: str = ""

    def to_dict(self) -> dict[str, object]:
        """JSON-safe, with the published keys in their published order."""
        return {
            "time": self.time,
            "session": self.session,
            "event": self.event,
            "decision": self.decision,
            "who": self.who,
            "by": self.by,
            "skill": self.skill,
            "digest": self.digest,
            "tool": self.tool,
            "code": self.code,
            "reason": self.reason,
        }


class AuditLog(Protocol):
    """A record that only grows. A decision that cannot be recorded does not allow anything."""

    async def append(self, entry: AuditEntry) -> None:
        """Keeps the entry, after all earlier ones."""
        ...
