"""Programs that run, fail, hang, flood and leave children behind."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.ports.execution import Captured, Launch, Outcome
from satchel.sandbox.unconfined import UnconfinedExecutor


def launch(code: str, cwd: Path, **changes: object) -> Launch:
    return Launch(command=(sys.executable, "-c", code), purpose="download", cwd=str(cwd), **changes)  # pyright: ignore[reportArgumentType]


async def run(code: str, cwd: Path, **changes: object) -> Outcome:
    return await UnconfinedExecutor().run(launch(code, cwd, **changes))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return (
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z" if Path("/proc").exists() else True
    )


async def has_ended(pid: int) -> bool:
    for _ in range(200):
        if not is_running(pid):
            return True
        await asyncio.sleep(0.02)
    return False


async def test_output_of_both_streams_and_the_exit_code(tmp_path: Path) -> None:
    outcome = await run("import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)", tmp_path)
    assert (outcome.exit_code, outcome.stdout.text, outcome.stderr.text) == (3, "out\n", "err\n")


async def test_environment_is_exactly_what_was_given(tmp_path: Path) -> None:
    outcome = await run("import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))", tmp_path, env={"ONLY": "this"})
    assert outcome.output == "['ONLY']\n"


async def test_stdin_is_closed_and_cwd_holds(tmp_path: Path) -> None:
    outcome = await run("import os, sys; print(repr(sys.stdin.read()), os.getcwd())", tmp_path)
    assert outcome.output.startswith("'' ")
    assert outcome.output.endswith(f"{tmp_path}\n")


async def test_head_and_tail_are_kept_and_the_middle_is_counted(tmp_path: Path) -> None:
    outcome = await run("print('x' * 300000); print('end')", tmp_path, max_output_bytes=10)
    assert outcome.stdout == Captured(head=b"xxxxx", tail=b"\nend\n"[-5:], dropped_bytes=300005 - 10)


async def test_deadline_kills_the_program_and_its_children(tmp_path: Path) -> None:
    code = "import subprocess, sys, time\np = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    code += "\nprint(p.pid, flush=True); time.sleep(60)"
    outcome = await run(code, tmp_path, deadline_s=1.0)
    assert outcome.exit_code is None
    assert await has_ended(int(outcome.output))


async def test_background_children_end_with_the_program(tmp_path: Path) -> None:
    code = "import subprocess, sys\np = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    outcome = await run(code + "\nprint(p.pid, flush=True)", tmp_path)
    assert outcome.exit_code == 0
    assert await has_ended(int(outcome.output))


async def test_cancelling_kills_and_reaps_before_it_returns(tmp_path: Path) -> None:
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); os.rename('pid', 'ready'); time.sleep(60)"
    task = asyncio.ensure_future(run(code, tmp_path))
    for _ in range(500):
        if (tmp_path / "ready").exists():
            break
        await asyncio.sleep(0.02)
    pid = int((tmp_path / "ready").read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_running(pid)


@pytest.mark.parametrize("command", [("/no/such/program",), (), ("bad\0name",)])
async def test_what_cannot_be_started_is_an_error(tmp_path: Path, command: tuple[str, ...]) -> None:
    with pytest.raises(SandboxError) as caught:
        await UnconfinedExecutor().run(Launch(command=command, purpose="download", cwd=str(tmp_path)))
    assert caught.value.code == "launch-failed"


async def test_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SandboxError) as caught:
        await run("pass", tmp_path / "gone")
    assert caught.value.code == "launch-failed"


def test_record_claims_nothing() -> None:
    record = UnconfinedExecutor().confinement
    assert [record.writes, record.network, record.home, record.process_tree] == [False] * 4
    assert record.gaps
