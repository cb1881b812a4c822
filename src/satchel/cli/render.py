"""``satchel render``."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from cyclopts import Parameter

from satchel.cli.console import line, print_diagnostics, print_json, printable, say
from satchel.cli.options import Json, SkillOptions, settings_from
from satchel.errors import SetupError


def render(
    name: Annotated[str, Parameter(help="The skill's name.")],
    /,
    *,
    args: Annotated[
        str | None,
        Parameter(name="--args", help="All arguments in one text, as a user would write them after the name."),
    ] = None,
    arg: Annotated[
        tuple[str, ...], Parameter(name="--arg", help="One named argument, NAME=VALUE; repeat for several.")
    ] = (),
    env: Annotated[
        tuple[str, ...], Parameter(name="--env", help="A value for ${NAME}, NAME=VALUE; repeat for several.")
    ] = (),
    skills: SkillOptions = SkillOptions(),
    json: Json = False,
) -> int:
    """Print a skill's instructions with arguments put in, by the rules of --dialect.

    Nothing is run: commands in the text that some programs would run are reported. The environment of this process is
    not used; only --env is.
    """
    from satchel.skills.dialects import DIALECTS
    from satchel.skills.model import MANIFEST
    from satchel.skills.substitute import place_variables, substitute_skill
    from satchel.wiring.sources import open_library

    if args is not None and arg:
        raise SetupError("setting-invalid", "--args and --arg exclude each other.", hint="Use one of them.")
    given = _pairs("--arg", arg) if arg else args
    environ = _pairs("--env", env)
    settings = settings_from(skills)
    row = DIALECTS[settings.skills.dialect]
    loaded = open_library(settings).load(name)
    where = loaded.skill.location
    rendered = substitute_skill(
        loaded,
        given,
        dialect=row,
        variables=place_variables(row, directory=where),
        environ=environ,
        path=os.path.join(where, MANIFEST),  # noqa: PTH118 - a text for findings
    )
    if json:
        print_json(
            {
                "name": loaded.name,
                "text": rendered.text,
                "unused_arguments": list(rendered.unused_arguments),
                "diagnostics": [item.to_dict() for item in rendered.diagnostics],
            }
        )
        return 0
    sys.stdout.write(printable(rendered.text) if sys.stdout.isatty() else rendered.text)
    sys.stdout.flush()
    print_diagnostics(rendered.diagnostics)
    if rendered.unused_arguments:
        say(f"note: the text has no place for {line(', '.join(rendered.unused_arguments))}")
    return 0


def _pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise SetupError(
                "setting-invalid", f"{option} {item!r} is not NAME=VALUE.", hint=f"{option} target=staging"
            )
        if name in pairs:
            raise SetupError("setting-invalid", f"{option} names {name!r} twice.", hint="Give each name once.")
        pairs[name] = value
    return pairs
