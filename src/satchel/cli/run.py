"""``satchel run``: one question, one streamed answer, and what it took."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from threading import Timer
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from satchel.chat.messages import message
from satchel.chat.request import ChatRequest
from satchel.cli.allowed import tell
from satchel.cli.console import print_line_json, say
from satchel.cli.options import ExecOptions, Json, ModelOptions, SkillOptions, settings_from
from satchel.cli.produced import Produced, listed, prepare_folder, saved_shape, tell_saved
from satchel.cli.progress import DownloadProgress
from satchel.cli.signals import until_signalled
from satchel.cli.turn_view import TurnView
from satchel.engine.events import TurnEvent, TurnStarted
from satchel.engine.request import SkillSelection, TurnRequest
from satchel.errors import SetupError
from satchel.execution.workbench import Execution
from satchel.settings import Settings
from satchel.wiring.models import default_model, embedded_models, ensure_weights
from satchel.wiring.runtime import open_runtime

_PATIENCE_S = 2.0


def run(
    question: Annotated[
        str | None,
        Parameter(
            help="What to ask; what is piped in stands below it. Without it, or with -, stdin is the question.",
            allow_leading_hyphen=True,
        ),
    ] = None,
    /,
    *,
    skill: Annotated[
        tuple[str, ...], Parameter(name="--skill", help="Select a skill by name; repeat for several.")
    ] = (),
    source: Annotated[
        str | None,
        Parameter(
            name="--input",
            allow_leading_hyphen=True,
            help="A file to read, or - for stdin: the question, or what the question is about.",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None, Parameter(name="--max-tokens", validator=Number(gte=1), help="Bound on the tokens of the answer.")
    ] = None,
    output_dir: Annotated[
        str | None,
        Parameter(
            name="--output-dir",
            help="Where to copy the files that programs make; one that is there already is left as it is.",
        ),
    ] = None,
    overwrite: Annotated[bool, Parameter(name="--overwrite", help="With --output-dir: replace files there.")] = False,
    skills: SkillOptions = SkillOptions(),
    options: ModelOptions = ModelOptions(),
    execution: ExecOptions = ExecOptions(),
    json: Json = False,
) -> int:
    """Ask a model a question with your skills at hand.

    The answer goes to stdout as it comes; which skills were offered, read and what they cost goes to stderr.
    With --json, stdout has one event a line instead.
    What is piped in stands below the question: cat notes.md | satchel run "Summarise this."
    """
    # Read before there is an event loop: an interrupt must end a wait for stdin.
    asked = _question(question, source)
    settings = settings_from(skills, options, execution)
    if output_dir is not None or overwrite:
        output_dir = _folder(output_dir, settings)
    view = _JsonView() if json else _TerminalView(settings)
    asking = ChatRequest(messages=(message("user", asked),), max_tokens=max_tokens)
    output = _Output(output_dir, overwrite=overwrite, as_json=json)
    return asyncio.run(until_signalled(_run(asking, settings, skill, view, output)))


def _folder(output_dir: str | None, settings: Settings) -> str:
    """Where files are copied to, made when it is not there. Raises ``SetupError`` for what would copy none."""
    if output_dir is None:
        raise _useless("--overwrite", "--output-dir")
    if not output_dir:
        raise SetupError(
            "setting-invalid", "--output-dir is empty.", hint="Name a directory; . is the one that you are in."
        )
    if not (settings.execution.scripts or settings.execution.code):
        raise _useless("--output-dir", "--code-exec or --skills-allow-exec")
    return prepare_folder(output_dir)


def _useless(flag: str, missing: str) -> SetupError:
    return SetupError(
        "setting-invalid",
        f"{flag} does nothing without {missing}.",
        hint=f"Add {missing}, or leave {flag} out.",
    )


async def _run(
    asking: ChatRequest, settings: Settings, names: tuple[str, ...], view: _JsonView | _TerminalView, output: _Output
) -> int:
    if embedded_models(settings):
        progress = DownloadProgress()
        await ensure_weights(settings, progress)
        progress.finish()
    await tell(settings, only_trouble=True)
    async with open_runtime(settings) as runtime:
        request = TurnRequest(
            chat=dataclasses.replace(asking, model=await default_model(settings, runtime.models)),
            skills=SkillSelection(names=names, discovery=settings.skills.discovery and settings.skills.enabled),
        )
        produced = Produced()
        is_saved = False
        try:
            async with runtime.turn(request) as turn:
                async for event in turn:
                    produced.note(event)
                    view.show(event)
        finally:
            is_saved = output.finish(produced, runtime.execution)
    return 0 if is_saved else 1


class _Output:
    """What becomes of the files that were made, however the turn ended."""

    def __init__(self, folder: str | None, *, overwrite: bool, as_json: bool) -> None:
        self._folder = folder
        self._overwrite = overwrite
        self._as_json = as_json

    def finish(self, produced: Produced, execution: Execution | None) -> bool:
        """Whether all of them are where they were wanted."""
        if self._folder is None:
            if produced.paths:
                say(f"note: files were made and not kept: {listed(produced.paths)}; --output-dir DIR keeps them.")
            return True
        saved = produced.save(execution.artifacts if execution else None, self._folder, overwrite=self._overwrite)
        tell_saved(saved, self._folder)
        if self._as_json:
            print_line_json(saved_shape(saved, self._folder))
        return not any(item.problem for item in saved)


def _question(question: str | None, source: str | None) -> str:
    """The question, and below it what was read: from ``--input``, or from a pipe or file that stdin is."""
    if question == "-":
        question, source = None, source or "-"
    if source is None and (question is None or _is_fed()):
        source = "-"
    if question is None and source == "-" and sys.stdin.isatty():
        raise SetupError("setting-invalid", "No question was given.", hint="satchel run 'your question'")
    read = _read(source, is_expected=question is None) if source else ""
    asked = "\n\n".join(part for part in (question or "", read) if part.strip())
    if not asked:
        raise SetupError("setting-invalid", "The question is empty.", hint="satchel run 'your question'")
    return asked


def _is_fed() -> bool:
    """Whether stdin is a pipe or a file. Terminals and devices have nothing for us, and of a socket nobody knows."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _read(source: str, *, is_expected: bool) -> str:
    try:
        if source == "-":
            with nullcontext() if is_expected else _patience():
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


@contextmanager
def _patience() -> Generator[None]:
    """Says what is waited for: whoever did not mean to pipe anything in would see nothing happen."""
    told = Timer(_PATIENCE_S, say, ("waiting for the end of stdin, which is read too; < /dev/null leaves it out",))
    told.daemon = True
    told.start()
    try:
        yield
    finally:
        told.cancel()


class _JsonView:
    """One event a line: ``{"event": "text_delta", ...}``."""

    def show(self, event: TurnEvent) -> None:
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
        print_line_json({"event": name, **dataclasses.asdict(event)})


class _TerminalView(TurnView):
    """Says before the answer which skills the model was told of."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    def start(self, event: TurnStarted) -> None:
        if not self._settings.skills.enabled:
            self.line("skills", "off")
        elif not event.offered:
            self.line("skills", "none found; name a directory with --skills-dir DIR")
        else:
            listed = ", ".join(event.offered[:8])
            more = f" and {len(event.offered) - 8} more" if len(event.offered) > 8 else ""  # noqa: PLR2004
            self.line("offered", f"{listed}{more}")
        if event.selected:
            self.line("selected", ", ".join(event.selected))
