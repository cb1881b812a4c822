"""The option that keeps what the suite measured, for the page about the sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.rig import Result


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sandbox-table", metavar="PATH", help="write the verdicts of tests/hostile there, as JSON")


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Callable[[Result], None]:
    """Adds a result to the file that was asked for. Only for a run in one process."""
    place = request.config.getoption("--sandbox-table", default=None)

    def kept(result: Result) -> None:
        if place is None:
            return
        path = Path(place)
        results = json.loads(path.read_text()) if path.exists() else []
        results = [one for one in results if (one["backend"], one["user"]) != (result.backend, result.user)]
        path.write_text(json.dumps([*results, result.as_json()], indent=1))

    return kept
