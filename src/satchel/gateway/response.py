"""The one response that carries a turn, streamed or whole, whatever the surface.

A turn lives exactly as long as somebody waits for its answer. Hang-ups are watched from before the first byte; the
turn runs in a task of its own, which is stopped and waited for, so its cleanup is over when the request is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Protocol

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from satchel.engine.events import TurnEvent
from satchel.errors import SatchelError
from satchel.gateway.access import AccessRecord, record_of
from satchel.gateway.failures import shutting_down

_STEPS_IN_A_ROW = 16
_LAST_WORD_S = 1.0


class TurnEncoder(Protocol):
    """Turns one turn's events into the bytes of one surface.

    A whole answer is the pieces of ``feed`` and ``finish`` together. ``heartbeat`` is sent on a silent stream and may
    stand between any two pieces; b"" when the format has nothing that clients skip.
    """

    @property
    def is_streamed(self) -> bool: ...

    @property
    def media_type(self) -> str: ...

    @property
    def heartbeat(self) -> bytes: ...

    def feed(self, event: TurnEvent) -> bytes:
        """What this event adds; b"" for nothing."""
        ...

    def finish(self) -> bytes:
        """What ends a complete answer."""
        ...

    def error(self, failure: SatchelError) -> bytes:
        """What ends a stream that failed after its first byte. Never reads as a clean end."""
        ...


class TurnResponse(Response):
    """Answers with one turn.

    A failure before the first byte is raised as its ``SatchelError``, for the application's handlers to answer; a
    later one goes out in the stream. Headers of a stream go out with the first event, which comes as soon as the model
    server has taken the request, or with the first heartbeat when that takes long; ``headers`` are among them.

    A server that ends cancels the call: a stream that is open is then told so, and the cancellation goes on.
    """

    def __init__(
        self,
        turn: AbstractAsyncContextManager[AsyncIterator[TurnEvent]],
        encoder: TurnEncoder,
        *,
        heartbeat_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._own = [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()]
        self._turn = turn
        self._encoder = encoder
        self._heartbeat_s = heartbeat_s
        self._is_ending = False
        self._is_cancelled = False
        self._steps = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record = record_of(scope)
        serve = self._stream if self._encoder.is_streamed else self._whole
        work = asyncio.create_task(serve(send, record))
        watch = asyncio.create_task(_hang_up(receive))
        is_cut = False
        try:
            await asyncio.wait((work, watch), return_when=asyncio.FIRST_COMPLETED)
            if self._is_ending:
                # The last bytes are on their way, and servers report a finished response as a disconnect too.
                await asyncio.wait((work,))
        except asyncio.CancelledError:
            self._is_cancelled = True
            raise
        finally:
            is_cut = work.cancel()
            watch.cancel()
            await _settled(work, watch)
        if not watch.cancelled():
            watch.result()
        if is_cut:
            record.outcome = "hung-up"
            if work.cancelled():
                return
        try:
            work.result()
        except ClientDisconnect:
            record.outcome = "hung-up"

    async def _whole(self, send: Send, record: AccessRecord) -> None:
        pieces: list[bytes] = []
        async with self._turn as events:
            async for event in events:
                record.note(event)
                pieces.append(self._encoder.feed(event))
                await self._give_way()
        body = b"".join((*pieces, self._encoder.finish()))
        self._is_ending = True
        line = _Line(send, start=self._start(length=len(body)))
        await line.put({"type": "http.response.body", "body": body, "more_body": False})

    async def _stream(self, send: Send, record: AccessRecord) -> None:
        line = _Line(send, start=self._start(), beat=self._encoder.heartbeat, every_s=self._heartbeat_s)
        try:
            async with self._turn as events:
                line.watch_silence()
                async for event in events:
                    record.note(event)
                    piece = self._encoder.feed(event)
                    if piece:
                        await line.put({"type": "http.response.body", "body": piece, "more_body": True})
                    await self._give_way()
            tail = self._encoder.finish()
        except SatchelError as failure:
            if not line.is_open:
                raise
            record.outcome = failure.code
            tail = self._encoder.error(failure)
        except asyncio.CancelledError:
            line.abandon()
            if self._is_cancelled and line.is_open:
                await self._say_last(line)
            raise
        finally:
            line.stop()
        self._is_ending = True
        await line.put({"type": "http.response.body", "body": tail, "more_body": False})

    def _start(self, *, length: int | None = None) -> Message:
        headers = [(b"content-type", self._encoder.media_type.encode("latin-1")), *self._own]
        if length is None:
            headers += [(b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
        else:
            headers.append((b"content-length", b"%d" % length))
        return {"type": "http.response.start", "status": 200, "headers": headers}

    async def _say_last(self, line: _Line) -> None:
        # A client that does not read must not hold up the server's end.
        with suppress(TimeoutError, ClientDisconnect):
            async with asyncio.timeout(_LAST_WORD_S):
                tail = self._encoder.error(shutting_down())
                await line.put({"type": "http.response.body", "body": tail, "more_body": False})

    async def _give_way(self) -> None:
        # A server takes bytes for a client that has left without making us wait, and a fast model never waits either:
        # the loop gets its turn now and then, or the hang-up would stay unseen and other clients unserved.
        self._steps += 1
        if self._steps % _STEPS_IN_A_ROW == 0:
            await asyncio.sleep(0)


class _Line:
    """The way to one client: one message at a time, and a heartbeat when nothing was said for a while.

    ``start`` goes out before the first message.
    """

    def __init__(self, send: Send, *, start: Message, beat: bytes = b"", every_s: float = 0.0) -> None:
        self.is_open = False
        self._send = send
        self._start = start
        self._beat = beat
        self._every_s = every_s
        self._loop = asyncio.get_running_loop()
        self._turnstile = asyncio.Lock()
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._ping: asyncio.Task[None] | None = None
        self._is_stopped = False

    async def put(self, message: Message) -> None:
        """Hands a message to the server, which holds us back while the client is slow."""
        async with self._turnstile:
            try:
                if not self.is_open:
                    self.is_open = True
                    await self._send(self._start)
                await self._send(message)
            except OSError as error:
                raise ClientDisconnect from error
        self._last = self._loop.time()

    def watch_silence(self) -> None:
        """Starts the heartbeat. One timer that looks at the clock is cheaper than one that every event re-sets."""
        if self._beat and self._every_s > 0:
            self._last = self._loop.time()
            self._timer = self._loop.call_later(self._every_s, self._tick)

    def stop(self) -> None:
        """Ends the heartbeat; one that is being sent still goes out before the next message."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def abandon(self) -> None:
        """Drops a heartbeat that is still being sent: nobody waits for it."""
        if self._ping is not None:
            self._ping.cancel()

    def _tick(self) -> None:
        rest = self._last + self._every_s - self._loop.time()
        if rest <= 0:
            rest = self._every_s
            if not self._turnstile.locked():
                self._ping = self._loop.create_task(self._say())
        self._timer = self._loop.call_later(rest, self._tick)

    async def _say(self) -> None:
        if self._is_stopped or self._turnstile.locked():
            return
        try:
            await self.put({"type": "http.response.body", "body": self._beat, "more_body": True})
        except ClientDisconnect:
            # The watch ends the turn.
            self.stop()


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _settled(*tasks: asyncio.Task[None]) -> None:
    """Waits until all have ended. A cancellation of the waiter is raised afterwards, never instead."""
    cancelled: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
