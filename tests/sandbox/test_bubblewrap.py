"""What bubblewrap's own way of working asks for; what it holds back is in ``test_confined`` and in the hostile suite."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from satchel.errors import SandboxError
from satchel.ports.execution import Launch, Limits
from satchel.sandbox.bubblewrap import BubblewrapExecutor
from satchel.sandbox.pids import PARENT
from tests.backends import needs_root, not_here, require
from tests.sandbox.confined import USERS, Host, host, processes_with

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")


@pytest.fixture(autouse=True)
async def there_is_one() -> None:
    await require("bubblewrap")


@pytest.fixture
def there() -> Iterator[Host]:
    with host(USERS[0]) as made:
        yield made


def launch(there: Host, *command: str, **fields: Any) -> Launch:
    work = str(there.work)
    given = {"PATH": "/usr/bin:/bin", "HOME": work} | fields.pop("env", {})
    fields.setdefault("writable", (work,))
    return Launch(command=command, purpose="script", cwd=work, env=given, **fields)


async def test_process_one_knows_nothing_of_the_host(there: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "known")
    script = "cat /proc/1/environ; tr '\\0' ' ' </proc/1/cmdline; ls /proc/self/fd | wc -l"
    outcome = await BubblewrapExecutor().run(launch(there, "/bin/sh", "-c", script, env={"GIVEN": "hidden value"}))
    assert "known" not in outcome.output
    assert "hidden value" not in outcome.output
    assert outcome.output.split()[-1] == "4"  # and the one of the listing


async def test_a_mount_that_leads_through_a_link_is_refused(there: Host) -> None:
    given = there.root / "readonly"
    target = there.outside / "deep"
    target.mkdir()
    (given / "link").symlink_to(there.outside)
    asked = launch(there, "/bin/true", readable=(str(given),), writable=(str(there.work), str(given / "link" / "deep")))
    with pytest.raises(SandboxError) as caught:
        await BubblewrapExecutor().run(asked)
    assert caught.value.code == "launch-failed"


async def test_a_program_that_the_sandbox_does_not_show_is_not_started(there: Host) -> None:
    program = there.outside / "program"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    with pytest.raises(SandboxError) as caught:
        await BubblewrapExecutor().run(launch(there, str(program)))
    assert caught.value.code == "launch-failed"
    (there.work / "program").write_text("#!/bin/sh\necho ran\n")
    (there.work / "program").chmod(0o755)
    assert (await BubblewrapExecutor().run(launch(there, "./program"))).stdout.text == "ran\n"


@pytest.mark.parametrize("env", [{"A=B": "x"}, {"A": "x\0y"}, {"": "x"}])
async def test_an_environment_that_cannot_be_handed_over_is_refused(there: Host, env: dict[str, str]) -> None:
    with pytest.raises(SandboxError) as caught:
        await BubblewrapExecutor().run(launch(there, "/bin/true", env=env))
    assert caught.value.code == "launch-failed"


async def test_a_value_that_looks_like_an_option_is_a_value(there: Host) -> None:
    outcome = await BubblewrapExecutor().run(launch(there, "/bin/sh", "-c", 'echo "$ODD"', env={"ODD": "--share-net"}))
    assert outcome.stdout.text == "--share-net\n"


async def test_a_bwrap_that_cannot_set_up_is_told_with_its_words(there: Host, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(SandboxError) as caught:
        await BubblewrapExecutor(str(broken)).run(launch(there, "/bin/true"))
    assert caught.value.code == "sandbox-unavailable"
    assert "No permissions to create new namespace" in caught.value.message


async def test_a_run_that_is_cancelled_while_it_starts_leaves_nothing(there: Host) -> None:
    marker = f"marker-{secrets.token_hex(8)}"
    for steps in range(1, 30, 2):
        run = asyncio.ensure_future(BubblewrapExecutor().run(launch(there, "/bin/sh", "-c", f"sleep 300; : {marker}")))
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


async def test_many_at_once_leave_no_descriptor_no_mount_and_no_group(there: Host) -> None:
    executor = BubblewrapExecutor()
    await executor.run(launch(there, "/bin/true"))

    def kept() -> tuple[int, int, int]:
        groups = len(list(Path(PARENT).glob(f"satchel-{os.getpid()}-*"))) if PARENT else 0
        return len(list(Path("/proc/self/fd").iterdir())), Path("/proc/self/mounts").read_text().count("\n"), groups

    before = await asyncio.to_thread(kept)
    outcomes = await asyncio.gather(
        *(executor.run(launch(there, "/bin/sh", "-c", f"echo {number}; exit {number}")) for number in range(24))
    )
    assert [(outcome.exit_code, outcome.stdout.text) for outcome in outcomes] == [(n, f"{n}\n") for n in range(24)]
    assert await asyncio.to_thread(kept) == before


async def test_where_numbers_are_not_bounded_a_group_is(there: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_root()
    if not PARENT:
        not_here("no control group can be made here", may_be_missing=True)
    monkeypatch.setattr("satchel.sandbox.pids._PID_MAX_PER_NAMESPACE", (99, 0))
    script = (
        "import os, time\n"
        "for n in range(100):\n"
        "  try:\n"
        "    if os.fork() == 0: time.sleep(20); os._exit(0)\n"
        "  except OSError: break\n"
        "print(n)"
    )
    outcome = await BubblewrapExecutor().run(launch(there, "python3", "-c", script, limits=Limits(processes=20)))
    assert 10 < int(outcome.stdout.text) < 21
    assert not await asyncio.to_thread(lambda: list(Path(PARENT).glob(f"satchel-{os.getpid()}-*")))
