"""Where output goes: results to stdout, everything for people to stderr, JSON with stable keys."""

from __future__ import annotations

import itertools
import json
import os
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from satchel.errors import SatchelError, SetupError
from satchel.skills.oneline import one_line

if TYPE_CHECKING:
    # Its views of the frontmatter are of no use to a help page, and cost a tenth of it.
    from satchel.skills.model import Diagnostic


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(_json_text(value, indent=2) + "\n")


def print_line_json(value: Mapping[str, object]) -> None:
    """One JSON object on one line of stdout, at once."""
    sys.stdout.write(_json_text(value) + "\n")
    sys.stdout.flush()


def _json_text(value: object, indent: int | None = None) -> str:
    text = _writable(json.dumps(value, ensure_ascii=False, indent=indent))
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), indent=indent)
    return text


def _writable(text: str) -> str:
    """The text without lone surrogates, which stand for the bytes of a file name that is not UTF-8."""
    return text.encode("utf-8", "replace").decode()


def say(text: str = "") -> None:
    """A line for people."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def print_error(error: SatchelError, *, wants_json: bool) -> None:
    """The one form of a failure: code, cause, hint."""
    if wants_json:
        print_line_json({"error": error.to_dict()})
        return
    say(f"satchel: {line(error.message)} [{error.code}]")
    if error.hint:
        say(f"  hint: {line(error.hint)}")


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line that may be wrong asks for JSON. After ``--`` everything is a value."""
    return "--json" in itertools.takewhile(lambda argument: argument != "--", arguments)


def missing_package(error: ModuleNotFoundError) -> SetupError:
    """A package of an extra is not installed."""
    return SetupError(
        "extra-missing",
        f"The package {error.name} is needed for this and is not installed.",
        hint="pip install 'satchel[all]'",
        data={"package": error.name or ""},
    )


def printable(text: str) -> str:
    """A body without control characters: a skill's words must not drive a terminal. For one field: ``line``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char.isprintable() or _is_harmless(char) else "\N{REPLACEMENT CHARACTER}" for char in text)


def _is_harmless(char: str) -> bool:
    """Line feeds, tabs, spaces of every width, and the joiners that emoji and several scripts are made with."""
    return char in "\n\t\u200c\u200d" or unicodedata.category(char) == "Zs"


def has_styles(stream: TextIO) -> bool:
    """Whether the stream shows styles: a terminal that can, of a person who wants it (NO_COLOR is unset)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def line(text: str) -> str:
    """A name, a path or a sentence as one visible line: a skill's words must not pass for lines of the program."""
    return one_line(_writable(text))


def print_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Findings for people, one a line, each with its hint below."""
    for item in diagnostics:
        where = f"{item.path}:{item.line}" if item.line else item.path
        say(f"{item.severity}: {line(where)}: {line(item.message)} [{item.rule}]")
        if item.hint:
            say(f"  hint: {line(item.hint)}")


def bytes_text(size: int) -> str:
    """A size as people read it."""
    from satchel.context.budget import format_bytes

    return format_bytes(size)
