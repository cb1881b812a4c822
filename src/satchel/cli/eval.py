"""``satchel eval``: what a model makes of skills, and whether the contract holds without one."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, cast

from cyclopts import Parameter
from cyclopts.validators import Number

from satchel.cli.console import line, print_json, say
from satchel.cli.options import Json, WhichModel, settings_from
from satchel.cli.progress import DownloadProgress
from satchel.errors import SetupError
from satchel.evals.converse import ARMS, Arm, Asked
from satchel.evals.report import CaseResult, Report, read_least, table
from satchel.evals.suite import Run
from satchel.evals.targets import Plan, execute, plan
from satchel.execution.options import ExecutionOptions
from satchel.settings import Settings
from satchel.wiring.execution import open_execution
from satchel.wiring.models import default_model, embedded_models, ensure_weights, open_models


def evaluate(
    *targets: Annotated[
        str,
        Parameter(
            name="TARGET",
            help="A scenario file, a directory of them, a skill folder with evals, builtin (the scenarios that come "
            "with Satchel) or exam (questions made from the seed). Without any: builtin.",
        ),
    ],
    scenario: Annotated[
        tuple[str, ...], Parameter(name="--scenario", help="Only the scenario of this id; repeat for several.")
    ] = (),
    arm: Annotated[
        str, Parameter(name="--arm", help="Which arms, separated by commas: control, selected, discovery (all).")
    ] = "",
    repeat: Annotated[
        int, Parameter(name="--repeat", validator=Number(gte=1, lte=100), help="Ask the model so often per case (1).")
    ] = 1,
    limit: Annotated[
        int | None, Parameter(name="--limit", validator=Number(gte=1), help="At most so many cases a scenario (all).")
    ] = None,
    seed: Annotated[int, Parameter(name="--seed", help="What the values in skills are drawn from (7).")] = 7,
    temperature: Annotated[
        float | None, Parameter(name="--temperature", help="The sampling temperature; the server's own without it.")
    ] = None,
    judge: Annotated[
        str, Parameter(name="--judge", help="A model of the same upstream that grades what only reading can tell.")
    ] = "",
    contract: Annotated[
        bool, Parameter(name="--contract", help="Ask no model: only show whether the contract holds.")
    ] = False,
    least: Annotated[
        tuple[str, ...],
        Parameter(
            name="--min",
            help="The part of the model's cases that must pass, 0 to 1: of every row, or NAME=0.8 of a scenario or "
            "arm; repeat for several.",
        ),
    ] = (),
    model: WhichModel = WhichModel(),  # noqa: B008 - it never changes
    json: Json = False,
) -> int:
    """Measure what a model makes of skills.

    Each scenario runs against a scripted double first, which shows whether the contract holds, then against the model.
    Progress goes to stderr, the table to stdout. Exits 1 when the contract is broken or a --min is missed.
    """
    planned, thresholds, arms = plan(targets, scenario), read_least(least), _arms(arm)
    if contract and planned.skills:
        raise SetupError(
            "setting-invalid",
            f"The evals of the skill {planned.skills[0].skill.name} have no contract: only a model can take them.",
            hint="Leave --contract out, or the skill folder.",
        )
    settings = settings_from(model)
    wanted = _Wanted(seed=seed, repeat=repeat, limit=limit, arms=arms, temperature=temperature, judge=judge)
    # Skills of a scenario are copies in a temporary place, which nobody should be told to approve.
    logging.getLogger("satchel.activation").setLevel(logging.ERROR)
    report = asyncio.run(_run(planned, wanted, None if contract else settings))
    if json:
        print_json(report.to_dict(thresholds))
    else:
        _print(report, report.unmet(thresholds))
    return 0 if report.holds and not report.unmet(thresholds) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """How the model is asked."""

    seed: int
    repeat: int
    limit: int | None
    arms: tuple[Arm, ...]
    temperature: float | None
    judge: str


def _arms(given: str) -> tuple[Arm, ...]:
    names = [name.strip() for name in given.split(",") if name.strip()]
    unknown = [name for name in names if name not in ARMS]
    if unknown:
        raise SetupError("setting-invalid", f'There is no arm "{unknown[0]}".', hint=f"There are {', '.join(ARMS)}.")
    return tuple(cast("list[Arm]", names)) or ARMS


async def _run(planned: Plan, wanted: _Wanted, settings: Settings | None) -> Report:
    """``settings`` None asks no model. Programs that cases need run in a full sandbox, or the cases cannot be done."""
    async with open_execution(ExecutionOptions(scripts=planned.runs_programs)) as execution:
        run = Run(
            asked=None,
            seed=wanted.seed,
            repeat=wanted.repeat,
            limit=wanted.limit,
            arms=wanted.arms,
            tell=_tell,
            execution=execution,
        )
        if settings is None:
            return Report(model="", seed=wanted.seed, rows=await execute(planned, run))
        if embedded_models(settings):
            progress = DownloadProgress()
            await ensure_weights(settings, progress)
            progress.finish()
        models = open_models(settings)
        try:
            name = await default_model(settings, models)
            asked = Asked(models=models, model=name, temperature=wanted.temperature)
            judge = Asked(models=models, model=wanted.judge, temperature=0.0) if wanted.judge else None
            rows = await execute(planned, replace(run, asked=asked), judge)
            return Report(model=name or (await models.models())[0].id, seed=wanted.seed, rows=rows)
        finally:
            await models.aclose()


def _tell(result: CaseResult) -> None:
    if result.column == "contract" and result.verdict == "pass":
        return
    where = " ".join(part for part in (result.scenario, result.arm, result.case) if part)
    why = f": {result.reasons[0]}" if result.reasons else ""
    say(line(f"{where} [{result.column}] {result.verdict} ({result.duration_s:.1f} s){why}"))


def _print(report: Report, unmet: Sequence[str]) -> None:
    for text in table(report.rows):
        sys.stdout.write(text + "\n")
    sys.stdout.flush()
    if not report.holds:
        say("The contract is broken: see the lines marked [contract] above.")
    for text in unmet:
        say(f"below --min: {line(text)}")
