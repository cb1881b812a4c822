"""A conversation at a terminal: what was said, which skills are selected, and one turn after another."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from satchel.chat.messages import Message, ToolUse, message
from satchel.chat.request import ChatRequest
from satchel.cli.console import printable
from satchel.cli.markdown import MarkdownStyles
from satchel.cli.produced import Produced
from satchel.cli.turn_view import TurnView
from satchel.engine.events import ProseJoiner, SkillLoaded, TextDelta, TurnDone
from satchel.engine.request import SkillSelection, TurnRequest
from satchel.engine.runtime import Runtime
from satchel.errors import SatchelError
from satchel.execution.lease import unhindered
from satchel.execution.workbench import Workbench


class ChatView(TurnView):
    """Both streams are the terminal here: the answer in Markdown's styles, everything beside it dim."""

    def __init__(self, *, has_styles: bool, shows_cost: bool) -> None:
        super().__init__()
        self._markdown = MarkdownStyles() if has_styles else None
        self._shows_cost = shows_cost
        self._gap: str | None = ""
        self._is_hinting = False

    def hint(self) -> None:
        """Says that something is still going on, until there is more to say."""
        if self._markdown is not None and not self._in_answer and not self._is_hinting:
            self._is_hinting = True
            sys.stdout.write(self.dressed("working ..."))
            sys.stdout.flush()

    def cost(self, text: str) -> None:
        if self._shows_cost:
            super().cost(text)

    def pause(self) -> None:
        self._end_hint()
        if self._markdown is not None:
            sys.stdout.write(self._markdown.close())
            sys.stdout.flush()
        if self._gap is None:
            self._gap = "\n"
        super().pause()

    def dressed(self, text: str) -> str:
        return text if self._markdown is None else f"\x1b[2m{text}\x1b[0m"

    def painted(self, text: str) -> str:
        text = printable(text)
        if self._gap is not None:
            # However many line feeds a model begins with: one empty line parts prose from what came between.
            text = text.lstrip("\n")
            if not text:
                return ""
            text, self._gap = self._gap + text, None
        self._end_hint()
        return text if self._markdown is None else self._markdown.feed(text)

    def stop(self) -> None:
        """Leaves the terminal as it was, wherever the answer ended."""
        self.end_answer()
        self.pause()

    def _end_hint(self) -> None:
        if self._is_hinting:
            self._is_hinting = False
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()


@dataclass(slots=True, kw_only=True)
class Conversation:
    """``selected`` are names of skills; ``read`` those whose instructions are among what was said.

    Where programs may run, they share one workbench from the first turn to ``aclose``, or until all is forgotten.
    """

    runtime: Runtime
    model: str
    discovery: bool
    max_tokens: int | None = None
    system: str = ""
    selected: list[str] = field(default_factory=list[str])
    read: set[str] = field(default_factory=set[str])
    said: list[Message] = field(default_factory=list[Message])
    produced: Produced = field(default_factory=Produced)
    bench: Workbench | None = None

    async def clear(self) -> None:
        """Forgets what was said, with what was made; the system message and the selected skills stay."""
        self.said.clear()
        self.read.clear()
        self.produced.clear()
        await self.aclose()

    async def aclose(self) -> None:
        """Ends what still runs and removes the working directory."""
        bench, self.bench = self.bench, None
        if bench is not None:
            await unhindered(bench.aclose())

    async def collect(self) -> None:
        """Adds to what was produced what programs in the background have written by now."""
        if self.bench is not None:
            made = await self.bench.collect()
            self.produced.add(self.bench.shelf_id, made.files, made.not_kept)

    async def turn(self, text: str, view: ChatView) -> None:
        """Asks, and shows the answer. One that is cancelled is kept as far as it came, one that fails is forgotten."""
        asked = message("user", text)
        opening = [message("system", self.system)] if self.system else []
        request = TurnRequest(
            chat=ChatRequest(model=self.model, messages=(*opening, *self.said, asked), max_tokens=self.max_tokens),
            skills=SkillSelection(names=tuple(self.selected), discovery=self.discovery),
        )
        if self.bench is None:
            self.bench = await self.runtime.open_workbench(request)
        request = replace(request, workbench=self.bench)
        answer: Sequence[Message] = ()
        heard = ""
        joiner = ProseJoiner()
        loaded: set[str] = set()
        try:
            async with self.runtime.turn(request) as turn:
                async for event in turn:
                    view.show(event)
                    self.produced.note(event)
                    match event:
                        case TextDelta():
                            heard += joiner.feed(event)
                        case SkillLoaded(ref=ref):
                            loaded.add(ref.name)
                        case TurnDone():
                            # Turns with our own tools are among them, so a skill that was read once stays.
                            answer = _without(event.transcript, event.client_calls)
                            self.read |= loaded
                            for use in event.client_calls:
                                view.line("note", f"the model asked for {use.name}, a tool that nobody has here")
                        case _:
                            pass
        except SatchelError:
            heard = ""
            raise
        finally:
            view.stop()
            if not answer and heard.strip():
                answer = (message("assistant", heard),)
            if answer:
                self.said += [asked, *answer]


def _without(transcript: Sequence[Message], calls: Sequence[ToolUse]) -> list[Message]:
    """The messages without calls that will never be answered: model servers refuse such conversations."""
    ids = {use.call_id for use in calls}
    return [
        replace(
            item, parts=tuple(part for part in item.parts if not isinstance(part, ToolUse) or part.call_id not in ids)
        )
        for item in transcript
    ]
