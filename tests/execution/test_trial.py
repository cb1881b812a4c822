"""A person's command: what it is launched with."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.execution.trial import TrialRequest, run_trial
from satchel.ports.execution import Network
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.testing.fake_executor import FakeExecutor, printed

HOST = {"PATH": "/usr/bin:/bin", "API_TOKEN": "secret-token", "LANG": "C.UTF-8"}


async def test_it_is_launched_as_a_script_would_be(tmp_path: Path) -> None:
    executor = FakeExecutor([("*", printed("ok"))])
    request = TrialRequest(command=("sh", "-c", "true; false"), readable=(str(tmp_path),), deadline_s=7)
    trial = await run_trial(executor, request, host=HOST)
    (launch,) = executor.launches
    assert (trial.outcome, trial.produced) == (printed("ok"), ())
    assert Path(launch.command[0]).name in {"sh", "dash", "bash"}
    assert launch.command[1:] == ("-c", "true; false")
    assert (launch.network, launch.deadline_s) == (Network(), 7)
    assert (launch.cwd in launch.writable, str(tmp_path) in launch.readable) == (True, True)
    assert "API_TOKEN" not in launch.env
    assert not any(path in launch.writable for path in launch.readable)


async def test_a_directory_of_one_s_own_is_the_working_directory(tmp_path: Path) -> None:
    executor = FakeExecutor([("*", printed(""))])
    request = TrialRequest(command=("true",), workdir=str(tmp_path), has_network=True)
    await run_trial(executor, request, host=HOST)
    (launch,) = executor.launches
    assert (launch.cwd, launch.env["PWD"], launch.network.mode) == (str(tmp_path), str(tmp_path), "open")
    assert str(tmp_path) in launch.writable
    assert launch.env["HOME"] != str(tmp_path)


async def test_the_scratch_is_gone_however_it_ends() -> None:
    executor = FakeExecutor()
    await run_trial(executor, TrialRequest(command=("true",)), host=HOST)
    assert not await asyncio.to_thread(Path(executor.launches[0].cwd).exists)
    with pytest.raises(SandboxError, match="no program no-such-thing"):
        await run_trial(UnconfinedExecutor(), TrialRequest(command=("no-such-thing",)), host=HOST)
