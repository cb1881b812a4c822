from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.execution.jobs import MAX_RUNNING
from satchel.execution.shell import CodeSession
from tests.execution.shells import Claiming, left_in, printed, read, run, session


async def until(made: CodeSession, name: str, text: str = "") -> str:
    """The content of a file, once it has that text."""
    while text not in read(made, name) or not read(made, name):  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.01)
    return read(made, name)


async def ended(made: CodeSession) -> None:
    while made.jobs.running:  # noqa: ASYNC110 - another process ends
        await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether it runs; one that is dead and only not yet collected by its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def dead(pids: list[int]) -> None:
    """Waits for them: without a process table of their own, the kernel takes its time with what was killed."""
    async with asyncio.timeout(10):
        while any(is_alive(pid) for pid in pids):  # noqa: ASYNC110 - other processes end
            await asyncio.sleep(0.01)


async def test_a_job_goes_on_and_its_log_can_be_read(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await run(made, "mkfifo go; mkdir d; cd d; export WHAT=seen")
        done = await run(
            made, 'echo "begun $WHAT in $(pwd)"; echo oops >&2; read line < ../go; echo "$line" > out', background=True
        )
        assert done.ok
        assert "job %1" in done.text
        assert "../job-1.log" in done.text
        log = await until(made, "job-1.log", "oops")
        assert log.startswith("begun seen in ")
        assert "%1 running: " in (await run(made, "jobs")).text
        assert (await run(made, "echo x > y")).files == ("d/y",)
        await run(made, "echo answer > ../go")
        await ended(made)
        assert read(made, "d/out") == "answer\n"


async def test_what_a_job_exports_and_where_it_goes_stays_its_own(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await run(made, "mkdir d; cd d; export A=1", background=True)
        await ended(made)
        done = await run(made, 'echo "${A:-none}"; basename "$PWD"')
        assert printed(done) == "none\nwork\n"
        assert "A background job has ended: %1 exit code 0" in done.text
        assert "has ended" not in (await run(made, "true")).text
        assert os.listdir(made.workspace.state) == []  # noqa: PTH208
        assert {Path(name).suffix for name in os.listdir(made.workspace.calls)} == {".sh"}  # noqa: PTH208


async def test_a_job_is_ended_by_name_with_everything_it_started(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await run(made, "sleep 60 & echo $! > child; echo $$ > self; wait", background=True)
        pids = [int(await until(made, name, "\n")) for name in ("child", "self")]
        done = await run(made, "kill -9 %1")
        assert done.ok
        assert "stopped by the host" in done.text
        await dead(pids)
        assert not (await run(made, "kill %7")).ok
        assert "%1 stopped" in (await run(made, " jobs -l\n")).text
        assert (await run(made, "jobs; echo mine")).outcome is not None


async def test_nothing_outlives_the_session(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        for number in (1, 2):
            await run(made, f"sleep 60 & echo $! > child{number}; wait", background=True)
        pids = [int(await until(made, f"child{number}", "\n")) for number in (1, 2)]
        assert all(is_alive(pid) for pid in pids)
    await dead(pids)


async def test_a_job_has_a_time_limit(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        done = await run(made, "echo begun; sleep 60", background=True, timeout_s=0.3)
        assert "is ended after 0.3 s." in done.text
        await ended(made)
        assert "stopped at the time limit" in (await run(made, "true")).text
        assert read(made, "job-1.log") == "begun\n"


async def test_only_so_many_jobs_run_at_once(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        for _ in range(MAX_RUNNING):
            assert (await run(made, "sleep 60", background=True)).ok
        done = await run(made, "touch ran", background=True)
        assert (done.ok, done.code) == (False, "too-many-jobs")
        assert "kill %N" in done.text
        await run(made, "kill %3")
        assert (await run(made, "sleep 60", background=True)).ok
        assert "ran" not in left_in(made)


@pytest.mark.parametrize("plant", ["ln -s /etc/passwd job-1.log", "mkdir job-1.log", "echo mine > job-1.log"])
async def test_a_log_never_takes_the_place_of_something(tmp_path: Path, plant: str) -> None:
    async with session(tmp_path) as made:
        await run(made, plant)
        assert "job-1-2.log" in (await run(made, "echo to the log", background=True)).text
        await ended(made)
        assert read(made, "job-1-2.log") == "to the log\n"
        assert "to the log" not in read(made, "job-1.log")


async def test_a_flood_in_the_background_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satchel.execution.jobs.LOG_BYTES", 50_000)
    async with session(tmp_path) as made:
        await run(made, "while :; do head -c 30000 /dev/zero; sleep 0.05; done", background=True)
        await ended(made)
        assert "wrote too much" in (await run(made, "true")).text
        assert printed(await run(made, "echo still here")) == "still here\n"


async def test_a_log_that_is_replaced_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satchel.execution.jobs.LOG_BYTES", 50_000)
    async with session(tmp_path) as made:
        await run(made, "ln -sf /dev/zero job-1.log; sleep 0.6; echo done > done", background=True)
        assert await until(made, "done") == "done\n"
        await ended(made)
        assert "exit code 0" in (await run(made, "jobs")).text


async def test_a_log_has_a_name_even_when_programs_took_them_all(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await run(made, "touch job-1.log; for i in $(seq 2 9999); do echo job-1-$i.log; done | xargs touch")
        async with asyncio.timeout(20):
            done = await run(made, "echo seen", background=True)
        assert done.ok
        await ended(made)
        (log,) = made.jobs.logs
        assert read(made, log) == "seen\n"


@pytest.mark.parametrize(
    ("command", "is_told"),
    [
        ("sleep 30 & echo started", True),
        ("(sleep 30 &); echo started", True),
        ("nohup sleep 30 >/dev/null 2>&1 &", True),
        ("sleep 30 & pid=$!; echo $pid", True),
        ("sleep 0 & wait", False),
        ("for i in 1 2; do sleep 0 & done; wait; echo done", False),
        ("sleep 0 & wait $!; sleep 0 & echo again", True),
        ("echo 'a & b' 2>&1 && echo '&'", False),
    ],
)
async def test_what_a_command_left_running_is_said_to_be_gone(tmp_path: Path, command: str, is_told: bool) -> None:
    async with session(tmp_path, executor=Claiming()) as made:
        done = await run(made, command)
        assert done.ok
        assert ("nothing of it runs now" in done.text) is is_told


@pytest.mark.parametrize(
    ("command", "is_told"),
    [
        ("jobs | tail -1", True),
        ("kill %1; true", True),
        ("wait %1 || true", True),
        ("echo jobs", False),
        ("jobs", False),
    ],
)
async def test_a_shell_that_is_asked_about_the_jobs_of_others(tmp_path: Path, command: str, is_told: bool) -> None:
    async with session(tmp_path) as made:
        assert "no job of another call" not in (await run(made, "jobs | tail -1")).text
        await run(made, "sleep 30", background=True)
        assert ("no job of another call" in (await run(made, command)).text) is is_told


async def test_a_job_that_does_not_start_leaves_nothing(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await asyncio.to_thread(os.rmdir, made.workspace.work)
        with pytest.raises(SandboxError):
            await run(made, "true", background=True)
        await asyncio.to_thread(os.mkdir, made.workspace.work)
        assert {Path(name).suffix for name in os.listdir(made.workspace.calls)} == {".sh"}  # noqa: PTH208
