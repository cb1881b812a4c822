"""What a launch writes and holds in memory is bounded, whatever its directories look like."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.ports.execution import Launch, Limits, Outcome
from satchel.sandbox import watch
from satchel.sandbox.bubblewrap import BubblewrapExecutor
from satchel.sandbox.landlock import LandlockExecutor
from satchel.sandbox.namespaces import NamespaceExecutor
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.sandbox.watch import require_room
from satchel.scratch.measuring import measure

MIB = 1024**2

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the process table of Linux")


async def ran(work: Path, script: str, **limits: int) -> Outcome:
    launch = Launch(
        command=(sys.executable, "-I", "-S", "-c", f"import os, time\n{script}\ntime.sleep(60)"),
        purpose="script",
        cwd=str(work),
        writable=(str(work),),
        limits=Limits(**limits),
        deadline_s=30,
    )
    return await UnconfinedExecutor().run(launch)


@pytest.mark.parametrize(
    "script",
    [
        "for n in range(40): open(f'file{n}', 'wb').write(bytes(1024**2))",
        "for n in range(40): os.makedirs(f'd{n}/e'); open(f'd{n}/e/f', 'wb').write(bytes(1024**2))",
        # Nothing of it has a name any more.
        "kept = []\nfor n in range(40):\n f = open('g', 'wb'); f.write(bytes(1024**2)); os.unlink('g'); kept.append(f)",
        # Deeper than any path may be long.
        "for n in range(300): os.mkdir('d' * 50); os.chdir('d' * 50)\n[open(f'f{n}', 'wb').write(bytes(1024**2)) for n in range(40)]",
        # Names alone.
        "for n in range(40000): open(f'n{n}', 'wb').close()",
    ],
    ids=["files", "directories", "unlinked", "deep", "empty"],
)
async def test_what_is_written_is_bounded_all_together(tmp_path: Path, script: str) -> None:
    outcome = await ran(tmp_path, script, written_bytes=24 * MIB)
    assert (outcome.exit_code, outcome.stopped) == (None, "written"), outcome


async def test_what_was_there_before_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(bytes(40 * MIB))
    outcome = await ran(
        tmp_path, "open('new', 'wb').write(bytes(1024**2))\ntime.sleep(0.5)\nos._exit(3)", written_bytes=24 * MIB
    )
    assert (outcome.exit_code, outcome.stopped) == (3, "")


async def test_what_launch_after_launch_leaves_is_bounded(tmp_path: Path) -> None:
    script = "open(f'new{time.time()}', 'wb').write(bytes(12 * 1024**2))\ntime.sleep(0.5)\nos._exit(3)"
    ends = [(await ran(tmp_path, script, written_bytes=24 * MIB, held_bytes=32 * MIB)).stopped for _ in range(4)]
    assert ends[:2] == ["", ""]
    assert ends[2:] == ["written", "written"]
    making_room = (
        "[os.unlink(name) for name in os.listdir()]\nopen('last', 'wb').write(bytes(8 * 1024**2))\nos._exit(3)"
    )
    assert (await ran(tmp_path, making_room, written_bytes=24 * MIB, held_bytes=32 * MIB)).exit_code == 3


async def test_the_memory_of_all_processes_is_bounded(tmp_path: Path) -> None:
    script = "for n in range(4):\n if os.fork() == 0:\n  x = b'x' * (60 * 1024**2); time.sleep(60)"
    outcome = await ran(tmp_path, script, memory_bytes=160 * MIB)
    assert (outcome.exit_code, outcome.stopped) == (None, "memory")


async def test_memory_that_is_shared_counts_once(tmp_path: Path) -> None:
    script = (
        "x = b'x' * (60 * 1024**2)\nfor n in range(4):\n if os.fork() == 0: time.sleep(1); os._exit(0)\n"
        "for n in range(4): os.wait()\nos._exit(5)"
    )
    outcome = await ran(tmp_path, script, memory_bytes=160 * MIB)
    assert (outcome.exit_code, outcome.stopped) == (5, "")


async def test_memory_as_a_file_counts(tmp_path: Path) -> None:
    script = "kept = [os.memfd_create('x') for n in range(4)]\nfor f in kept: os.write(f, bytes(60 * 1024**2))"
    outcome = await ran(tmp_path, script, memory_bytes=160 * MIB)
    assert (outcome.exit_code, outcome.stopped) == (None, "memory")


# A mapping that keeps no descriptor, which those of Python do.
MAPPED = (
    "import ctypes, mmap, socket\nmap_one = ctypes.CDLL(None).mmap\n"
    "map_one.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\nkept, send = [], socket.send_fds\n"
)


@pytest.mark.parametrize(
    "script",
    [
        "f = os.memfd_create('x'); os.write(f, block); map_one(None, 4096, 1, 1, f, 0); os.close(f)",
        "m = mmap.mmap(-1, len(block)); m.write(block); m.resize(4096); kept.append(m)",
        "f = os.memfd_create('x'); os.write(f, block); s = socket.socketpair(); kept.append(s); send(s[0], [b'x'], [f]); os.close(f)",
    ],
    ids=["mapped", "unmapped but for a page", "sent and not received"],
)
async def test_memory_that_hides_counts(tmp_path: Path, script: str) -> None:
    everything = f"{MAPPED}block = bytes(16 * 1024**2)\nfor n in range(16): {script}"
    outcome = await ran(tmp_path, everything, memory_bytes=160 * MIB, tmp_bytes=0)
    assert (outcome.exit_code, outcome.stopped) == (None, "memory"), outcome


async def test_a_first_thread_that_has_ended_hides_nothing(tmp_path: Path) -> None:
    script = (
        "import ctypes, platform, threading\ndef hold():\n time.sleep(0.5); x = b'x' * (60 * 1024**2); time.sleep(60)\n"
        "for n in range(4):\n if os.fork() == 0: break\n"
        "threading.Thread(target=hold).start()\n"
        "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)"
    )
    outcome = await ran(tmp_path, script, memory_bytes=160 * MIB)
    assert (outcome.exit_code, outcome.stopped) == (None, "memory"), outcome


async def test_files_that_are_only_mapped_count(tmp_path: Path) -> None:
    script = (
        f"{MAPPED}for n in range(40):\n f = os.open('g', os.O_RDWR | os.O_CREAT); os.unlink('g')\n"
        " os.write(f, bytes(1024**2)); map_one(None, 4096, 1, 1, f, 0); os.close(f)"
    )
    outcome = await ran(tmp_path, script, written_bytes=24 * MIB)
    assert (outcome.exit_code, outcome.stopped) == (None, "written"), outcome


async def test_memory_that_is_shared_and_mapped_counts_once(tmp_path: Path) -> None:
    script = (
        "import mmap\nf = os.memfd_create('x'); os.ftruncate(f, 100 * 1024**2); m = mmap.mmap(f, 0)\n"
        "m.write(bytes(len(m)))\ntime.sleep(0.7)\nos._exit(5)"
    )
    outcome = await ran(tmp_path, script, memory_bytes=260 * MIB, tmp_bytes=0)
    assert (outcome.exit_code, outcome.stopped) == (5, ""), outcome


@pytest.mark.parametrize("where", ["work", "other"])
async def test_what_was_written_at_once_is_seen_on_every_file_system(tmp_path: Path, where: str) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        places = {"work": str(tmp_path), "other": other}
        script = f"for n in range(40): open(os.path.join({places[where]!r}, f'f{{n}}'), 'wb').write(bytes(1024**2))"
        launch = Launch(
            command=(sys.executable, "-I", "-S", "-c", f"import os\n{script}"),
            purpose="script",
            cwd=str(tmp_path),
            writable=(str(tmp_path), other),
            limits=Limits(written_bytes=24 * MIB),
            deadline_s=30,
        )
        outcome = await UnconfinedExecutor().run(launch)
    assert outcome.stopped == "written", outcome


def test_no_link_is_followed_and_a_file_counts_once(tmp_path: Path) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    work.mkdir()
    (outside / "big").write_bytes(bytes(8 * MIB))
    before, _ = measure(str(work))
    (work / "link").symlink_to(outside)
    (work / "file").symlink_to(outside / "big")
    assert measure(str(work))[0] - before < MIB
    (work / "one").write_bytes(bytes(2 * MIB))
    os.link(work / "one", work / "two")
    assert 2 * MIB <= measure(str(work))[0] - before < 3 * MIB
    (tmp_path / "root").symlink_to(outside)
    assert measure(str(tmp_path / "root"))[0] < MIB


async def test_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FREE_BYTES", 1 << 60)
    launch = Launch(command=("true",), purpose="script", cwd=str(tmp_path), writable=(str(tmp_path),))
    with pytest.raises(SandboxError) as caught:
        await asyncio.to_thread(require_room, launch)
    assert caught.value.code == "launch-failed"
    for executor in (BubblewrapExecutor(), NamespaceExecutor(), LandlockExecutor()):
        if executor.can_run:
            with pytest.raises(SandboxError, match="are free"):
                await executor.run(launch)
    assert (await ran(tmp_path, "")).stopped == "written"
