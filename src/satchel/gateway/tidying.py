"""What goes by itself when its time is over, also while nobody asks for anything."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from satchel.engine.runtime import Runtime
from satchel.gateway.sessions import Sessions

logger = logging.getLogger("satchel.gateway")

_OFTEN_S = 1.0
_SELDOM_S = 60.0


def look_s(idle_s: float) -> float:
    """How long to wait between two looks at things that last ``idle_s``: a tenth of it, within a second and a minute.

    That is by how much something may last longer.
    """
    return min(_SELDOM_S, max(_OFTEN_S, idle_s / 10))


@asynccontextmanager
async def tidied(sessions: Sessions, runtime: Runtime, *, every_s: float) -> AsyncGenerator[None]:
    """Sessions with their workbenches, and produced files, go in time while the block runs; sessions end with it."""
    looking = asyncio.create_task(_look(sessions, runtime, every_s))
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await sessions.aclose()


async def _look(sessions: Sessions, runtime: Runtime, every_s: float) -> None:
    shelf = runtime.execution.artifacts if runtime.execution else None
    while True:
        await asyncio.sleep(every_s)
        try:
            await sessions.sweep()
            if shelf is not None:
                await asyncio.to_thread(shelf.sweep)
        except OSError as error:
            logger.warning("What is too old could not be removed: %s.", error.strerror)
