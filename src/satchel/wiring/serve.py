"""The gateway as a process: one uvicorn server around the app, with the runtime in its loop."""

from __future__ import annotations

import errno
import signal
import socket
from collections.abc import Callable

from satchel.errors import SetupError
from satchel.settings import Settings
from satchel.wiring.runtime import open_runtime


async def serve(settings: Settings, started: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM, then lets open answers finish. ``started`` gets the base URL once it listens.

    Raises ``SetupError`` port-in-use before anything has started.
    """
    import uvicorn

    from satchel.gateway.app import create_app

    listener = _listen(settings.server.host, settings.server.port)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    app = create_app(lambda: open_runtime(settings), settings.server)
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=30)
    server = uvicorn.Server(config)
    # uvicorn drains on SIGTERM and then raises the signal again; an orderly end is not a death by signal.
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)  # noqa: ARG005
    try:
        started(f"http://{shown}:{port}")
        await server.serve(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, before)
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
