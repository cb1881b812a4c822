"""``satchel show``."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from satchel.cli.console import bytes_text, line, print_diagnostics, print_json, printable, say
from satchel.cli.options import Json, SkillOptions, library_from
from satchel.cli.views import cost_tokens, full_view


def show(
    name: Annotated[str, Parameter(help="The skill's name.")],
    /,
    *,
    skills: SkillOptions = SkillOptions(),
    json: Json = False,
) -> int:
    """Show one skill: its metadata, files and instructions."""
    library = library_from(skills)
    loaded = library.load(name)
    if json:
        print_json(full_view(loaded, library.roots))
        return 0
    skill = loaded.skill
    facts = {
        "name": skill.name,
        "description": skill.summary,
        "directory": skill.location,
        "hint": skill.argument_hint,
        "license": skill.text("license"),
        "requires": skill.text("compatibility"),
        "tools": " ".join(skill.allowed_tools),
        "shadows": ", ".join(skill.shadowed),
        "cost": f"{cost_tokens(skill)} tokens in every listing, {(loaded.manifest_bytes + 3) // 4} when it is read",
    }
    for label, value in facts.items():
        if value:
            say(f"{label:<12} {line(value)}")
    for file in loaded.files:
        form = "" if file.is_text else ", binary"
        say(f"{'file':<12} {line(file.path)}  ({file.kind}, {bytes_text(file.bytes)}{form})")
    print_diagnostics(skill.diagnostics)
    say()
    sys.stdout.write(printable(loaded.body) if sys.stdout.isatty() else loaded.body)
    return 0
