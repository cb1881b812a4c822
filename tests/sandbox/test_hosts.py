"""A program without a network reaches named hosts through the host's proxy, and nothing of that stays behind."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.ports.execution import Launch, Network
from satchel.sandbox.hosts import HostsExecutor
from tests.backends import FULL, executor_of
from tests.sandbox.confined import USERS, Host, host

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux are used")

ASKS = """
import sys, urllib.request as r
for opener, address in ((r.build_opener(), 1), (r.build_opener(), 2), (r.build_opener(r.ProxyHandler({})), 1)):
  try: print(opener.open(sys.argv[address]).read())
  except OSError as error: print(type(error).__name__)
"""


@pytest.fixture
def there() -> Iterator[Host]:
    with host(USERS[0]) as made:
        yield made


@pytest.fixture(params=FULL)
async def executor(request: pytest.FixtureRequest) -> HostsExecutor:
    made = await executor_of(request.param)
    assert isinstance(made, HostsExecutor)
    return made


@pytest.fixture
async def servers() -> AsyncIterator[list[str]]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()

    running = [await asyncio.start_server(answer, "127.0.0.1", 0) for _ in range(2)]
    yield [f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in running]
    for server in running:
        server.close()


@pytest.fixture(autouse=True)
def folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the sockets are made; the path of one must be short, which those of pytest are not always."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr("tempfile.tempdir", folder)
        yield Path(folder)


def launch(there: Host, *command: str, hosts: tuple[str, ...] = ()) -> Launch:
    work = str(there.work)
    return Launch(
        command=command,
        purpose="install",
        cwd=work,
        writable=(work,),
        env={"PATH": "/usr/bin:/bin", "HOME": work},
        network=Network(mode="hosts", hosts=hosts),
    )


async def left(folders: Path) -> list[str]:
    return await asyncio.to_thread(lambda: [path.name for path in folders.glob("satchel-*/out-*")])


async def test_named_hosts_are_reached_and_nothing_else_is(
    there: Host, executor: HostsExecutor, servers: list[str], folders: Path
) -> None:
    outcome = await executor.run(launch(there, "python3", "-c", ASKS, *servers, hosts=(servers[0],)))
    assert outcome.output.splitlines() == ["b'hi'", "HTTPError", "URLError"], outcome
    assert await left(folders) == []


async def test_without_a_name_there_is_no_way_out(there: Host, executor: HostsExecutor, servers: list[str]) -> None:
    outcome = await executor.run(launch(there, "python3", "-c", ASKS, *servers))
    assert outcome.output.splitlines() == ["URLError"] * 3, outcome


async def test_a_started_program_keeps_its_way_out_until_it_ends(
    there: Host, executor: HostsExecutor, servers: list[str], folders: Path
) -> None:
    job = await executor.start(launch(there, "sleep", "300", hosts=(servers[0],)))
    assert len(await left(folders)) == 1
    await job.kill()
    outcome = await job.wait()
    assert (outcome.exit_code, outcome.stopped) == (None, "killed")
    assert await left(folders) == []


async def test_a_cancelled_run_takes_its_way_out_along(
    there: Host, executor: HostsExecutor, servers: list[str], folders: Path
) -> None:
    for steps in (1, 5, 40, 200):
        run = asyncio.ensure_future(executor.run(launch(there, "sleep", "300", hosts=(servers[0],))))
        for _ in range(steps):
            await asyncio.sleep(0.001)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert await left(folders) == []


@pytest.mark.parametrize("hosts", [("not a host",), ("https://a.example/path",)])
async def test_what_is_no_host_is_refused(
    there: Host, executor: HostsExecutor, hosts: tuple[str, ...], folders: Path
) -> None:
    with pytest.raises(SandboxError) as caught:
        await executor.run(launch(there, "true", hosts=hosts))
    assert caught.value.code == "launch-failed"
    assert await left(folders) == []


async def test_a_program_that_is_not_there_leaves_nothing(
    there: Host, executor: HostsExecutor, servers: list[str], folders: Path
) -> None:
    outcome = await executor.run(launch(there, "no-such-program", hosts=(servers[0],)))
    assert (outcome.exit_code, "No such file" in outcome.stderr.text) == (127, True)
    assert await left(folders) == []
