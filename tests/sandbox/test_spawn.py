"""What a started program has of ours, and what is left of it where we are the process that orphans fall to."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from satchel.errors import SandboxError
from satchel.ports.execution import Executor, Launch
from satchel.sandbox import spawn as spawning
from satchel.sandbox.bubblewrap import BubblewrapExecutor
from satchel.sandbox.landlock import LandlockExecutor
from satchel.sandbox.namespaces import NamespaceExecutor
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.wiring.serve import new_event_loop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux")
EXECUTORS: list[Executor] = [BubblewrapExecutor(), NamespaceExecutor(), LandlockExecutor(), UnconfinedExecutor()]
LOOPS = [asyncio.new_event_loop, new_event_loop]
_PR_SET_CHILD_SUBREAPER = 36


def _backend(executor: Executor) -> str:
    return executor.confinement.backend


def launch(work: Path, *command: str, cwd: str = "") -> Launch:
    env = {"PATH": "/usr/bin:/bin", "GIVEN": "a value"}
    return Launch(command=command, purpose="script", cwd=cwd or str(work), writable=(str(work),), env=env)


@pytest.fixture
def inherited(tmp_path: Path) -> Iterator[int]:
    """A descriptor that whoever started us left open."""
    secret = tmp_path.parent / "secret"
    secret.write_text("secret of the host")
    handle = os.open(secret, os.O_RDONLY)
    os.set_inheritable(handle, True)  # noqa: FBT003
    yield handle
    os.close(handle)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("executor", EXECUTORS, ids=_backend)
def test_no_program_gets_a_descriptor_of_ours(
    tmp_path: Path, executor: Executor, loop: Callable[[], asyncio.AbstractEventLoop], inherited: int
) -> None:
    script = (
        f"n=3; while [ $n -le {inherited + 50} ]; do [ -e /proc/self/fd/$n ] && echo $n; n=$((n+1)); done; echo end"
    )
    with asyncio.Runner(loop_factory=loop) as runner:
        outcome = runner.run(executor.run(launch(tmp_path, "/bin/sh", "-c", script)))
    assert outcome.stdout.text == "end\n"


@pytest.fixture
def first_process() -> Iterator[None]:
    """Orphans fall to us, as they do to the first process of a container."""
    library = ctypes.CDLL(None)
    library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    library.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.usefixtures("first_process")
@pytest.mark.parametrize("executor", EXECUTORS[:2], ids=_backend)
async def test_the_first_process_of_a_container_keeps_no_dead_children(tmp_path: Path, executor: Executor) -> None:
    before = children()
    for _ in range(3):
        await executor.run(launch(tmp_path, "/bin/true"))
        job = await executor.start(launch(tmp_path, "/bin/sleep", "300"))
        await job.kill()
    assert children() - before == set()


async def test_it_is_found_by_the_path_that_it_gets_and_starts_where_it_should(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\npwd; echo $GIVEN; exit 3\n")
    tool.chmod(0o755)
    asked = Launch(
        command=("tool",), purpose="script", cwd=str(tmp_path), env={"PATH": f"/bin:{tool.parent}", "GIVEN": "ü"}
    )
    outcome = await UnconfinedExecutor().run(asked)
    assert (outcome.exit_code, outcome.stdout.text) == (3, f"{tmp_path}\nü\n")
    killed = await UnconfinedExecutor().run(launch(tmp_path, "/bin/sh", "-c", "kill -9 $$"))
    assert killed.exit_code == 137


@pytest.mark.parametrize(
    "asked",
    [
        Launch(command=("no-such-program",), purpose="script", cwd="/"),
        Launch(command=("/no/such/program",), purpose="script", cwd="/"),
        Launch(command=("/bin/true",), purpose="script", cwd="/no/such/directory"),
        Launch(command=("/bin/true", "a\0b"), purpose="script", cwd="/"),
        Launch(command=("/bin/true",), purpose="script", cwd="/", env={"A=B": "c"}),
        Launch(command=(), purpose="script", cwd="/"),
    ],
    ids=["name", "path", "directory", "nul", "variable", "nothing"],
)
async def test_what_cannot_be_started_is_told_and_leaves_nothing(asked: Launch) -> None:
    before, open_before = children(), handles()
    with pytest.raises(SandboxError) as caught:
        await UnconfinedExecutor().run(asked)
    assert caught.value.code == "launch-failed"
    assert (children(), handles()) == (before, open_before)


async def test_a_cancelled_start_hands_nothing_to_the_program_that_took_the_number_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, looked = threading.Event(), threading.Event(), threading.Event()
    start, handed = vars(spawning)["_spawned"], list[str]()

    def late(*given: Any) -> Any:
        begun.set()
        go.wait(10)
        handed.extend(os.readlink(f"/proc/self/fd/{number}") for number in given[4])  # noqa: PTH115
        looked.set()
        return start(*given)

    monkeypatch.setattr(spawning, "_spawned", late)
    before, others_children = handles(), children()
    running = asyncio.create_task(UnconfinedExecutor().run(launch(tmp_path, "/bin/sleep", "77123")))
    assert await asyncio.to_thread(begun.wait, 10)
    for _ in range(2):
        running.cancel()
        await asyncio.sleep(0.05)
    others = [os.open(tmp_path / str(number), os.O_WRONLY | os.O_CREAT) for number in range(8)]
    go.set()
    assert await asyncio.to_thread(looked.wait, 10)
    with pytest.raises(asyncio.CancelledError):
        await running
    for other in others:
        os.close(other)
    assert all(name.startswith("pipe:") for name in handed), handed
    async with asyncio.timeout(10):
        while handles() > before or children() - others_children:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.02)
