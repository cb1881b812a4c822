"""The way out for installs: a proxy on a unix socket that lets through named hosts only, and the relay to it.

The sandbox has no network of its own and no names are resolved in it. Outside, each connection is allowed by its host
and port, its address is looked at before it is used, and everything is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from satchel.errors import SandboxError

_RELAY = Path(__file__).with_name("relay.py").read_text(encoding="utf-8")
_PYTHON = os.path.realpath(sys.executable)
_LONGEST_SOCKET_PATH = 100
_HTTPS_PORT = 443
_HTTP_PORT = 80
_LAST_PORT = 65535
_HEAD_BYTES = 16 * 1024
_CHUNK_BYTES = 64 * 1024
_MOST_REFUSED = 32
_NAME = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*\.?")
_REQUEST = re.compile(rb"(?P<method>[A-Z]{1,16}) (?P<target>[!-~]{1,4096}) HTTP/1\.[01]")
_HALF_LINE_END = re.compile(rb"[\r\n\0]")
_HOP_BY_HOP = ("connection", "proxy-", "keep-alive", "te", "upgrade", "transfer-encoding", "content-length", "expect")


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressLimits:
    """Times are seconds; ``bytes`` is the sum over all connections in both directions."""

    connections: int = 32
    head_s: float = 10.0
    connect_s: float = 15.0
    idle_s: float = 60.0
    bytes: int = 4 * 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """``is_plain``: HTTP without TLS may be forwarded there, too."""

    host: str
    port: int
    is_plain: bool = False


def destination(entry: str) -> Destination:
    """One entry of ``Network.hosts``: ``name``, ``name:port`` or ``http://name:port``, a name or an address.

    Raises:
        SandboxError: launch-failed, when it is none of these.
    """
    text = entry.strip().lower()
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    is_plain = parts.scheme == "http"
    is_known = _NAME.fullmatch(host) or _is_address(host)
    if parts.scheme not in {"http", "https"} or not is_known or parts.path not in {"", "/"} or "@" in text or port == 0:
        raise SandboxError(
            "launch-failed", f"{entry!r} is not a host.", hint="Write a name like packages.example, with :PORT or not."
        )
    return Destination(host=host, port=port or (_HTTP_PORT if is_plain else _HTTPS_PORT), is_plain=is_plain)


def relay_command(socket_path: str, command: Iterable[str], *, python: str = "") -> tuple[str, ...]:
    """The arguments that run ``command`` inside the sandbox with its way out. Proxy variables are set there.

    ``python`` has to be visible inside; "" is the one that runs us, outside any virtual environment.
    """
    return (python or _PYTHON, "-I", "-S", "-c", _RELAY, socket_path, *command)


class EgressProxy:
    """An async context manager: while it is entered, ``socket_path`` (0600) answers CONNECT to the hosts.

    ``hosts`` are entries as ``destination`` reads them. A name that leads to the host itself, to the link or to no
    single machine is refused unless that address is itself an entry; with ``requires_global`` every address that is
    not public is. ``refused`` are the hosts that were asked for in vain.
    """

    def __init__(
        self,
        socket_path: str,
        hosts: Iterable[str],
        *,
        requires_global: bool = False,
        limits: EgressLimits = EgressLimits(),
    ) -> None:
        self._path = socket_path
        self._allowed = frozenset(destination(entry) for entry in hosts)
        self._requires_global = requires_global
        self._limits = limits
        self._left = limits.bytes
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._refused: dict[str, None] = {}

    @property
    def socket_path(self) -> str:
        """Where it listens."""
        return self._path

    @property
    def refused(self) -> tuple[str, ...]:
        """``host:port`` of what was not allowed, each once, the first ones."""
        return tuple(self._refused)

    async def __aenter__(self) -> Self:
        """Raises ``SandboxError``: launch-failed."""
        try:
            listener = await asyncio.to_thread(_listener, self._path)
        except OSError as error:
            raise SandboxError("launch-failed", f"The proxy for installs cannot listen: {error.strerror}.") from error
        self._server = await asyncio.start_unix_server(self._accept, sock=listener, limit=_HEAD_BYTES)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind, error, trace
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(Path(self._path).unlink, missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._serve(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) > self._limits.connections:
            await _answer(writer, 503, "Too many connections")
            return
        async with asyncio.timeout(self._limits.head_s):
            head = await reader.readuntil(b"\r\n\r\n")
        line, *fields = head[:-4].split(b"\r\n")
        request = _REQUEST.fullmatch(line)
        # A server may take half a line end for a whole one, and read another field there.
        if request is None or any(_HALF_LINE_END.search(field) for field in fields):
            await _answer(writer, 400, "Bad request")
            return
        method, target = request["method"].decode(), request["target"].decode()
        if method == "CONNECT":
            place = _place(f"https://{target}", _HTTPS_PORT)
            first = b""
        elif method in {"GET", "HEAD"} and target.startswith("http://"):
            place = _place(target, _HTTP_PORT, is_plain=True)
            first = _forwarded(method, target, fields)
        else:
            await _answer(writer, 405, "Only CONNECT is answered", "Allow: CONNECT\r\n")
            return
        if place is None:
            await _answer(writer, 400, "Bad address")
            return
        await self._pass_on(place, first, reader, writer)

    async def _pass_on(
        self, place: Destination, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        shown = f"{place.host}:{place.port}"
        if not self._is_allowed(place):
            if len(self._refused) < _MOST_REFUSED:
                self._refused[shown] = None
            await _answer(writer, 403, f"{shown} is not among the hosts that may be reached")
            return
        try:
            async with asyncio.timeout(self._limits.connect_s):
                addresses = await self._addresses(place)
                if not addresses:
                    self._refused[shown] = None
                    await _answer(writer, 403, f"The address of {shown} may not be reached")
                    return
                theirs, ours = await _connected(addresses, place.port)
        except (OSError, TimeoutError):
            await _answer(writer, 502, f"{shown} cannot be reached")
            return
        try:
            if first:
                ours.write(first)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with asyncio.timeout(self._limits.idle_s) as idle:
                # What follows a forwarded request is none: its connection serves one.
                up = self._copy(reader, ours, idle) if not first else _nothing()
                await asyncio.gather(up, self._copy(theirs, writer, idle))
        finally:
            ours.close()

    def _is_allowed(self, place: Destination) -> bool:
        if place.is_plain:
            return place in self._allowed
        return any((entry.host, entry.port) == (place.host, place.port) for entry in self._allowed)

    async def _addresses(self, place: Destination) -> list[str]:
        """The addresses of the name that may be reached."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
        named = _is_address(place.host) or place.host == "localhost"
        addresses = dict.fromkeys(str(where[0]) for _, _, _, _, where in found)
        return [
            address
            for address in addresses
            if named or self._may_reach(ipaddress.ip_address(address.partition("%")[0]))
        ]

    def _may_reach(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
            return False
        return address.is_global or not self._requires_global

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, idle: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        while data := await source.read(_CHUNK_BYTES):
            self._left -= len(data)
            if self._left < 0:
                raise ConnectionAbortedError
            idle.reschedule(loop.time() + self._limits.idle_s)
            sink.write(data)
            await sink.drain()
        with contextlib.suppress(OSError, RuntimeError):
            sink.write_eof()


async def _connected(addresses: list[str], port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """To the first address that answers; these and no others, since they were looked at."""
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return await asyncio.open_connection(address, port, limit=_CHUNK_BYTES)
    return await asyncio.open_connection(addresses[-1], port, limit=_CHUNK_BYTES)


async def _nothing() -> None:
    """Copies nothing."""


def _listener(path: str) -> socket.socket:
    if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH:
        raise OSError(0, f"{path} is too long for a socket")
    listener = socket.socket(socket.AF_UNIX)
    try:
        os.fchmod(listener.fileno(), 0o600)
        listener.bind(path)
        Path(path).chmod(0o600)
        listener.setblocking(False)  # noqa: FBT003 - as the library has it
    except OSError:
        listener.close()
        raise
    return listener


def _place(address: str, default_port: int, *, is_plain: bool = False) -> Destination | None:
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return None
    port = default_port if port is None else port
    if "@" in parts.netloc or not (_NAME.fullmatch(host) or _is_address(host)) or not 0 < port <= _LAST_PORT:
        return None
    return Destination(host=host, port=port, is_plain=is_plain)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _forwarded(method: str, target: str, fields: list[bytes]) -> bytes:
    """The request as a server expects it: a path instead of an address, and one request a connection."""
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [
        field
        for field in fields
        if not field.lower().startswith((*(name.encode() for name in _HOP_BY_HOP), b"host:", b" ", b"\t"))
    ]
    head = [f"{method} {path} HTTP/1.1".encode(), f"Host: {parts.netloc}".encode(), *kept, b"Connection: close"]
    return b"\r\n".join(head) + b"\r\n\r\n"


async def _answer(writer: asyncio.StreamWriter, status: int, reason: str, fields: str = "") -> None:
    writer.write(f"HTTP/1.1 {status} {reason}\r\n{fields}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()
