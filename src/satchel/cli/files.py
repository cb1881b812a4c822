"""``satchel files``."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from satchel.cli.console import bytes_text, line, print_json
from satchel.cli.options import Json, SkillOptions, library_from
from satchel.cli.views import file_view


def files(
    name: Annotated[str, Parameter(help="The skill's name.")],
    /,
    *,
    skills: SkillOptions = SkillOptions(),
    json: Json = False,
) -> int:
    """List the files of one skill, with kind and size. ``satchel read`` prints one."""
    loaded = library_from(skills).load(name)
    if json:
        print_json(
            {"name": loaded.name, "dir": loaded.skill.location, "files": [file_view(file) for file in loaded.files]}
        )
        return 0
    shown = [line(file.path) for file in loaded.files]
    width = max(map(len, shown), default=0)
    for path, file in zip(shown, loaded.files, strict=True):
        form = "" if file.is_text else "  binary"
        sys.stdout.write(f"{path:<{width}}  {file.kind:<9}  {bytes_text(file.bytes)}{form}\n")
    return 0
