"""Jobs of the namespace backend in a running loop: killed, cancelled, many at once, and nothing left of any."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.ports.execution import Launch, Network
from satchel.sandbox.egress import EgressProxy, relay_command
from satchel.sandbox.landlock import LandlockExecutor
from satchel.sandbox.namespaces import NamespaceExecutor
from tests.sandbox.confined import USERS, Host, host, processes_with

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are a part of Linux")


@pytest.fixture
def there() -> Iterator[Host]:
    with host(USERS[0]) as made:
        yield made


def launch(there: Host, *command: str, **fields) -> Launch:
    work = str(there.work)
    return Launch(
        command=command, purpose="script", cwd=work, writable=(work,), env={"PATH": "/usr/bin:/bin"}, **fields
    )


async def test_what_it_says_of_itself() -> None:
    executor = NamespaceExecutor()
    assert executor.unavailable_reason == ""
    assert executor.confinement.is_full
    assert executor.confinement.hosts
    assert executor.shell is not None
    partial = LandlockExecutor()
    assert not partial.confinement.is_full
    assert partial.confinement.gaps


async def test_a_killed_job_leaves_nothing(there: Host) -> None:
    marker = f"marker-{secrets.token_hex(8)}"
    script = f"for n in 1 2 3; do setsid sh -c 'sleep 300; : {marker}' & done; echo begun; wait"
    job = await NamespaceExecutor().start(launch(there, "/bin/sh", "-c", script))
    await job.kill()
    outcome = await job.wait()
    assert (outcome.exit_code, outcome.stopped) == (None, "killed")
    assert not processes_with(marker)
    await job.kill()
    assert await job.wait() == outcome


async def test_a_cancelled_run_leaves_nothing(there: Host) -> None:
    marker = f"marker-{secrets.token_hex(8)}"
    script = f"(setsid sh -c 'sleep 300; : {marker}' &) ; touch ready; sleep 300"
    run = asyncio.ensure_future(NamespaceExecutor().run(launch(there, "/bin/sh", "-c", script)))
    for _ in range(1000):
        if (there.work / "ready").exists():
            break
        await asyncio.sleep(0.01)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not processes_with(marker)


async def test_a_run_that_is_cancelled_while_it_starts_leaves_nothing(there: Host) -> None:
    marker = f"marker-{secrets.token_hex(8)}"
    for steps in range(1, 40, 3):
        run = asyncio.ensure_future(NamespaceExecutor().run(launch(there, "/bin/sh", "-c", f"sleep 300; : {marker}")))
        for _ in range(steps):
            await asyncio.sleep(0.001)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    for _ in range(500):
        if not processes_with(marker):
            break
        await asyncio.sleep(0.01)
    assert not processes_with(marker)


async def test_many_at_once_leave_no_descriptor_and_no_mount(there: Host) -> None:
    executor = NamespaceExecutor()
    await executor.run(launch(there, "/bin/true"))

    def kept() -> tuple[int, int]:
        return len(list(Path("/proc/self/fd").iterdir())), Path("/proc/self/mounts").read_text().count("\n")

    before = kept()
    outcomes = await asyncio.gather(
        *(executor.run(launch(there, "/bin/sh", "-c", f"echo {number}; exit {number}")) for number in range(24))
    )
    assert [(outcome.exit_code, outcome.stdout.text) for outcome in outcomes] == [(n, f"{n}\n") for n in range(24)]
    assert kept() == before


async def test_output_goes_to_a_log_and_is_bounded(there: Host) -> None:
    log = there.root / "log"
    outcome = await NamespaceExecutor().run(launch(there, "/bin/echo", "kept", log_path=str(log)))
    assert (outcome.stdout.text, log.read_text()) == ("", "kept\n")
    flood = await NamespaceExecutor().run(launch(there, "head", "-c", "3000000", "/dev/zero", max_output_bytes=1000))
    assert (flood.exit_code, flood.stdout.total_bytes, len(flood.stdout.head)) == (0, 3000000, 500)


async def test_the_environment_does_not_reach_the_process_outside(there: Host) -> None:
    # A library that is loaded into the child before it has confined itself would run on the host.
    (there.work / "bad.so").write_text("none")
    env = {"LD_PRELOAD": str(there.work / "bad.so"), "PYTHONHOME": "/nowhere", "PATH": "/usr/bin:/bin"}
    confined = Launch(
        command=("/bin/echo", "fine"), purpose="script", cwd=str(there.work), writable=(str(there.work),), env=env
    )
    outcome = await NamespaceExecutor().run(confined)
    assert (outcome.exit_code, outcome.stdout.text) == (0, "fine\n")
    assert outcome.stderr.text.count("bad.so") == 1


@pytest.mark.parametrize("command", ["echo text", ()])
async def test_only_programs_are_run(there: Host, command: tuple[str, ...] | str) -> None:
    work = str(there.work)
    for executor in (NamespaceExecutor(), LandlockExecutor()):
        with pytest.raises(SandboxError) as caught:
            await executor.run(Launch(command=command, purpose="script", cwd=work, writable=(work,)))
        assert caught.value.code == "launch-failed"


async def test_landlock_cannot_narrow_the_network_to_hosts(there: Host) -> None:
    with pytest.raises(SandboxError) as caught:
        await LandlockExecutor().run(launch(there, "/bin/true", network=Network(mode="hosts", hosts=("a.example",))))
    assert caught.value.code == "sandbox-unavailable"


async def test_named_hosts_are_reached_through_the_proxy_and_nothing_else_is(there: Host) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()

    servers = [await asyncio.start_server(answer, "127.0.0.1", 0) for _ in range(2)]
    allowed, other = (f"127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in servers)
    script = (
        "import sys, urllib.request as r\n"
        "print(r.urlopen(sys.argv[1]).read())\n"
        "for opener in (r.build_opener(), r.build_opener(r.ProxyHandler({}))):\n"
        "  try: print(opener.open(sys.argv[2]).read())\n"
        "  except OSError as error: print(type(error).__name__)\n"
    )
    socket_path = str(there.root / "readonly" / "egress")
    python = [path for path in (sys.prefix, sys.base_prefix) if not path.startswith("/usr")]
    async with EgressProxy(socket_path, [f"http://{allowed}"]):
        command = relay_command(socket_path, ("python3", "-c", script, f"http://{allowed}/", f"http://{other}/"))
        confined = launch(
            there, *command, network=Network(mode="hosts"), readable=(str(there.root / "readonly"), *python)
        )
        outcome = await NamespaceExecutor().run(confined)
    for server in servers:
        server.close()
    assert outcome.output.splitlines() == ["b'hi'", "HTTPError", "URLError"]
