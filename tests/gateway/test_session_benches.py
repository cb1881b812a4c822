"""A session's programs share one working directory, which is gone with the session, however that ends."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from satchel.engine.pinned import PinnedSkills
from satchel.engine.request import SkillSelection
from satchel.execution.artifacts import Artifacts
from satchel.execution.options import ExecutionOptions
from satchel.execution.workbench import Execution, Workbench
from satchel.gateway.sessions import Session, Sessions
from satchel.gateway.tidying import look_s
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.scratch import graves
from satchel.scratch.roots import remove_root
from satchel.skills.catalog import Catalog
from satchel.testing.scripted_model import Reply, ScriptedModel
from tests.gateway.benches import CODE, descriptors, names, processes, shell, told, until, working
from tests.gateway.native import CHAT, frames_of, streaming, user
from tests.gateway.serving import DEADLINE_S
from tests.gateway.test_requests import ask

KEYS = ("key-a", "key-b")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "base"


def turn(text: str, session: str = "new", **more: Any) -> dict[str, Any]:
    return {"messages": [user(text)], "session": session, **more}


async def begin(url: str, **more: Any) -> str:
    return (await frames_of(url, turn("One", **more)))[0]["session"]


async def test_what_a_turn_leaves_is_there_for_the_next_and_for_nobody_else(base: Path) -> None:
    model = ScriptedModel([*shell("mkdir d && cd d && echo 7 > x && export Q=8"), *(shell('cat x; echo "q=$Q"') * 3)])
    async with working(model, base) as (url, _):
        session = await begin(url)
        assert len(names(base)) == 1
        await frames_of(url, turn("Two", session))
        assert "7\nq=8" in told(model.requests[3])
        await begin(url)
        assert "q=8" not in told(model.requests[5])
        assert len(names(base)) == 2
        await frames_of(url, {"messages": [user("Mine alone")]})
        assert "q=8" not in told(model.requests[7])
        assert len(names(base)) == 2


async def test_a_directory_is_there_only_when_a_turn_may_run_something(base: Path) -> None:
    model = ScriptedModel([Reply(text=("Hi",)), Reply(text=("Hi",))])
    async with working(model, base) as (url, _):
        await begin(url, skills_discovery=False)
        assert names(base) == []
    async with working(model, base, execution=ExecutionOptions(scripts=True)) as (url, _):
        await begin(url)
        assert names(base) == []


async def test_a_client_is_told_whether_its_programs_are_fully_confined(base: Path) -> None:
    async with working(ScriptedModel([Reply(text=("Hi",)), Reply(text=("Hi",)), Reply(text=("Hi",))]), base) as (
        url,
        _,
    ):
        first = (await frames_of(url, {"messages": [user("One")]}))[0]
        assert first["confinement"]["is_full"] is True
        assert first["confinement"]["gaps"] == []
        _, whole, _ = await ask(url, "POST", CHAT, json={"messages": [user("One")], "stream": False})
        assert whole["confinement"] == first["confinement"]
        assert "confinement" not in (await frames_of(url, {"messages": [user("One")], "skills_discovery": False}))[0]


async def test_a_first_turn_that_fails_leaves_nothing(base: Path) -> None:
    async with working(ScriptedModel([]), base) as (url, _):
        status, _, _ = await ask(url, "POST", CHAT, json=turn("One", stream=False))
        assert status >= 500
        assert names(base) == []


async def test_deleting_removes_it_and_ends_what_runs_in_the_background(base: Path) -> None:
    model = ScriptedModel(shell("sleep 77001", run_in_background="true"))
    async with working(model, base) as (url, _):
        session = await begin(url)
        await until(lambda: processes("sleep 77001"))
        status, _, _ = await ask(url, "DELETE", f"/api/sessions/{session}")
        assert status == 200
        assert names(base) == []
        assert processes("sleep 77001") == []


async def test_hanging_up_ends_the_program_and_leaves_the_rest(base: Path) -> None:
    model = ScriptedModel([*shell("echo 7 > x"), *shell("echo 8 > y; sleep 77002")[:1], *shell("cat x y")])
    async with working(model, base) as (url, _):
        session = await begin(url)
        before = descriptors()
        async with streaming(url, turn("Two", session)):
            await until(lambda: processes("sleep 77002"))
        await until(lambda: not processes("sleep 77002"))
        await until(lambda: descriptors() <= before)
        await again(url, session)
        assert "7\n8" in told(model.requests[-1])


async def again(url: str, session: str) -> None:
    """The next turn, as soon as the last one has ended."""
    status = 409
    while status == 409:
        status, _, _ = await ask(url, "POST", CHAT, json=turn("Three", session, stream=False))
    assert status == 200


async def test_a_session_that_is_deleted_in_a_turn_keeps_its_directory_to_the_end(base: Path) -> None:
    model = ScriptedModel([*shell("echo 7 > x"), *shell("touch began; while [ ! -e go ]; do sleep 0.05; done; cat x")])
    async with working(model, base) as (url, _):
        session = await begin(url)
        root = base / names(base)[0]
        running = asyncio.create_task(frames_of(url, turn("Two", session)))
        await until((root / "work" / "began").exists)
        await ask(url, "DELETE", f"/api/sessions/{session}")
        assert [base / name for name in names(base)] == [root]
        (root / "work" / "go").touch()
        frames = await running
        assert frames[-1]["done"]
        assert "7" in told(model.requests[-1])
        assert names(base) == []


async def test_it_goes_with_a_session_that_nobody_asks_for_any_more(base: Path) -> None:
    model = ScriptedModel(shell("sleep 77003", run_in_background="true"))
    async with working(model, base, session_idle_s=0.3) as (url, _):
        before = descriptors()
        await begin(url)
        await until(lambda: names(base) == [])
        assert processes("sleep 77003") == []
        await until(lambda: descriptors() <= before)


async def test_the_end_of_the_server_removes_all(base: Path) -> None:
    model = ScriptedModel(shell("sleep 77004", run_in_background="true") * 2)
    before = descriptors()
    async with working(model, base) as (url, _):
        await begin(url)
        await begin(url)
        await until(lambda: len(processes("sleep 77004")) >= 2)
    assert processes("sleep 77004") == []
    await until(lambda: descriptors() <= before)


async def test_the_end_of_the_server_in_the_middle_of_a_turn_removes_all(base: Path) -> None:
    model = ScriptedModel(shell("sleep 77005"))
    async with working(model, base, grace_s=1) as (url, _):
        running = asyncio.create_task(frames_of(url, turn("One")))
        await until(lambda: processes("sleep 77005"))
    frames = await running
    assert "error" in frames[-1]
    assert processes("sleep 77005") == []


async def test_a_session_of_another_key_is_out_of_reach(base: Path) -> None:
    mine, theirs = ({"Authorization": f"Bearer {key}"} for key in KEYS)
    model = ScriptedModel(shell("echo 7 > x"))
    async with working(model, base, keys=KEYS) as (url, _):
        session = (await frames_of(url, turn("One"), headers=mine))[0]["session"]
        status, _, _ = await ask(url, "POST", CHAT, json=turn("Two", session), headers=theirs)
        assert status == 404
        status, _, _ = await ask(url, "DELETE", f"/api/sessions/{session}", headers=theirs)
        assert status == 404
        assert len(names(base)) == 1


async def bench_of(execution: Execution, sessions: Sessions, name: str) -> Workbench:
    async with sessions.claim("me", name, is_new=True) as claim:
        bench = claim.bench = await execution.open("me")
        held = Session(id=name, created=1, skills=SkillSelection(), pinned=PinnedSkills(Catalog()), turns=1)
        assert claim.keep(held)
    return bench


async def test_their_number_is_bounded(tmp_path: Path) -> None:
    execution = Execution(UnconfinedExecutor(), CODE, base=str(tmp_path), host={})
    sessions = Sessions(idle_s=60, max_bytes=3 * 280 * 1024)
    for number in range(5):
        await bench_of(execution, sessions, f"s{number}")
    assert len(names(tmp_path)) == 3, "those of the sessions that had to go are gone too"
    async with sessions.claim("me", "s4", is_new=False) as claim:
        assert claim.bench is not None
        await bench_of(execution, sessions, "s5")
        assert len(names(tmp_path)) == 3
    await sessions.aclose()
    assert names(tmp_path) == []


async def test_one_in_use_outlives_the_eviction_of_its_session(tmp_path: Path) -> None:
    execution = Execution(UnconfinedExecutor(), CODE, base=str(tmp_path), host={})
    sessions = Sessions(idle_s=60, max_bytes=280 * 1024)
    bench = await bench_of(execution, sessions, "a")
    async with sessions.claim("me", "a", is_new=False) as claim:
        await bench_of(execution, sessions, "b")
        assert claim.bench is bench
        assert len(names(tmp_path)) == 2
    assert len(names(tmp_path)) == 1
    await sessions.aclose()


async def test_a_turn_that_outlives_the_server_removes_its_own(tmp_path: Path) -> None:
    execution = Execution(UnconfinedExecutor(), CODE, base=str(tmp_path), host={})
    sessions = Sessions(idle_s=60)
    await bench_of(execution, sessions, "a")
    async with sessions.claim("me", "a", is_new=False):
        await sessions.aclose()
        assert len(names(tmp_path)) == 1
    assert names(tmp_path) == []


class Slow(Workbench):
    """Ends when it is let to."""

    begun: asyncio.Event
    go_on: asyncio.Event

    async def aclose(self) -> None:
        self.begun.set()
        await self.go_on.wait()
        await super().aclose()


@pytest.mark.parametrize("in_turn", [True, False])
async def test_the_files_of_a_deleted_session_go_when_nobody_waits_for_it(tmp_path: Path, in_turn: bool) -> None:
    shelf = await asyncio.to_thread(lambda: Artifacts(base=str(tmp_path)))
    execution = Execution(UnconfinedExecutor(), CODE, base=str(tmp_path), host={}, artifacts=shelf)
    sessions = Sessions(idle_s=60)
    bench = await bench_of(execution, sessions, "a")
    bench.__class__ = Slow
    assert isinstance(bench, Slow)
    bench.begun, bench.go_on = asyncio.Event(), asyncio.Event()
    assert bench.files is not None
    await bench.files.write("x", "7\n")
    await bench.keep_written(["x"])
    assert len(shelf.of("me", bench.run_id)) == 1

    async def ended() -> None:
        if not in_turn:
            await sessions.drop("me", "a")
            return
        async with sessions.claim("me", "a", is_new=False):
            await sessions.drop("me", "a")
            await bench.keep_written(["x"])

    ending = asyncio.create_task(ended())
    await bench.begun.wait()
    ending.cancel()
    bench.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert shelf.of("me", bench.run_id) == ()
    await asyncio.to_thread(shelf.close)


async def test_a_turn_goes_on_while_what_others_left_is_being_removed(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(graves, "graves", graves.Graves(remove=lambda root: go_on.wait() and remove_root(root)))
    many = "python3 -c 'for n in range(2500): open(str(n), \"w\").close()'"
    mine, theirs = ({"Authorization": f"Bearer {key}"} for key in KEYS)
    model = ScriptedModel([*(shell(many) * 5), *shell("echo 7 > x"), *shell("cat x")])
    async with working(model, base, keys=KEYS) as (url, _):
        try:
            async with asyncio.timeout(DEADLINE_S):
                for _ in range(5):
                    session = (await frames_of(url, turn("One"), headers=mine))[0]["session"]
                    status, _, _ = await ask(url, "DELETE", f"/api/sessions/{session}", headers=mine)
                    assert status == 200
                assert graves.settle(0) == 5
                session = (await frames_of(url, turn("One"), headers=theirs))[0]["session"]
                frames = await frames_of(url, turn("Two", session), headers=theirs)
            assert frames[-1]["done"]
            assert "7" in told(model.requests[-1])
            assert graves.settle(0) == 5
        finally:
            go_on.set()


def test_how_often_is_looked_follows_the_time_that_things_last() -> None:
    assert [look_s(idle_s) for idle_s in (0, 5, 300, 24 * 3600)] == [1, 1, 30, 60]
