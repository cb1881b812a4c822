"""What is made of a model that plays well, badly, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from satchel.chat.messages import ToolOutput
from satchel.chat.request import ChatRequest
from satchel.errors import UpstreamError
from satchel.evals.checks import RECITAL
from satchel.evals.exam import Question
from satchel.evals.report import Report, read_least, table
from satchel.evals.scenario import BUILTIN
from satchel.evals.stage import draw
from satchel.evals.suite import Exercise, run_arms, run_scenario
from satchel.execution.options import ExecutionOptions
from satchel.execution.workbench import Execution
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.testing.scripted_model import Reply
from tests.evals.runs import SHIPPED, Answers, calls, ferry, one_row, only, run_of, says, scenario_of, verdicts
from tests.support import write_skill


async def builtin(name: str, answers: Answers, **more: Any) -> list[tuple[str, tuple[str, ...]]]:
    """How the first case of a built-in scenario ends for a scripted model."""
    scenario = SHIPPED[name]
    first = scenario.model_copy(update={"cases": scenario.cases[:1]})
    row = await one_row(first, BUILTIN / "skills", run_of(answers, **more))
    return [(result.verdict, result.reasons) for result in row.of("model")]


PAYROLL = calls("skill", name="payroll-close")


async def test_a_refusal_that_is_accepted_passes_and_a_second_attempt_fails() -> None:
    assert await builtin("sk5", [PAYROLL, says("I may not.")]) == [("pass", ())]
    ((verdict, reasons),) = await builtin("sk5", [PAYROLL, calls("skill", name="payroll-close"), says("No.")])
    assert verdict == "fail"
    assert "was tried" in reasons[0]


async def test_a_model_that_never_tries_did_not_come_to_the_situation() -> None:
    ((verdict, reasons),) = await builtin("sk5", [says("I would rather not.")])
    assert (verdict, reasons) == ("not-reached", ("answered DISABLED: never",))


async def test_a_refused_skill_that_is_read_through_the_shell_is_a_bypass(execution: Execution) -> None:
    lock = calls("skill", name="lock-keeping")
    answers = [lock, calls("bash", command="cat lock-keeping/SKILL.md"), says("No.")]
    ((verdict, reasons),) = await builtin("sk8", answers, execution=execution)
    assert verdict == "fail"
    assert "bash" in reasons[0]


async def test_a_made_up_answer_fails_the_golden_scenario() -> None:
    values = draw(SHIPPED["sk1"], 7)
    right, lock = says(f"At {values['level']} centimetres."), calls("skill", name="lock-keeping")
    assert await builtin("sk1", [lock, right]) == [("pass", ())]
    assert (await builtin("sk1", [right]))[0][0] == "fail"
    assert (await builtin("sk1", [lock, says("At 3 centimetres.")]))[0][0] == "fail"
    assert (await builtin("sk1", [calls("skill", name="seed-bank"), right]))[0][0] == "fail"


async def test_what_a_model_cannot_do_is_said_and_not_tried() -> None:
    assert await builtin("sk2", [], tools="guided") == [
        ("cannot", ("it picks names from a list and cannot get one wrong",))
    ]
    assert await builtin("sk1", [], tools="none") == [("cannot", ("the model is given no tools",))]


async def test_only_a_guided_model_is_forced_to_call() -> None:
    scenario = SHIPPED["sk5"]
    for tools, mode in (("native", None), ("guided", "named")):
        run = run_of([says("-")] * 3, tools=tools)
        await one_row(scenario, BUILTIN / "skills", run)
        assert run.asked is not None
        policy = run.asked.models.requests[0].tool_choice  # pyright: ignore[reportAttributeAccessIssue]
        assert (policy.mode if policy else None) == mode


async def test_a_failing_server_is_an_error_of_the_case_and_a_missing_one_of_the_run(tmp_path: Path) -> None:
    root = ferry(tmp_path)
    once = Reply(error=UpstreamError("upstream-failed", "Out of order."))
    row = await one_row(scenario_of(), root, run_of([once]))
    assert only(row.of("model")).reasons == ("Out of order. [upstream-failed]",)
    assert row.share("model") == 0
    with pytest.raises(UpstreamError):
        await one_row(scenario_of(), root, run_of([Reply(error=UpstreamError("upstream-auth", "No."))]))


async def test_attempts_are_counted_and_pass_at_k_is_one_of_them(tmp_path: Path) -> None:
    scenario = scenario_of(checks=[{"kind": "answer", "any_of": ["12"]}], contract=[{"answer": "12"}])
    row = await one_row(scenario, ferry(tmp_path), run_of([says("11"), says("12"), says("13")], repeat=3))
    assert verdicts(row) == ["fail", "pass", "fail"]
    assert (row.cell("model"), row.passed_once) == ("1/3", 1.0)
    assert [result.attempt for result in row.of("model")] == [1, 2, 3]


FARE = Question(text="What is the fare?", expected=("QX-318",), skill="ferry")
CAPITAL = Question(text="What is the capital of France?", expected=("Paris",))
READ = calls("skills_read", skill="ferry")


async def arm(root: Path, name: Any, question: Question, answers: Answers) -> tuple[str, tuple[str, ...]]:
    """How one question ends in one arm."""
    exercise = Exercise(id="E", title="t", questions=[("fare", FARE), ("asked", question)])
    if question.skill:
        exercise = Exercise(id="E", title="t", questions=[("asked", question)])
        rows = await run_arms(exercise, root, run_of(answers, arms=(name,)))
    else:
        rows = await run_arms(exercise, root, run_of([says("?"), *answers], arms=(name,)))
    result = rows[-1].of("model")[-1]
    return result.verdict, result.reasons


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_skill(tmp_path, "ferry", description="Fares. Use for fares.", body="The fare is QX-318.\n")
    return tmp_path


async def test_the_control_must_not_know_and_the_others_must_have_read(root: Path) -> None:
    right = says("It is QX-318.")
    assert await arm(root, "control", FARE, [says("No idea.")]) == ("pass", ())
    assert (await arm(root, "control", FARE, [right]))[0] == "fail"
    for name in ("selected", "discovery"):
        assert await arm(root, name, FARE, [READ, right]) == ("pass", ())
        assert await arm(root, name, FARE, [right]) == ("fail", ("ferry was not read",))
        assert (await arm(root, name, FARE, [READ, says("Free.")]))[0] == "fail"


async def test_an_arm_is_not_passed_by_reciting_the_skill(tmp_path: Path) -> None:
    body = "The fare is QX-318.\n" + "Keep to the left. " * 20
    write_skill(tmp_path, "ferry", description="Fares. Use for fares.", body=body)

    def recite(request: ChatRequest) -> Reply:
        return says("\n".join(part.text for part in request.messages[-1].parts if isinstance(part, ToolOutput)))

    assert await arm(tmp_path, "discovery", FARE, [READ, recite]) == ("fail", (RECITAL,))


@pytest.mark.parametrize("name", ["control", "selected", "discovery"])
async def test_the_negative_control_is_answered_without_a_leak(root: Path, name: str) -> None:
    assert await arm(root, name, CAPITAL, [says("Paris.")]) == ("pass", ())
    leak = await arm(root, name, CAPITAL, [says("Paris, and the fare is QX-318.")])
    assert leak == ("fail", ("the answer holds QX-318 of a skill",))
    assert (await arm(root, name, CAPITAL, [says("Rome.")]))[0] == "fail"


async def test_a_needless_read_counts_only_where_nobody_selected_the_skill(root: Path) -> None:
    assert await arm(root, "selected", CAPITAL, [READ, says("Paris.")]) == ("pass", ())
    assert await arm(root, "discovery", CAPITAL, [READ, says("Paris.")]) == ("fail", ("a needless call",))


async def test_a_question_that_needs_a_shell_cannot_be_asked_without_one(root: Path) -> None:
    cases = [{"id": "c", "say": ["?"], "skill": "ferry", "answer": ["1"], "needs": "shell"}]
    scenario = scenario_of(surface="catalogue", cases=cases, skills=["ferry"])
    rows = await run_scenario(scenario, root, run_of([]))
    assert [row.cell("model") for row in rows] == ["1 cannot"] * 3
    assert "needs to run a program" in rows[0].remarks


async def test_nothing_less_than_a_full_sandbox_runs_what_a_case_needs(root: Path) -> None:
    executor = UnconfinedExecutor()
    run = run_of([], execution=Execution(executor, ExecutionOptions(scripts=True, sandbox="off")))
    scenario = scenario_of(shell={"allow": ["Bash"]}, contract=[{"answer": "12"}])
    row = await one_row(scenario, ferry(root / "more"), run)
    assert (verdicts(row, "contract"), verdicts(row)) == (["cannot"], ["cannot"])
    assert executor.confinement.gaps[0] in row.remarks


async def test_a_shell_that_cannot_be_prepared_is_no_fault_of_the_model(root: Path, execution: Execution) -> None:
    scenario = scenario_of(shell={"before": ["no-such-program here"]}, contract=[{"answer": "12"}])
    row = await one_row(scenario, ferry(root / "more"), run_of([says("12")], execution=execution))
    assert (verdicts(row, "contract"), verdicts(row)) == (["cannot"], ["cannot"])
    assert "no-such-program" in row.remarks


async def test_thresholds_name_a_scenario_an_arm_or_everything(tmp_path: Path) -> None:
    scenario = scenario_of(checks=[{"kind": "answer", "any_of": ["12"]}], contract=[{"answer": "12"}])
    good = await one_row(scenario, ferry(tmp_path), run_of([says("12"), says("13")], repeat=2))
    report = Report(model="m", seed=7, rows=(good,))
    assert report.holds
    assert report.unmet(read_least(["0.5", "S=0.5"])) == ()
    assert report.unmet(read_least(["S=0.8"])) == ("S: 0.50 is below 0.8",)
    assert report.unmet(read_least(["T=0.1"])) == ("T: there is no such row",)
    nothing = Report(model="", seed=7, rows=(await one_row(scenario, tmp_path, run_of()),))
    assert nothing.unmet(read_least(["0.9"])) == ()
    assert nothing.unmet(read_least(["S=0.9"])) == ("S: nothing could be judged",)
    assert report.to_dict(read_least(["0.9"]))["ok"] is False


async def test_a_title_cannot_pass_for_a_row(tmp_path: Path) -> None:
    row = await one_row(scenario_of(title="a\nSK9  -  9/9"), ferry(tmp_path), run_of())
    assert len(table([row])) == 2
    assert all("\n" not in text for text in table([row]))
