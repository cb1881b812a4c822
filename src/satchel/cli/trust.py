"""``satchel trust``: the skill folders that a person has approved."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from cyclopts import App, Parameter

from satchel.cli.console import line, print_json, say
from satchel.cli.options import Json
from satchel.errors import SkillError
from satchel.library import load_skill
from satchel.library.approvals import Approvals, approvals_file

app = App(name="trust", help="The skill folders that you have approved: list, add, remove.", help_format="plaintext")

Directory = Annotated[str, Parameter(help="The skill's directory.")]


def _approvals() -> Approvals:
    return Approvals(approvals_file(os.environ))


@app.default
@app.command(name="list")
def list_approvals(*, json: Json = False) -> int:
    """List what is approved, and which approvals have ended because something changed."""
    approvals = _approvals()
    rows = [
        {"path": item.path, "digest": item.digest, "time": item.time, "valid": approvals.covers(item.path)}
        for item in approvals.entries()
    ]
    if json:
        print_json({"file": approvals.path, "approved": rows})
        return 0
    for row in rows:
        sys.stdout.write(f"{'approved' if row['valid'] else 'changed '}  {line(str(row['path']))}\n")
    if not rows:
        say("Nothing is approved.")
        say("  hint: satchel trust add DIRECTORY")
    return 0


@app.command
def add(directory: Directory, /, *, json: Json = False) -> int:
    """Approve a skill folder as it is now. Any change in it ends the approval."""
    skill = load_skill(directory)
    approval = _approvals().add(skill.location)
    if json:
        print_json({"name": skill.name, "path": approval.path, "digest": approval.digest})
        return 0
    say(f"Approved {line(skill.name)} in {line(approval.path)}")
    say(f"  {approval.digest}; any change in the folder ends this")
    return 0


@app.command
def remove(directory: Directory, /, *, json: Json = False) -> int:
    """Take an approval back."""
    if not _approvals().remove(directory):
        raise SkillError(
            "skill-not-found", f"{directory} is not approved.", hint="satchel trust list shows what is approved."
        )
    if json:
        print_json({"path": os.path.realpath(directory), "removed": True})
    else:
        say(f"No longer approved: {line(directory)}")
    return 0
