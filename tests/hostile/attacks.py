"""The rows that take a launch each: how one is bounded, how it ends, and what is left of it. Small, for small machines.

A script does as much as it can and prints ``done``; a backend may stop it before.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from satchel.ports.execution import Outcome

MIB = 1024**2
FORKS = 400  # more than the least bound that a kernel allows for processes of root, three hundred
WRITTEN = 16 * MIB
CAP = 64 * 1024

_FORKS = f"""
import os, time
made = []
try:
    while len(made) < {FORKS}:
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
        made.append(child)
    print("done")
except OSError as error:
    print("cut at", len(made))
for child in made:
    os.kill(child, 9)
"""
_THREADS = f"""
import os, threading, time
threading.stack_size(64 * 1024)
made = 0
try:
    while made < {FORKS}:
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
        made += 1
    print("done", flush=True)
except RuntimeError:
    print("cut at", made, flush=True)
os._exit(0)
"""
_ONE_MEMORY = """
import time
held = bytearray(b"x") * (192 << 20)
time.sleep(PAUSE)
print("done")
"""
_MANY_MEMORY = """
import os, time
reading, writing = os.pipe()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        held = bytearray(b"x") * (64 << 20)
        os.write(writing, b"x")
        time.sleep(30)
    children.append(child)
os.close(writing)
held = 0
while held < 4 and os.read(reading, 1):
    held += 1
time.sleep(PAUSE)
if held == 4:
    print("done")
for child in children:
    os.kill(child, 9)
"""
_ONE_FILE = """
with open("one", "wb", buffering=0) as file:
    for _ in range(8):
        file.write(b"x" * (1 << 20))
print("done")
"""
_MANY_FILES = """
import os, time
for number in range(12):
    with open(os.path.join(WHERE, f"many-{number}"), "wb", buffering=0) as file:
        for _ in range(4):
            file.write(b"x" * (1 << 20))
LINGER
print("done")
"""
_NAMELESS = """
import os, time
held = []
for number in range(12):
    held.append(open("nameless", "wb", buffering=0))
    os.unlink("nameless")
    for _ in range(4):
        held[-1].write(b"x" * (1 << 20))
time.sleep(PAUSE)
print("done")
"""
_MAP = """
import ctypes, os, socket, time
libc = ctypes.CDLL(None)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.shmat.argtypes, libc.shmat.restype = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int], ctypes.c_void_p
libc.shmdt.argtypes = [ctypes.c_void_p]
kept = []
"""
_MAPPED_FILES = (
    _MAP
    + """
for number in range(48):
    file = os.open("mapped", os.O_RDWR | os.O_CREAT)
    os.unlink("mapped")
    os.write(file, b"x" * (1 << 20))
    libc.mmap(None, 4096, 1, 1, file, 0)
    os.close(file)
time.sleep(PAUSE)
print("done")
"""
)
_MAPPED_MEMORY = (
    _MAP
    + """
for number in range(16):
    file = os.memfd_create("hidden")
    os.write(file, b"x" * (16 << 20))
    libc.mmap(None, 4096, 1, 1, file, 0)
    os.close(file)
time.sleep(PAUSE)
print("done")
"""
)
_SENT_MEMORY = (
    _MAP
    + """
for number in range(16):
    file = os.memfd_create("hidden")
    os.write(file, b"x" * (16 << 20))
    kept.append(socket.socketpair())
    socket.send_fds(kept[-1][0], [b"x"], [file])
    os.close(file)
time.sleep(PAUSE)
print("done")
"""
)
_SEGMENT = (
    _MAP
    + """
segment = libc.shmget(0, 160 << 20, 0o1600)
if segment < 0:
    raise SystemExit("refused")
print("segment", segment, flush=True)
at = libc.shmat(segment, None, 0)
ctypes.memset(at, 1, 160 << 20)
time.sleep(0.5)
libc.shmdt(at)
time.sleep(PAUSE)
print("done")
"""
)
_ENDED_THREAD = """
import ctypes, os, platform, threading, time
def hold():
    time.sleep(0.5)
    held = bytearray(b"x") * (48 << 20)
    time.sleep(PAUSE)
    print("done", flush=True)
for _ in range(3):
    if os.fork() == 0:
        break
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""
_UNREADABLE = """
import os, time
for number in range(12):
    os.mkdir(f"closed-{number}")
    with open(f"closed-{number}/file", "wb", buffering=0) as file:
        for _ in range(4):
            file.write(b"x" * (1 << 20))
    os.chmod(f"closed-{number}", 0)
time.sleep(PAUSE)
print("done")
"""
_NAMES_IN_MEMORY = """
import os, shutil, time
os.mkdir("/tmp/hostile-MARKER")
try:
    for number in range(1500):
        os.close(os.open(f"/tmp/hostile-MARKER/{number}", os.O_CREAT | os.O_WRONLY))
    time.sleep(1)
    print("done")
finally:
    shutil.rmtree("/tmp/hostile-MARKER")
"""
_IN_MEMORY = """
import os
done = False
for place in ("/tmp/hostile-MARKER", "/dev/shm/hostile-MARKER"):
    try:
        with open(place, "wb", buffering=0) as file:
            for _ in range(8):
                file.write(b"x" * (1 << 20))
        done = True
        os.unlink(place)
    except OSError as error:
        print(error)
if done:
    print("done")
"""
_DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv("/bin/sh", ["sh", "-c", "exec >/dev/null 2>&1; sleep 30; : MARKER"])
    os._exit(0)
time.sleep(0.3)
print("done")
"""
_CPU = """
import time
while time.process_time() < 1.4:
    pass
print("done")
"""
_OUTPUT = """
import os
for _ in range(64):
    os.write(1, b"x" * 65536)
"""
_BACKGROUND = "sh -c 'sleep 30; : MARKER' & echo done"
_STUBBORN = "trap '' TERM; while :; do sleep 0.1; : MARKER; done"


@dataclass(frozen=True)
class Ended:
    """One launch that has ended. ``marker`` is in the arguments of what it leaves running."""

    outcome: Outcome
    marker: str
    work: Path
    tmp: Path

    @property
    def is_done(self) -> bool:
        return "done" in self.outcome.stdout.text and not self.outcome.stopped

    @property
    def said(self) -> str:
        lines = (self.outcome.stdout.text + self.outcome.stderr.text).strip().splitlines() or [""]
        return f"{self.outcome.exit_code} {self.outcome.stopped} {lines[-1]}"[:120]


@dataclass(frozen=True)
class Attack:
    """``succeeded`` looks at what is there afterwards. ``limits`` and ``more`` are fields of the launch."""

    script: str
    succeeded: Callable[[Ended], bool] = lambda ended: ended.is_done
    limits: dict[str, int] = field(default_factory=dict[str, int])
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    is_shell: bool = False

    def command(self, marker: str, tmp: str, *, is_watched: bool) -> tuple[str, ...]:
        """Waits to be seen, where somebody looks."""
        pause = "1.5" if is_watched else "0"
        script = self.script.replace("MARKER", marker).replace("WHERE", repr(tmp)).replace("PAUSE", pause)
        return ("/bin/sh", "-c", script) if self.is_shell else ("python3", "-I", "-S", "-c", script)


def processes_with(marker: str) -> list[int]:
    """Processes that were started with an argument that has the marker."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _lives_on(ended: Ended) -> bool:
    left = processes_with(ended.marker)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return bool(left)


def _is_kept(ended: Ended) -> bool:
    """More than was allowed was written, and nobody said so."""
    files = [*ended.work.glob("many-*"), *ended.tmp.glob("many-*")]
    return sum(file.stat().st_size for file in files) > WRITTEN and ended.outcome.stopped != "written"


def _is_whole(ended: Ended) -> bool:
    return len(ended.outcome.stdout.head) + len(ended.outcome.stdout.tail) > CAP


def _is_left(ended: Ended) -> bool:
    """Whether it was made; a segment outlives its maker, so it is removed here."""
    for line in ended.outcome.stdout.text.splitlines():
        if line.startswith("segment "):
            ctypes.CDLL(None).shmctl(int(line.split()[1]), 0, None)
    return ended.is_done


_LITTLE_MEMORY = {"memory_bytes": 128 * MIB, "tmp_bytes": 2 * MIB}
_FEW_WRITTEN = {"written_bytes": WRITTEN, "file_bytes": 4 * MIB}
_LINGERING = _MANY_FILES.replace("LINGER", "time.sleep(PAUSE)")

ATTACKS = {
    "many forks": Attack(_FORKS, limits={"processes": 64}),
    "many threads": Attack(_THREADS, limits={"processes": 64}),
    "much memory in one process": Attack(_ONE_MEMORY, limits={"memory_bytes": 128 * MIB}),
    "much memory over processes": Attack(_MANY_MEMORY, limits={"memory_bytes": 128 * MIB}),
    "much in one file": Attack(_ONE_FILE, limits={"file_bytes": 4 * MIB}),
    "much over many files in cwd": Attack(_LINGERING.replace("WHERE", "'.'"), _is_kept, limits=_FEW_WRITTEN),
    "much over many files in TMPDIR": Attack(_LINGERING, _is_kept, limits=_FEW_WRITTEN),
    "much in files without a name": Attack(_NAMELESS, limits=_FEW_WRITTEN),
    "much at once, then gone": Attack(
        _MANY_FILES.replace("WHERE", "'.'").replace("LINGER", ""), _is_kept, limits=_FEW_WRITTEN
    ),
    "much in files that are only mapped": Attack(_MAPPED_FILES, limits=_FEW_WRITTEN),
    "much in directories that nobody may read": Attack(_UNREADABLE, limits=_FEW_WRITTEN),
    "much memory that is only mapped": Attack(_MAPPED_MEMORY, limits=_LITTLE_MEMORY),
    "much memory that is only sent": Attack(_SENT_MEMORY, limits=_LITTLE_MEMORY),
    "much memory behind a thread that ended": Attack(_ENDED_THREAD, limits=_LITTLE_MEMORY),
    "much memory in a segment by key": Attack(_SEGMENT, _is_left, limits=_LITTLE_MEMORY),
    "many names in directories in memory": Attack(_NAMES_IN_MEMORY, limits={"tmp_bytes": 2 * MIB}),
    "much in directories in memory": Attack(_IN_MEMORY, limits={"tmp_bytes": 2 * MIB}),
    "double-fork daemon outlives call": Attack(_DAEMON, _lives_on),
    "background child lives on": Attack(_BACKGROUND, _lives_on, is_shell=True),
    "ignores SIGTERM past the deadline": Attack(_STUBBORN, _lives_on, more={"deadline_s": 0.8}, is_shell=True),
    "much CPU time": Attack(_CPU, limits={"cpu_s": 1}),
    "much output": Attack(_OUTPUT, _is_whole, more={"max_output_bytes": CAP}),
}
