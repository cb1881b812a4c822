"""What a run is pointed at: the built-in scenarios, the exam, scenario files, and skill folders with evals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from satchel.errors import SetupError
from satchel.evals.converse import Asked
from satchel.evals.exam import make_exam
from satchel.evals.report import Row
from satchel.evals.scenario import BUILTIN, Scenario, read_scenario, scenario_files
from satchel.evals.skill_evals import SkillEvals, read_skill_evals, run_skill_evals
from satchel.evals.stage import EVALS, temporary
from satchel.evals.suite import Exercise, Run, run_arms, run_scenario

BUILTIN_NAME = "builtin"
EXAM = "exam"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will be run, read and checked. ``with_exam`` adds the questions that are made from the seed."""

    scenarios: tuple[tuple[Scenario, Path], ...] = ()
    skills: tuple[SkillEvals, ...] = ()
    with_exam: bool = False

    @property
    def runs_programs(self) -> bool:
        """Whether some case needs a program to run."""
        return any(
            scenario.shell is not None or any(case.needs == "shell" for case in scenario.cases)
            for scenario, _ in self.scenarios
        )


def plan(targets: Sequence[str], only: Collection[str] = ()) -> Plan:
    """Reads everything that is to be run; ``only`` keeps the scenarios with these ids.

    Raises:
        SetupError: "setting-invalid" for a target that is none, a file that is wrong, an id that nothing has.
    """
    scenarios: list[tuple[Scenario, Path]] = []
    skills: list[SkillEvals] = []
    with_exam = False
    for target in targets or (BUILTIN_NAME,):
        path = Path(target)
        if target == EXAM:
            with_exam = True
        elif target == BUILTIN_NAME:
            scenarios += _read(scenario_files(BUILTIN))
        elif (path / "SKILL.md").is_file():
            skills.append(read_skill_evals(path.resolve()))
        elif path.is_dir():
            scenarios += _read(scenario_files(path))
        elif path.is_file() and path.resolve().parent.name == EVALS and _skill_of(path) is not None:
            skills.append(read_skill_evals(path.resolve().parents[1], (path,)))
        elif path.is_file():
            scenarios += _read([path])
        else:
            raise SetupError(
                "setting-invalid",
                f'There is no file or directory "{target}".',
                hint=f"Name scenario files, skill folders, {BUILTIN_NAME} or {EXAM}.",
            )
    ids = [scenario.id for scenario, _ in scenarios]
    unknown = [name for name in only if name not in ids]
    if unknown:
        raise SetupError("setting-invalid", f"There is no scenario {unknown[0]}.", hint=f"There are {', '.join(ids)}.")
    if only:
        return Plan(scenarios=tuple(item for item in scenarios if item[0].id in only))
    if not scenarios and not skills and not with_exam:
        raise SetupError("setting-invalid", f"There are no scenario files in {', '.join(targets)}.")
    return Plan(scenarios=tuple(scenarios), skills=tuple(skills), with_exam=with_exam)


async def execute(planned: Plan, run: Run, judge: Asked | None = None) -> tuple[Row, ...]:
    """Runs it. Raises ``SatchelError`` for what fails every case alike."""
    rows: list[Row] = []
    for scenario, folder in planned.scenarios:
        rows += await run_scenario(scenario, folder, run)
    if planned.with_exam:
        rows += await _exam(run)
    for skill in planned.skills:
        rows += await run_skill_evals(skill, run, judge)
    return tuple(rows)


def _read(files: Iterable[Path]) -> list[tuple[Scenario, Path]]:
    read = [(read_scenario(path), path) for path in files]
    return [(scenario, path.parent / scenario.folder) for scenario, path in read]


def _skill_of(path: Path) -> Path | None:
    folder = path.resolve().parents[1]
    return folder if (folder / "SKILL.md").is_file() else None


async def _exam(run: Run) -> tuple[Row, ...]:
    made = make_exam(run.seed)
    questions = [(f"question {number}", item) for number, item in enumerate((*made.questions, *made.plain), 1)]
    exercise = Exercise(id=EXAM, title=f"Made from the seed {run.seed}", questions=questions)
    async with temporary(made.write) as root:
        return await run_arms(exercise, root, run)
