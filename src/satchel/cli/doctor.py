"""``satchel doctor``: what this machine has, what is missing and how to get it."""

from __future__ import annotations

import asyncio
import platform
import shutil
import sys
from contextlib import aclosing
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Literal

from satchel import __version__
from satchel.cli.console import line, print_json, say
from satchel.cli.options import Json, ModelOptions, SkillOptions, settings_from
from satchel.errors import SatchelError
from satchel.settings import Settings
from satchel.wiring.models import open_models, weights_status
from satchel.wiring.sources import open_library

_EXTRAS = {
    "cli": ("cyclopts", "pydantic"),
    "models": ("aiohttp",),
    "embedded": ("xllamacpp", "pip"),
    "serve": ("fastapi", "uvicorn"),
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the report. ``missing`` is something that can be had; ``failed`` is something that is wrong."""

    what: str
    status: Literal["ok", "missing", "failed"]
    detail: str
    hint: str = ""


def doctor(*, skills: SkillOptions = SkillOptions(), options: ModelOptions = ModelOptions(), json: Json = False) -> int:
    """Say what this machine has, what is missing and how to get it. Exits 1 when something is wrong."""
    settings = settings_from(skills, options)
    findings = [
        Finding(
            what="satchel", status="ok", detail=f"{__version__} on Python {platform.python_version()}, {sys.platform}"
        ),
        *(_extra(name, packages) for name, packages in _EXTRAS.items()),
        _skills(settings),
        _weights(settings) if settings.upstream is None else asyncio.run(_upstream(settings)),
        _sandbox(),
        *(
            Finding(what="setting", status="ok", detail=f"{key} comes from {origin}")
            for key, origin in settings.origins.items()
            if origin != "default"
        ),
    ]
    is_wrong = any(item.status == "failed" for item in findings)
    if json:
        print_json({"ok": not is_wrong, "findings": [asdict(item) for item in findings]})
        return 1 if is_wrong else 0
    for item in findings:
        sys.stdout.write(f"{item.status:<8} {item.what:<10} {line(item.detail)}\n")
        if item.hint:
            sys.stdout.write(f"{'':<19} {line(item.hint)}\n")
    say("Something is wrong." if is_wrong else "Nothing is wrong.")
    return 1 if is_wrong else 0


def _extra(name: str, packages: tuple[str, ...]) -> Finding:
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        return Finding(
            what=name,
            status="missing",
            detail=f"not installed: {', '.join(absent)}",
            hint=f"pip install 'satchel[{name}]'",
        )
    return Finding(what=name, status="ok", detail=", ".join(packages))


def _skills(settings: Settings) -> Finding:
    try:
        library = open_library(settings)
    except SatchelError as error:
        return Finding(what="skills", status="failed", detail=error.message, hint=error.hint)
    broken = sum(item.severity == "error" for item in library.diagnostics)
    detail = f"{len(library.skills)} found, {broken} broken, in {', '.join(library.roots) or 'no directory'}"
    if broken:
        return Finding(what="skills", status="failed", detail=detail, hint="satchel list names each with its reason.")
    if not library.skills:
        return Finding(what="skills", status="missing", detail=detail, hint="Name a directory with --skills-dir DIR.")
    return Finding(what="skills", status="ok", detail=detail)


def _weights(settings: Settings) -> Finding:
    try:
        found = weights_status(settings)
    except SatchelError as error:
        return Finding(what="model", status="failed", detail=error.message, hint=error.hint)
    if not found["present"]:
        return Finding(
            what="model",
            status="missing",
            detail=f"{found['name']} is not at {found['path']}",
            hint="satchel model fetch",
        )
    return Finding(what="model", status="ok", detail=f"{found['name']} at {found['path']}")


async def _upstream(settings: Settings) -> Finding:
    try:
        async with aclosing(open_models(settings)) as models:
            offered = [info.id for info in await models.models()]
    except SatchelError as error:
        return Finding(what="upstream", status="failed", detail=error.message, hint=error.hint)
    return Finding(what="upstream", status="ok", detail=f"offers {', '.join(offered[:10]) or 'no models'}")


def _sandbox() -> Finding:
    found = shutil.which("bwrap")
    if found is None:
        return Finding(
            what="bubblewrap",
            status="missing",
            detail="not installed; scripts of skills are not run by this version, so nothing needs it yet",
            hint="apt-get install bubblewrap",
        )
    return Finding(what="bubblewrap", status="ok", detail=f"{found}; scripts of skills are not run by this version")
