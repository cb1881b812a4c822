"""Runs scenarios: each case once against its double, which shows the contract, then against the model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from satchel.errors import SandboxError, SatchelError
from satchel.evals.checks import RECITAL, failed, is_recital
from satchel.evals.converse import ARMS, Arm, Asked, ask_in_arm, converse
from satchel.evals.double import player, reader
from satchel.evals.exam import Question, holds_value
from satchel.evals.report import CaseResult, Column, Row, Verdict
from satchel.evals.scenario import Case, Scenario
from satchel.evals.stage import draw, staged
from satchel.evals.transcript import Transcript
from satchel.execution.options import refusal
from satchel.execution.workbench import Execution
from satchel.library import Library, discover

Told = Callable[[CaseResult], None]

FATAL = frozenset(
    {
        "upstream-unreachable",
        "upstream-auth",
        "model-not-found",
        "weights-missing",
        "weights-corrupt",
        "extra-missing",
        "setting-invalid",
    }
)
"""What goes wrong for every case alike, so that the first one ends the run."""

_NO_TOOLS = "the model is given no tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is run. ``asked`` None is the contract alone. ``tell`` hears each result as it comes.

    ``limit`` is how many cases of a scenario, or of a row of questions, are run; None is all. ``execution`` runs the
    programs that cases need, in nothing less than a full sandbox; without it those cases cannot be done.
    """

    asked: Asked | None
    seed: int
    repeat: int = 1
    limit: int | None = None
    arms: Collection[Arm] = ARMS
    tell: Told
    execution: Execution | None = None

    @property
    def lacks_programs(self) -> str:
        """Why no program can be run, "" when it can."""
        if self.execution is None:
            return "It needs to run a program, and none may run here."
        return refusal(self.execution.executor, "required")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """Questions with their ids, over a directory of skills. ``programs`` are those that need a script to run."""

    id: str
    title: str
    questions: Sequence[tuple[str, Question]]
    programs: frozenset[str] = frozenset()


async def run_scenario(scenario: Scenario, folder: Path, run: Run) -> tuple[Row, ...]:
    """The rows of one scenario whose skills lie in ``folder``. Raises ``SatchelError`` when nothing can be run."""
    values = draw(scenario, run.seed)
    async with staged(folder, scenario.skills, values) as root:
        if scenario.surface == "catalogue":
            return await run_arms(_exercise(scenario), root, run)
        places = values | {f"dir:{name}": str(root / name) for name in scenario.skills}
        return (await _session_row(scenario, places, root, run),)


async def _session_row(scenario: Scenario, values: dict[str, str], root: Path, run: Run) -> Row:
    results: list[CaseResult] = []
    lacking = run.lacks_programs if scenario.shell else ""
    for case in scenario.cases[: run.limit]:
        if lacking:
            results.append(_said(_result(scenario, case, "contract", "cannot", (lacking,)), run))
            continue
        one = scenario.of(case, values)
        double = player(one.contract)
        result = await timed(_graded(one, case, Asked(models=double), root, "contract", run))
        if result.verdict == "not-reached":
            result = replace(result, verdict="fail")
        if result.verdict == "pass" and len(double.requests) < len(one.contract):
            result = replace(result, verdict="fail", reasons=("the double was not asked for all its steps",))
        results.append(_said(result, run))
    if run.asked is not None:
        unable = lacking or await _unable(scenario, run.asked)
        for case in scenario.cases[: run.limit]:
            for attempt in range(1, run.repeat + 1):
                if unable:
                    result = _result(scenario, case, "model", "cannot", (unable,))
                else:
                    one = scenario.of(case, values)
                    result = await timed(_graded(one, case, run.asked, root, "model", run))
                results.append(_said(replace(result, attempt=attempt), run))
    return Row(scenario=scenario.id, arm="", title=scenario.title, results=tuple(results))


async def _unable(scenario: Scenario, asked: Asked) -> str:
    tools = (await asked.capabilities()).tools
    return _NO_TOOLS if tools == "none" else scenario.guided if tools == "guided" else ""


async def _graded(  # noqa: PLR0917
    scenario: Scenario, case: Case, asked: Asked, root: Path, column: Column, run: Run
) -> CaseResult:
    try:
        seen = await converse(asked, scenario, root, run.execution)
    except SatchelError as error:
        verdict = "cannot" if isinstance(error, SandboxError) else "error"
        return _result(scenario, case, column, verdict, (cause(error),))
    wrong = failed(scenario.checks, seen)
    missing = failed(scenario.situation, seen)
    verdict: Verdict = "fail" if wrong else "not-reached" if missing else "pass"
    return replace(_result(scenario, case, column, verdict, wrong or missing), seen=seen)


def _result(
    scenario: Scenario, case: Case, column: Column, verdict: Verdict, reasons: tuple[str, ...] = ()
) -> CaseResult:
    return CaseResult(scenario=scenario.id, arm="", case=case.id, column=column, verdict=verdict, reasons=reasons)


def cause(error: SatchelError) -> str:
    """The failure of one case as a sentence. Raises it again when it is one of them all."""
    if error.code in FATAL:
        raise error
    return f"{error.message} [{error.code}]"


# --- The arms.


def _exercise(scenario: Scenario) -> Exercise:
    return Exercise(
        id=scenario.id,
        title=scenario.title,
        questions=[(case.id, _question(case)) for case in scenario.cases],
        programs=frozenset(case.id for case in scenario.cases if case.needs == "shell"),
    )


def _question(case: Case) -> Question:
    return Question(text=case.say[0].text, expected=case.answer, skill=case.skill)


async def run_arms(exercise: Exercise, root: Path, run: Run) -> tuple[Row, ...]:
    """A row for each arm over the skills in ``root``, and one for each arm of the questions that need none."""
    library = await asyncio.to_thread(discover, [root])
    needing = [item for item in exercise.questions if item[1].skill][: run.limit]
    plain = [item for item in exercise.questions if not item[1].skill][: run.limit]
    rows: list[Row] = []
    chosen: list[Arm] = [arm for arm in ARMS if arm in run.arms]
    for arm in chosen:
        what = _ARM_TITLES[arm]
        rows.append(await _arm_row(exercise, needing, arm, library, run, title=f"{exercise.title}: {what}"))
        if plain:
            title = f"{exercise.title}: unrelated questions, answered without a leak"
            rows.append(await _arm_row(exercise, plain, arm, library, run, title=title, label=f"{arm}, unrelated"))
    return tuple(rows)


_ARM_TITLES: Mapping[Arm, str] = {
    "control": "no skills, and none of it is known",
    "selected": "the skill is selected",
    "discovery": "the catalogue alone",
}


async def _arm_row(
    exercise: Exercise,
    questions: Sequence[tuple[str, Question]],
    arm: Arm,
    library: Library,
    run: Run,
    *,
    title: str,
    label: str = "",
) -> Row:
    leaks = {value for _, other in exercise.questions if other.skill for value in other.expected}
    execution = run.execution if exercise.programs and not run.lacks_programs else None
    results: list[CaseResult] = []

    async def one(case: str, question: Question, asked: Asked, column: Column, attempt: int = 1) -> None:
        base = CaseResult(
            scenario=exercise.id, arm=label or arm, case=case, column=column, verdict="cannot", attempt=attempt
        )
        if case in exercise.programs and run.lacks_programs:
            results.append(_said(replace(base, reasons=(run.lacks_programs,)), run))
            return
        graded = _graded_in_arm(base, question, library, asked, arm=arm, leaks=leaks, execution=execution)
        results.append(_said(await timed(graded), run))

    for case, question in questions:
        await one(case, question, Asked(models=reader(question)), "contract")
    if run.asked is not None:
        for case, question in questions:
            for attempt in range(1, run.repeat + 1):
                await one(case, question, run.asked, "model", attempt)
    return Row(scenario=exercise.id, arm=label or arm, title=title, results=tuple(results))


async def _graded_in_arm(
    base: CaseResult,
    question: Question,
    library: Library,
    asked: Asked,
    *,
    arm: Arm,
    leaks: Collection[str],
    execution: Execution | None,
) -> CaseResult:
    skills = (question.skill,) if question.skill else tuple(skill.name for skill in library.skills)
    try:
        seen = await ask_in_arm(asked, library, arm, question.text, skills, execution=execution)
    except SatchelError as error:
        return replace(base, verdict="error", reasons=(cause(error),))
    wrong = tuple(_wrong_in_arm(question, arm, seen, leaks))
    return replace(base, verdict="fail" if wrong else "pass", reasons=wrong, seen=seen)


def _wrong_in_arm(question: Question, arm: Arm, seen: Transcript, leaks: Collection[str]) -> list[str]:
    """What is wrong with an answer in an arm; a guess that happens to be right is no answer."""
    is_answered = question.is_answered_by(seen.text)
    if not question.skill:
        leaked = [value for value in leaks if value not in question.text and holds_value(seen.text, (value,))]
        wrong = [f"the answer holds {value} of a skill" for value in sorted(leaked)]
        wrong += ["a needless call"] if arm == "discovery" and seen.calls else []
        return wrong + (["the answer is wrong"] if question.expected and not is_answered else [])
    if arm == "control":
        return ["answered without the skill"] if is_answered else []
    wrong = [] if question.skill in seen.loaded else [f"{question.skill} was not read"]
    if is_recital(seen.text, seen):
        return [*wrong, RECITAL]
    return wrong + ([] if is_answered else [f"the answer lacks {' or '.join(question.expected)}"])


async def timed(work: Awaitable[CaseResult]) -> CaseResult:
    """The result, with how long it took."""
    began = time.monotonic()
    result = await work
    return replace(result, duration_s=time.monotonic() - began)


def _said(result: CaseResult, run: Run) -> CaseResult:
    run.tell(result)
    return result
