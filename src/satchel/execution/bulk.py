"""Threads for what takes longer than a look at a disk: removing and copying what programs wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Result = TypeVar("_Result")

# In the event loop's own few threads they would hold up every short look at a disk, for all other requests too.
_threads = ThreadPoolExecutor(2, thread_name_prefix="satchel-bulk")
# A turn waits for its own copies; it must not wait for what others leave behind, although that is bounded, too.
_copiers = ThreadPoolExecutor(2, thread_name_prefix="satchel-copy")


def in_bulk(function: Callable[[], _Result]) -> asyncio.Future[_Result]:
    """Calls it when its turn has come."""
    return asyncio.get_running_loop().run_in_executor(_threads, function)


def copied(function: Callable[[], _Result]) -> asyncio.Future[_Result]:
    """The same for what copies files, whatever is being removed meanwhile."""
    return asyncio.get_running_loop().run_in_executor(_copiers, function)
