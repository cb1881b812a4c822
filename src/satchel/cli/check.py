"""``satchel check``, first form: does it load, and what would a reader complain about."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from cyclopts import Parameter

from satchel.cli.console import print_diagnostics, print_json, printable, say
from satchel.cli.options import Json
from satchel.errors import SetupError, SkillError
from satchel.library import discover
from satchel.skills.model import Diagnostic


def check(
    *paths: Annotated[str, Parameter(name="PATH", help="Skill folders, or folders that hold skills.")],
    strict: Annotated[bool, Parameter(name="--strict", help="Warnings fail the check too.")] = False,
    json: Json = False,
) -> int:
    """Check skill folders before you publish them.

    Exits 1 when one does not load, and with --strict when one has warnings.
    """
    if not paths:
        raise SetupError("setting-invalid", "Nothing to check.", hint="satchel check path/to/my-skill")
    results: dict[str, list[Diagnostic]] = {}
    for path in paths:
        results |= _check(path)
    worst = {"error", "warning"} if strict else {"error"}
    failed = {folder for folder, found in results.items() if any(item.severity in worst for item in found)}
    if json:
        print_json(
            {
                "skills": [
                    {"path": folder, "ok": folder not in failed, "diagnostics": [item.to_dict() for item in found]}
                    for folder, found in results.items()
                ],
                "ok": not failed,
            }
        )
        return 1 if failed else 0
    for folder, found in results.items():
        verdict = "fails" if folder in failed else ("loads, with findings" if found else "ok")
        sys.stdout.write(f"{printable(folder)}: {verdict}\n")
        sys.stdout.flush()
        print_diagnostics(found)
    say(f"{len(results)} checked, {len(failed)} failed.")
    return 1 if failed else 0


def _check(path: str) -> dict[str, list[Diagnostic]]:
    """Findings by skill folder, for every skill at or below ``path``; each folder stands for itself."""
    folder = os.path.dirname(path) or "." if os.path.basename(path).lower() == "skill.md" else path  # noqa: PTH119, PTH120
    if not os.path.isdir(folder):  # noqa: PTH112
        raise SetupError("root-missing", f"There is no directory {path}.", data={"path": path})
    library = discover([folder])
    results: dict[str, list[Diagnostic]] = {}
    for skill in library.skills:
        found = results[skill.location] = list(skill.diagnostics)
        try:
            library.load(skill.ref)
        except SkillError as error:
            found.append(
                Diagnostic(
                    rule=error.code, severity="error", path=skill.location, message=error.message, hint=error.hint
                )
            )
    for item in library.diagnostics:
        place = item.path if os.path.isdir(item.path) else os.path.dirname(item.path)  # noqa: PTH112, PTH120
        known = results.setdefault(place, [])
        if item not in known:
            known.append(item)
    if not results:
        raise SetupError(
            "root-missing",
            f"There is no skill in {path}.",
            hint="A skill is a folder with a file called SKILL.md.",
            data={"path": path},
        )
    return dict(sorted(results.items()))
