"""A shelf of skills for agents of every framework, and what a model may do wrong on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from satchel.activation.enforce import ToolPolicy
from satchel.activation.session import SkillSession
from tests.activation.shelves import put, session_over

SECRET = "Weigh the glaze twice."


def shelf(root: Path) -> Path:
    put(root, "glazing", "allowed-tools: weigh Bash(git log:*)", body=f"{SECRET}\n")
    put(root, "firing", body="Fire at cone 6.\n")
    return root


def session(root: Path, **options: Any) -> SkillSession:
    return session_over(shelf(root), dialect="portable", **options)


def enforcing(root: Path, **options: Any) -> SkillSession:
    return session(root, tool_policy=ToolPolicy(enforce=True), **options)


def denied(request: object) -> str:
    del request
    return "deny"


# A model's arguments, and the code of what it is told.
WRONG = [
    pytest.param({"name": "glazin"}, "No skill matches", id="nearly a name"),
    pytest.param({"skill": "glazing"}, "'skill': use 'name'", id="an alias"),
    pytest.param({"name": "glazing", "self": 1, "config": 2, "run_manager": 3}, "unknown parameter 'self'", id="more"),
    pytest.param({"name": 7}, "INVALID_PARAM", id="a number"),
    pytest.param({}, "'name' is required", id="nothing"),
]
