from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable

import pytest

from satchel.wiring.serve import (
    _listen,  # pyright: ignore[reportPrivateUsage]
    new_event_loop,
)


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, new_event_loop])
def test_small_pieces_are_not_held_back(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def is_sent_at_once() -> bool:
        accepted: asyncio.Queue[bool] = asyncio.Queue()

        def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            del reader
            conn: socket.socket = writer.get_extra_info("socket")
            accepted.put_nowait(bool(conn.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            writer.close()

        listener = _listen("127.0.0.1", 0)
        async with await asyncio.start_server(note, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            try:
                return await accepted.get()
            finally:
                writer.close()
                await writer.wait_closed()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert runner.run(is_sent_at_once())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no uvloop")
def test_the_gateway_runs_on_the_fast_loop() -> None:
    loop = new_event_loop()
    loop.close()
    assert type(loop).__module__.startswith("uvloop")
