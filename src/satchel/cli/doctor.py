"""``satchel doctor``: what this machine has, what is missing and how to get it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Annotated, Literal

from cyclopts import Parameter

from satchel import __version__
from satchel.cli.allowed import allowed, confines, held_by, shape
from satchel.cli.console import line, print_json, say
from satchel.cli.options import ExecOptions, Json, ModelOptions, SkillOptions, settings_from
from satchel.cli.probe import Probed
from satchel.cli.probe import probe as probe_model
from satchel.errors import SatchelError
from satchel.execution.environment import host_path
from satchel.ports.models import EmbeddedOptions, UpstreamOptions
from satchel.settings import Settings
from satchel.skills.names import near_names
from satchel.wiring.models import describe, embedded_models, open_upstream, weights_status
from satchel.wiring.sandbox import BackendReport, Detected, find_sandbox
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


_ALWAYS_THERE = ("python", "python3")
"""The Python that runs us, where no other is."""

Probe = Annotated[
    bool,
    Parameter(
        name="--probe",
        help="Ask a model of each upstream (--model, or its first) what it can carry, with a few short requests that "
        "may cost something, and compare that with what is known of its family.",
    ),
]


def doctor(
    *,
    skills: SkillOptions = SkillOptions(),
    options: ModelOptions = ModelOptions(),
    execution: ExecOptions = ExecOptions(),
    probe: Probe = False,
    json: Json = False,
) -> int:
    """Say what this machine has, what is missing and how to get it. Exits 1 when something is wrong."""
    settings = settings_from(skills, options, execution)
    models, probed = _models(settings, with_probe=probe)
    execution_findings, sandbox = _execution(settings)
    findings = [
        Finding(
            what="satchel", status="ok", detail=f"{__version__} on Python {platform.python_version()}, {sys.platform}"
        ),
        *(_extra(name, packages) for name, packages in _EXTRAS.items()),
        _skills(settings),
        *models,
        *execution_findings,
        *_grants(settings),
        *_interpreters(settings),
        *(
            Finding(what="setting", status="ok", detail=f"{key} comes from {origin}")
            for key, origin in settings.origins.items()
            if origin != "default"
        ),
    ]
    is_wrong = any(item.status == "failed" for item in findings)
    is_wrong |= any(row.verdict == "contradicts" for row in probed)
    if json:
        told: dict[str, object] = {
            "ok": not is_wrong,
            "findings": [asdict(item) for item in findings],
            "sandbox": _sandbox_json(sandbox),
        }
        print_json(told | ({"probe": [asdict(row) for row in probed]} if probe else {}))
        return 1 if is_wrong else 0
    for item in findings:
        sys.stdout.write(f"{item.status:<8} {item.what:<10} {line(item.detail)}\n")
        if item.hint:
            sys.stdout.write(f"{'':<19} {line(item.hint)}\n")
    _print_probed(probed)
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


def _models(settings: Settings, *, with_probe: bool) -> tuple[list[Finding], list[Probed]]:
    """What can be said of each model server, and what its model answered when it was probed."""
    findings: list[Finding] = []
    probed: list[Probed] = []
    for options in settings.upstreams or embedded_models(settings):
        if isinstance(options, EmbeddedOptions):
            findings.append(_weights(options))
            if with_probe:
                detail = "the embedded model is led by a grammar: there is nothing to probe"
                findings.append(Finding(what="probe", status="ok", detail=detail))
            continue
        finding, rows = asyncio.run(_upstream(settings, options, with_probe=with_probe))
        findings.append(finding)
        probed.extend(rows)
    return findings, probed


def _weights(options: EmbeddedOptions) -> Finding:
    try:
        found = weights_status(options)
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


async def _upstream(
    settings: Settings, options: UpstreamOptions, *, with_probe: bool
) -> tuple[Finding, tuple[Probed, ...]]:
    label = f"{options.name} ({describe(options)}): " if len(settings.upstreams) > 1 else ""
    try:
        async with aclosing(open_upstream(options)) as client:
            offered = [info.id for info in await client.models()]
            rows: tuple[Probed, ...] = ()
            if with_probe:
                name = settings.model.removeprefix(f"{options.name}/")
                if name not in offered and len(settings.upstreams) > 1:
                    name = ""
                rows = await probe_model(client, name or next(iter(offered), ""), upstream=options.name)
    except SatchelError as error:
        return _failed("upstream", label + error.message, error.hint), ()
    detail = f"{label}offers {', '.join(offered[:10]) or 'no models'}"
    return Finding(what="upstream", status="ok", detail=detail), rows


def _failed(what: str, detail: str, hint: str = "") -> Finding:
    return Finding(what=what, status="failed", detail=detail, hint=hint)


def _print_probed(rows: Sequence[Probed]) -> None:
    form = "{:<8} {:<10} {:<9} {:<9} {}"
    asked: tuple[str, str] | None = None
    for row in rows:
        if asked != (row.upstream, row.model):
            asked = (row.upstream, row.model)
            sys.stdout.write(f"\n{line(f'{row.model} of {row.upstream}')}\n")
            sys.stdout.write(form.format("", "", "declared", "observed", "").rstrip() + "\n")
        sys.stdout.write(form.format("", row.capability, row.declared, row.observed, row.verdict) + "\n")
        if row.note:
            sys.stdout.write(f"{'':<19} {row.note}\n")


def _execution(settings: Settings) -> tuple[list[Finding], Detected]:
    """Every backend with what it holds, and what the settings allow under the one that is used."""
    sandbox = asyncio.run(find_sandbox(settings.execution))
    findings = [_backend(item) for item in sandbox.report]
    for row in allowed(settings.execution, sandbox.executor):
        status = "failed" if row.refusal else "ok"
        hint = "" if row.is_on and not row.refusal else row.hint
        findings.append(Finding(what=row.what, status=status, detail=row.refusal or row.detail, hint=hint))
    findings.extend(Finding(what="setting", status="ok", detail=warning) for warning in settings.warnings)
    return findings, sandbox


def _grants(settings: Settings) -> list[Finding]:
    """What is given to scripts of skills that are not there, or is not set."""
    options = settings.execution
    if not (options.scripts and options.grants):
        return []
    try:
        names = [skill.name for skill in open_library(settings).skills]
    except SatchelError:
        return []  # said of the skills themselves
    findings: list[Finding] = []
    for skill, variables in options.grants.items():
        if skill not in names:
            near = near_names(skill, names, 1)
            hint = f"Did you mean {near[0]}?" if near else "satchel list names the skills that there are."
            findings.append(Finding(what="grant", status="missing", detail=f"there is no skill {skill}", hint=hint))
        for variable in variables:
            if variable not in os.environ:
                detail = f"{variable} is not set, so scripts of {skill} do not get it"
                hint = f"Set {variable} where satchel is started."
                findings.append(Finding(what="grant", status="missing", detail=detail, hint=hint))
    return findings


def _interpreters(settings: Settings) -> list[Finding]:
    """Those that are not installed, with the files that they would run."""
    if not settings.execution.scripts:
        return []
    endings: dict[str, list[str]] = {}
    for ending, command in settings.execution.interpreters.items():
        endings.setdefault(command[0], []).append(ending)
    path = os.pathsep.join(host_path(os.environ))
    return [
        Finding(
            what="scripts",
            status="missing",
            detail=f"{program} is not installed, so no {' or '.join(run)} file runs",
            hint="Install it, or name another program in SATCHEL_SKILLS_INTERPRETERS.",
        )
        for program, run in endings.items()
        if program not in _ALWAYS_THERE and shutil.which(program, path=path) is None
    ]


def _backend(item: BackendReport) -> Finding:
    name = f"{item.backend} {item.version}".strip()
    if item.reason:
        return Finding(what="sandbox", status="missing", detail=f"{name}: {item.reason}", hint=item.hint)
    held = sum(item.canaries.values())
    tried = f"; {held} of {len(item.canaries)} canaries held" if item.canaries else ""
    open_ones = [canary for canary, is_held in item.canaries.items() if not is_held]
    if open_ones:
        tried += f" (not {', '.join(open_ones)})"
    use = "used" if item.is_chosen else "works, not used"
    what = confines(item.confinement) if item.confinement is not None else ""
    return Finding(what="sandbox", status="ok", detail=f"{name}: {use}; {what}{tried}", hint=item.hint)


def _sandbox_json(sandbox: Detected) -> dict[str, object]:
    backends: list[dict[str, object]] = [
        {
            "name": item.backend,
            "version": item.version,
            "used": item.is_chosen,
            "reason": item.reason,
            "hint": item.hint,
            "canaries": dict(item.canaries),
            "confinement": shape(item.confinement) if item.confinement is not None else None,
        }
        for item in sandbox.report
    ]
    return {"backends": backends, "used": held_by(sandbox.executor)}
