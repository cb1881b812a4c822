"""What a launch costs under each backend, against the plain start of the same program.

    .venv/bin/python benchmarks/sandbox.py [--runs 60] [--json]

A launch is the whole way from the executor's ``run`` to its outcome, with an empty program. ``bwrap`` is that program
alone with little more than namespaces, ``/usr``, ``/proc`` and ``/dev``: no policy over it can go below. Runs of all
backends take turns, so that what else the machine does falls on each alike; times are wall-clock medians in
milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from satchel.errors import SandboxError
from satchel.ports.execution import Executor, Launch
from satchel.sandbox.bubblewrap import PLACES, BubblewrapExecutor
from satchel.sandbox.landlock import LandlockExecutor
from satchel.sandbox.namespaces import NamespaceExecutor
from satchel.sandbox.unconfined import UnconfinedExecutor

TARGETS_MS = {"bubblewrap": 5.0, "namespaces": 30.0}
COMMAND = ("/bin/true",)


async def plain(*before: str) -> None:
    process = await asyncio.create_subprocess_exec(*before, *COMMAND, stdin=asyncio.subprocess.DEVNULL)
    if await process.wait() != 0:
        raise SystemExit(f"{(*before, *COMMAND)}: {process.returncode}")


def little(program: str) -> tuple[str, ...]:
    """A command line of bwrap with a root in which a program starts, and no more."""
    merged = [path for path in map(Path, ("/bin", "/lib", "/lib64")) if path.is_symlink()]
    links = (("--symlink", str(path.readlink()), str(path)) for path in merged)
    root = ("--ro-bind", "/usr", "/usr", *(word for link in links for word in link), "--proc", "/proc", "--dev", "/dev")
    return (program, "--unshare-all", "--unshare-user", "--disable-userns", *root, "--")


def launched(executor: Executor, launch: Launch) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        outcome = await executor.run(launch)
        if outcome.exit_code != 0:
            raise SystemExit(f"{executor.confinement.backend}: {outcome.output}")

    return run


async def measure(runs: int, work: str) -> dict[str, list[float]]:
    launch = Launch(command=COMMAND, purpose="script", cwd=work, env={"PATH": "/usr/bin:/bin"}, writable=(work,))
    ways: dict[str, Callable[[], Awaitable[None]]] = {"plain": plain}
    program = next((path for path in PLACES if os.access(path, os.X_OK)), "")
    if program:
        ways["bwrap"] = partial(plain, *little(program))
    for executor in (
        UnconfinedExecutor(),
        BubblewrapExecutor(program or PLACES[0]),
        NamespaceExecutor(),
        LandlockExecutor(),
    ):
        way = launched(executor, launch)
        try:
            if executor.unavailable_reason:
                continue
            await way()
        except SandboxError:
            continue
        ways[executor.confinement.backend] = way
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            began = time.perf_counter()
            await way()
            times[name].append((time.perf_counter() - began) * 1000)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description="Launch overhead of each sandbox backend.")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        times = asyncio.run(measure(options.runs, str(Path(work).resolve())))
    floor = statistics.median(times["plain"])
    rows = [
        {
            "backend": name,
            "median_ms": round(statistics.median(taken), 2),
            "over_plain_ms": round(statistics.median(taken) - floor, 2),
            "ratio": round(statistics.median(taken) / floor, 1),
            "target_ms": TARGETS_MS.get(name),
        }
        for name, taken in times.items()
    ]
    about = {"runs": options.runs, "kernel": platform.release(), "cpus": os.cpu_count(), "uid": os.getuid()}
    if options.json:
        print(json.dumps(about | {"rows": rows}))
        return
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    for row in rows:
        target = f"  (target {row['target_ms']:g})" if row["target_ms"] else ""
        print(
            f"{row['backend']:<12}{row['median_ms']:>8} ms{row['over_plain_ms']:>+9.2f} ms{row['ratio']:>7} x{target}"
        )


if __name__ == "__main__":
    main()
