"""What one activation costs, and that it does not grow with the number of skills: medians in milliseconds.

Each is the best of five sessions' medians, since whatever else runs on the machine can only add to it.

    .venv/bin/python benchmarks/activation.py [skills]

Exits with 1 when a budget is exceeded.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from satchel import Library, SkillSession, Trust, discover

BUDGET_MS = 0.5
FEW = 100
WARM_UP = 10
RUNS = 90
SESSIONS = 5


def make_skills(root: Path, count: int) -> Library:
    for number in range(count):
        folder = root / f"skill-{number:05}"
        folder.mkdir(parents=True)
        front = f"name: {folder.name}\ndescription: Knows number {number}. Use when asked for it."
        (folder / "SKILL.md").write_text(f"---\n{front}\n---\nDo $ARGUMENTS.\n", encoding="utf-8")
    return discover([root])


async def best_ms(make: Callable[[], SkillSession]) -> float:
    return min([await median_ms(make()) for _ in range(SESSIONS)])


async def median_ms(session: SkillSession) -> float:
    await session.discover()
    spent: list[float] = []
    for number in range(WARM_UP + RUNS):
        started = time.perf_counter()
        reply = await session.activate(f"skill-{number:05}", "it")
        spent.append((time.perf_counter() - started) * 1000)
        if reply.kind != "ok":
            raise SystemExit(reply.output)
    return statistics.median(spent[WARM_UP:])


def main() -> int:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    within = True
    for count in (FEW, many):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            library = make_skills(root, count)
            trust = Trust(trusted_roots=[root])
            trusted = asyncio.run(best_ms(partial(SkillSession, library, trust=trust)))
            asked = asyncio.run(best_ms(partial(SkillSession, library, permission=lambda _: "allow")))
        within = within and max(trusted, asked) <= BUDGET_MS
        print(f"{count:>6} skills  trusted {trusted:6.3f} ms  asked {asked:6.3f} ms  budget {BUDGET_MS} ms")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
