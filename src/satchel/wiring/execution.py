"""What may run for models on this host, from settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from satchel.execution.artifacts import Artifacts
from satchel.execution.options import ExecutionOptions
from satchel.execution.workbench import Execution
from satchel.wiring.sandbox import find_sandbox


@asynccontextmanager
async def open_execution(options: ExecutionOptions) -> AsyncGenerator[Execution | None, None]:
    """The executor that was found and the shelf of produced files; None when nothing may run.

    Leaving the block removes the shelf.
    """
    if not (options.scripts or options.code):
        yield None
        return
    found = await find_sandbox(options)
    shelf = await asyncio.to_thread(Artifacts)
    execution = Execution(found.executor, options, artifacts=shelf)
    try:
        yield execution
    finally:
        await asyncio.to_thread(execution.close)
