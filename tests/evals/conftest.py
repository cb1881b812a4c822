from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from satchel.execution.options import ExecutionOptions
from satchel.execution.workbench import Execution
from satchel.wiring.execution import open_execution


@pytest.fixture
async def execution() -> AsyncGenerator[Execution]:
    """What runs programs on this host, in its own sandbox."""
    async with open_execution(ExecutionOptions(scripts=True)) as opened:
        assert opened is not None
        yield opened
