"""The gateway as a process: a uvicorn server for each listener, all in one loop with the one runtime."""

from __future__ import annotations

import asyncio
import errno
import gc
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from types import FrameType
from typing import Protocol

from satchel.errors import SetupError
from satchel.settings import Settings
from satchel.wiring.runtime import open_runtime

_YOUNG_OBJECTS = 10_000


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The loop for a gateway: uvloop, on which a stream costs 5 to 25 % less, where there is one."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()


async def serve(settings: Settings, started: Callable[[str, str], None]) -> bool:
    """Serves until SIGINT or SIGTERM, then lets open answers finish; a second one cuts them off. True for a SIGINT.

    ``started`` gets the base URL once requests are answered, and that of the second listener, which stands in for an
    Ollama, "" without one. Raises ``SetupError`` before that for settings that cannot work, port-in-use before anything
    has started.
    """
    import uvicorn

    from satchel.gateway.app import create_app
    from satchel.gateway.protocol import BoundedHttpProtocol

    class _Server(uvicorn.Server):
        is_interrupted = False

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            # An interrupt from before the server took the signals over ends it here.
            await asyncio.sleep(0)
            await super().startup(sockets)
            if not self.should_exit and all(server.started for server in servers):
                started(*urls)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await super().shutdown(sockets)
            if self.force_exit:
                # uvicorn would leave the app's lifespan to be cancelled, and log that as a failure.
                await self.lifespan.shutdown()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            del frame
            self.is_interrupted |= sig == signal.SIGINT
            # uvicorn would take only a second SIGINT for impatience.
            self.force_exit = self.should_exit
            self.should_exit = True

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            # One place takes the signals for all servers.
            yield

    def server_for(*, is_ollama: bool) -> _Server:
        app = create_app(lambda: nullcontext(runtime), settings.server, is_ollama=is_ollama)
        config = uvicorn.Config(
            app,
            http=BoundedHttpProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=30,
        )
        return _Server(config)

    with ExitStack() as open_sockets:
        ports = (settings.server.port, settings.server.ollama_port)
        listeners = [
            open_sockets.enter_context(_listen(settings.server.host, port)) for port in ports if port is not None
        ]
        urls = (_url(listeners[0]), _url(listeners[1]) if len(listeners) > 1 else "")
        # Opened here and not by the app: uvicorn would turn what goes wrong into a log record.
        async with open_runtime(settings) as runtime:
            servers = [server_for(is_ollama=number > 0) for number in range(len(listeners))]
            # What is there now stays, and little of what a request makes is garbage that only the collector finds.
            gc.collect()
            gc.freeze()
            gc.set_threshold(_YOUNG_OBJECTS)
            with _signals_to(servers):
                await _all(
                    server.serve(sockets=[listener]) for server, listener in zip(servers, listeners, strict=True)
                )
            return servers[0].is_interrupted


class _Exits(Protocol):
    def handle_exit(self, sig: int, frame: FrameType | None) -> None: ...


@contextmanager
def _signals_to(servers: Sequence[_Exits]) -> Generator[None]:
    """SIGINT, SIGTERM and SIGHUP end all servers. uvicorn would raise the signal at the end; that end is orderly."""

    def handle(number: int, frame: FrameType | None) -> None:
        for server in servers:
            server.handle_exit(number, frame)

    ending = [signal.SIGINT, signal.SIGTERM]
    # Under nohup it is ignored and stays so.
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        ending.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in ending}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _all(work: Iterable[Coroutine[object, object, None]]) -> None:
    """Runs all together; the first that fails stops the others."""
    tasks = [asyncio.ensure_future(part) for part in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise SetupError(
            "setting-invalid", f"The address {host} cannot be resolved: {error}.", hint="Check --host."
        ) from error
    # The protocol is named since asyncio turns Nagle's algorithm off only for sockets that say they are TCP, and
    # clients would wait up to 40 ms for the first word.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SetupError(
                "port-in-use",
                f"Port {port} on {host} is taken by another program.",
                hint="Choose another with --port (or --ollama-port), or 0 for a free one.",
                data={"host": host, "port": port},
            ) from error
        raise SetupError(
            "setting-invalid", f"Cannot listen on {host}:{port}: {error.strerror}.", hint="Check --host and --port."
        ) from error
    return listener
