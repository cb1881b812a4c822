"""What ``import satchel`` and ``satchel --help`` cost over a bare Python: medians in milliseconds.

    .venv/bin/python benchmarks/imports.py [runs]

Exits with 1 when a budget is exceeded.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

BUDGETS_MS = {"import satchel": 60.0, "satchel --help": 150.0}
COMMANDS = {
    "bare python": [sys.executable, "-c", "pass"],
    "import satchel": [sys.executable, "-c", "import satchel"],
    "satchel --help": [str(Path(sys.executable).with_name("satchel")), "--help"],
}


def once_ms(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1000


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(runs + 1):
        for name, command in COMMANDS.items():
            spent = once_ms(command)
            if turn:  # the first one warms the file cache
                times[name].append(spent)
    medians = {name: statistics.median(spent) for name, spent in times.items()}
    bare = medians["bare python"]
    print(f"{'bare python':<16} {bare:7.1f} ms")
    within = True
    for name, budget in BUDGETS_MS.items():
        over = medians[name] - bare
        within = within and over <= budget
        print(f"{name:<16} {over:7.1f} ms over it, budget {budget:.0f}")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
