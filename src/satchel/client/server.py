"""An answer of a server that ran the loop itself, told as the events that its loop had.

A Satchel gateway says in its extension of the format what happened between the texts; of another server's answer only
the text is known. All of it comes from outside, so every field is read with suspicion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import cast, get_args

from satchel.chat.codec.openai_chat import decode_usage
from satchel.chat.events import Finish
from satchel.chat.messages import Json
from satchel.engine.events import (
    ROOT,
    CallDelta,
    ReasoningDelta,
    RoundFinished,
    SkillLoaded,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnDone,
    TurnEvent,
    TurnStarted,
)
from satchel.execution.artifacts import NotKept
from satchel.skills.model import SkillRef

_Object = Mapping[str, Json]
_HOW = ("selected", "mentioned", "read", "activated", "inlined")


class ServerEvents:
    """Feed it the events of a turn that only passed an answer on; it gives those of the server's own turn."""

    def __init__(self, selected: Iterable[str]) -> None:
        self._selected = tuple(selected)
        self._round = 1
        self._told_rounds = False
        self._text_round = 0
        self._finished = 0
        self._loaded: set[str] = set()
        self._files: set[str] = set()
        self._refused: set[str] = set()
        self._summary: _Object = {}

    def feed(self, event: TurnEvent) -> list[TurnEvent]:
        """What this event says of the server's turn."""
        match event:
            case TurnStarted():
                return [replace(event, selected=self._selected)]
            case TextDelta():
                told = _object(event.extra.get("openai-chat", {}).get("satchel"))
                return self._told(told) if told else [self._text(event)]
            case ReasoningDelta() | CallDelta():
                return [replace(event, round=self._round)]
            case RoundFinished():
                return [] if self._told_rounds else [replace(event, round=self._round)]
            case TurnDone():
                return self._done(event)
            case _:
                return [event]

    def _told(self, told: _Object) -> list[TurnEvent]:
        step = _object(told.get("step"))
        if not step:
            self._summary = told
            return []
        read = _STEPS.get(_text(step, "event"))
        if read is None:
            return []
        event = read(step)
        if isinstance(event, RoundFinished) and event.agent == ROOT:
            self._told_rounds = True
            self._round = event.round + 1
        if isinstance(event, ToolFinished):
            self._finished += 1
            self._tell(event)
        if isinstance(event, SkillLoaded):
            self._loaded.add(event.ref.name)
        return [event]

    def _text(self, event: TextDelta) -> TextDelta:
        text = event.text
        if text and self._round != self._text_round:
            # The server has parted the prose of two rounds already; whoever joins it here does it again.
            text = text.removeprefix("\n\n") if self._text_round else text
            self._text_round = self._round
        return replace(event, text=text, round=self._round)

    def _done(self, event: TurnDone) -> list[TurnEvent]:
        summary = self._summary
        by_round = tuple(decode_usage(item) for item in _objects(summary.get("rounds"))) or event.usage_by_round
        late = [_tool_finished(item) for item in _objects(summary.get("invocations"))[self._finished :]]
        for call in late:
            self._tell(call)
        runs = _objects(summary.get("artifacts"))
        behind = [path for item in runs for path in _texts(item.get("files")) if path not in self._files]
        lost = [item for run in runs for item in _not_kept(run) if item.path not in self._refused]
        names = summary.get("skills")
        unseen = [
            SkillLoaded(round=1, ref=_ref(name), how="read", bytes=0)
            for name in (names if isinstance(names, list) else ())
            if isinstance(name, str) and name not in self._loaded
        ]
        done = replace(
            event,
            round=len(by_round),
            rounds=len(by_round),
            usage_by_round=by_round,
            continuation=_text(summary, "continuation"),
            files=tuple(behind),
            not_kept=tuple(lost),
            run=_text(runs[0], "run") if behind or lost else "",
        )
        return [*unseen, *late, done]

    def _tell(self, call: ToolFinished) -> None:
        self._files.update(call.files)
        self._refused.update(item.path for item in call.not_kept)


def _tool_started(step: _Object) -> ToolStarted:
    return ToolStarted(
        agent=_text(step, "agent"),
        round=_number(step, "round"),
        call_id=_text(step, "call_id"),
        name=_text(step, "tool"),
        skill=_text(step, "skill"),
        path=_text(step, "path"),
    )


def _tool_finished(step: _Object) -> ToolFinished:
    return ToolFinished(
        agent=_text(step, "agent"),
        round=_number(step, "round"),
        call_id=_text(step, "call_id"),
        name=_text(step, "tool"),
        skill=_text(step, "skill"),
        path=_text(step, "path"),
        ok=step.get("ok") is True,
        code=_text(step, "code"),
        files=_texts(step.get("files")),
        run=_text(step, "run"),
        not_kept=_not_kept(step),
    )


def _skill_loaded(step: _Object) -> SkillLoaded:
    how = _text(step, "how")
    return SkillLoaded(
        agent=_text(step, "agent"),
        round=_number(step, "round"),
        ref=_ref(_text(step, "skill")),
        how=how if how in _HOW else "read",
        bytes=_number(step, "bytes"),
    )


def _round_finished(step: _Object) -> RoundFinished:
    finish = _text(step, "finish")
    usage = _object(step.get("usage"))
    return RoundFinished(
        agent=_text(step, "agent"),
        round=_number(step, "round"),
        finish=cast("Finish", finish if finish in get_args(Finish) else "stop"),
        usage=decode_usage(usage) if usage else None,
    )


_STEPS: Mapping[str, Callable[[_Object], TurnEvent]] = {
    "tool_started": _tool_started,
    "tool_finished": _tool_finished,
    "skill_loaded": _skill_loaded,
    "round_finished": _round_finished,
}


def _not_kept(told: _Object) -> tuple[NotKept, ...]:
    items = _objects(told.get("not_kept"))
    return tuple(NotKept(path=_text(item, "path"), reason=_text(item, "reason")) for item in items)


def _ref(name: str) -> SkillRef:
    return SkillRef(source="server", name=name)


def _object(value: Json) -> _Object:
    return value if isinstance(value, dict) else {}


def _objects(value: Json) -> list[_Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(raw: _Object, key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def _number(raw: _Object, key: str) -> int:
    value = raw.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
