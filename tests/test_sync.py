from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import pytest

from satchel import run_sync


async def _where() -> tuple[asyncio.AbstractEventLoop, str]:
    await asyncio.sleep(0)
    return asyncio.get_running_loop(), threading.current_thread().name


def test_all_calls_share_one_loop_in_a_thread_of_its_own() -> None:
    assert run_sync(_where()) == run_sync(_where())
    seen: list[Any] = []
    threads = [threading.Thread(target=lambda: seen.append(run_sync(_where()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({loop for loop, _ in seen}) == 1
    assert {name for _, name in seen} == {"satchel"}


def test_what_the_coroutine_raises_comes_out() -> None:
    async def fails() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError):
        run_sync(fails())


def test_waiting_for_oneself_is_refused() -> None:
    async def inner() -> None:
        run_sync(_where())

    with pytest.raises(RuntimeError):
        run_sync(inner())


def test_an_interrupt_stops_the_coroutine_and_waits_for_its_cleanup() -> None:
    steps: list[str] = []
    waiting = threading.get_ident()

    async def long() -> None:
        signal.pthread_kill(waiting, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            steps.append("clean")

    with pytest.raises(KeyboardInterrupt):
        run_sync(long())
    assert steps == ["clean"]
