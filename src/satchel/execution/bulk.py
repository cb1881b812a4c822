"""Threads for what takes as long as a program likes: removing and copying all that it wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Result = TypeVar("_Result")

# In the event loop's own few threads they would hold up every short look at a disk, for all other requests too.
_threads = ThreadPoolExecutor(2, thread_name_prefix="satchel-bulk")


def in_bulk(function: Callable[[], _Result]) -> asyncio.Future[_Result]:
    """Calls it when its turn has come."""
    return asyncio.get_running_loop().run_in_executor(_threads, function)
