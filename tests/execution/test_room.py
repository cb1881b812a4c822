"""All conversations together leave the disk usable."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from satchel.errors import FileError, SandboxError
from satchel.execution.file_session import FileSession
from satchel.execution.ledger import ReadLedger
from satchel.execution.options import ExecutionOptions, code_refusal, refusal
from satchel.execution.room import Room, RoomyExecutor
from satchel.execution.workspace import create_workspace, snapshot
from satchel.ports.execution import Launch, Purpose
from satchel.scratch.roots import new_root, remove_root
from satchel.testing.fake_executor import FakeExecutor


class Disk:
    def __init__(self, free: int) -> None:
        self.free = free

    def __call__(self, path: str) -> int:
        return self.free


def filled(base: Path) -> str:
    root = new_root("work", str(base))
    Path(root, "file").write_bytes(b"x" * 200 * 1024)
    return root


def launch(purpose: Purpose) -> Launch:
    return Launch(command=("true",), purpose=purpose, cwd="/")


async def test_nothing_is_begun_while_the_workspaces_hold_more_than_their_share(tmp_path: Path) -> None:
    disk = Disk(1024 * 1024)
    inner = FakeExecutor()
    executor = RoomyExecutor(inner, Room(str(tmp_path), free=disk))
    roots = [await asyncio.to_thread(filled, tmp_path) for _ in range(3)]
    await executor.run(launch("shell"))
    disk.free = 400 * 1024
    purposes: tuple[Purpose, ...] = ("shell", "script", "install")
    for purpose in purposes:
        with pytest.raises(SandboxError, match="have filled the disk space") as raised:
            await executor.run(launch(purpose))
        assert raised.value.code == "no-room"
    with pytest.raises(SandboxError):
        await executor.start(launch("shell"))
    await executor.run(launch("check"))
    assert [item.purpose for item in inner.launches] == ["shell", "check"]
    for root in roots:
        await asyncio.to_thread(remove_root, root)


async def test_a_disk_that_others_fill_stops_nobody(tmp_path: Path) -> None:
    disk = Disk(1024 * 1024)
    executor = RoomyExecutor(FakeExecutor(), Room(str(tmp_path), free=disk))
    root = await asyncio.to_thread(filled, tmp_path)
    await executor.run(launch("shell"))
    disk.free = 1024
    await executor.run(launch("shell"))
    await asyncio.to_thread(remove_root, root)


def test_there_is_room_again_when_some_have_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satchel.execution.room._PATIENCE", 0)
    disk = Disk(100 * 1024)
    room = Room(str(tmp_path), free=disk)
    root = filled(tmp_path)
    assert not room.is_full()
    disk.free = 10 * 1024
    assert room.is_full()
    remove_root(root)
    disk.free = 20 * 1024
    assert not room.is_full()


def test_one_caller_sums_up_and_no_other_waits() -> None:
    began, goes_on, sums = threading.Event(), threading.Event(), list[str | None]()

    def held(base: str | None) -> int:
        sums.append(base)
        began.set()
        goes_on.wait(60)
        return 60

    free = iter([100])
    room = Room("/", free=lambda _: next(free, 10), held=held)
    assert not room.is_full()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(room.is_full)
        assert began.wait(60)
        assert not room.is_full()
        goes_on.set()
        assert first.result()
    assert sums == ["/"]
    assert room.is_full()


async def test_files_are_not_written_either(tmp_path: Path) -> None:
    disk = Disk(1024 * 1024)
    workspace = await asyncio.to_thread(create_workspace, str(tmp_path))
    files = FileSession(workspace, ledger=ReadLedger(), room=Room(str(tmp_path), free=disk))
    await files.write("before.txt", "x")
    roots = [await asyncio.to_thread(filled, tmp_path) for _ in range(3)]
    disk.free = 400 * 1024
    with pytest.raises(FileError, match="have filled the disk space"):
        await files.write("after.txt", "x")
    assert list(await asyncio.to_thread(snapshot, workspace)) == ["before.txt"]
    await files.patch("*** Begin Patch\n*** Delete File: before.txt\n*** End Patch")
    for root in (*roots, workspace.root):
        await asyncio.to_thread(remove_root, root)


def test_a_backend_that_cannot_run_and_does_not_say_why_runs_nothing(tmp_path: Path) -> None:
    class Silent(FakeExecutor):
        @property
        def can_run(self) -> bool:
            return False

    executor = RoomyExecutor(Silent(), Room(str(tmp_path)))
    assert not executor.can_run
    assert refusal(executor, "off")
    assert code_refusal(executor, ExecutionOptions(code=True, unconfined=True))
