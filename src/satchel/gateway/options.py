"""What decides how the gateway listens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """``keys`` are bearer keys that clients must send; none leaves the gateway open (it binds to loopback by default).

    ``ollama_port`` opens a second listener that stands in for an Ollama; None for none. Port 0 takes a free one.
    ``heartbeat_s``: a silent stream gives a sign of life after so many seconds. ``max_body_bytes`` bounds a request.
    ``session_idle_s``: a conversation that the server holds is forgotten so many seconds after its last use.
    """

    host: str = "127.0.0.1"
    port: int = 8321
    ollama_port: int | None = None
    keys: tuple[str, ...] = ()
    heartbeat_s: float = 15.0
    max_body_bytes: int = 32 * 1024 * 1024
    session_idle_s: float = 24 * 3600.0
