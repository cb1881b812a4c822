"""What ships is right in itself: every scenario's contract holds, and a double that cheats is caught."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from satchel.errors import SetupError
from satchel.evals.double import UNKNOWN, reader
from satchel.evals.exam import make_exam
from satchel.evals.scenario import BUILTIN, read_scenario
from satchel.evals.stage import draw, staged
from satchel.evals.suite import run_scenario
from satchel.evals.targets import execute, plan
from satchel.execution.workbench import Execution
from tests.evals.runs import SHIPPED, ferry, one_row, only, run_of, scenario_of, verdicts
from tests.project.tree import ROOT

BUNDLED = ROOT / "evals" / "bundled.json"
SCENARIOS = {
    **{name: (scenario, BUILTIN / "skills") for name, scenario in SHIPPED.items()},
    "bundled": (read_scenario(BUNDLED), ROOT / "skills"),
}


@pytest.mark.parametrize("seed", [7, 8])
@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_contract_of_every_scenario_that_ships_holds(name: str, seed: int, execution: Execution) -> None:
    scenario, folder = SCENARIOS[name]
    run = run_of(seed=seed, execution=execution)
    rows = await run_scenario(scenario, folder, run)
    results = [result for row in rows for result in row.of("contract")]
    assert len(results) >= 3
    allowed = {"pass", "cannot"} if run.lacks_programs else {"pass"}
    assert [(r.case, r.reasons) for r in results if r.verdict not in allowed] == []


def test_there_are_eight_with_several_prompts_each() -> None:
    scenarios = list(SHIPPED.values())
    assert [scenario.id for scenario in scenarios] == [f"SK{number}" for number in range(1, 9)]
    assert min(len(scenario.cases) for scenario in scenarios) >= 3
    shells = {scenario.id for scenario in scenarios if scenario.shell}
    assert shells == {"SK4", "SK6", "SK8"}


async def test_what_a_script_prints_is_the_answer_where_it_may_run(execution: Execution) -> None:
    scenario, folder = SCENARIOS["bundled"]
    fuel = scenario.model_copy(update={"cases": [case for case in scenario.cases if case.needs == "shell"]})
    rows = await run_scenario(fuel, folder, run_of(execution=execution))
    called = {row.arm: [call.name for call in only(row.results).seen.calls] for row in rows}
    assert called == {
        "control": [],
        "selected": ["skills_read", "skills_run"],
        "discovery": ["skills_read", "skills_run"],
    }
    assert "191.29" in only(rows[2].results).seen.calls[1].output


async def test_an_exam_is_passed_by_whoever_reads_and_by_nobody_else() -> None:
    rows = await execute(plan(["exam"]), run_of())
    assert {row.arm: row.cell("contract") for row in rows} == {
        "control": "10/10",
        "control, unrelated": "5/5",
        "selected": "10/10",
        "selected, unrelated": "5/5",
        "discovery": "10/10",
        "discovery, unrelated": "5/5",
    }
    control = next(row for row in rows if row.arm == "control")
    assert {result.seen.text for result in control.results} == {UNKNOWN}


def call_of(name: str, pattern: str, part: str = "system", tool: str = "skill", **more: Any) -> dict[str, Any]:
    finds = {"name": {"part": part, "pattern": pattern}}
    return {"call": tool, "arguments": {"name": "{name}", **more}, "finds": finds} | (
        {"arguments": {name: "{name}"}} if name != "name" else {}
    )


DONE = {"answer": "Done."}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (call_of("name", "^- (ferries)"), "nothing in the request's system text matches"),
        (call_of("name", "^- (ferry)", tool="bash"), "declares no tool bash"),
        (call_of("skill", "^- (ferry)"), "skill declares no parameter skill"),
        ({"call": "skill", "arguments": {"name": "ferry"}}, "comes from nowhere"),
        ({"call": "skill", "arguments": {"name": "{other}"}}, "finds no other"),
    ],
)
async def test_a_double_that_does_not_play_by_the_rules_breaks_the_contract(
    tmp_path: Path, step: dict[str, Any], said: str
) -> None:
    row = await one_row(scenario_of(contract=[step, DONE]), ferry(tmp_path), run_of())
    result = only(row.of("contract"))
    assert result.verdict == "error"
    assert said in result.reasons[0]


async def test_a_contract_that_never_comes_to_its_situation_or_its_end_is_broken(tmp_path: Path) -> None:
    root = ferry(tmp_path)
    unmet = scenario_of(contract=[DONE], situation=[{"kind": "code", "code": "DISABLED"}])
    assert verdicts(await one_row(unmet, root, run_of()), "contract") == ["fail"]
    unplayed = scenario_of(contract=[DONE, DONE])
    assert verdicts(await one_row(unplayed, root, run_of()), "contract") == ["fail"]
    assert verdicts(await one_row(scenario_of(contract=[DONE]), root, run_of()), "contract") == ["pass"]


def texts(root: Path) -> dict[str, str]:
    """What the files below a directory hold, by their last names."""
    return {path.name: path.read_text(encoding="utf-8") for path in root.rglob("*") if path.is_file()}


async def test_values_are_drawn_from_the_seed_and_stand_only_in_the_copies(tmp_path: Path) -> None:
    scenario, root = scenario_of(), ferry(tmp_path, files={"evals/evals.json": "[]", "references/a.md": "@fare@ too"})
    first, second = draw(scenario, 7), draw(scenario, 8)
    assert first == draw(scenario, 7) != second
    async with staged(root, ("ferry",), first) as copies:
        files = await asyncio.to_thread(texts, copies)
    assert set(files) == {"SKILL.md", "a.md"}
    assert first["fare"] in files["SKILL.md"]
    assert files["a.md"] == f"{first['fare']} too"
    assert await asyncio.to_thread(texts, copies) == {}
    assert "@fare@" in (await asyncio.to_thread(texts, root))["SKILL.md"]


@pytest.mark.parametrize(("folder", "names"), [("", ("nobody",)), ("nowhere", ())])
async def test_a_skill_that_is_not_there_is_said(tmp_path: Path, folder: str, names: tuple[str, ...]) -> None:
    with pytest.raises(SetupError) as caught:
        async with staged(tmp_path / folder, names):
            pass
    assert caught.value.code == "root-missing"


async def test_a_folder_with_a_pipe_in_it_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    os.mkfifo(ferry(tmp_path) / "ferry" / "pipe")
    with pytest.raises(SetupError):
        async with staged(tmp_path, ("ferry",)):
            pass


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("{}", "id"),
        ('{"id": "x", "title": "t", "cases": []}', "cases"),
        ('{"id": "x", "title": "t", "cases": [{"id": "c", "say": ["hi"]}], "colour": 1}', "colour"),
        ('{"id": "x", "title": "t", "cases": [{"id": "c", "say": ["hi"]}], "contract": [{}]}', "contract.0"),
    ],
)
def test_a_file_that_is_wrong_is_said_with_the_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SetupError) as caught:
        read_scenario(path)
    assert str(path) in caught.value.message
    assert said in caught.value.message


def test_the_reader_does_not_know_what_it_was_not_shown() -> None:
    question = make_exam(7).questions[0]
    assert question.skill
    assert reader(question).requests == []
