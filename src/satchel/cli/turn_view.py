"""A turn for a person: the answer on stdout; around it, on stderr, what they want to know of how it came about."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from satchel.cli.console import bytes_text, line, printable, say
from satchel.cli.produced import listed
from satchel.engine.events import (
    Notice,
    ProseJoiner,
    SkillLoaded,
    TextDelta,
    ToolFinished,
    TurnDone,
    TurnEvent,
    TurnStarted,
)
from satchel.execution.artifacts import NotKept
from satchel.tools.access import FULL_TOOL, LIST_TOOL, READ_TOOL, SEARCH_TOOL
from satchel.tools.files import READ_FILE

_MOST_NAMED = 3
_LABEL = 9
_SHORTEST = 20
_WIDTH = 160
"""Of a line where no terminal says how wide it is."""
_READERS = frozenset({READ_TOOL, LIST_TOOL, SEARCH_TOOL, FULL_TOOL, READ_FILE})


class TurnView:
    """Shows the events of one turn as they come."""

    def __init__(self) -> None:
        self._prose = ProseJoiner()
        self._began = time.monotonic()
        self._in_answer = False
        self._ends_open = False

    def show(self, event: TurnEvent) -> None:
        """One event."""
        match event:
            case TurnStarted():
                self.start(event)
            case TextDelta():
                self._text(self._prose.feed(event))
            case Notice():
                self.line("note", event.message)
            case SkillLoaded(how="inlined" | "mentioned"):
                self.line("skill", f"{event.ref.name}: its {bytes_text(event.bytes)} of instructions are in the prompt")
            case ToolFinished():
                self._tool(event)
            case TurnDone():
                self._done(event)
            case _:
                pass

    def start(self, event: TurnStarted) -> None:
        """What is said before the answer."""
        del event

    def cost(self, text: str) -> None:
        """What is said of the cost, after the answer."""
        self.line("cost", text)

    def line(self, label: str, text: str) -> None:
        """One line beside the answer."""
        self.pause()
        say(self.dressed(f"{label:<{_LABEL - 1}} {line(text)}"))

    def pause(self) -> None:
        """Leaves the answer, so that something else may be written."""
        if self._in_answer and sys.stdout.isatty():
            # Both streams share the screen here; stdout itself carries nothing but the answer.
            say()
        self._in_answer = False

    def dressed(self, text: str) -> str:
        """A line beside the answer, in its style."""
        return text

    def painted(self, text: str) -> str:
        """The answer's text, in its style."""
        return printable(text) if sys.stdout.isatty() else text

    def end_answer(self) -> None:
        """Ends the line that the answer is in."""
        if self._ends_open:
            self._text("\n")

    def _tool(self, event: ToolFinished) -> None:
        what = " ".join(word for word in (event.name, event.skill, event.command or event.path) if word)
        if event.name == "skills_read" and event.skill:
            what = f"{event.skill}/{event.path}"
        done = "read" if event.name in _READERS else "ran"
        verdict = done if event.ok else f"failed ({event.code})"
        facts = [f"exit code {event.exit_code}"] if event.exit_code is not None else []
        facts += [f"{event.duration_s:.1f} s"] if event.command else []
        behind = f" ({', '.join((*facts, f'round {event.round}'))})"
        self.line(verdict, _cut(what, max(len(verdict) + 1, _LABEL) + len(behind)) + behind)
        if event.reason:
            self.line("why", _cut(event.reason, _LABEL))
        if event.run and event.files:
            self.line("made", listed(event.files))
        self._not_kept(event.not_kept)

    def _not_kept(self, items: Sequence[NotKept]) -> None:
        for item in items[:_MOST_NAMED]:
            self.line("note", f"{item.path} cannot be saved: it {item.reason}")
        if len(items) > _MOST_NAMED:
            self.line("note", f"{len(items) - _MOST_NAMED} more cannot be saved")

    def _text(self, text: str) -> None:
        sys.stdout.write(self.painted(text))
        sys.stdout.flush()
        if text:
            self._in_answer = self._ends_open = not text.endswith("\n")

    def _done(self, event: TurnDone) -> None:
        self.end_answer()
        if event.run and event.files:
            self.line("made", f"in the background: {listed(event.files)}")
        self._not_kept(event.not_kept)
        usage = event.usage
        cached = f" ({usage.cached_tokens} from cache)" if usage.cached_tokens else ""
        self.cost(
            f"{usage.prompt_tokens} prompt tokens{cached}, {usage.completion_tokens} generated, "
            f"{event.rounds} round{'' if event.rounds == 1 else 's'}, {time.monotonic() - self._began:.1f} s"
        )
        if event.finish == "length":
            self.line("note", "the answer was cut: the token limit was reached")


def _cut(text: str, beside: int) -> str:
    """As much of it as one line has room for, ``beside`` so many characters."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        width = 0
    room = max(_SHORTEST, (width or _WIDTH) - beside)
    text = line(text)
    return text if len(text) <= room else text[: room - 3] + "..."
