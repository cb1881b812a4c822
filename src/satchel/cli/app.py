"""Parses the command line and turns every failure into one clear message and an exit code.

Exit codes: 0 done, 1 findings or a failure, 2 the call or its settings are wrong, 130 interrupted.
"""

from __future__ import annotations

import inspect
import itertools
import os
import sys
from collections.abc import Sequence

import cyclopts
from cyclopts import App

from satchel.cli.console import line, missing_package, print_error, say, wants_json
from satchel.cli.streams import OutputError
from satchel.errors import SatchelError, SetupError


def _version() -> str:
    from satchel import __version__

    return __version__


app = App(
    name="satchel",
    help="Agent Skills for any chat model: list, check and try skills, or serve them to any client.",
    version=_version,
    help_format="plaintext",
    default_parameter=cyclopts.Parameter(negative=(), show_default=False),
)
app.command("satchel.cli.run:run", name="run", help="Ask a model a question with your skills at hand.", sort_key=1)
app.command("satchel.cli.chat:chat", name="chat", help="Talk with a model at the terminal.", sort_key=2)
app.command("satchel.cli.serve:serve", name="serve", help="Serve skills to OpenAI clients over HTTP.", sort_key=3)
app.command(
    "satchel.cli.list:list_skills",
    name="list",
    help="List the skills that are found, and what is wrong with any.",
    sort_key=4,
)
app.command(
    "satchel.cli.show:show", name="show", help="Show one skill: its metadata, files and instructions.", sort_key=5
)
app.command("satchel.cli.files:files", name="files", help="List the files of one skill.", sort_key=6)
app.command("satchel.cli.read:read", name="read", help="Print a file of one skill, a page at a time.", sort_key=7)
app.command(
    "satchel.cli.render:render",
    name="render",
    help="Print a skill's instructions with arguments put in.",
    sort_key=8,
)
app.command(
    "satchel.cli.block:block",
    name="block",
    help="Print the text about skills that a model would be given, and what it costs.",
    sort_key=9,
)
app.command("satchel.cli.check:check", name="check", help="Check skill folders before you publish them.", sort_key=10)
app.command(
    "satchel.cli.eval:evaluate",
    name="eval",
    help="Measure what a model makes of skills, beside what holds without one.",
    sort_key=10,
)
app.command("satchel.cli.new:new", name="new", help="Start a new skill from a small template.", sort_key=11)
app.command(
    "satchel.cli.doctor:doctor",
    name="doctor",
    help="Say what this machine has, what is missing and how to get it.",
    sort_key=12,
)
app.command(
    "satchel.cli.sandbox:sandbox",
    name="sandbox",
    help="Run a command in the sandbox that skills and models get.",
    sort_key=12,
)
app.command(
    "satchel.cli.model:app",
    name="model",
    help="The embedded model's weights: where they are, fetch, verify.",
    sort_key=13,
)
app.command(
    "satchel.cli.trust:app",
    name="trust",
    help="The skill folders that you have approved: list, add, remove.",
    sort_key=13,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the ``satchel`` program; never returns."""
    sys.exit(call(list(sys.argv[1:] if arguments is None else arguments)))


def call(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code. ``SATCHEL_DEBUG=1`` lets tracebacks through."""
    try:
        code = _call(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone (``satchel list | head``): there is nothing to say.
        _drop_output()
        return 1
    except OutputError as error:
        say(f"satchel: standard output cannot be written: {error.strerror}.")
        _drop_output()
        return 1
    return code


def _drop_output() -> None:
    """Nothing that is still buffered may be flushed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _call(arguments: Sequence[str]) -> int:
    as_json = wants_json(arguments)
    debug = os.environ.get("SATCHEL_DEBUG", "0") not in {"", "0"}
    try:
        if not arguments:
            app.help_print([])
            return 0
        if not {"--help", "-h"}.isdisjoint(itertools.takewhile(lambda argument: argument != "--", arguments)):
            _say_all_of(arguments[0])
        result = app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
    except cyclopts.CycloptsError as error:
        hint = "satchel --help shows the commands."
        if arguments[0].startswith("-"):
            hint = "Options come after the command: satchel list --json. " + hint
        elif arguments[0] in app:
            hint = f"satchel {arguments[0]} --help shows its options."
        print_error(SetupError("setting-invalid", line(str(error)), hint=hint), wants_json=as_json)
        return 2
    except SatchelError as error:
        if debug:
            raise
        print_error(error, wants_json=as_json)
        return 2 if isinstance(error, SetupError) else 1
    except ImportError as error:
        # A command that cannot be imported arrives wrapped; what is missing stands in its cause.
        missing = error.__cause__ if isinstance(error.__cause__, ModuleNotFoundError) else error
        if debug or not isinstance(missing, ModuleNotFoundError) or _is_ours(missing):
            raise
        print_error(missing_package(missing), wants_json=as_json)
        return 2
    except KeyboardInterrupt:
        return 130
    return result if isinstance(result, int) else 0


def _say_all_of(command: str) -> None:
    """Gives the help of one command all that its function says of itself, where the list of commands has one line."""
    if command not in app:
        return
    found = app[command]
    has_commands = any(not name.startswith("-") for name in found)
    if found.default_command is not None and not has_commands:
        found.help = inspect.cleandoc(found.default_command.__doc__ or "")


def _is_ours(error: ModuleNotFoundError) -> bool:
    return (error.name or "").split(".")[0] == "satchel"
