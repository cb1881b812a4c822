"""What an answer tells beyond its vendor's fields: the extension field ``satchel``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict

from pydantic import BaseModel

from satchel.chat.events import Usage
from satchel.engine.events import Notice, SkillLoaded, ToolFinished, TurnDone, TurnEvent

MOST_FILES = 100
"""Names of produced files that one place of an answer has, which stays small; the list of the run has all."""


class NoticeBody(BaseModel):
    """Something about the request that its sender should know."""

    code: str
    message: str


class NotKeptBody(BaseModel):
    """A produced file that cannot be had, and why."""

    path: str
    reason: str


class ProducedBody(BaseModel):
    """Where files that programs produced can be had: ``GET /api/code/artifacts/{run}`` lists all, with their sizes."""

    run: str
    files: list[str]
    not_kept: list[NotKeptBody] | None = None


def produced(event: ToolFinished | TurnDone) -> dict[str, object]:
    """``files`` with their ``run``, and ``not_kept``: each where there are any."""
    files = {"files": list(event.files[:MOST_FILES]), "run": event.run} if event.files and event.run else {}
    refused = [asdict(item) for item in event.not_kept[:MOST_FILES]]
    return {**files, "not_kept": refused} if refused else {**files}


class Extension:
    """Collects the field's content from the events of a turn, those of every agent."""

    def __init__(self, notices: Iterable[NoticeBody] = ()) -> None:
        self._skills: list[str] = []
        self._notices = list(notices)
        self._files: dict[str, tuple[dict[str, None], dict[str, str]]] = {}

    def note(self, event: TurnEvent) -> None:
        """Keeps what the field tells of this event."""
        if isinstance(event, SkillLoaded) and event.ref.name not in self._skills:
            self._skills.append(event.ref.name)
        elif isinstance(event, Notice):
            self._notices.append(NoticeBody(code=event.code, message=event.message))
        elif isinstance(event, ToolFinished | TurnDone) and event.run:
            files, refused = self._files.setdefault(event.run, ({}, {}))
            for path in event.files:
                files[path] = None
                refused.pop(path, None)
            for item in event.not_kept:
                refused[item.path] = item.reason
                files.pop(item.path, None)

    @property
    def has_artifacts(self) -> bool:
        """Whether anything was produced."""
        return bool(self._files)

    def field(self, done: TurnDone, encode_usage: Callable[[Usage], object], **more: object) -> dict[str, object]:
        """``{"satchel": {"rounds", "skills", "notices", "continuation", "artifacts"}}``.

        The last three stand there only when there are any.

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
        if self._files:
            said["artifacts"] = [
                ProducedBody(
                    run=run,
                    files=list(files)[:MOST_FILES],
                    not_kept=[NotKeptBody(path=path, reason=reason) for path, reason in refused.items()][:MOST_FILES]
                    or None,
                ).model_dump(exclude_none=True)
                for run, (files, refused) in self._files.items()
            ]
        return {"satchel": {**said, **more}}
