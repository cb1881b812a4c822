"""What an answer tells beyond its vendor's fields: the extension field ``satchel``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pydantic import BaseModel

from satchel.chat.events import Usage
from satchel.engine.events import Notice, SkillLoaded, TurnDone, TurnEvent


class NoticeBody(BaseModel):
    """Something about the request that its sender should know."""

    code: str
    message: str


class Extension:
    """Collects the field's content from the events of a turn, those of every agent."""

    def __init__(self, notices: Iterable[NoticeBody] = ()) -> None:
        self._skills: list[str] = []
        self._notices = list(notices)

    def note(self, event: TurnEvent) -> None:
        """Keeps what the field tells of this event."""
        if isinstance(event, SkillLoaded) and event.ref.name not in self._skills:
            self._skills.append(event.ref.name)
        elif isinstance(event, Notice):
            self._notices.append(NoticeBody(code=event.code, message=event.message))

    def field(self, done: TurnDone, encode_usage: Callable[[Usage], object], **more: object) -> dict[str, object]:
        """``{"satchel": {"rounds", "skills", "notices", "continuation"}}``; the last two only where there is one.

        ``encode_usage`` writes the usage of a generation as the surface writes it; ``more`` is what this surface adds.
        """
        said: dict[str, object] = {
            "rounds": [encode_usage(usage) for usage in done.usage_by_round],
            "skills": list(self._skills),
        }
        if self._notices:
            said["notices"] = [notice.model_dump() for notice in self._notices]
        if done.continuation:
            said["continuation"] = done.continuation
        return {"satchel": {**said, **more}}
