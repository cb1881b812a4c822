"""What a person is told of the tools of a turn."""

from __future__ import annotations

import pytest

from satchel.chat.events import Usage
from satchel.cli.turn_view import TurnView
from satchel.engine.events import ToolFinished, TurnDone


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


@pytest.mark.parametrize("run", ["run_1", ""])
def test_what_jobs_made_is_said_with_the_end(capsys: pytest.CaptureFixture[str], run: str) -> None:
    files = ("out.csv",) if run else ()
    TurnView().show(TurnDone(finish="stop", usage=Usage(), usage_by_round=(Usage(),), rounds=1, files=files, run=run))
    assert ("made     in the background: out.csv" in capsys.readouterr().err) is bool(run)
