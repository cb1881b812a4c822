"""``satchel run``: one question, one streamed answer, and what it took."""

from __future__ import annotations

import dataclasses
import re
import sys
import time
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from satchel.chat.messages import message
from satchel.chat.request import ChatRequest
from satchel.cli.console import bytes_text, line, print_line_json, printable, say
from satchel.cli.options import Json, ModelOptions, SkillOptions, settings_from
from satchel.cli.progress import DownloadProgress
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
from satchel.engine.request import SkillSelection, TurnRequest
from satchel.errors import SetupError
from satchel.settings import Settings
from satchel.wiring.models import default_model, embedded_models, ensure_weights
from satchel.wiring.runtime import open_runtime


async def run(
    question: Annotated[
        str | None, Parameter(help="What to ask. Without it, and without --input, stdin is read.")
    ] = None,
    /,
    *,
    skill: Annotated[
        tuple[str, ...], Parameter(name="--skill", help="Select a skill by name; repeat for several.")
    ] = (),
    source: Annotated[
        str | None,
        Parameter(name="--input", allow_leading_hyphen=True, help="Read the question from a file, or - for stdin."),
    ] = None,
    max_tokens: Annotated[
        int | None, Parameter(name="--max-tokens", validator=Number(gte=1), help="Bound on the tokens of the answer.")
    ] = None,
    skills: SkillOptions = SkillOptions(),
    options: ModelOptions = ModelOptions(),
    json: Json = False,
) -> int:
    """Ask a model a question with your skills at hand.

    The answer goes to stdout as it comes; which skills were offered, read and what they cost goes to stderr.
    With --json, stdout has one event a line instead.
    """
    asked = _question(question, source)
    settings = settings_from(skills, options)
    if embedded_models(settings):
        progress = DownloadProgress()
        await ensure_weights(settings, progress)
        progress.finish()
    async with open_runtime(settings) as runtime:
        request = TurnRequest(
            chat=ChatRequest(
                model=await default_model(settings, runtime.models),
                messages=(message("user", asked),),
                max_tokens=max_tokens,
            ),
            skills=SkillSelection(names=skill, discovery=settings.skills.discovery and settings.skills.enabled),
        )
        view = _JsonView() if json else _TerminalView(settings)
        async with runtime.turn(request) as turn:
            async for event in turn:
                view.show(event)
    return 0


def _question(question: str | None, source: str | None) -> str:
    if question is not None and source is not None:
        raise SetupError(
            "setting-invalid", "The question was given twice.", hint="Give it as an argument or with --input."
        )
    if question is None and source is None and sys.stdin.isatty():
        raise SetupError("setting-invalid", "No question was given.", hint="satchel run 'your question'")
    if question is None:
        question = _read(source or "-")
    if not question.strip():
        raise SetupError("setting-invalid", "The question is empty.", hint="satchel run 'your question'")
    return question


def _read(source: str) -> str:
    try:
        if source == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        with open(source, encoding="utf-8") as file:  # noqa: PTH123
            return file.read()
    except OSError as error:
        raise SetupError(
            "setting-invalid", f"Cannot read {source}: {error.strerror or error}.", hint="Check --input."
        ) from error
    except UnicodeDecodeError as error:
        raise SetupError(
            "setting-invalid", f"{source} is not UTF-8 text (byte {error.start}).", hint="Save it as UTF-8."
        ) from error


class _JsonView:
    """One event a line: ``{"event": "text_delta", ...}``."""

    def show(self, event: TurnEvent) -> None:
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
        print_line_json({"event": name, **dataclasses.asdict(event)})


class _TerminalView:
    """The answer on stdout; around it, on stderr, what a person wants to know."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._prose = ProseJoiner()
        self._began = time.monotonic()
        self._in_answer = False
        self._ends_open = False

    def show(self, event: TurnEvent) -> None:
        match event:
            case TurnStarted():
                self._start(event)
            case TextDelta():
                self._text(self._prose.feed(event))
            case Notice():
                self._line("note", event.message)
            case SkillLoaded(how="inlined"):
                self._line(
                    "skill", f"{event.ref.name}: its {bytes_text(event.bytes)} of instructions are in the prompt"
                )
            case ToolFinished():
                self._tool(event)
            case TurnDone():
                self._done(event)
            case _:
                pass

    def _line(self, label: str, text: str) -> None:
        if self._in_answer and sys.stdout.isatty():
            # Both streams share the screen here; stdout itself carries nothing but the answer.
            say()
        self._in_answer = False
        say(f"{label:<8} {line(text)}")

    def _start(self, event: TurnStarted) -> None:
        if not self._settings.skills.enabled:
            self._line("skills", "off")
        elif not event.offered:
            self._line("skills", "none found; name a directory with --skills-dir DIR")
        else:
            listed = ", ".join(event.offered[:8])
            more = f" and {len(event.offered) - 8} more" if len(event.offered) > 8 else ""  # noqa: PLR2004
            self._line("offered", f"{listed}{more}")
        if event.selected:
            self._line("selected", ", ".join(event.selected))

    def _tool(self, event: ToolFinished) -> None:
        what = f"{event.name} {event.skill} {event.path}".rstrip()
        if event.name == "skills_read" and event.skill:
            what = f"{event.skill}/{event.path}"
        verdict = "read" if event.ok else f"failed ({event.code})"
        self._line(verdict, f"{what}  (round {event.round})")

    def _text(self, text: str) -> None:
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
        if text:
            self._in_answer = self._ends_open = not text.endswith("\n")

    def _done(self, event: TurnDone) -> None:
        if self._ends_open:
            self._text("\n")
        usage = event.usage
        cached = f" ({usage.cached_tokens} from cache)" if usage.cached_tokens else ""
        self._line(
            "cost",
            f"{usage.prompt_tokens} prompt tokens{cached}, {usage.completion_tokens} generated, "
            f"{event.rounds} round{'' if event.rounds == 1 else 's'}, {time.monotonic() - self._began:.1f} s",
        )
        if event.finish == "length":
            self._line("note", "the answer was cut: the token limit was reached")
