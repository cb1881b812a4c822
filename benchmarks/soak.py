"""Whether the gateway stays as it was under minutes of ordinary trouble: memory, descriptors, connections, errors.

    .venv/bin/python benchmarks/soak.py [--minutes 5] [--streams 64] [--json FILE]

Every client asks again as soon as it has its answer. One request in ten is hung up on at a random moment, before the
first byte or in the middle, one in ten makes the model read a skill, one in ten is not streamed. Memory is sampled each
second; its slope leaves the first minute out, or the first half of a shorter run, which fills caches and pools.

Exits with 1 when an answer failed, when anything is left open at the end, or when memory grew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop
from serving import load, targets
from serving.targets import Target

GROWTH_MB_MIN = 1.0
"""What a flat curve may still show: the allocator gives memory back late."""
KEPT_MB = 0.004
"""What a round with a skill leaves in the gateway's memory for a follow-up, which is bounded at 64 MiB in all."""
LONGEST_S = 0.6
"""A hang-up comes within this time: a paced answer takes 0.51 s, one after a skill 0.13 s."""
SETTLED_WITHIN_S = 30.0


@dataclass(slots=True)
class Seen:
    """What the clients saw."""

    counts: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])


class Kinds:
    """The bytes of each kind of request."""

    def __init__(self, target: Target) -> None:
        self.stream = load.request(target.url, load.body("paced", stream=True))
        self.skill = load.request(target.url, load.body("skill", stream=True))
        self.whole = load.request(target.url, load.body("paced", stream=False))


async def one_client(target: Target, kinds: Kinds, rng: random.Random, until: float, seen: Seen) -> None:
    """Asks until the time is over, on a new connection after each hang-up and each failure."""
    client: load.Client | None = None
    while time.monotonic() < until:
        if client is None or client.is_closed:
            client = await load.Client.open(target.url)
        what = rng.random()
        try:
            if what < 0.1:
                await _leave(client, rng.choice((kinds.stream, kinds.skill, kinds.whole)), rng.random() * LONGEST_S)
                client = None
                seen.counts["hung up"] += 1
            elif what < 0.2:
                await client.ask(kinds.skill)
                seen.counts["with a skill"] += 1
            elif what < 0.3:
                await client.ask(kinds.whole)
                seen.counts["whole"] += 1
            else:
                await client.ask(kinds.stream)
                seen.counts["streamed"] += 1
        except load.LoadError as error:
            seen.errors[str(error)[:200]] += 1
            client = None
    if client is not None:
        client.close()


async def _leave(client: load.Client, data: bytes, after_s: float) -> None:
    client.start(data).add_done_callback(lambda future: future.exception())
    await asyncio.sleep(after_s)
    client.close()


async def soak(target: Target, direct: Target, options: argparse.Namespace) -> dict[str, Any]:
    (pid,) = target.pids
    kinds = Kinds(target)
    seen = Seen()
    before = targets.descriptors(pid)
    began = time.monotonic()
    until = began + options.minutes * 60
    clients = [
        asyncio.create_task(one_client(target, kinds, random.Random(number), until, seen))  # noqa: S311
        for number in range(options.streams)
    ]
    samples: list[tuple[float, float]] = []
    most = 0
    while time.monotonic() < until:
        await asyncio.sleep(1)
        samples.append((time.monotonic() - began, targets.rss_mb(pid)))
        most = max(most, targets.descriptors(pid))
    await asyncio.gather(*clients)

    async def is_idle() -> bool:
        stats = await load.fetch_json(direct.url, "/stats")
        return not stats["active"] and not stats["open"] and targets.descriptors(pid) <= before

    began = time.monotonic()
    await load.patiently(is_idle, within_s=SETTLED_WITHIN_S, every_s=0.5)
    stats = await load.fetch_json(direct.url, "/stats")
    return {
        "minutes": options.minutes,
        "streams": options.streams,
        "load_average": os.getloadavg(),
        "requests": dict(seen.counts),
        "generations": stats["requests"],
        "errors": dict(seen.errors),
        "rss_mb": {"first": samples[0][1], "last": samples[-1][1], "slope_mb_min": round(slope(samples), 3)},
        "descriptors": {"before": before, "most": most, "after": targets.descriptors(pid)},
        "upstream": {"connections left": stats["open"], "answers left": stats["active"]},
        "settled_s": round(time.monotonic() - began, 1),
    }


def slope(samples: Sequence[tuple[float, float]]) -> float:
    """MB a minute by least squares, without the start of the run."""
    skipped = min(60.0, samples[-1][0] / 2)
    kept = [(at / 60, size) for at, size in samples if at >= skipped]
    middle = sum(at for at, _ in kept) / len(kept)
    mean = sum(size for _, size in kept) / len(kept)
    spread = sum((at - middle) ** 2 for at, _ in kept)
    return sum((at - middle) * (size - mean) for at, size in kept) / spread if spread else 0.0


def complaints(result: dict[str, Any]) -> list[str]:
    """What is not as it should be."""
    found = [f"{count} times: {error}" for error, count in result["errors"].items()]
    descriptors = result["descriptors"]
    if descriptors["after"] > descriptors["before"]:
        found.append(f"{descriptors['after'] - descriptors['before']} descriptors are left open")
    found += [f"upstream, {count} {what}" for what, count in result["upstream"].items() if count]
    kept = result["requests"].get("with a skill", 0) * KEPT_MB / result["minutes"]
    if result["rss_mb"]["slope_mb_min"] > GROWTH_MB_MIN + kept:
        found.append(
            f"memory grows by {result['rss_mb']['slope_mb_min']} MB a minute, over {GROWTH_MB_MIN} "
            f"and {kept:.1f} for what is kept for follow-ups"
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    gateway_core, other_core = targets.cores()
    os.sched_setaffinity(0, {other_core})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with targets.stub(folder, other_core) as direct, targets.satchel(folder, gateway_core, direct.url) as target:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                result = runner.run(soak(target, direct, options))
        log = (folder / "satchel.log").read_text().splitlines()
    result["log"] = [line for line in log if " INFO " not in line][:20]
    memory, descriptors = result["rss_mb"], result["descriptors"]
    print(f"{options.minutes:g} minutes, {options.streams} streams, load average {result['load_average'][0]:.1f}")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(result["requests"].items()))
    print(f"requests     {kinds}; {result['generations']} generations")
    print(
        f"memory       {memory['first']:.1f} MB to {memory['last']:.1f} MB, {memory['slope_mb_min']:+.3f} MB a minute"
    )
    print("descriptors  {before} before, at most {most}, {after} after".format(**descriptors))
    print("upstream     " + ", ".join(f"{count} {what}" for what, count in result["upstream"].items()))
    print(f"settled      {result['settled_s']} s after the last answer")
    found = complaints(result) + [f"log: {line}" for line in result["log"]]
    for complaint in found:
        print(f"  WRONG  {complaint}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
