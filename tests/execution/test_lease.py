from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from satchel.execution.artifacts import Artifacts
from satchel.execution.lease import leased, leased_workspace
from satchel.execution.workbench import Workbench
from satchel.execution.workspace import ProducedFile, Workspace, create_workspace


def entries(folder: Path) -> list[Path]:
    return list(folder.iterdir())


@pytest.mark.parametrize("persistent", [True, False])
async def test_a_workspace_lives_as_long_as_its_block(tmp_path: Path, persistent: bool) -> None:
    async def use() -> None:
        async with leased_workspace(str(tmp_path), persistent=persistent) as workspace:
            assert [Path(workspace.root).parent] == entries(tmp_path)
            assert workspace.is_persistent == persistent
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        await use()
    assert entries(tmp_path) == []


async def test_what_is_being_made_when_its_caller_is_cancelled_is_removed_again() -> None:
    begun, go_on = threading.Event(), threading.Event()
    removed: list[str] = []

    def make() -> str:
        begun.set()
        go_on.wait(10)
        return "made"

    async def use() -> None:
        async with leased(make, removed.append):
            raise AssertionError

    task = asyncio.create_task(use())
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert removed == ["made"]


async def test_a_second_cancellation_does_not_stop_the_removal() -> None:
    begun, go_on = threading.Event(), threading.Event()
    removed = threading.Event()

    def remove(made: str) -> None:
        assert made == "made"
        begun.set()
        go_on.wait(10)
        removed.set()

    async def use() -> None:
        async with leased(lambda: "made", remove):
            await asyncio.Event().wait()

    task = asyncio.create_task(use())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not removed.is_set()
    go_on.set()
    assert await asyncio.to_thread(removed.wait, 10)


async def test_what_cannot_be_made_is_raised(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with leased_workspace(str(tmp_path / "none")):
            raise AssertionError


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = create_workspace(str(tmp_path))
    Path(made.work, "made").write_text("x")
    return made


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Artifacts]:
    shelf = Artifacts(base=str(tmp_path))
    yield shelf
    shelf.close()


async def test_what_others_leave_behind_holds_up_nobody_who_keeps_files(workspace: Workspace, shelf: Artifacts) -> None:
    go_on = threading.Event()

    async def slow() -> None:
        async with leased(lambda: None, lambda made: go_on.wait(10)):
            pass

    removing = [asyncio.create_task(slow()) for _ in range(4)]
    await asyncio.sleep(0.05)
    bench = Workbench("me")
    bench.artifacts = shelf
    try:
        async with asyncio.timeout(5):
            await bench.keep(workspace, [ProducedFile(path="made", bytes=1)])
    finally:
        go_on.set()
        await asyncio.gather(*removing)
    assert [item.path for item in shelf.of("me", bench.run_id)] == ["made"]
