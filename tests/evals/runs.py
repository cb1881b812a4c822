"""Makers that the tests of evals share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.request import ChatRequest
from satchel.evals.converse import ARMS, Asked
from satchel.evals.report import CaseResult, Row
from satchel.evals.scenario import BUILTIN, Scenario, read_scenario, scenario_files
from satchel.evals.suite import Run, run_scenario
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.support import write_skill

SHIPPED = {path.stem: read_scenario(path) for path in scenario_files(BUILTIN)}
"""The built-in scenarios, read before there is a loop that must not wait."""

Answers = Sequence[Reply | Callable[[ChatRequest], Reply]]


def run_of(answers: Answers | None = None, *, tools: str = "native", **more: Any) -> Run:
    """A run against a scripted model, of the contract alone without one."""
    capabilities = ModelCapabilities(tools=tools)  # pyright: ignore[reportArgumentType]
    asked = None if answers is None else Asked(models=ScriptedModel(answers, capabilities=capabilities))
    return replace(Run(asked=asked, seed=7, arms=ARMS, tell=lambda _: None), **more)


def says(text: str) -> Reply:
    return Reply(text=(text,))


def calls(tool: str, **arguments: Any) -> Reply:
    return Reply(calls=(call(tool, json.dumps(arguments)),))


def scenario_of(**fields: Any) -> Scenario:
    """A scenario over one skill, ``ferry``, whose body holds the value ``@fare@``."""
    base: dict[str, Any] = {
        "id": "S",
        "title": "A scenario",
        "values": {"fare": "code"},
        "cases": [{"id": "one", "say": ["What is the fare? Use the skill ferry."]}],
        "contract": [{"answer": "Nothing."}],
    }
    return Scenario.model_validate(base | fields)


def ferry(root: Path, **more: Any) -> Path:
    write_skill(root, "ferry", description="Fares of the ferry. Use for fares.", body="The fare is @fare@.\n", **more)
    return root


async def one_row(scenario: Scenario, root: Path, run: Run) -> Row:
    (row,) = await run_scenario(scenario, root, run)
    return row


def verdicts(row: Row, column: Any = "model") -> list[str]:
    return [result.verdict for result in row.of(column)]


def only(results: tuple[CaseResult, ...]) -> CaseResult:
    (result,) = results
    return result
