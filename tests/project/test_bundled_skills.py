"""The skills that come with Satchel, read as strictly as any harness reads them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import skills_ref

from satchel.library import discover
from tests.project.tree import ROOT

SKILLS = sorted(path.parent for path in (ROOT / "skills").glob("*/SKILL.md"))
BUDGET = ROOT / "skills" / "fuel-budget" / "scripts" / "budget.py"


def test_there_are_at_least_four() -> None:
    assert len(SKILLS) >= 4


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.name)
def test_the_reference_validator_accepts_it(skill: Path) -> None:
    assert skills_ref.validate(skill) == []


def test_satchel_itself_finds_nothing_to_say() -> None:
    library = discover([str(ROOT / "skills")])
    assert library.diagnostics == ()
    assert [skill.name for skill in library.skills] == [skill.name for skill in SKILLS]
    assert [library.load(skill.ref).skill.diagnostics for skill in library.skills] == [()] * len(SKILLS)


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.name)
def test_a_small_model_reads_it_quickly_and_knows_when(skill: Path) -> None:
    text = (skill / "SKILL.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert "Use when " in skills_ref.read_properties(skill).description


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.name)
def test_the_files_it_points_to_are_there(skill: Path) -> None:
    text = (skill / "SKILL.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:references|scripts|assets)/[\w./-]+\.\w+", text))
    bundled = {str(path.relative_to(skill)) for path in skill.rglob("*") if path.is_file()} - {"SKILL.md"}
    assert named == bundled


def check_digits(period: str, branch: str, serial: str) -> str:
    return f"{98 - int(period + branch + serial) * 100 % 97:02d}"


def test_the_worked_invoice_numbers_are_right() -> None:
    text = (ROOT / "skills" / "invoice-number" / "SKILL.md").read_text(encoding="utf-8")
    numbers = set(re.findall(r"TR[WC]-(\d{4})-(\d\d)-(\d{5})-(\d\d)", text))
    assert len(numbers) == 2
    assert [number for number in numbers if check_digits(*number[:3]) != number[3]] == []


def test_the_figures_of_the_kiln_stand_only_in_its_reference() -> None:
    skill = ROOT / "skills" / "kiln-firing"
    figures = set(re.findall(r"\b\d{3,4}\b", (skill / "references" / "schedules.md").read_text(encoding="utf-8")))
    assert len(figures) > 6
    assert figures & set(re.findall(r"\d+", (skill / "SKILL.md").read_text(encoding="utf-8"))) == set()


def budget(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-I", str(BUDGET), *words], capture_output=True, text=True, check=False)


def test_the_budget_script_prints_one_figure_that_its_skill_does_not() -> None:
    ended = budget("--distance", "640", "--payload", "210", "--headwind", "18")
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "fuel to load: 191.29 kg")
    assert "191.29" not in (BUDGET.parents[1] / "SKILL.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--distance", "2000", "--payload", "480"], "not possible"),
        (["--distance", "nan"], "--distance must be"),
        (["--distance", "640", "--headwind", "nan"], "--headwind must be"),
        (["--distance", "640", "--payload", "481"], "--payload must be"),
    ],
)
def test_the_budget_script_refuses_what_the_aircraft_cannot_do(words: list[str], said: str) -> None:
    ended = budget(*words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
