"""A bound on what all workspaces hold together: however many conversations there are, the disk stays usable."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
import time
from collections.abc import Callable

from satchel.errors import SandboxError
from satchel.ports.execution import Confinement, Executor, Job, Launch, Outcome, Shell
from satchel.scratch.roots import held_bytes

_SHARE = 2
"""Half of what was free at first."""
_PATIENCE = 10
"""A sum is good for so many times as long as it took to make."""
_SMALL = frozenset({"check", "probe"})


class Room:
    """Says whether more may be written below ``base``, the place for temporary files when None. Blocks.

    All that this process has there may hold half of what was free when this was first asked. It is summed up only while
    less than the other half is free, as it has to be when so much was written; by one caller at a time, and what was
    found last is good for the others meanwhile.
    """

    def __init__(
        self,
        base: str | None = None,
        *,
        free: Callable[[str], int] | None = None,
        held: Callable[[str | None], int] = held_bytes,
    ) -> None:
        self._base = base
        self._free = free or _free
        self._held = held
        self._summing = threading.Lock()
        self._most: int | None = None
        self._is_full = False
        self._good_until = 0.0

    def is_full(self) -> bool:
        """Whether they hold more than they may."""
        free = self._free(self._base or tempfile.gettempdir())
        if self._most is None:
            self._most = free // _SHARE
        if free >= self._most:
            return False
        began = time.monotonic()
        if began >= self._good_until and self._summing.acquire(blocking=False):
            try:
                self._is_full = self._held(self._base) > self._most
                now = time.monotonic()
                self._good_until = now + _PATIENCE * (now - began)
            finally:
                self._summing.release()
        return self._is_full


class RoomyExecutor(Executor):
    """An ``Executor`` that begins nothing while there is no room."""

    def __init__(self, inner: Executor, room: Room) -> None:
        self._inner = inner
        self._room = room

    @property
    def confinement(self) -> Confinement:
        return self._inner.confinement

    @property
    def shell(self) -> Shell | None:
        return self._inner.shell

    @property
    def can_run(self) -> bool:
        return self._inner.can_run

    @property
    def unavailable_reason(self) -> str:
        return self._inner.unavailable_reason

    async def start(self, launch: Launch) -> Job:
        await self._require(launch)
        return await self._inner.start(launch)

    async def run(self, launch: Launch) -> Outcome:
        await self._require(launch)
        return await self._inner.run(launch)

    async def _require(self, launch: Launch) -> None:
        if launch.purpose not in _SMALL and await asyncio.to_thread(self._room.is_full):
            raise SandboxError(
                "no-room",
                "The programs of all conversations here have filled the disk space that they share; nothing was run.",
                hint="There is room again when some of these conversations have ended.",
            )


def _free(path: str) -> int:
    try:
        return shutil.disk_usage(path).free
    except OSError:  # where nothing can be made, nothing is filled
        return 0
