"""``satchel read``."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from satchel.cli.console import print_json, printable, say
from satchel.cli.options import Json, SkillOptions, library_from


def read(
    name: Annotated[str, Parameter(help="The skill's name.")],
    path: Annotated[str, Parameter(help="A path inside the skill, such as SKILL.md or references/a.md.")],
    /,
    *,
    offset: Annotated[
        int, Parameter(name="--offset", validator=Number(gte=0), help="The byte at which to begin (0).")
    ] = 0,
    skills: SkillOptions = SkillOptions(),
    json: Json = False,
) -> int:
    """Print a file of one skill, a page at a time; a page never splits a character."""
    library = library_from(skills)
    page = library.read(name, path, offset=offset)
    if json:
        print_json(
            {
                "name": skill.name if (skill := library.get(name)) else name,
                "path": path,
                "text": page.text,
                "start": page.start,
                "end": page.end,
                "total": page.total,
                "next_offset": page.next_offset,
            }
        )
        return 0
    sys.stdout.write(printable(page.text) if sys.stdout.isatty() else page.text)
    sys.stdout.flush()
    if page.start or not page.is_last:
        more = "" if page.next_offset is None else f"; go on with --offset {page.next_offset}"
        say(f"bytes {page.start} to {page.end} of {page.total}{more}")
    return 0
