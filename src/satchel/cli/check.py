"""``satchel check``: what loads, what an author should change, and in which harness it loads how."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from cyclopts import Parameter

from satchel.cli.console import line, print_diagnostics, print_json, printable, say
from satchel.cli.options import Json
from satchel.cli.portability import print_portability
from satchel.errors import SetupError
from satchel.library.checking import CheckReport, SkillCheck, find_targets
from satchel.library.checking import check as check_skills
from satchel.library.fixing import plan_fixes
from satchel.skills.dialects import find_dialect
from satchel.skills.files import is_manifest
from satchel.wiring.sources import working_directory


def check(
    *paths: Annotated[str, Parameter(name="PATH", help="Skill folders, or folders that hold skills.")],
    strict: Annotated[bool, Parameter(name="--strict", help="Warnings fail the check too.")] = False,
    dialect: Annotated[str, Parameter(name="--dialect", help="The harness whose rules judge (portable).")] = "portable",
    targets: Annotated[
        str, Parameter(name="--targets", help="Show where else the skills load: all, or ids separated by commas.")
    ] = "",
    fix: Annotated[
        bool, Parameter(name="--fix", help="Make the repairs that change no meaning, and show them as a diff.")
    ] = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="With --fix: only show the diff.")] = False,
    json: Json = False,
) -> int:
    """Check skill folders before you publish them.

    Exits 1 when one does not load, and with --strict when one has warnings.
    """
    if not paths:
        raise SetupError("setting-invalid", "Nothing to check.", hint="satchel check path/to/my-skill")
    if dry_run and not fix:
        raise SetupError("setting-invalid", "--dry-run needs --fix.", hint="satchel check --fix --dry-run my-skill")
    row, rows = find_dialect(dialect), find_targets(targets)
    for path in paths:
        _require_directory(path)
    if fix:
        for path in paths:
            _fix(path, dialect, dry_run=dry_run)
    reports = [check_skills(path, dialect=row, targets=rows) for path in paths]
    report = _merged(reports)
    passes = all(one.ok(strict) for one in reports)
    if json:
        print_json({**report.to_dict(strict=strict), "ok": passes})
        return 0 if passes else 1
    for skill in report.skills:
        _show(skill, strict=strict)
    print_diagnostics(report.diagnostics)
    print_portability(report.skills)
    failed = sum(not skill.passes(strict=strict) for skill in report.skills)
    say(f"{len(report.skills)} checked, {failed} failed.")
    return 0 if passes else 1


def _require_directory(path: str) -> None:
    folder = os.path.dirname(path) or "." if is_manifest(os.path.basename(path)) else path  # noqa: PTH119, PTH120
    if not os.path.isabs(folder):  # noqa: PTH117
        working_directory()
    if not os.path.isdir(folder):  # noqa: PTH112
        raise SetupError("root-missing", f"There is no directory {path}.", data={"path": path})


def _fix(path: str, dialect: str, *, dry_run: bool) -> None:
    for fix in plan_fixes(path, dialect=dialect):
        say(printable(fix.diff().replace("\r\n", "\n")).rstrip("\n"))
        if not dry_run:
            fix.write()
            say(f"Repaired {line(fix.path)}.")


def _merged(reports: list[CheckReport]) -> CheckReport:
    """One report; a skill below several of the paths stands in it once."""
    skills = {skill.path: skill for report in reports for skill in report.skills}
    diagnostics = dict.fromkeys(item for report in reports for item in report.diagnostics)
    return CheckReport(skills=tuple(skills.values()), diagnostics=tuple(diagnostics))


def _show(skill: SkillCheck, *, strict: bool) -> None:
    verdict = "fails" if not skill.passes(strict=strict) else ("loads, with findings" if skill.diagnostics else "ok")
    sys.stdout.write(line(f"{skill.path}: {verdict}") + "\n")
    sys.stdout.flush()
    print_diagnostics(skill.diagnostics)
