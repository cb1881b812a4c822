"""What is told and kept of files that come between two calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.execution import tracking
from satchel.execution.artifacts import Artifacts
from satchel.execution.options import ExecutionOptions
from satchel.execution.scripts import ScriptRequest
from satchel.execution.shell import CodeSession
from satchel.execution.shell_call import ShellRequest, ShellRun
from satchel.execution.tracking import FileTracker
from satchel.execution.workbench import Collected, Execution, Workbench
from satchel.execution.workspace import Snapshot, Workspace, walk
from satchel.ports.execution import Executor, Launch, Outcome
from satchel.sandbox.process import ProcessJob
from satchel.sandbox.unconfined import UnconfinedExecutor
from tests.execution.shells import HOST, read
from tests.support import write_skill

SINCE = "Written in the background since the last call:"
WAITS = "while [ ! -e {0} ]; do sleep 0.02; done"


def put(workspace: Workspace, path: str, text: str = "x") -> None:
    target = Path(workspace.work, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def paths(files: object) -> list[str]:
    return [file.path for file in files]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]


# The tracker


def test_what_came_between_two_calls_is_told_once_and_apart(workspace: Workspace) -> None:
    tracker = FileTracker(workspace)
    put(workspace, "early")
    tracker.begin()
    put(workspace, "made")
    news = tracker.end()
    assert (paths(news.made), paths(news.since)) == (["made"], ["early"])
    put(workspace, "d/late")
    tracker.begin()
    news = tracker.end()
    assert (paths(news.made), paths(news.since)) == ([], ["d/late"])
    tracker.begin()
    assert tracker.end().files == ()


def test_nothing_is_told_twice_by_the_same_call(workspace: Workspace) -> None:
    tracker = FileTracker(workspace)
    put(workspace, "changed", "1")
    put(workspace, "removed")
    tracker.begin()
    put(workspace, "changed", "longer")
    Path(workspace.work, "removed").unlink()
    news = tracker.end()
    assert (paths(news.made), paths(news.since)) == (["changed"], [])
    assert news.made[0].bytes == len("longer")


def test_what_a_tool_of_ours_wrote_is_no_news(workspace: Workspace) -> None:
    tracker = FileTracker(workspace)
    put(workspace, "a.py")
    put(workspace, "b.py")
    tracker.wrote(["a.py", "gone.py", "../x", "no/such"])
    assert paths(tracker.look()) == ["b.py"]
    put(workspace, "a.py", "and then a job changed it")
    assert paths(tracker.look()) == ["a.py"]


def test_a_file_that_is_ignored_is_never_news(workspace: Workspace) -> None:
    tracker = FileTracker(workspace)
    tracker.ignore("job-1.log")
    put(workspace, "job-1.log")
    assert tracker.look() == ()
    tracker.begin()
    put(workspace, "job-1.log", "more")
    assert tracker.end().files == ()
    assert tracker.changes == 0


def test_those_who_fetch_files_hear_of_each_state_once_and_the_model_still_does(workspace: Workspace) -> None:
    tracker = FileTracker(workspace)
    put(workspace, "a", "half")
    assert paths(tracker.collect()) == ["a"]
    assert tracker.collect() == ()
    put(workspace, "a", "the whole")
    assert [(file.path, file.bytes) for file in tracker.collect()] == [("a", 9)]
    assert [(file.path, file.bytes) for file in tracker.look()] == [("a", 9)]
    assert tracker.collect() == tracker.look() == ()


def test_what_was_there_before_anything_ran_is_no_news_where_that_is_said(workspace: Workspace) -> None:
    tracker = FileTracker(workspace, was_empty=False)
    put(workspace, "input.csv")
    tracker.begin()
    assert tracker.end().files == ()


def test_a_call_that_was_broken_off_leaves_its_files_to_the_next(workspace: Workspace) -> None:
    tracker = FileTracker(workspace)
    tracker.begin()
    put(workspace, "half")
    assert tracker.is_open
    tracker.begin()
    assert paths(tracker.end().since) == ["half"]
    assert not tracker.is_open


def test_a_directory_too_large_to_be_seen_whole_makes_nothing_up(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = FileTracker(workspace)
    monkeypatch.setattr("satchel.execution.workspace._MOST_ENTRIES", 3)
    for number in range(9):
        put(workspace, f"f{number}")
    tracker.begin()
    assert tracker.end().files == ()
    for number in range(7):
        Path(workspace.work, f"f{number}").unlink()
    assert tracker.look() == ()  # the others were there before
    put(workspace, "new")
    assert paths(tracker.look()) == ["new"]


def test_what_a_removal_lets_be_seen_was_not_made(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satchel.execution.workspace._MOST_ENTRIES", 4)
    tracker = FileTracker(workspace)
    for name in "abcdefg":
        put(workspace, name)
    tracker.begin()
    tracker.end()
    tracker.begin()
    seen = tracker._begun  # pyright: ignore[reportPrivateUsage] - which ones are seen, the file system decides
    for name in sorted(seen)[:3]:
        Path(workspace.work, name).unlink()
    put(workspace, sorted(seen)[3], "other")
    assert paths(tracker.end().made) == sorted(seen)[3:4]


# The tools of a bench


@asynccontextmanager
async def bench_in(
    base: Path, *, options: ExecutionOptions | None = None, executor: Executor | None = None
) -> AsyncGenerator[tuple[Workbench, CodeSession, Artifacts]]:
    shelf = await asyncio.to_thread(lambda: Artifacts(base=str(base)))
    given = options or ExecutionOptions(code=True, scripts=True, unconfined=True, sandbox="off")
    bench = await Execution(executor or UnconfinedExecutor(), given, host=HOST, artifacts=shelf, base=str(base)).open(
        "me"
    )
    assert bench.code is not None
    try:
        yield bench, bench.code, shelf
    finally:
        await bench.aclose()
        await asyncio.to_thread(shelf.close)


async def run(code: CodeSession, command: str, *, background: bool = False) -> ShellRun:
    return await code.run(ShellRequest(command=command, background=background))


async def until_ended(code: CodeSession) -> None:
    while code.jobs.running:  # noqa: ASYNC110 - another process ends
        await asyncio.sleep(0.01)


async def until_written(code: CodeSession, name: str) -> None:
    while not read(code, name):  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.01)


def kept(shelf: Artifacts, bench: Workbench) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    for item in shelf.of("me", bench.run_id):
        opened = shelf.open(item.id)
        assert opened is not None
        with opened:
            found[item.path] = opened.read()
    return found


JOB = "echo one > out.txt; " + WAITS.format("go") + "; echo two >> out.txt; echo log"


@pytest.mark.parametrize("ask", ["echo hello", "jobs", "kill %1", "background"])
async def test_the_next_result_of_the_shell_names_what_a_job_wrote(tmp_path: Path, ask: str) -> None:
    async with bench_in(tmp_path) as (bench, code, shelf):
        started = await run(code, "echo begun; echo one > out.txt", background=True)
        assert started.files == ()
        await until_ended(code)
        done = await run(code, "true" if ask == "background" else ask, background=ask == "background")
        assert done.text.endswith(f"{SINCE}\n- out.txt (4 B)")
        assert done.files == ("out.txt",)
        assert kept(shelf, bench) == {"out.txt": b"one\n"}
        again = await run(code, "jobs")
        assert SINCE not in again.text
        assert again.files == ()


class Failing(UnconfinedExecutor):
    """Starts nothing while ``fails``."""

    fails = False

    async def start(self, launch: Launch) -> ProcessJob:
        if self.fails:
            raise SandboxError("launch-failed", "Not now.")
        return await super().start(launch)

    async def run(self, launch: Launch) -> Outcome:
        if self.fails:
            raise SandboxError("launch-failed", "Not now.")
        return await super().run(launch)


@pytest.mark.parametrize("background", [True, False])
async def test_a_call_that_cannot_be_started_takes_no_news_with_it(tmp_path: Path, background: bool) -> None:
    executor = Failing()
    async with bench_in(tmp_path, executor=executor) as (bench, code, shelf):
        await run(code, "echo one > out.txt", background=True)
        await until_ended(code)
        executor.fails = True
        with pytest.raises(SandboxError):
            await run(code, "true", background=background)
        executor.fails = False
        done = await run(code, "true")
        assert done.text.endswith(f"{SINCE}\n- out.txt (4 B)")
        assert "A background job has ended: %1" in done.text
        assert kept(shelf, bench) == {"out.txt": b"one\n"}


async def test_a_file_that_goes_on_growing_is_kept_as_it_is_in_the_end(tmp_path: Path) -> None:
    async with bench_in(tmp_path) as (bench, code, shelf):
        await run(code, JOB, background=True)
        await until_written(code, "out.txt")
        assert (await run(code, "true")).files == ("out.txt",)
        assert kept(shelf, bench) == {"out.txt": b"one\n"}
        put(code.workspace, "go")
        await until_ended(code)
        assert (await run(code, "true")).files == ("go", "out.txt")
        assert kept(shelf, bench)["out.txt"] == b"one\ntwo\n"


async def test_a_script_tells_it_too_and_what_it_made_itself_is_the_next_calls_no_news(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "skills", "s", files={"scripts/a.py": "open('mine', 'w').write('x')\n"})
    async with bench_in(tmp_path) as (bench, code, shelf):
        assert bench.scripts is not None
        await run(code, "echo 1 > theirs", background=True)
        await until_ended(code)
        done = await bench.scripts.run(ScriptRequest(skill="s", directory=str(folder), path="scripts/a.py"))
        assert done.text.endswith(f"Files produced:\n- mine (1 B)\n{SINCE}\n- theirs (2 B)")
        assert set(paths(done.produced)) == {"mine", "theirs"} == set(kept(shelf, bench))
        assert SINCE not in (await run(code, "true")).text


async def test_what_the_file_tools_wrote_is_not_said_of_the_background(tmp_path: Path) -> None:
    async with bench_in(tmp_path) as (bench, code, shelf):
        assert bench.files is not None
        await bench.files.write("a.py", "x = 1\n")
        done = await run(code, "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: b.py\n+y = 2\n*** End Patch\nEOF")
        assert done.files == ("b.py",)
        assert "b.py" in kept(shelf, bench)
        assert SINCE not in (await run(code, "true")).text
        await bench.files.replace("a.py", "1", "2")
        assert SINCE not in (await run(code, "jobs")).text


async def test_a_log_is_no_file_that_was_produced(tmp_path: Path) -> None:
    async with bench_in(tmp_path) as (bench, code, shelf):
        await run(code, f"echo one; {WAITS.format('go')}; echo two", background=True)
        done = await run(code, "touch go; while ! grep -q two job-1.log; do sleep 0.02; done")
        assert done.ok
        assert done.files == ("go",)
        assert "- job-1.log" not in done.text
        await until_ended(code)
        assert await bench.collect() == Collected()
        assert list(kept(shelf, bench)) == ["go"]


async def test_nothing_is_looked_for_where_nothing_runs_beside_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def counted(workspace: Workspace) -> tuple[Snapshot, bool]:
        nonlocal looks
        looks += 1
        return walk(workspace)

    monkeypatch.setattr(tracking, "walk", counted)
    async with bench_in(tmp_path) as (bench, code, _):
        await run(code, "echo 1 > a")
        assert looks == 2
        assert await bench.collect() == Collected()
        assert looks == 2
    assert looks == 2


async def test_what_a_job_wrote_up_to_the_end_of_the_bench_is_kept(tmp_path: Path) -> None:
    async with bench_in(tmp_path) as (bench, code, shelf):
        await run(code, JOB, background=True)
        await until_written(code, "out.txt")
        assert (await bench.collect()).files == ("out.txt",)
        assert await bench.collect() == Collected()
        put(code.workspace, "out.txt", "later")
        await bench.aclose()
        assert kept(shelf, bench) == {"out.txt": b"later"}


async def test_what_a_command_made_that_was_broken_off_is_kept_at_the_end(tmp_path: Path) -> None:
    async with bench_in(tmp_path) as (bench, code, shelf):
        running = asyncio.create_task(run(code, "echo half > out.txt; sleep 60"))
        await until_written(code, "out.txt")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert (await bench.collect()).files == ("out.txt",)
        assert kept(shelf, bench) == {"out.txt": b"half\n"}


async def test_what_a_job_wrote_and_cannot_be_kept_is_said_with_the_reason(tmp_path: Path) -> None:
    async with bench_in(tmp_path) as (bench, code, shelf):
        await run(code, JOB, background=True)
        await until_written(code, "out.txt")
        put(code.workspace, "~odd")
        made = await bench.collect()
        assert made.files == ("out.txt",)
        assert [(item.path, item.reason.partition(" ")[0]) for item in made.not_kept] == [("~odd", "has")]
        assert set(kept(shelf, bench)) == {"out.txt"}


# To try again


async def test_after_a_patch_through_the_shell_to_try_again_is_no_repetition(tmp_path: Path) -> None:
    fails = "grep -q ready .state || exit 3"
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: .state\n@@\n-{0}\n+{1}\n*** End Patch\nEOF"
    async with bench_in(tmp_path) as (_, code, _shelf):
        await run(code, "echo a > .state")  # hidden, so no look at the directory shows a change
        await run(code, fails)
        assert "failed 2 times" in (await run(code, fails)).text
        assert (await run(code, patch.format("a", "b"))).ok
        assert "times in a row" not in (await run(code, fails)).text
        assert "failed 2 times" in (await run(code, fails)).text


async def test_the_same_holds_of_a_command_that_the_host_refuses(tmp_path: Path) -> None:
    async with bench_in(tmp_path) as (bench, code, _):
        refused = "pip install requests"
        await run(code, refused)
        assert "failed 2 times" in (await run(code, refused)).text
        assert bench.files is not None
        await bench.files.write(".requirements", "x")
        assert "times in a row" not in (await run(code, refused)).text
