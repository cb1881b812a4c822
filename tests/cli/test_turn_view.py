"""What a person is told of the tools of a turn."""

from __future__ import annotations

import pytest

from satchel.cli.turn_view import TurnView
from satchel.engine.events import ToolFinished


@pytest.mark.parametrize(
    ("name", "where", "code", "said"),
    [
        ("skills_read", ("pdf", "SKILL.md"), "", "read     pdf/SKILL.md (round 2)"),
        ("skills_run", ("pdf", "scripts/a.py"), "", "ran      skills_run pdf scripts/a.py (round 2)"),
        ("shell", ("", ""), "", "ran      shell (round 2)"),
        ("skills_run", ("pdf", "a.py"), "script-failed", "failed (script-failed) skills_run pdf a.py (round 2)"),
    ],
)
def test_what_ran_is_not_said_to_have_been_read(
    capsys: pytest.CaptureFixture[str], name: str, where: tuple[str, str], code: str, said: str
) -> None:
    event = ToolFinished(round=2, call_id="c", name=name, ok=not code, skill=where[0], path=where[1], code=code)
    TurnView().show(event)
    assert capsys.readouterr().err == f"{said}\n"
