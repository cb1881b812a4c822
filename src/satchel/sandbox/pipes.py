"""Reading what a program writes into a pipe of ours.

Event loops differ in who closes the descriptor of a transport: one closes it twice, and what another thread opened
under the same number meanwhile would be lost. Here it is closed once, by us.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

_CHUNK = 64 * 1024


class PipeReader:
    """Hands what is written to a pipe to ``take``, piece by piece, and owns its descriptor.

    ``closed`` is set when nobody can write any more, or after ``close``.
    """

    def __init__(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        self.closed = asyncio.Event()
        self._descriptor = descriptor
        self._take = take
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def close(self) -> None:
        """Stops reading; does nothing the second time."""
        if not self.closed.is_set():
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self.closed.set()

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._take(data)
        else:
            self.close()


async def everything(descriptor: int) -> bytes:
    """What is written to a pipe until nobody can any more. Closes it."""
    pieces: list[bytes] = []
    reader = PipeReader(descriptor, pieces.append)
    try:
        await reader.closed.wait()
    finally:
        reader.close()
    return b"".join(pieces)
