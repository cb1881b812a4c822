"""What a person is told of the tools of a turn."""

from __future__ import annotations

import os

import pytest

from satchel.chat.events import Usage
from satchel.cli.turn_view import TurnView
from satchel.engine.events import ToolFinished, TurnDone
from satchel.execution.artifacts import NotKept


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


def test_what_jobs_made_and_cannot_be_had_is_said_with_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    lost = tuple(NotKept(path=f"f{number}", reason="is odd") for number in range(5))
    done = TurnDone(finish="stop", usage=Usage(), usage_by_round=(Usage(),), rounds=1, not_kept=lost, run="run_1")
    TurnView().show(done)
    *notes, _ = capsys.readouterr().err.splitlines()
    assert notes == [
        *(f"note     f{number} cannot be saved: it is odd" for number in range(3)),
        "note     2 more cannot be saved",
    ]


def test_what_was_run_is_shown_with_how_it_ended_and_why_it_failed(capsys: pytest.CaptureFixture[str]) -> None:
    event = ToolFinished(
        round=2, call_id="c", name="shell", ok=False, code="command-failed", duration_s=1.24,
        command="python area.py \x1b[2J | tail", exit_code=1, reason="TypeError: area() takes\n1 argument",
    )  # fmt: skip
    TurnView().show(event)
    assert capsys.readouterr().err == (
        "failed (command-failed) shell python area.py [2J | tail (exit code 1, 1.2 s, round 2)\n"
        "why      TypeError: area() takes 1 argument\n"
    )


def test_lines_are_no_wider_than_their_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((80, 24)))
    event = ToolFinished(
        round=1, call_id="c", name="skills_run", ok=False, code="x", skill="fuel", path="a.py", reason="w" * 300,
        command=f"a.py {'y' * 300}", exit_code=3, not_kept=(NotKept(path="large", reason="is larger than 64 MiB"),),
    )  # fmt: skip
    monkeypatch.setattr("sys.stderr.fileno", lambda: 2, raising=False)
    TurnView().show(event)
    ran, why, note = capsys.readouterr().err.splitlines()
    assert (len(ran), len(why)) == (80, 80)
    assert ran.startswith("failed (x) skills_run fuel a.py yyy")
    assert ran.endswith("yyy... (exit code 3, 0.0 s, round 1)")
    assert note == "note     large cannot be saved: it is larger than 64 MiB"
