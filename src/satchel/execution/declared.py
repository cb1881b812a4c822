"""Which packages a script or its skill says it needs. Pure; names are judged by whoever installs them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from typing import cast

MOST_LINES = 16
REQUIREMENTS = "requirements.txt"

_HEADER = re.compile(r"(?m)^# /// script[ \t]*\n((?:^#(?:| .*)\n)+?)^# ///[ \t]*$")
_COMMENT = re.compile(r"(?:^|\s)#.*$")


def header_packages(source: str) -> tuple[str, ...]:
    """The dependencies in a Python script's own header (PEP 723), () when there is none that can be read."""
    found = _HEADER.findall(source.replace("\r\n", "\n"))
    if len(found) != 1:
        return ()
    text = "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in found[0].splitlines())
    try:
        table = cast("dict[str, object]", tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return ()
    listed = table.get("dependencies")
    if not isinstance(listed, list):
        return ()
    items = cast("list[object]", listed)
    return _plain(item for item in items if isinstance(item, str))


def required_packages(text: str) -> tuple[str, ...]:
    """The packages that a requirements file names, at most 16. Options and addresses are left out."""
    return _plain(_COMMENT.sub("", line) for line in text.splitlines())


def asked_packages(given: str) -> tuple[str, ...]:
    """Packages in one text, between commas, semicolons or blanks; a version's second bound stays with its name.

    () when there is an option among them: what follows one need not be a package.
    """
    pieces = re.split(r"[;\s]+|,(?!\s*[<>=!~])", given)
    return () if any(piece.startswith("-") for piece in pieces) else _plain(pieces)


def _plain(lines: Iterable[str]) -> tuple[str, ...]:
    names = (line.strip() for line in lines)
    kept = [name for name in names if name and not name.startswith("-") and "://" not in name and " @" not in name]
    return tuple(dict.fromkeys(kept))[:MOST_LINES]
