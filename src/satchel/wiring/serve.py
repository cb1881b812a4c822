"""The gateway as a process: one uvicorn server around the app, with the runtime in its loop."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from types import FrameType

from satchel.errors import SetupError
from satchel.settings import Settings
from satchel.wiring.runtime import open_runtime


async def serve(settings: Settings, started: Callable[[str], None]) -> bool:
    """Serves until SIGINT or SIGTERM, then lets open answers finish. True when it was SIGINT.

    ``started`` gets the base URL once requests are answered. Raises ``SetupError`` before that for settings that cannot
    work, port-in-use before anything has started.
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
            if not self.should_exit:
                started(f"http://{shown}:{port}")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await super().shutdown(sockets)
            if self.force_exit:
                # uvicorn would leave the app's lifespan to be cancelled, and log that as a failure.
                await self.lifespan.shutdown()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            self.is_interrupted |= sig == signal.SIGINT
            super().handle_exit(sig, frame)

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            # uvicorn would raise the signal again at the end; an orderly end is not a death by signal.
            before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    listener = _listen(settings.server.host, settings.server.port)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    try:
        # Opened here and not by the app: uvicorn would turn what goes wrong into a log record.
        async with open_runtime(settings) as runtime:
            app = create_app(lambda: nullcontext(runtime), settings.server)
            config = uvicorn.Config(
                app,
                http=BoundedHttpProtocol,
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=30,
            )
            server = _Server(config)
            await server.serve(sockets=[listener])
            return server.is_interrupted
    finally:
        listener.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise SetupError(
            "setting-invalid", f"The address {host} cannot be resolved: {error}.", hint="Check --host."
        ) from error
    listener = socket.socket(family, socket.SOCK_STREAM)
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
                hint="Choose another with --port, or 0 for a free one.",
                data={"host": host, "port": port},
            ) from error
        raise SetupError(
            "setting-invalid", f"Cannot listen on {host}:{port}: {error.strerror}.", hint="Check --host and --port."
        ) from error
    return listener
