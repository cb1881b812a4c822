"""A runtime from settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from satchel.engine.runtime import Runtime
from satchel.settings import Settings
from satchel.wiring.execution import open_execution
from satchel.wiring.models import open_models
from satchel.wiring.sources import open_source, skill_hosts


@asynccontextmanager
async def open_runtime(settings: Settings) -> AsyncGenerator[Runtime, None]:
    """A runtime for the running loop; leaving the block releases its model client."""
    source = await asyncio.to_thread(open_source, settings)
    async with open_execution(settings.execution) as execution:
        runtime = Runtime(
            models=open_models(settings),
            source=source,
            hosts=skill_hosts,
            limits=settings.loop,
            default_model=settings.model if settings.upstreams else "",
            discovery=settings.skills.discovery,
            execution=execution,
        )
        try:
            yield runtime
        finally:
            await runtime.aclose()
