"""``satchel list``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from satchel.cli.console import line, print_diagnostics, print_json, say
from satchel.cli.options import Json, SkillOptions, settings_from
from satchel.cli.views import skill_view
from satchel.errors import SkillError

if TYPE_CHECKING:
    from satchel.library import Library
    from satchel.skills.model import Diagnostic, LoadedSkill


def list_skills(*, skills: SkillOptions = SkillOptions(), json: Json = False) -> int:
    """List the skills that are found, and what is wrong with any.

    A folder that looks like a skill and does not load is named with its line, the reason and a hint.
    """
    from satchel.wiring.sources import open_library, roots

    settings = settings_from(skills)
    library = open_library(settings)
    loaded, late = _load_all(library)
    diagnostics = [*library.diagnostics, *late]
    if json:
        print_json(
            {
                "skills": [skill_view(item, library.roots) for item in loaded],
                "diagnostics": [item.to_dict() for item in diagnostics],
            }
        )
        return 0
    names = [line(item.name) for item in loaded]
    width = max(map(len, names), default=0)
    for name, item in zip(names, loaded, strict=True):
        sys.stdout.write(f"{name:<{width}}  {line(item.skill.summary)}\n")
    print_diagnostics(diagnostics)
    if not loaded:
        searched = roots(settings)
        say("No skills found." if searched else "No skills found: there is no directory to look in.")
        for root in searched:
            say(f"  looked in {line(root)}")
        say("  hint: name a directory with --skills-dir DIR; each skill is a folder with a SKILL.md.")
    return 0


def _load_all(library: Library) -> tuple[list[LoadedSkill], list[Diagnostic]]:
    from satchel.skills.model import Diagnostic

    loaded: list[LoadedSkill] = []
    late: list[Diagnostic] = []
    for skill in library.skills:
        try:
            loaded.append(library.load(skill.ref))
        except SkillError as error:
            # The folder changed between the scan and now, or breaks a ceiling: the others are still listed.
            late.append(
                Diagnostic(
                    rule=error.code, severity="error", path=skill.location, message=error.message, hint=error.hint
                )
            )
    return loaded, late
