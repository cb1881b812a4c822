"""``satchel new``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from satchel.cli.console import line, print_json, say
from satchel.cli.options import Json
from satchel.errors import SetupError
from satchel.skills.model import MANIFEST
from satchel.skills.names import is_legal_name, normalize_name

_TEMPLATE = """\
---
name: {name}
description: Says how {words} is done here, step by step. Use when the user asks for {words} or for one of its steps.
---
# {title}

The description above is all that a model sees before it decides. Say there what the skill does and when to use it, in
the words that a user would use.

## Steps

1. Ask for what is missing before you begin.
2. Do the work, one step at a time.
3. Check the result, and say what was done.

## When something is in the way

Name the cases that really happen, and what to do about each.
"""


def new(
    name: Annotated[str, Parameter(help="The skill's name: a-z, 0-9 and single hyphens.")],
    /,
    *,
    folder: Annotated[
        str, Parameter(name="--dir", help="Where to make the skill's folder; the working directory without it.")
    ] = ".",
    json: Json = False,
) -> int:
    """Start a new skill from a small template. Nothing that exists is overwritten."""
    if not is_legal_name(name):
        legal = normalize_name(name)
        hint = f"satchel new {legal}" if legal else "Use a-z, 0-9 and single hyphens, such as release-notes."
        raise SetupError("setting-invalid", f"{name!r} cannot be a skill's name.", hint=hint, data={"name": legal})
    place = Path(folder) / name
    words = name.replace("-", " ")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir()
        with (place / MANIFEST).open("x", encoding="utf-8", newline="\n") as file:
            file.write(_TEMPLATE.format(name=name, words=words, title=words.capitalize()))
    except FileExistsError as error:
        raise SetupError(
            "setting-invalid",
            f"{error.filename} exists already.",
            hint="Choose another name or another --dir.",
            data={"path": str(error.filename)},
        ) from None
    except OSError as error:
        raise SetupError("setting-invalid", f"{place} cannot be made: {error.strerror}.", hint="Check --dir.") from None
    if json:
        print_json({"name": name, "dir": str(place), "files": [MANIFEST]})
        return 0
    sys.stdout.write(line(str(place / MANIFEST)) + "\n")
    say(f"Write the description and the steps, then: satchel check {line(str(place))} --strict")
    return 0
