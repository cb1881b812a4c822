"""Directories that live as long as a block: made and removed in threads, however the block ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeVar

from satchel.execution.bulk import in_bulk
from satchel.execution.workspace import Workspace, create_workspace
from satchel.scratch.graves import bury

_Made = TypeVar("_Made")


def leased_workspace(base: str | None = None, *, persistent: bool = True) -> AbstractAsyncContextManager[Workspace]:
    """A workspace below ``base`` that is buried when the block is left, also by a cancellation. Raises ``OSError``."""
    return leased(partial(create_workspace, base, persistent=persistent), lambda made: bury(made.root))


@asynccontextmanager
async def leased(make: Callable[[], _Made], remove: Callable[[_Made], object]) -> AsyncGenerator[_Made]:
    """What ``make`` makes, until ``remove`` has removed it. Both run in threads and are never left half done.

    A cancellation while it is being made is raised when what was made is gone again.
    """
    making = asyncio.ensure_future(asyncio.to_thread(make))
    try:
        made = await asyncio.shield(making)
    except asyncio.CancelledError:
        await asyncio.shield(asyncio.ensure_future(_undone(making, remove)))
        raise
    try:
        yield made
    finally:
        await asyncio.shield(in_bulk(partial(remove, made)))


async def unhindered(cleanup: Coroutine[object, object, None]) -> None:
    """Waits for the cleanup to end even when the caller is cancelled meanwhile, then passes the cancellation on."""
    task = asyncio.ensure_future(cleanup)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()


async def _undone(making: asyncio.Future[_Made], remove: Callable[[_Made], object]) -> None:
    try:
        made = await making
    except OSError:
        return  # nothing was made, and nobody waits for it any more
    await in_bulk(partial(remove, made))
