"""The way out of a sandbox: what passes the proxy, what does not, and the relay inside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.sandbox.egress import Destination, EgressLimits, EgressProxy, destination, relay_command


@contextlib.asynccontextmanager
async def echo() -> AsyncGenerator[int]:
    """A server on the loopback that sends back what it gets; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1024):
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@contextlib.asynccontextmanager
async def web() -> AsyncGenerator[tuple[int, list[bytes]]]:
    """A server that answers every request with "body"; its port and the heads that it saw."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heads


async def say(proxy: EgressProxy, text: str, then: bytes = b"") -> tuple[bytes, bytes]:
    """``(status line, everything behind the head)`` of what the proxy answers."""
    reader, writer = await asyncio.open_unix_connection(proxy.socket_path)
    try:
        writer.write(text.replace("\n", "\r\n").encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if then:
            writer.write(then)
            writer.write_eof()
        return head.split(b"\r\n")[0], await reader.read()
    finally:
        writer.close()


async def test_an_allowed_host_is_connected(tmp_path: Path) -> None:
    async with echo() as port, EgressProxy(str(tmp_path / "s"), [f"127.0.0.1:{port}"]) as proxy:
        status, body = await say(proxy, f"CONNECT 127.0.0.1:{port} HTTP/1.1\nHost: x\n\n", b"hello")
        assert (status, body) == (b"HTTP/1.1 200 Connection established", b"hello")
        assert proxy.refused == ()


async def test_the_socket_is_private_and_goes_with_the_proxy(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with EgressProxy(str(path), ["x.example"]):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600  # noqa: PTH116 - of a test
    assert not os.path.lexists(path)  # noqa: ASYNC240 - of a test


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("CONNECT other.example:443 HTTP/1.1", b"403 other.example:443 is not among the hosts that may be reached"),
        ("CONNECT x.example:22 HTTP/1.1", b"403 x.example:22 is not among the hosts that may be reached"),
        ("CONNECT 169.254.169.254:443 HTTP/1.1", b"403 169.254.169.254:443 is not among the hosts that may be reached"),
        ("CONNECT user@x.example:443 HTTP/1.1", b"400 Bad address"),
        ("CONNECT x.example:99999 HTTP/1.1", b"400 Bad address"),
        ("CONNECT x_y:443 HTTP/1.1", b"400 Bad address"),
        ("GET http://x.example/ HTTP/1.1", b"403 x.example:80 is not among the hosts that may be reached"),
        ("GET http://x.example:443/ HTTP/1.1", b"403 x.example:443 is not among the hosts that may be reached"),
        ("POST http://x.example/ HTTP/1.1", b"405 Only CONNECT is answered"),
        ("GET / HTTP/1.1", b"405 Only CONNECT is answered"),
        ("nonsense", b"400 Bad request"),
        ("GET http://x.example/ HTTP/1.1\nA: b\0Host: evil.example", b"400 Bad request"),
        ("GET http://x.example/ HTTP/1.1\nA: b\rHost: evil.example", b"400 Bad request"),
    ],
)
async def test_everything_else_is_refused(tmp_path: Path, request_line: str, status: bytes) -> None:
    async with EgressProxy(str(tmp_path / "s"), ["x.example"]) as proxy:
        assert await say(proxy, f"{request_line}\n\n") == (b"HTTP/1.1 " + status, b"")
        assert len(proxy.refused) == (1 if status.startswith(b"403") else 0)


async def test_a_name_that_leads_home_is_refused_unless_home_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with echo() as port:
        loop = asyncio.get_running_loop()
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

        async def resolve(*_: object, **__: object) -> Sequence[object]:
            return found

        async with EgressProxy(str(tmp_path / "s"), [f"rebound.example:{port}", f"localhost:{port}"]) as proxy:
            assert (await say(proxy, f"CONNECT localhost:{port} HTTP/1.1\n\n", b"x"))[1] == b"x"
            monkeypatch.setattr(loop, "getaddrinfo", resolve)
            for address in (
                "127.0.0.1",
                "169.254.169.254",
                "0.0.0.0",
                "224.0.0.1",
                "::1",
                "::ffff:127.0.0.1",
                "fe80::1",
            ):
                found[:] = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]
                status, _ = await say(proxy, f"CONNECT rebound.example:{port} HTTP/1.1\n\n")
                assert status == f"HTTP/1.1 403 The address of rebound.example:{port} may not be reached".encode()


@pytest.mark.parametrize(("requires_global", "code"), [(True, b"403"), (False, b"502")])
async def test_private_addresses_are_a_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requires_global: bool, code: bytes
) -> None:
    async def resolve(*_: object, **__: object) -> Sequence[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 443))]

    async def unreachable(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    monkeypatch.setattr(asyncio, "open_connection", unreachable)
    async with EgressProxy(str(tmp_path / "s"), ["x.example"], requires_global=requires_global) as proxy:
        status, _ = await say(proxy, "CONNECT x.example:443 HTTP/1.1\n\n")
        assert status.split()[1] == code


async def test_plain_http_is_forwarded_only_where_it_is_named(tmp_path: Path) -> None:
    async with web() as (port, heads), EgressProxy(str(tmp_path / "s"), [f"http://127.0.0.1:{port}"]) as proxy:
        fields = "Proxy-Authorization: x\nConnection: keep-alive\nAccept: a\nHost: evil.example\n"
        status, body = await say(proxy, f"GET http://127.0.0.1:{port}/a?b HTTP/1.1\n{fields}\n")
        assert (status, body) == (b"HTTP/1.1 200 OK", b"body")
        expected = f"GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: a\r\nConnection: close\r\n\r\n"
        assert heads == [expected.encode()]
    async with web() as (port, heads), EgressProxy(str(tmp_path / "s"), [f"127.0.0.1:{port}"]) as proxy:
        status, _ = await say(proxy, f"GET http://127.0.0.1:{port}/ HTTP/1.1\n\n")
        assert status.startswith(b"HTTP/1.1 403")
        assert heads == []


async def test_limits_hold(tmp_path: Path) -> None:
    limits = EgressLimits(head_s=0.05, idle_s=0.05, bytes=10, connections=2)
    async with echo() as port, EgressProxy(str(tmp_path / "s"), [f"127.0.0.1:{port}"], limits=limits) as proxy:
        reader, writer = await asyncio.open_unix_connection(proxy.socket_path)
        assert await reader.read() == b""  # nothing was asked in time
        writer.close()
        reader, writer = await asyncio.open_unix_connection(proxy.socket_path)
        writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert (await reader.read()).endswith(b"\r\n\r\n")  # and nothing was sent
        writer.close()
        _, body = await say(proxy, f"CONNECT 127.0.0.1:{port} HTTP/1.1\n\n", b"x" * 20)
        assert len(body) < 20


async def test_too_many_connections_are_turned_away(tmp_path: Path) -> None:
    limits = EgressLimits(connections=1)
    async with EgressProxy(str(tmp_path / "s"), ["x.example"], limits=limits) as proxy:
        _, waiting = await asyncio.open_unix_connection(proxy.socket_path)
        await asyncio.sleep(0.01)
        assert await say(proxy, "") == (b"HTTP/1.1 503 Too many connections", b"")
        waiting.close()


async def test_open_connections_end_with_the_proxy(tmp_path: Path) -> None:
    async with echo() as port:
        async with EgressProxy(str(tmp_path / "s"), [f"127.0.0.1:{port}"]) as proxy:
            reader, writer = await asyncio.open_unix_connection(proxy.socket_path)
            writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
        assert await reader.read() == b""
        writer.close()


async def test_a_place_where_no_socket_fits_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / ("x" * 120), tmp_path / "absent" / "s"):
        with pytest.raises(SandboxError) as caught:
            async with EgressProxy(str(path), ["x.example"]):
                pass
        assert caught.value.code == "launch-failed"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("Packages.Example.", Destination(host="packages.example", port=443)),
        ("packages.example:8443", Destination(host="packages.example", port=8443)),
        ("http://127.0.0.1:8080/", Destination(host="127.0.0.1", port=8080, is_plain=True)),
        ("https://packages.example", Destination(host="packages.example", port=443)),
        ("[::1]:8443", Destination(host="::1", port=8443)),
    ],
)
def test_entries_are_names_and_ports(entry: str, expected: Destination) -> None:
    assert destination(entry) == expected


@pytest.mark.parametrize(
    "entry", ["", "*", "*.example", "a b", "x.example/path", "u@x.example", "x:0", "x:y", "ftp://x", "-x"]
)
def test_other_entries_are_refused(entry: str) -> None:
    with pytest.raises(SandboxError):
        destination(entry)


async def run(*command: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def test_the_relay_carries_a_program_to_the_proxy_and_ends_as_it_ends(tmp_path: Path) -> None:
    text = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read()); sys.exit(7)"
    async with web() as (port, _), EgressProxy(str(tmp_path / "s"), [f"http://127.0.0.1:{port}"]) as proxy:
        program = (sys.executable, "-c", text, f"http://127.0.0.1:{port}/")
        assert await run(*relay_command(proxy.socket_path, program)) == (7, "b'body'\n")


async def test_the_relay_passes_on_signals_and_missing_programs(tmp_path: Path) -> None:
    socket_path = str(tmp_path / "s")
    assert (await run(*relay_command(socket_path, ("bash", "-c", "kill -9 $$"))))[0] == 137
    assert (await run(*relay_command(socket_path, ("/absent/program",))))[0] == 127
