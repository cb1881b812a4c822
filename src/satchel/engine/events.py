"""What a turn says to its face. Every event carries the ``agent`` it belongs to and the 1-based ``round``.

There is no error event: a turn fails with one ``SatchelError`` out of its iterator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from satchel.chat.events import Finish, Usage
from satchel.chat.messages import Extra, Json, Message, ToolUse
from satchel.execution.artifacts import NotKept
from satchel.ports.execution import Confinement
from satchel.skills.model import SkillRef

ROOT = "/root"


def _no_extra() -> Extra:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Common part of every event."""

    agent: str = ROOT
    round: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Event):
    """First event. ``offered`` are the skills that the model is told about, ``selected`` those that were asked for."""

    turn_id: str
    model: str
    offered: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()
    catalog_revision: str = ""
    prompt_block_tokens: int = 0
    confinement: Confinement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Event):
    """Text of the answer, as it came. ``round`` tells prose of different rounds apart (see ``ProseJoiner``).

    ``extra`` is what the model server sent beside it (log probabilities, annotations), for a face of the same format.
    """

    text: str
    extra: Extra = field(default_factory=_no_extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta(Event):
    """Reasoning, as it came. ``opaque`` is the vendor's whole signed or encrypted item, in the delta that ends it.

    ``extra`` tells which item and which part of it this belongs to, for a face of the same format.
    """

    text: str
    opaque: Mapping[str, Json] | None = None
    extra: Extra = field(default_factory=_no_extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDelta(Event):
    """A fragment of a call to one of the client's own tools, numbered from 0 among those."""

    index: int
    call_id: str
    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillLoaded(Event):
    """A skill's instructions are now in front of the model."""

    ref: SkillRef
    how: Literal["selected", "mentioned", "read", "activated", "inlined"]
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    """One of our tools begins."""

    call_id: str
    name: str
    skill: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(Event):
    """One of our tools reports where it is."""

    call_id: str
    phase: Literal["writing", "running", "waiting", "finished"]
    detail: str = ""
    files: tuple[str, ...] = ()
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(Event):
    """One of our tools is done. ``code`` is empty when ``ok``.

    ``files`` can be had as ``run``; ``not_kept`` were made, too, and cannot. ``command`` is what was run in one line, a
    command line or a script with its arguments, and ``exit_code`` how that ended, None when nothing was run to its end.
    ``reason`` is why it failed in one line.
    """

    call_id: str
    name: str
    ok: bool
    skill: str = ""
    path: str = ""
    code: str = ""
    duration_s: float = 0.0
    files: tuple[str, ...] = ()
    run: str = ""
    not_kept: tuple[NotKept, ...] = ()
    command: str = ""
    exit_code: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFinished(Event):
    """A generation ended."""

    finish: Finish
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Event):
    """Something that the operator should know: a name collision, a catalogue that was cut."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDone(Event):
    """Last event. ``usage`` is the sum over ``rounds``; ``usage_by_round`` has one entry a generation.

    ``client_calls`` are calls to the client's own tools, which are never executed here. ``transcript`` holds the
    messages that this turn added, own tool turns included. ``continuation`` is a token for them: a follow-up request
    that carries it gets them back in the place of what the client saw; "" when the client saw all there is.
    ``extra`` is what the model server said at the end of the last generation, for a face of the same format.
    ``files`` were written by programs in the background that no call has told of; ``run`` is where they can be fetched
    under, "" when nothing is kept. ``not_kept`` were written so, too, and cannot be had.
    """

    finish: Finish
    usage: Usage
    usage_by_round: tuple[Usage, ...]
    rounds: int
    hit_round_limit: bool = False
    client_calls: tuple[ToolUse, ...] = ()
    transcript: tuple[Message, ...] = ()
    continuation: str = ""
    extra: Extra = field(default_factory=_no_extra)
    files: tuple[str, ...] = ()
    not_kept: tuple[NotKept, ...] = ()
    run: str = ""


TurnEvent = (
    TurnStarted
    | TextDelta
    | ReasoningDelta
    | CallDelta
    | SkillLoaded
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | RoundFinished
    | Notice
    | TurnDone
)


class ProseJoiner:
    """Puts a blank line between the prose of consecutive rounds, the same whether the answer is streamed or not."""

    def __init__(self) -> None:
        self._round = 0

    def feed(self, delta: TextDelta) -> str:
        """The delta's text, preceded by a blank line when an earlier round has said something."""
        joined = delta.text
        if delta.text:
            if self._round and delta.round != self._round:
                joined = "\n\n" + delta.text
            self._round = delta.round
        return joined
