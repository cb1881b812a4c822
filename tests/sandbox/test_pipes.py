"""A pipe is read to its end and its descriptor is closed once, on every event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from satchel.ports.execution import Launch
from satchel.sandbox.pipes import PipeReader, everything
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.wiring.serve import new_event_loop

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes of Unix")
LOOPS = [asyncio.new_event_loop, new_event_loop]


async def test_what_is_written_comes_until_nobody_can_write() -> None:
    ours, theirs = os.pipe()
    reading = asyncio.ensure_future(everything(ours))
    for _ in range(3):
        os.write(theirs, b"piece ")
        await asyncio.sleep(0)
    os.close(theirs)
    assert await reading == b"piece piece piece "


async def test_a_reader_that_is_closed_lets_go_of_its_pipe_once() -> None:
    ours, theirs = os.pipe()
    reader = PipeReader(ours, lambda _: None)
    reader.close()
    kept = os.open("/dev/null", os.O_RDONLY)
    assert kept == ours  # the number is given out again
    reader.close()
    os.fstat(kept)
    os.close(kept)
    with pytest.raises(BrokenPipeError):
        os.write(theirs, b"x")
    os.close(theirs)


@pytest.mark.parametrize("factory", LOOPS)
def test_no_launch_closes_what_another_thread_opened(
    tmp_path: Path, factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    over, lost = threading.Event(), list[OSError]()

    def opens() -> None:
        while not over.is_set():
            handles = [os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC) for _ in range(3)]
            for handle in handles:
                try:
                    os.close(handle)
                except OSError as error:
                    lost.append(error)

    async def launches() -> None:
        launch = Launch(command=("/bin/true",), purpose="script", cwd=str(tmp_path), env={"PATH": "/usr/bin:/bin"})
        for _ in range(20):
            await asyncio.gather(*(UnconfinedExecutor().run(launch) for _ in range(4)))

    threads = [threading.Thread(target=opens) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(launches())
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert lost == []
