"""One command line in this process: its exit code and what it printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from satchel.cli.app import call


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Caller = Callable[..., Said]


def caller(capsys: pytest.CaptureFixture[str]) -> Caller:
    def run(*arguments: str) -> Said:
        code = call(list(arguments))
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run
