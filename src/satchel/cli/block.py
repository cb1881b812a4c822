"""``satchel block``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from satchel.cli.console import line, print_json, printable, say
from satchel.cli.options import Json, SkillOptions, library_from


def block(
    *,
    skill: Annotated[
        tuple[str, ...], Parameter(name="--skill", help="Select a skill by name; repeat for several.")
    ] = (),
    context_tokens: Annotated[
        int | None,
        Parameter(name="--context-tokens", validator=Number(gte=1), help="The model's window; unknown without it."),
    ] = None,
    skills: SkillOptions = SkillOptions(),
    json: Json = False,
) -> int:
    """Print the text about skills that a model would be given, and what it costs.

    The text goes to stdout; what each entry costs, in estimated tokens, to stderr.
    """
    from satchel.context.block import BlockOptions, plan

    library = library_from(skills)
    selected = [library.load(name) for name in skill]
    made = plan(selected, library.catalog.offered, BlockOptions(context_tokens=context_tokens))
    if json:
        print_json(
            {
                "text": made.text,
                "tokens": made.tokens,
                "entries": [asdict(entry) for entry in made.entries],
                "selected": [loaded.name for loaded in selected],
                "advertised": list(made.advertised),
                "omitted": made.omitted,
            }
        )
        return 0
    if made.text:
        sys.stdout.write((printable(made.text) if sys.stdout.isatty() else made.text) + "\n")
        sys.stdout.flush()
    for entry in made.entries:
        say(f"{entry.tokens:>6} tokens  {line(entry.name)}{'  (shortened)' if entry.shortened else ''}")
    say(f"{made.tokens:>6} tokens  together, estimated at four bytes each")
    if made.omitted:
        say(f"{made.omitted} more did not fit.")
    return 0
