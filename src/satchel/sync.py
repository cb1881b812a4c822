"""The bridge for programs without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Background:
    """One event loop in one daemon thread, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        if threading.current_thread() is self._thread:
            raise RuntimeError("run_sync would wait for itself here: use await")
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="satchel", daemon=True)
                self._thread.start()
            return self._loop


_BACKGROUND = _Background()


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, from a program without an event loop: ``satchel.run_sync(client.complete(request))``.

    All calls share one loop, so what is made in one call can be used in the next. An interrupt (Ctrl-C) cancels the
    coroutine, waits until it has cleaned up, and goes on. Raises what the coroutine raises, and ``RuntimeError`` when
    called from inside one that runs here.
    """
    try:
        loop = _BACKGROUND.loop()
    except RuntimeError:
        coroutine.close()
        raise
    tasks: list[asyncio.Task[T]] = []
    ended = threading.Event()

    def start() -> None:
        task = loop.create_task(coroutine)
        task.add_done_callback(lambda _: ended.set())
        tasks.append(task)

    def stop() -> None:
        if tasks:
            tasks[0].cancel()
        else:
            coroutine.close()
            ended.set()

    try:
        loop.call_soon_threadsafe(start)
        ended.wait()
    except BaseException:
        loop.call_soon_threadsafe(stop)
        ended.wait()
        if tasks and not tasks[0].cancelled():
            tasks[0].exception()
        raise
    return tasks[0].result()
