"""What happened in one conversation, as the graders see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from satchel.chat.messages import Json, Message
from satchel.engine.events import SkillLoaded, TextDelta, ToolFinished, ToolStarted, TurnDone, TurnEvent
from satchel.engine.host import ToolHost
from satchel.tools.base import ToolCall, ToolContext, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that a model made, in the order of the calls, and what it was told.

    ``code`` says how it went: a code of the tool, "already_loaded", or "" when all was well.
    """

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    code: str = ""
    output: str = ""


@dataclass(slots=True, kw_only=True)
class Transcript:
    """``answers`` has one text for each thing that the user said. ``loaded`` are the skills that came to the model.

    ``active`` are those of the session at the end, ``asked`` and ``ran`` the commands that the permission hook was
    asked about, and those that were run.
    """

    calls: list[Call] = field(default_factory=list[Call])
    answers: list[str] = field(default_factory=list[str])
    loaded: list[str] = field(default_factory=list[str])
    active: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list[str])
    ran: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """All answers."""
        return "\n\n".join(self.answers)


class Recorder:
    """A host that passes everything on to another one and keeps each call with its result."""

    def __init__(self, host: ToolHost) -> None:
        self._host = host
        self.kept: dict[str, tuple[ToolCall, ToolResult]] = {}
        self.specs = host.specs
        self.undeclared = host.undeclared
        self.holds_answer = host.holds_answer
        self.before_answer = host.before_answer
        self.advise_unknown = host.advise_unknown
        self.aclose = host.aclose

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Passes one call on."""
        result = await self._host.call(call, context)
        self.kept[call.call_id] = (call, result)
        return result


class Listener:
    """Makes one turn's events a part of a transcript."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._started: list[str] = []
        self._finished: dict[str, ToolFinished] = {}
        self._text: dict[int, str] = {}
        self._added: tuple[Message, ...] = ()

    def hear(self, event: TurnEvent) -> None:
        """One event, in its order."""
        if isinstance(event, TextDelta):
            self._text[event.round] = self._text.get(event.round, "") + event.text
        elif isinstance(event, ToolStarted):
            self._started.append(event.call_id)
        elif isinstance(event, ToolFinished):
            self._finished[event.call_id] = event
        elif isinstance(event, SkillLoaded):
            self._transcript.loaded.append(event.ref.name)
        elif isinstance(event, TurnDone):
            self._added = event.transcript

    def close(self, kept: Mapping[str, tuple[ToolCall, ToolResult]]) -> tuple[Message, ...]:
        """The end of the turn: its calls and its answer. Gives the messages that the turn added."""
        for call_id in self._started:
            finished = self._finished.get(call_id)
            call, result = kept.get(call_id, (None, None))
            if finished is not None:
                self._transcript.calls.append(
                    Call(
                        name=finished.name,
                        arguments=call.arguments if call else {},
                        code=result.code if result else finished.code,
                        output=result.text if result else "",
                    )
                )
        self._transcript.answers.append("\n\n".join(self._text.values()))
        return self._added
