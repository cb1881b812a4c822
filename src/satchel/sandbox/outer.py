"""A job around another one, which has ended when what surrounds its program is gone, too."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from satchel.ports.execution import Job, Outcome


class OuterJob:
    """A ``Job``. ``end`` waits for ``job`` and undoes what surrounds it, whether or not anybody waits."""

    def __init__(self, job: Job, end: Coroutine[Any, Any, Outcome]) -> None:
        self._job = job
        self._ending = asyncio.ensure_future(end)

    @property
    def pid(self) -> int:
        return self._job.pid

    async def wait(self) -> Outcome:
        try:
            return await asyncio.shield(self._ending)
        except asyncio.CancelledError:
            await self.kill()
            raise

    async def kill(self) -> None:
        await self._job.kill()
        await asyncio.shield(self._ending)
