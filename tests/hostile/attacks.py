"""The rows that take a launch each: how one is bounded, how it ends, and what is left of it. Small, for small machines.

A script does as much as it can and prints ``done``; a backend may stop it before.
"""

from __future__ import annotations

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
time.sleep(1.5)
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
time.sleep(2)
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
time.sleep(3)
print("done")
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
while time.process_time() < 2.2:
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

    def command(self, marker: str, tmp: str) -> tuple[str, ...]:
        script = self.script.replace("MARKER", marker).replace("WHERE", repr(tmp))
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


_FEW_WRITTEN = {"written_bytes": WRITTEN, "file_bytes": 4 * MIB}
_LINGERING = _MANY_FILES.replace("LINGER", "time.sleep(3)")

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
    "much in directories in memory": Attack(_IN_MEMORY, limits={"tmp_bytes": 2 * MIB}),
    "double-fork daemon outlives call": Attack(_DAEMON, _lives_on),
    "background child lives on": Attack(_BACKGROUND, _lives_on, is_shell=True),
    "ignores SIGTERM past the deadline": Attack(_STUBBORN, _lives_on, more={"deadline_s": 0.8}, is_shell=True),
    "much CPU time": Attack(_CPU, limits={"cpu_s": 1}),
    "much output": Attack(_OUTPUT, _is_whole, more={"max_output_bytes": CAP}),
}
