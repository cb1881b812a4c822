"""Turns in which things really run: a skill's script, and a program that is written, fails, is patched and runs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from satchel.chat.messages import ToolOutput
from satchel.chat.request import ChatRequest
from satchel.engine.events import RoundFinished, ToolFinished, TurnDone, TurnEvent, TurnStarted
from satchel.engine.runtime import Runtime
from satchel.errors import SetupError
from satchel.execution.artifacts import Artifacts
from satchel.execution.options import ExecutionOptions, SandboxMode
from satchel.execution.workbench import Execution
from satchel.library import discover
from satchel.sandbox.bubblewrap import BubblewrapExecutor
from satchel.sandbox.canary import CANARIES
from satchel.sandbox.detect import UnavailableExecutor, detect
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.sources.directory import DirectorySource
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from satchel.wiring.sources import skill_hosts
from tests.support import ask, collect, write_skill

BUDGET = "import sys\nprint('fuel', round(float(sys.argv[1]) * 3.7137, 2))\n"
BROKEN = "def area(r):\n    return 3 * r ** 2\n\nprint(area('2'))\n"
PATCH = "*** Begin Patch\n*** Update File: area.py\n@@\n-print(area('2'))\n+print(area(2))\n*** End Patch\n"


@asynccontextmanager
async def running(
    model: ScriptedModel, root: Path, base: Path, options: ExecutionOptions
) -> AsyncGenerator[tuple[Runtime, Execution]]:
    found = await detect("required")
    shelf = await asyncio.to_thread(lambda: Artifacts(base=str(base)))
    execution = Execution(found.executor, options, artifacts=shelf, base=str(base), host={"PATH": "/usr/bin:/bin"})
    source = DirectorySource(discover([root]))
    try:
        yield Runtime(models=model, source=source, hosts=skill_hosts, execution=execution), execution
    finally:
        await asyncio.to_thread(execution.close)


def names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def told(request: ChatRequest) -> list[str]:
    return [part.text for item in request.messages for part in item.parts if isinstance(part, ToolOutput)]


def use(name: str, number: int, **arguments: object) -> Reply:
    return Reply(calls=(call(name, json.dumps(arguments), f"c{number}"),))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    made = tmp_path / "base"
    made.mkdir()
    return made


async def test_a_script_of_a_skill_answers_what_only_it_knows(tmp_path: Path, base: Path) -> None:
    write_skill(tmp_path / "skills", "fuel", body="Run scripts/budget.py.\n", files={"scripts/budget.py": BUDGET})
    run = use("skills_run", 2, skill="fuel", path="scripts/budget.py", args=["100"])
    model = ScriptedModel([use("skills_read", 1, skill="fuel"), run, Reply(text=("371.37",))])
    async with running(model, tmp_path / "skills", base, ExecutionOptions(scripts=True)) as (runtime, execution):
        events, done = await collect(runtime, ask(skills=("fuel",)))
        started = events[0]
    assert isinstance(started, TurnStarted)
    assert started.confinement == execution.executor.confinement
    assert started.confinement is not None
    assert asdict(started.confinement)["is_full"] is True
    assert "fuel 371.37" in told(model.requests[-1])[-1]
    assert "exit code 0" in told(model.requests[-1])[-1]
    (ran,) = (event for event in events if isinstance(event, ToolFinished) and event.name == "skills_run")
    assert (ran.command, ran.exit_code, ran.reason) == ("scripts/budget.py 100", 0, "")
    assert done.rounds == 3
    assert names(base) == []


async def test_scripts_and_code_are_not_offered_until_they_are_allowed(tmp_path: Path) -> None:
    write_skill(tmp_path, "fuel", files={"scripts/budget.py": BUDGET})
    model = ScriptedModel([Reply(text=("no",))])
    runtime = Runtime(models=model, source=DirectorySource(discover([tmp_path])), hosts=skill_hosts)
    await collect(runtime, ask(skills=("fuel",)))
    assert {spec.name for spec in model.requests[0].tools} <= {"skills_list", "skills_read"}


async def test_a_host_that_cannot_confine_says_so_and_claims_to_hold_nothing(tmp_path: Path, base: Path) -> None:
    write_skill(tmp_path / "skills", "fuel", files={"scripts/budget.py": BUDGET})
    run = use("skills_run", 1, skill="fuel", path="scripts/budget.py", args=["100"])
    model = ScriptedModel([run, Reply(text=("no",))])
    execution = Execution(UnavailableExecutor("No OS sandbox."), ExecutionOptions(scripts=True), base=str(base))
    source = DirectorySource(discover([tmp_path / "skills"]))
    runtime = Runtime(models=model, source=source, hosts=skill_hosts, execution=execution)
    events, _ = await collect(runtime, ask(skills=("fuel",)))
    assert isinstance(events[0], TurnStarted)
    assert events[0].confinement is None
    assert told(model.requests[-1])[-1] == "Error: No OS sandbox. The script was not run."
    assert names(base) == []


async def test_code_is_written_fails_is_patched_and_runs_in_one_turn(tmp_path: Path, base: Path) -> None:
    write_skill(tmp_path / "skills", "geometry")
    model = ScriptedModel(
        [
            use("write_file", 1, path="area.py", content=BROKEN),
            use("bash", 2, command="python area.py"),  # a name that models bring along
            use("apply_patch", 3, input=PATCH),
            use("shell", 4, command="python area.py > out.txt && cat out.txt"),
            Reply(text=("12",)),
        ]
    )
    async with running(model, tmp_path / "skills", base, ExecutionOptions(code=True)) as (runtime, execution):
        events, done = await collect(runtime, ask())
        results = told(model.requests[-1])
        finished = [event for event in events if isinstance(event, ToolFinished)]
        shelf = execution.artifacts
        assert shelf is not None
        kept = {item.path for item in shelf.of("local", finished[-1].run)}
        left = [name for folder in names(base) for name in names(base / folder)]
    assert "TypeError" in results[1]
    assert str(base) not in results[1]
    assert results[3].rstrip().endswith("out.txt") or "12" in results[3]
    assert "12" in results[3]
    assert [event.ok for event in finished] == [True, False, True, True]
    assert [event.command for event in finished] == [
        "",
        "python area.py",
        "",
        "python area.py > out.txt && cat out.txt",
    ]
    assert [event.exit_code for event in finished] == [None, 1, None, 0]
    assert [event.reason.partition(":")[0] for event in finished] == ["", "TypeError", "", ""]
    assert {"area.py", "out.txt"} <= kept
    assert not [name for name in left if not name.startswith("artifacts-")]
    assert "## Working with files" in model.requests[0].messages[0].text
    assert model.requests[0].sampling.is_code
    assert done.rounds == 5
    assert names(base) == []


JOB = "echo half > out.txt; until [ -e go ]; do sleep 0.02; done; echo whole > out.txt"


@pytest.mark.parametrize("ends", [True, False])
async def test_what_a_job_wrote_is_told_at_the_end_of_the_turn_and_kept_as_it_was_last(
    tmp_path: Path, base: Path, ends: bool
) -> None:
    write_skill(tmp_path / "skills", "geometry")
    start = use("shell", 1, command=JOB, run_in_background="true")
    async with running(
        ScriptedModel([start, Reply(text=("It goes on.",))]), tmp_path / "skills", base, ExecutionOptions(code=True)
    ) as (runtime, execution):
        events: list[TurnEvent] = []
        async with runtime.turn(ask()) as turn:
            async for event in turn:
                events.append(event)
                (work,) = base.glob("satchel-*/*/work")  # noqa: ASYNC240 - a test
                if isinstance(event, RoundFinished) and event.round == 2:
                    await until(work / "out.txt", "half")
                    if ends:
                        (work / "go").touch()
                        await until(work / "out.txt", "whole")
                if isinstance(event, TurnDone) and not ends:
                    (work / "out.txt").write_text("later\n")  # as a job would before it is ended with the request
        done = events[-1]
        assert isinstance(done, TurnDone)
        assert done.files == (("go", "out.txt") if ends else ("out.txt",))
        shelf = execution.artifacts
        assert shelf is not None
        kept = shelf.find("local", done.run, "out.txt")
        assert kept is not None
        opened = await asyncio.to_thread(shelf.open, kept.id)
        assert opened is not None
        with opened:
            assert opened.read() == (b"whole\n" if ends else b"later\n")
    assert names(base) == []


async def until(file: Path, text: str) -> None:
    def is_so() -> bool:
        return file.is_file() and file.read_text() == f"{text}\n"

    while not is_so():  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.01)


async def test_a_turn_without_programs_beside_its_calls_has_no_files_at_its_end(tmp_path: Path, base: Path) -> None:
    write_skill(tmp_path / "skills", "geometry")
    model = ScriptedModel([use("shell", 1, command="echo 1 > a.txt"), Reply(text=("done",))])
    async with running(model, tmp_path / "skills", base, ExecutionOptions(code=True)) as (runtime, _):
        _, done = await collect(runtime, ask())
    assert (done.files, done.run) == ((), "")


async def test_a_failing_program_never_withdraws_its_tool(tmp_path: Path, base: Path) -> None:
    write_skill(tmp_path / "skills", "geometry")
    runs = [use("shell", number, command=f"exit {number}") for number in range(1, 6)]
    model = ScriptedModel([*runs, Reply(text=("done",))])
    async with running(model, tmp_path / "skills", base, ExecutionOptions(code=True)) as (runtime, _):
        events, _ = await collect(runtime, ask())
    # They said nothing, and how they ended stands beside it.
    assert [event.reason for event in events if isinstance(event, ToolFinished)] == [""] * 5
    assert "shell" in {spec.name for spec in model.requests[-1].tools}
    assert "exit code 5" in told(model.requests[-1])[-1]


LINE = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n"
CHANGES = {
    "apply_patch": use("apply_patch", 2, patch=LINE),
    "edit_file": use("edit_file", 2, path="a.txt", old_string="one", new_string="two"),
    "write_file": use("write_file", 2, path="a.txt", content="two\n", overwrite=True),
    "shell": use("shell", 2, command=f"apply_patch <<'EOF'\n{LINE}EOF"),
}


@pytest.mark.parametrize("tool", CHANGES)
async def test_a_host_can_ask_that_files_are_read_before_they_are_changed(
    tmp_path: Path, base: Path, tool: str
) -> None:
    write_skill(tmp_path / "skills", "geometry")
    change, look = CHANGES[tool], use("read_file", 3, path="a.txt")
    make = use("shell", 1, command="echo one > a.txt")
    model = ScriptedModel(
        [
            make,
            change,  # not read
            look,
            use("shell", 4, command="echo zero > a.txt"),
            use("shell", 5, command="echo one >> a.txt"),
            change,  # changed since
            use("read_file", 6, path="a.txt"),
            change,
            Reply(text=("done",)),
        ]
    )
    options = ExecutionOptions(code=True, read_first=True)
    async with running(model, tmp_path / "skills", base, options) as (runtime, _):
        events, _done = await collect(runtime, ask())
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert [event.code for event in finished if not event.ok] == ["NOT_READ_THIS_SESSION", "STALE_READ"]
    results = told(model.requests[-1])
    assert 'Read it first with read_file(path="a.txt")' in results[1]
    assert "has changed since it was last read" in results[5]
    assert finished[-1].ok
    assert finished[-1].files == ("a.txt",)


@pytest.mark.parametrize("tool", CHANGES)
async def test_files_may_be_changed_unread_unless_the_host_asks(tmp_path: Path, base: Path, tool: str) -> None:
    write_skill(tmp_path / "skills", "geometry")
    make = use("shell", 1, command="echo one > a.txt")
    model = ScriptedModel([make, CHANGES[tool], Reply(text=("done",))])
    async with running(model, tmp_path / "skills", base, ExecutionOptions(code=True)) as (runtime, _):
        events, _done = await collect(runtime, ask())
    assert [event.ok for event in events if isinstance(event, ToolFinished)] == [True, True]


async def test_calls_of_one_round_run_in_their_order(tmp_path: Path, base: Path) -> None:
    write_skill(tmp_path / "skills", "geometry")
    long = "# " + "x" * 9000 + "\nprint('second')\n"  # whose arguments are read in a thread
    both = Reply(
        calls=(
            call("write_file", json.dumps({"path": "a.py", "content": long}), "c1"),
            call("shell", json.dumps({"command": "python a.py"}), "c2"),
        )
    )
    model = ScriptedModel([both, Reply(text=("done",))])
    async with running(model, tmp_path / "skills", base, ExecutionOptions(code=True)) as (runtime, _):
        await collect(runtime, ask())
    assert "second" in told(model.requests[-1])[1]


async def test_what_was_found_holds_a_program_and_says_so() -> None:
    found = await detect("required")
    assert found.executor.unavailable_reason == ""
    assert found.executor.confinement.is_full
    chosen = [report for report in found.report if report.is_chosen]
    assert len(chosen) == 1
    assert all(chosen[0].canaries.values())
    assert set(chosen[0].canaries) == set(CANARIES)


async def test_a_floor_refuses_an_older_bubblewrap() -> None:
    found = await detect("required", bwrap_floor="999.0")
    report = next(report for report in found.report if report.backend == "bubblewrap")
    assert "999.0" in report.reason or report.reason == "it is not installed"
    assert not isinstance(found.executor, BubblewrapExecutor)


@pytest.mark.parametrize("mode", ["required", "preferred"])
async def test_without_a_sandbox_no_code_runs_and_the_model_is_told(
    tmp_path: Path, base: Path, mode: SandboxMode
) -> None:
    write_skill(tmp_path / "skills", "geometry")
    model = ScriptedModel([use("shell", 1, command=f"touch {base}/ran"), Reply(text=("no",))])
    options = ExecutionOptions(code=True, sandbox=mode)
    execution = Execution(UnconfinedExecutor(), options, base=str(base), host=dict(os.environ))
    source = DirectorySource(discover([tmp_path / "skills"]))
    await collect(Runtime(models=model, source=source, hosts=skill_hosts, execution=execution), ask())
    assert "no OS sandbox" in told(model.requests[-1])[0]
    assert names(base) == []


def test_a_sandbox_that_is_off_is_refused_where_code_may_run_until_that_is_said() -> None:
    with pytest.raises(SetupError) as caught:
        ExecutionOptions(code=True, sandbox="off")
    assert caught.value.code == "setting-invalid"
    assert "unconfined" in caught.value.message
    with pytest.raises(SetupError):
        replace(ExecutionOptions(code=True), sandbox="off")
    ExecutionOptions(code=True, sandbox="off", unconfined=True)
    ExecutionOptions(scripts=True, sandbox="off")
