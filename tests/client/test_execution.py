"""A program of one's own that lets models run things: in the sandbox of this machine, or inside its own process."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import runpy
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from satchel import Artifacts, Execution, ExecutionOptions, SkillsChatClient, SkillsChatRequest
from satchel.errors import SandboxError, SetupError
from satchel.ports.execution import (
    GAP_NETWORK,
    Captured,
    Confinement,
    Executor,
    Job,
    Launch,
    Outcome,
    Shell,
    ShellState,
)
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, says
from tests.support import write_skill

ASK = SkillsChatRequest.user("How much fuel?", "fuel")
SCRIPT = """
import os, pathlib, sys
pathlib.Path("seen.txt").write_text("x")
print("fuel", float(sys.argv[1]) * 2, os.environ["HOME"])
"""


class InProcess:
    """Everything runs in this very process: Python scripts, and a shell of three commands."""

    can_run = True
    unavailable_reason = ""

    def __init__(self, *, holds_network: bool = True) -> None:
        gaps = () if holds_network else (GAP_NETWORK,)
        self.confinement = Confinement(
            backend="in-process", writes=True, network=holds_network, home=True, process_tree=True, gaps=gaps
        )
        self.shell: Shell | None = Shell(dialect="sh", program="")
        self.launches: list[Launch] = []

    async def start(self, launch: Launch) -> Job:
        raise SandboxError("launch-failed", "Nothing runs in the background here.")

    async def run(self, launch: Launch) -> Outcome:
        self.launches.append(launch)
        return await asyncio.to_thread(_run, launch)


def _run(launch: Launch) -> Outcome:
    printed, code = io.StringIO(), 0
    if isinstance(launch.command, str):
        assert launch.state is not None
        code = _shell(launch.command, launch.state, printed)
    elif launch.command[0] == "python":
        _script(launch, printed)
    else:
        code = 127
    return Outcome(exit_code=code, stdout=Captured(head=printed.getvalue().encode()))


def _script(launch: Launch, printed: io.StringIO) -> None:
    _, path, *arguments = launch.command
    before = Path.cwd(), sys.argv, dict(os.environ)
    os.chdir(launch.cwd)
    sys.argv = [path, *arguments]
    os.environ |= dict(launch.env)
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(path, run_name="__main__")
    finally:
        os.chdir(before[0])
        sys.argv = before[1]
        os.environ.clear()
        os.environ |= before[2]


def _shell(line: str, state: ShellState, printed: io.StringIO) -> int:
    cwd, env = state.load()
    for command in line.split("&&"):
        match shlex.split(command):
            case ["mkdir", name]:
                Path(cwd, name).mkdir()
            case ["cd", name]:
                cwd = str(Path(cwd, name))
            case ["export", assignment]:
                name, _, value = assignment.partition("=")
                env[name] = value
            case ["echo", name]:
                printed.write(f"{env.get(name.lstrip('$'), '')} in {Path(cwd).name}\n")
            case ["forget"]:
                state.mark_reset()
                return 0
            case _:
                return 127
    state.save(cwd, env)
    return 0


def use(name: str, **arguments: object) -> ScriptedTurn:
    return ScriptedTurn(calls=(ScriptedCall(name=name, fragments=(json.dumps(arguments),), call_id="c"),))


def told(server: ScriptedOpenAI) -> list[str]:
    """What the model was told by tools, in the last request."""
    last: dict[str, Any] = server.requests[-1].body
    return [item["content"] for item in last["messages"] if item["role"] == "tool"]


def declared(server: ScriptedOpenAI) -> dict[str, dict[str, Any]]:
    """The tools of the first request by their names."""
    first: dict[str, Any] = server.requests[0].body
    return {tool["function"]["name"]: tool["function"] for tool in first["tools"]}


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path / "skills", "fuel", body="Run scripts/budget.py.\n", files={"scripts/budget.py": SCRIPT})
    return tmp_path / "skills"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    made = tmp_path / "base"
    made.mkdir()
    return made


async def test_a_host_without_programs_runs_scripts_and_a_shell_in_its_own_process(skills: Path, base: Path) -> None:
    executor: Executor = InProcess()
    options = ExecutionOptions(scripts=True, code=True)
    turns = [
        use("skills_run", skill="fuel", path="scripts/budget.py", args=["21"]),
        use("shell", command="mkdir sub && cd sub && export A=1"),
        use("shell", command="echo $A"),
        use("shell", command="forget"),
        use("shell", command="echo $A"),
        use("read_file", path="seen.txt"),
        says("42"),
    ]
    async with ScriptedOpenAI(turns) as server:
        execution = Execution(executor, options, host={}, base=str(base))
        async with SkillsChatClient(server.url, skills=skills, delivery="local", execution=execution) as client:
            reply = await client.complete(ASK)
        ran, moved, kept, reset, gone, read = told(server)
        shell = declared(server)["shell"]
    assert reply.content == "42"
    assert "exit code 0, sandbox: in-process" in ran
    assert "fuel 42.0 " in ran
    assert "seen.txt" in ran
    assert moved.startswith("Working directory is now: sub\nRan the command (exit code 0")
    assert "\n1 in sub" in kept
    assert "were reset; export them again." in reset
    assert "\n in sub" in gone
    assert "1 | x" in read
    assert "It is read by sh; it has no network." in shell["description"]
    assert "Not confined" not in ran + moved
    assert await asyncio.to_thread(lambda: list(base.iterdir())) == []


async def test_what_a_host_does_not_hold_is_refused_until_it_says_so(skills: Path, base: Path) -> None:
    turns = [
        use("skills_run", skill="fuel", path="scripts/budget.py", args=["21"]),
        use("shell", command="echo x"),
        says("no"),
    ]
    for options, runs in (
        (ExecutionOptions(scripts=True, code=True), False),
        (ExecutionOptions(scripts=True, code=True, sandbox="preferred", unconfined=True), True),
    ):
        executor = InProcess(holds_network=False)
        async with ScriptedOpenAI(turns) as server:
            execution = Execution(executor, options, host={}, base=str(base))
            async with SkillsChatClient(server.url, skills=skills, delivery="local", execution=execution) as client:
                await client.complete(ASK)
            results = told(server)
        assert bool(executor.launches) is runs
        for result in results:
            assert GAP_NETWORK in result
            assert ("Not confined on this host: " in result) is runs


async def test_options_alone_run_things_in_the_sandbox_of_this_machine(
    skills: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(base))
    turns = [use("skills_run", skill="fuel", path="scripts/budget.py", args=["21"]), says("42")] * 2
    async with ScriptedOpenAI(turns) as server:
        options = ExecutionOptions(scripts=True)
        async with SkillsChatClient(server.url, skills=skills, delivery="local", execution=options) as client:
            replies = [await client.complete(ASK) for _ in range(2)]
        (result,) = told(server)
        offered = declared(server)
    assert [reply.content for reply in replies] == ["42", "42"]
    assert "fuel 42.0 " in result
    assert "sandbox: none" not in result
    assert "shell" not in offered
    left = [path.name for path in await asyncio.to_thread(lambda: list(base.glob("satchel-*/*")))]
    assert [name for name in left if not name.startswith("etc-")] == []  # which lasts as long as the process


async def test_what_was_made_can_be_saved_until_the_client_is_closed(skills: Path, tmp_path: Path) -> None:
    turns = [use("skills_run", skill="fuel", path="scripts/budget.py", args=["21"]), says("42")]
    async with ScriptedOpenAI(turns) as server:
        shelf = await asyncio.to_thread(Artifacts)
        execution = Execution(InProcess(), ExecutionOptions(scripts=True), host={}, artifacts=shelf)
        async with SkillsChatClient(server.url, skills=skills, delivery="local", execution=execution) as client:
            reply = await client.complete(ASK)
            (call,) = reply.skill_invocations
            assert call.files == ("seen.txt",)
            assert call.run
            saved = await client.save(reply, tmp_path / "out" / "here")
            assert [(item.path, item.bytes, item.problem) for item in saved] == [("seen.txt", 1, "")]
            (again,) = await client.save(reply, tmp_path / "out" / "here")
            assert again.problem == "exists there already and was left as it is"
            await asyncio.to_thread(execution.close)
            (late,) = await client.save(reply, str(tmp_path / "late"))
            assert late.problem.startswith("is no longer kept")
            with pytest.raises(SetupError, match="cannot be made"):
                await client.save(reply, tmp_path / "out" / "here" / "seen.txt")
            with pytest.raises(SetupError, match="at the server"):
                await client.save(replace(reply, delivery="server"), tmp_path)
    assert (tmp_path / "out" / "here" / "seen.txt").read_text() == "x"


async def test_what_jobs_made_is_saved_too(skills: Path, tmp_path: Path) -> None:
    job = "echo data > job.csv; echo odd > '~odd'; touch ready; sleep 60"
    turns = [use("shell", command=job, run_in_background=True), ScriptedTurn(text=("It runs.",), delay_s=0.5)]
    async with ScriptedOpenAI(turns) as server:
        execution = await asyncio.to_thread(
            lambda: Execution(
                UnconfinedExecutor(), ExecutionOptions(code=True, unconfined=True, sandbox="off"), artifacts=Artifacts()
            )
        )
        async with SkillsChatClient(server.url, skills=skills, delivery="local", execution=execution) as client:
            reply = await client.complete(ASK)
            saved = await client.save(reply, tmp_path / "out")
        await asyncio.to_thread(execution.close)
    assert {item.path: bool(item.problem) for item in saved} == {"job.csv": False, "ready": False, "~odd": True}
    assert (tmp_path / "out" / "job.csv").read_text() == "data\n"


async def test_without_a_shelf_it_is_said_that_nothing_was_kept(skills: Path, tmp_path: Path) -> None:
    turns = [use("skills_run", skill="fuel", path="scripts/budget.py", args=["21"]), says("42")]
    async with ScriptedOpenAI(turns) as server:
        execution = Execution(InProcess(), ExecutionOptions(scripts=True), host={})
        async with SkillsChatClient(server.url, skills=skills, delivery="local", execution=execution) as client:
            reply = await client.complete(ASK)
            (lost,) = await client.save(reply, tmp_path)
    assert (lost.path, lost.problem) == ("seen.txt", "was not kept: nothing was given to keep files on")


async def test_nothing_runs_unless_it_is_allowed(skills: Path) -> None:
    for execution in (None, ExecutionOptions()):
        async with ScriptedOpenAI([says("no")]) as server:
            async with SkillsChatClient(server.url, skills=skills, delivery="local", execution=execution) as client:
                await client.complete(ASK)
            assert set(declared(server)) <= {"skills_list", "skills_read"}
