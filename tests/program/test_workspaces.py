"""The program with a model that runs things: what is made can be had, and every end leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, says
from tests.gateway.benches import names, processes, until
from tests.gateway.native import frames_of, streaming, user
from tests.program.program import PATIENCE_S, satchel, serving, start
from tests.program.terminal import Terminal, at_a_terminal
from tests.support import write_skill

MAKES = "mkdir -p out && echo 7 > out/seven.txt && echo 8 > eight.txt"


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    made = tmp_path / "temporary"
    made.mkdir()
    write_skill(tmp_path / "skills", "geometry")
    return made


def run(command: str, **more: object) -> ScriptedTurn:
    return ScriptedTurn(
        calls=(
            ScriptedCall(name="shell", fragments=(json.dumps({"command": command, **more}),), call_id=f"c{command}"),
        )
    )


def kinds(temporary: Path) -> set[str]:
    """What the directories of a process there are for."""
    return {name.partition("/")[2].partition("-")[0] for name in names(temporary)}


def options(temporary: Path, model: ScriptedOpenAI) -> tuple[str, ...]:
    return ("--skills-dir", str(temporary.parent / "skills"), "--upstream", model.url, "--code-exec")


def told(model: ScriptedOpenAI) -> str:
    """The last message that the model was sent."""
    body: Any = model.requests[-1].body
    return body["messages"][-1]["content"]


async def test_run_copies_what_was_made_and_says_so(temporary: Path, tmp_path: Path) -> None:
    target = tmp_path / "here" / "there"
    async with ScriptedOpenAI([run(MAKES), says("Done.")]) as model:
        more = ("--output-dir", str(target), "--json")
        ended = await satchel("run", "Make them.", *options(temporary, model), *more, TMPDIR=str(temporary))
    assert ended.code == 0, ended.err
    assert (target / "out" / "seven.txt").read_text() == "7\n"
    assert f"saved    {target}/eight.txt (2 B)" in ended.err
    assert ended.events[-1] == {
        "event": "files_saved",
        "dir": str(target),
        "files": [{"path": "eight.txt", "bytes": 2}, {"path": "out/seven.txt", "bytes": 2}],
        "not_saved": [],
    }
    assert names(temporary) == []


async def test_run_copies_more_than_a_model_is_told_of_and_says_what_was_too_much(
    temporary: Path, tmp_path: Path
) -> None:
    turns = [run("for n in $(seq 100 299); do echo $n > $n.txt; done"), says("Done.")]
    turns += [run("for n in $(seq 1000 2009); do echo $n > $n.txt; done"), says("Done.")]
    async with ScriptedOpenAI(turns) as model:
        more = ("--output-dir", str(tmp_path / "some"))
        ended = await satchel("run", "Make them.", *options(temporary, model), *more, TMPDIR=str(temporary))
        assert (ended.code, len(names(tmp_path / "some"))) == (0, 200), ended.err
        more = ("--output-dir", str(tmp_path / "many"))
        ended = await satchel("run", "Make them.", *options(temporary, model), *more, TMPDIR=str(temporary))
    assert (ended.code, len(names(tmp_path / "many"))) == (1, 1000)
    assert ended.err.count("not saved ") == 10


@pytest.mark.parametrize("overwrite", [False, True])
async def test_run_overwrites_only_what_it_is_told_to(temporary: Path, tmp_path: Path, overwrite: bool) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "eight.txt").write_text("mine")
    async with ScriptedOpenAI([run(MAKES), says("Done.")]) as model:
        more = ("--output-dir", str(target), *(["--overwrite"] if overwrite else []))
        ended = await satchel("run", "Make them.", *options(temporary, model), *more, TMPDIR=str(temporary))
    assert (target / "eight.txt").read_text() == ("8\n" if overwrite else "mine")
    assert (target / "out" / "seven.txt").read_text() == "7\n"
    assert ended.code == (0 if overwrite else 1)
    assert ("not saved eight.txt: exists there already and was left as it is" in ended.err) is not overwrite


async def test_run_says_that_what_was_made_is_gone(temporary: Path) -> None:
    async with ScriptedOpenAI([run(MAKES), says("Done.")]) as model:
        ended = await satchel("run", "Make them.", *options(temporary, model), TMPDIR=str(temporary))
    assert ended.code == 0
    assert "note: files were made and not kept: eight.txt, out/seven.txt; --output-dir DIR keeps them." in ended.err
    assert names(temporary) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--output-dir", "", "--code-exec"), "--output-dir is empty"),
        (("--output-dir", "made"), "--output-dir does nothing without --code-exec or --skills-allow-exec"),
        (("--overwrite", "--code-exec"), "--overwrite does nothing without --output-dir"),
    ],
)
async def test_run_refuses_what_would_keep_nothing(tmp_path: Path, given: tuple[str, ...], said: str) -> None:
    ended = await satchel("run", "Make them.", "--upstream", "http://127.0.0.1:9/v1", *given, cwd=tmp_path)
    assert ended.code == 2
    assert said in ended.err
    assert "hint: " in ended.err
    assert names(tmp_path) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
async def test_a_signal_to_run_leaves_nothing(temporary: Path, number: signal.Signals, code: int) -> None:
    async with ScriptedOpenAI([run(f"sleep 7710{code}")]) as model:
        process = await start("run", "Go.", *options(temporary, model), TMPDIR=str(temporary))
        await until(lambda: processes(f"sleep 7710{code}"))
        process.send_signal(number)
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == code
    assert processes(f"sleep 7710{code}") == []
    assert names(temporary) == []


async def test_run_copies_what_a_job_wrote(temporary: Path, tmp_path: Path) -> None:
    job = run("echo 7 > seven.txt; touch begun; sleep 60", run_in_background="true")
    waits = run("until [ -e begun ]; do sleep 0.02; done; rm begun")
    after = run("sleep 0.2; echo 8 > eight.txt", run_in_background="true")
    async with ScriptedOpenAI([job, waits, after, says("Done.")]) as model:
        more = ("--output-dir", str(tmp_path / "out"))
        ended = await satchel("run", "Make them.", *options(temporary, model), *more, TMPDIR=str(temporary))
    assert ended.code == 0, ended.err
    assert "seven.txt" in names(tmp_path / "out")
    assert "begun" not in names(tmp_path / "out")
    assert names(temporary) == []


def chat(temporary: Path, home: Path, model: ScriptedOpenAI) -> AbstractAsyncContextManager[Terminal]:
    state = str(home / "state")
    return at_a_terminal("chat", *options(temporary, model), TMPDIR=str(temporary), XDG_STATE_HOME=state)


async def leave(terminal: Terminal) -> None:
    await terminal.prompt()
    terminal.type("\x04")


async def test_a_conversation_has_one_directory_until_all_is_forgotten(temporary: Path, tmp_path: Path) -> None:
    turns = [run(MAKES), says("Made."), run("cat eight.txt"), says("Eight."), run("ls"), says("Nothing.")]
    async with ScriptedOpenAI(turns) as model:
        async with chat(temporary, tmp_path, model) as terminal:
            await terminal.ask("Make")
            await terminal.see("made     eight.txt, out/seven.txt")
            await terminal.see("Made.")
            await terminal.ask("Read")
            await terminal.see("Eight.")
            assert "8" in told(model)
            await terminal.ask(f'/save "{tmp_path}/saved"')
            await terminal.see("saved    ")
            await terminal.ask("/clear")
            assert "gone" not in await terminal.see("forgotten")
            assert kinds(temporary) == {"artifacts", "etc"}
            await terminal.ask("Look")
            await terminal.see("Nothing.")
            assert "eight.txt" not in told(model)
            await leave(terminal)
            assert await terminal.end() == 0
    assert (tmp_path / "saved" / "out" / "seven.txt").read_text() == "7\n"
    assert names(temporary) == []


async def test_what_a_job_writes_after_the_answer_is_saved_too(temporary: Path, tmp_path: Path) -> None:
    job = run("until [ -e go ]; do sleep 0.02; done; echo 7 > seven.txt; touch made", run_in_background="true")
    async with ScriptedOpenAI([job, says("It goes on.")]) as model, chat(temporary, tmp_path, model) as terminal:
        await terminal.ask("Make")
        await terminal.see("It goes on.")
        (work,) = temporary.glob("satchel-*/*/work")  # noqa: ASYNC240 - a test
        (work / "go").touch()
        await until((work / "made").exists)
        await terminal.ask(f'/save "{tmp_path}/saved"')
        await terminal.see("seven.txt (2 B)")
        await leave(terminal)
        assert await terminal.end() == 0
    assert (tmp_path / "saved" / "seven.txt").read_text() == "7\n"
    assert names(temporary) == []


async def test_a_conversation_says_which_files_went_with_it(temporary: Path, tmp_path: Path) -> None:
    turns = [run(MAKES), says("Made."), run("echo 9 > nine.txt"), says("Made."), run("echo 1 > one"), says("Made.")]
    async with ScriptedOpenAI(turns) as model, chat(temporary, tmp_path, model) as terminal:
        for end in ("/clear", "/skill geometry"):
            await terminal.ask("Make")
            await terminal.see("Made.")
            await terminal.ask(end)
            await terminal.see(
                "note: files were made and are gone: " + ("eight" if end == "/clear" else "nine") + ".txt"
            )
        await terminal.ask("Make")
        await terminal.see("Made.")
        await leave(terminal)
        await terminal.see("note: files were made and are gone: one; /save DIR keeps them.")
        assert await terminal.end() == 0


ENDS: dict[str, tuple[Callable[[Terminal], None], int]] = {
    "SIGTERM": (lambda terminal: terminal.process.send_signal(signal.SIGTERM), 143),
    "SIGHUP": (lambda terminal: terminal.process.send_signal(signal.SIGHUP), 129),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_conversation_that_ends_while_something_runs_leaves_nothing(
    temporary: Path, tmp_path: Path, end: str
) -> None:
    act, code = ENDS[end]
    sleeps = f"sleep 7720{code}"
    async with ScriptedOpenAI([run(sleeps)]) as model:
        async with chat(temporary, tmp_path, model) as terminal:
            await terminal.ask("Go")
            await until(lambda: processes(sleeps))
            act(terminal)
            assert await terminal.end() == code
    assert processes(sleeps) == []
    assert names(temporary) == []


async def test_a_conversation_that_is_ended_at_the_prompt_leaves_nothing(temporary: Path, tmp_path: Path) -> None:
    async with ScriptedOpenAI([run("sleep 77301", run_in_background="true"), says("Sleeping.")]) as model:
        async with chat(temporary, tmp_path, model) as terminal:
            await terminal.ask("Go")
            await terminal.see("Sleeping.")
            await terminal.prompt()
            await until(lambda: processes("sleep 77301"))
            terminal.process.send_signal(signal.SIGTERM)
            assert await terminal.end() == 143
    assert processes("sleep 77301") == []
    assert names(temporary) == []


@pytest.mark.parametrize("times", [1, 2])
async def test_a_server_that_is_ended_leaves_nothing_of_its_sessions(temporary: Path, times: int) -> None:
    """Once: with a session whose program runs in the background. Twice: with one whose turn hangs in a program."""
    sleeps = f"sleep 7740{times}"
    turns = [run(sleeps, run_in_background="true"), says("Sleeping.")] if times == 1 else [run(sleeps)]
    body = {"messages": [user("Go")], "session": "new", "model": "scripted"}
    async with (
        ScriptedOpenAI(turns) as model,
        serving(*options(temporary, model), TMPDIR=str(temporary)) as (url, process),
    ):
        if times == 1:
            await frames_of(url, body)
            await until(lambda: processes(sleeps))
            process.send_signal(signal.SIGTERM)
        else:
            async with streaming(url, body):
                await until(lambda: processes(sleeps))
                process.send_signal(signal.SIGTERM)
                await asyncio.sleep(0.3)
                process.send_signal(signal.SIGTERM)
                async with asyncio.timeout(PATIENCE_S):
                    await process.wait()
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == 0
    assert processes(sleeps) == []
    assert names(temporary) == []


async def test_what_a_killed_server_leaves_goes_with_the_next_start(temporary: Path) -> None:
    turns = [run("echo 7 > x; sleep 77501", run_in_background="true"), says("Sleeping."), run("true"), says("Done.")]
    body = {"messages": [user("Go")], "session": "new", "model": "scripted"}
    async with ScriptedOpenAI(turns) as model:
        async with serving(*options(temporary, model), TMPDIR=str(temporary)) as (url, process):
            await frames_of(url, body)
            process.send_signal(signal.SIGKILL)
            await process.wait()
        assert kinds(temporary) == {"artifacts", "etc", "work"}
        left = names(temporary)
        async with serving(*options(temporary, model), TMPDIR=str(temporary)):
            assert kinds(temporary) == {"artifacts", "etc"}
            assert not {*left} & {*names(temporary)}
    assert names(temporary) == []
