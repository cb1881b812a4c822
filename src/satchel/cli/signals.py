"""Signals that end a program, which would otherwise leave behind what it runs and where."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any

_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


async def until_signalled(work: Coroutine[Any, Any, int]) -> int:
    """What ``work`` returns; 128 and the signal's number when SIGTERM or SIGHUP ended it, once it has tidied up."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    ended_by = 0

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ended_by
        del frame
        ended_by = number
        loop.call_soon_threadsafe(task.cancel)

    # One that is ignored, as under nohup, stays so.
    before = {number: signal.signal(number, end) for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN}
    try:
        return await task
    except asyncio.CancelledError:
        if not ended_by:
            raise
        return 128 + ended_by
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
