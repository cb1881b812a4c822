"""Which skills a program sees."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from satchel.activation.session import SkillSession
from satchel.context.budget import page_bytes
from satchel.engine.host import ToolBox, ToolHost
from satchel.engine.runtime import HostContext, HostFactory
from satchel.errors import SetupError
from satchel.library import Library, discover
from satchel.library.roots import default_roots, install_dir
from satchel.skills.dialects import DIALECTS
from satchel.sources.directory import DirectorySource
from satchel.tools.access import SkillAccess
from satchel.tools.base import Tool
from satchel.tools.bench import bench_tools
from satchel.tools.script_advice import ScriptAdvice
from satchel.tools.skill import SkillActivate
from satchel.tools.skill_read import SkillRead
from satchel.tools.skill_search import SkillSearch
from satchel.tools.skills_list import SkillsList
from satchel.tools.skills_read import SkillsRead
from satchel.tools.skills_run import SkillsRun

if TYPE_CHECKING:
    # Its validation is an extra of its own; hosts are made without settings too.
    from satchel.settings import Settings


def roots(settings: Settings) -> tuple[str, ...]:
    """The directories that are scanned, in order of precedence. A given one that is missing is a ``SetupError``."""
    if not settings.skills.dirs:
        return default_roots(working_directory(), install_dir(os.environ))
    for given in settings.skills.dirs:
        if not Path(given).is_absolute():
            working_directory()
        if not Path(given).is_dir():
            raise SetupError(
                "root-missing",
                f"The skills directory {given} does not exist."
                if not Path(given).exists()
                else f"{given} is not a directory.",
                hint=f"Check {settings.origins['skills.dirs']}.",
                data={"path": given},
            )
    return settings.skills.dirs


def working_directory() -> Path:
    """What relative paths start from. Raises ``SetupError`` root-missing when it has been removed."""
    try:
        return Path.cwd()
    except OSError as error:
        raise SetupError(
            "root-missing",
            f"The working directory cannot be used: {error.strerror}.",
            hint="Change to a directory that exists.",
        ) from error


def open_library(settings: Settings) -> Library:
    """Scans the roots. Broken skills are diagnostics of the result, never errors."""
    chosen = settings.skills
    row = DIALECTS[chosen.dialect]
    ceilings = {
        "skills": chosen.max_skills,
        "files": chosen.max_files,
        "skill_bytes": chosen.max_skill_bytes,
        "manifest_bytes": chosen.max_manifest_bytes,
    }
    limits = replace(row.limits, **{name: value for name, value in ceilings.items() if value is not None})
    return discover(roots(settings), dialect=row, disabled=chosen.disabled, limits=limits)


def open_source(settings: Settings) -> DirectorySource | None:
    """The origin of skills for a runtime, None when skills are off."""
    return DirectorySource(open_library(settings)) if settings.skills.enabled else None


async def skill_hosts(context: HostContext) -> tuple[ToolHost, ...]:
    """The hosts of one turn: the skill tools over what this turn may reach, and what runs on its workbench."""
    bench = context.workbench
    runner = bench.scripts if bench else None
    access = SkillAccess(
        context.source,
        context.reach.reachable,
        selected={skill.name for skill in context.reach.selected},
        page_bytes=page_bytes(context.capabilities.context_tokens),
        offers_choices=context.capabilities.tools == "guided",
        runnable=runner.interpreters if runner else (),
    )
    tools: list[Tool] = []
    if access.skills:
        tools = [SkillsList(access), SkillsRead(access), SkillSearch(access), SkillRead(access)]
    habits: dict[str, Tool] = {}
    if bench is not None:
        scripts = SkillsRun(access, runner) if runner and await access.has_scripts() else None
        placed = bench_tools(bench, scripts, ScriptAdvice(access) if scripts else None)
        tools += placed.declared
        habits = placed.habits
    return (ToolBox(tools, advise=access.advise, habits=habits),) if tools else ()


def session_hosts(session: SkillSession) -> HostFactory:
    """Turns in which skills are activated through this session, in place of the tools that read them.

    Its ``system_message()`` belongs in front of the conversation; ``session.discover()`` comes first.
    """
    return lambda context: (ToolBox((SkillActivate(session),)),)  # noqa: ARG005
