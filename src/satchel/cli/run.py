"""``satchel run``: its words, and where its question comes from."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from threading import Timer
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from satchel.cli.console import say
from satchel.cli.options import ExecOptions, Json, ModelOptions, SkillOptions, settings_from
from satchel.errors import SetupError

if TYPE_CHECKING:
    from satchel.settings import Settings

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
        _require_use(output_dir, settings)
    from satchel.cli.asking import Output, ask

    output = Output(output_dir, overwrite=overwrite, as_json=json)
    return ask(asked, settings, skill, output, max_tokens=max_tokens)


def _require_use(output_dir: str | None, settings: Settings) -> None:
    """Raises ``SetupError`` for options that would copy nothing."""
    if output_dir is None:
        raise _useless("--overwrite", "--output-dir")
    if not output_dir:
        raise SetupError(
            "setting-invalid", "--output-dir is empty.", hint="Name a directory; . is the one that you are in."
        )
    if not (settings.execution.scripts or settings.execution.code):
        raise _useless("--output-dir", "--code-exec or --skills-allow-exec")


def _useless(flag: str, missing: str) -> SetupError:
    return SetupError(
        "setting-invalid",
        f"{flag} does nothing without {missing}.",
        hint=f"Add {missing}, or leave {flag} out.",
    )


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
