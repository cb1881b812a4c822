"""Which backend is chosen, and that none is trusted in which an attack works."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.ports.execution import Confinement, Job, Launch, Network, Outcome, Shell
from satchel.sandbox import canary, watch
from satchel.sandbox import detect as module
from satchel.sandbox.bubblewrap import GAP_DEVICES, BubblewrapExecutor
from satchel.sandbox.canary import CANARIES, try_canaries
from satchel.sandbox.detect import detect
from satchel.sandbox.landlock import LandlockExecutor
from satchel.sandbox.namespaces import NamespaceExecutor
from satchel.sandbox.unconfined import UnconfinedExecutor
from tests.backends import needs_root
from tests.sandbox.confined import USERS, Host, host, interpreter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux are tried")

FULL = Confinement(backend="bubblewrap", writes=True, network=True, home=True, process_tree=True)


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    """Nothing is known of the host, before and after."""
    module._found.clear()
    yield
    module._found.clear()


class Faulty:
    """An ``Executor`` without any confinement that says otherwise, changed as a test needs it."""

    def __init__(self, confinement: Confinement = FULL, error: SandboxError | None = None, said: str = "") -> None:
        self.confinement = confinement
        self.can_run, self.unavailable_reason = True, ""
        self.shell: Shell | None = None
        self.launches: list[Launch] = []
        self._error = error
        self._said = said

    async def start(self, launch: Launch) -> Job:
        self.launches.append(launch)
        if self._error:
            raise self._error
        if self._said:
            launch = replace(launch, command=("/bin/sh", "-c", self._said))
        return await UnconfinedExecutor().start(launch)

    async def run(self, launch: Launch) -> Outcome:
        return await (await self.start(launch)).wait()


async def test_a_backend_without_walls_is_found_out() -> None:
    stopped, reason = await try_canaries(Faulty())
    assert set(stopped) == set(CANARIES)
    escaped = {name for name, held in stopped.items() if not held}
    assert {"outside", "write", "link", "read-only", "network", "processes"} <= escaped
    if os.geteuid() == 0:  # who alone has capabilities and devices
        assert {"capabilities", "devices"} <= escaped
    assert reason.startswith("an attack works in it: outside, write, link, read-only, network, processes")


@pytest.mark.parametrize("said", ["exit 3", "echo works", "echo outside blocked; exit 0"])
async def test_silence_is_no_proof(said: str) -> None:
    stopped, reason = await try_canaries(Faulty(said=said))
    assert (stopped, reason[:19]) == ({}, "no program runs in ")


async def test_an_attack_that_only_seems_to_fail_is_seen_from_outside() -> None:
    lines = "".join(f"echo {name} blocked;" for name in CANARIES if name != "mount-targets")
    stopped, reason = await try_canaries(Faulty(said=f"echo x > planted/left; {lines}"))
    assert {name for name, held in stopped.items() if not held} == {"write", "link"}
    assert reason == "an attack works in it: write, link"


async def test_what_process_1_was_started_with_is_looked_at() -> None:
    needs_root()

    class Telling(Faulty):
        """Has a process 1 that keeps the environment of the launch."""

        async def start(self, launch: Launch) -> Job:
            assert not isinstance(launch.command, str)
            inside = ("/usr/bin/unshare", "--pid", "--fork", "--mount-proc", *launch.command)
            return await super().start(replace(launch, command=inside))

    stopped, _ = await try_canaries(Telling())
    assert (stopped["environment"], stopped["processes"]) == (False, True)


async def test_an_attack_without_its_tool_is_not_taken_for_one_that_was_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(canary, "_TOOLS", ("chmod", "no-such-tool"))
    assert await try_canaries(Faulty()) == ({}, "no program runs in it: its tests need no-such-tool")
    monkeypatch.setattr(canary, "BASH", None)  # only bash opens sockets
    assert await try_canaries(Faulty()) == ({}, "its tests need bash, which is not installed")


def make_targets(launch: Launch) -> None:
    for path in (*launch.readable, *launch.writable):
        Path(os.path.realpath(path).removeprefix("/oldroot")).mkdir(parents=True, exist_ok=True)


async def test_a_mount_that_follows_a_planted_link_is_seen() -> None:
    class Following(Faulty):
        """Makes the targets of mounts as an old bubblewrap does."""

        async def start(self, launch: Launch) -> Job:
            await asyncio.to_thread(make_targets, launch)
            return await super().start(launch)

    stopped, _ = await try_canaries(Following())
    assert not stopped["mount-targets"]
    assert (await try_canaries(Faulty()))[0]["mount-targets"]


@pytest.mark.parametrize("backend", [BubblewrapExecutor, NamespaceExecutor, LandlockExecutor])
async def test_what_is_here_stops_everything_that_it_does_not_tell(backend: type) -> None:
    executor = backend()
    stopped, reason = await try_canaries(executor)
    assert reason == ""
    assert {name for name, held in stopped.items() if not held} <= (
        {"processes", "devices"} if executor.confinement.gaps else set()
    )


async def test_required_takes_what_holds_everything_and_names_the_rest() -> None:
    found = await detect("required")
    assert found.executor.confinement.is_full
    assert found.executor.unavailable_reason == ""
    assert [row.backend for row in found.report] == ["bubblewrap", "namespaces", "landlock", "none"]
    assert [row.backend for row in found.report if row.is_chosen] == [found.executor.confinement.backend]
    assert all(set(row.canaries) == set(CANARIES) for row in found.report[:3] if not row.reason)
    again = await detect("required")
    assert again.report[0].canaries is found.report[0].canaries


async def test_the_version_of_bubblewrap_counts_where_a_floor_is_set() -> None:
    found = await detect("required", bwrap_floor="99.1")
    bubblewrap = found.report[0]
    assert not bubblewrap.is_chosen
    assert "older than 99.1" in bubblewrap.reason or "not installed" in bubblewrap.reason
    assert found.executor.confinement.backend == "namespaces"


def without_full(monkeypatch: pytest.MonkeyPatch, *backends: Faulty) -> None:
    """A host on which these are all there is."""

    async def look(floor: str) -> tuple[tuple[Faulty, module.BackendReport], ...]:
        del floor
        reports = [
            module.BackendReport(backend=one.confinement.backend, confinement=one.confinement) for one in backends
        ]
        return tuple(zip(backends, reports, strict=True))

    monkeypatch.setattr(module, "_look", look)


PART = Confinement(backend="landlock", network=True, home=True, gaps=("a gap",))


async def test_required_starts_nothing_where_nothing_holds_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    without_full(monkeypatch, Faulty(PART))
    found = await detect("required")
    assert "no OS sandbox" in found.executor.unavailable_reason
    assert not any(row.is_chosen for row in found.report)
    with pytest.raises(SandboxError) as caught:
        await found.executor.run(Launch(command=("true",), purpose="script", cwd="/"))
    assert caught.value.code == "sandbox-unavailable"
    assert "no OS sandbox" in caught.value.message


async def test_a_full_disk_is_not_taken_for_a_host_without_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FREE_BYTES", 1 << 60)
    reason = (await detect("required")).executor.unavailable_reason
    assert "Make room" in reason
    assert "Install bubblewrap" not in reason


async def test_unconfined_still_takes_what_holds_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    without_full(monkeypatch, Faulty(PART))
    assert (await detect("required", unconfined=True)).executor.confinement is PART
    module._found.clear()
    without_full(monkeypatch)
    assert (await detect("required", unconfined=True)).executor.confinement.backend == "none"


async def test_preferred_takes_a_part_and_then_nothing_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    without_full(monkeypatch, Faulty(PART))
    part = await detect("preferred")
    assert (part.executor.confinement.backend, part.executor.confinement.gaps) == ("landlock", ("a gap",))
    module._found.clear()
    without_full(monkeypatch)
    none = await detect("preferred")
    assert none.executor.confinement.backend == "none"
    assert none.executor.confinement.gaps
    assert [row.is_chosen for row in none.report] == [True]


async def test_what_leaves_nothing_open_comes_before_what_does(monkeypatch: pytest.MonkeyPatch) -> None:
    gappy, tight = Faulty(replace(FULL, gaps=(GAP_DEVICES,))), Faulty(replace(FULL, backend="namespaces"))
    without_full(monkeypatch, gappy, tight)
    assert (await detect("required")).executor is tight
    module._found.clear()
    without_full(monkeypatch, gappy)
    assert (await detect("required")).executor is gappy


async def test_off_looks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Faulty()
    without_full(monkeypatch, backend)
    found = await detect("off")
    assert (found.executor.confinement.backend, len(found.report), backend.launches) == ("none", 1, [])


async def test_a_backend_that_cannot_start_says_why_and_what_to_do() -> None:
    words = "The sandbox could not be set up: No permissions to create new namespace."
    stopped, reason = await try_canaries(Faulty(error=SandboxError("sandbox-unavailable", words)))
    assert (stopped, reason) == ({}, words.rstrip("."))
    assert "container" in module._hint(reason)
    assert "chmod u-s" in module._hint("The --size option is not permitted in setuid mode")
    assert module._hint("something else") == ""


SCRIPT = """
import asyncio, json
from satchel.sandbox.detect import detect
found = asyncio.run(detect("required"))
print(json.dumps([[row.backend, row.is_chosen, row.reason, sorted(n for n, held in row.canaries.items() if not held)]
    for row in found.report]))
"""


def test_an_ordinary_user_is_confined_too() -> None:
    needs_root()
    with host(USERS[1]) as made:
        rows = json.loads(_run(made))
    chosen = [row for row in rows if row[1]]
    assert [row[2:] for row in chosen] == [["", []]]
    assert chosen[0][0] in {"bubblewrap", "namespaces"}


def _run(made: Host) -> bytes:
    ran = subprocess.run(
        [interpreter(made.user), "-c", SCRIPT],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd="/",
        env={"PYTHONPATH": str(made.root / "source"), "PATH": "/usr/bin:/bin"},
        user=made.uid,
        group=made.uid,
        extra_groups=[],
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout


async def test_no_canary_writes_a_setting_or_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen() -> tuple[bytes, int, list[str]]:
        left = [path.name for path in tmp_path.glob("satchel-*/canary-*")]
        return Path("/proc/sys/kernel/core_pattern").read_bytes(), Path("/dev/null").stat().st_mode, left

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = await asyncio.to_thread(seen)
    await try_canaries(NamespaceExecutor())
    assert await asyncio.to_thread(seen) == before
    assert before[2] == []


async def test_a_launch_for_named_hosts_is_started_with_its_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Faulty(replace(FULL, hosts=True))
    without_full(monkeypatch, backend)
    executor = (await detect("required")).executor
    asked = Launch(command=("true",), purpose="install", cwd="/", network=Network(mode="hosts", hosts=("a.example",)))
    assert (await executor.run(asked)).exit_code == 0
    (given,) = backend.launches
    assert given.network == Network()
    assert given.command[-1] == "true"
    (folder,) = (path for path in given.readable if "/out-" in path)
    assert not await asyncio.to_thread(Path(folder).exists)


async def test_a_host_that_was_busy_at_the_start_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    module._found.clear()
    monkeypatch.setattr(module, "TRIED_S", 0.001)
    found = await detect("required")
    assert found.executor.unavailable_reason == ""
    module._found.clear()
    monkeypatch.setattr(module, "_TRIED_AGAIN_S", 0.001)
    assert (await detect("required")).executor.unavailable_reason
