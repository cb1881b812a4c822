"""What the gateway adds to a model server, beside nginx, a bare aiohttp proxy and LiteLLM, all in one run.

    .venv/bin/python benchmarks/gateway.py [--runs 5] [--litellm-python VENV/bin/python] [--json FILE]

A stub stands in for the model server: 20 ms to the first of 50 tokens, 10 ms to each further one. Each server is one
worker on one core; the stub and the load share the other. The servers take turns within each run, each figure is the
median of the runs, and what a server adds is told against the stub itself in the same run. Peers that are not there are
named and left out; nothing of them is needed by the project.

Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvloop
from serving import load, targets
from serving.targets import Missing, Target

STREAMS = 64
CONNECTIONS = 32
PACED_S = 0.51
HANG_UPS = {"mid-stream": ("endless", True), "before the first byte": ("silent", True), "whole": ("endless", False)}
SEEN_WITHIN_S = 3.0
SKILLS_OFF: dict[str, Any] = {"skills": [], "skills_discovery": False}

COLUMNS = (
    ("added1_ms", "+ttft x1 ms"),
    ("added64_ms", "+ttft x64 ms"),
    ("added64_p95_ms", "p95"),
    ("cpu_stream_ms", "cpu/stream ms"),
    ("rps_stream", "streams/s"),
    ("cpu_quick_ms", "cpu ms"),
    ("rps_whole", "answers/s"),
    ("cpu_whole_ms", "cpu ms"),
    ("hang_up_ms", "hang-up ms"),
)
TARGETS = (
    ("added time to first token, 1 stream, ms", "added1_ms", 1.0),
    ("added time to first token, 64 paced streams, ms", "added64_ms", 3.0),
    ("processor time of a paced stream, ms", "cpu_stream_ms", 1.5),
    ("a skill round over two direct rounds, ms", "skill_over_ms", 2.0),
    ("hang-up seen upstream, slowest, ms", "hang_up_worst_ms", 100.0),
)
RATIOS = (("streams a second, times LiteLLM's", "rps_stream"), ("whole answers a second, times LiteLLM's", "rps_whole"))
RATIO = 20.0
Row = dict[str, float]


def _ms(seconds: float) -> float:
    return seconds * 1000


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def _request(target: Target, model: str, *, stream: bool, **more: Any) -> bytes:
    return load.request(target.url, load.body(model, stream=stream, **target.more, **more))


async def paced(target: Target, *, alone: int, each: int) -> Row:
    """Time to first token alone and among ``STREAMS``, and the processor time of one of those streams."""
    data = _request(target, "paced", stream=True)
    single = await load.in_turn(target.url, data, alone)
    before = target.cpu_s()
    among = await load.side_by_side(target.url, data, streams=STREAMS, each=each, over_s=PACED_S)
    spent = target.cpu_s() - before
    first = [_ms(answer.first_s) for answer in among]
    return {
        "ttft1_ms": statistics.median(_ms(answer.first_s) for answer in single),
        "ttft64_ms": statistics.median(first),
        "ttft64_p95_ms": _p95(first),
        "cpu_stream_ms": _ms(spent) / len(among),
    }


async def busy(target: Target, *, stream: bool, seconds: float) -> Row:
    """Answers of 20 tokens a second, and what one costs."""
    marks: list[float] = []
    count, lasted = await load.saturate(
        target.url,
        _request(target, "quick", stream=stream),
        connections=CONNECTIONS,
        warm_s=seconds / 5,
        seconds=seconds,
        at_start=lambda: marks.append(target.cpu_s()),
    )
    cpu_s = target.cpu_s() - marks[0]
    name, cost = ("rps_stream", "cpu_quick_ms") if stream else ("rps_whole", "cpu_whole_ms")
    return {name: count / lasted, cost: _ms(cpu_s) / max(count, 1)}


async def skill_round(target: Target, direct: Target, count: int) -> Row:
    """An answer after one read of a skill, and the same two generations asked of the stub directly."""
    data = _request(target, "skill", stream=True)
    await load.in_turn(target.url, data, 1)
    rounds = [load.request(direct.url, body.encode()) for body in await load.fetch_json(direct.url, "/bodies")]
    through: list[float] = []
    straight: list[float] = []
    for _ in range(count):
        through += [answer.total_s for answer in await load.in_turn(target.url, data, 1)]
        straight.append(sum([(await load.in_turn(direct.url, body, 1))[0].total_s for body in rounds]))
    over = statistics.median(through) - statistics.median(straight)
    return {"skill_ms": _ms(statistics.median(through)), "skill_over_ms": _ms(over)}


async def hang_ups(target: Target, direct: Target, each: int) -> Row:
    """How long after a client has left the stub sees its own client leave: the median and the slowest.

    A server that never leaves the stub counts with ``SEEN_WITHIN_S``.
    """
    rng = random.Random(1)  # noqa: S311
    waits: list[float] = []
    for kind, (model, stream) in HANG_UPS.items():
        for number in range(each):
            tag = f"{target.name}/{kind}/{number}/{time.monotonic_ns()}"
            client = await load.Client.open(target.url)
            done = client.start(_request(target, model, stream=stream, user=tag))
            done.add_done_callback(lambda future: future.exception())
            if kind == "mid-stream":
                await asyncio.wait_for(client.first_token.wait(), load.PATIENCE_S)
            await asyncio.sleep(0.05 + rng.random() * 0.05)
            left = time.monotonic()
            client.close()
            waits.append(await _until_lost(direct, tag) - left)
    return {"hang_up_ms": _ms(statistics.median(waits)), "hang_up_worst_ms": _ms(max(waits))}


async def _until_lost(direct: Target, tag: str) -> float:
    """When the stub lost the client of that request; infinity when it does not within ``SEEN_WITHIN_S``."""
    seen = float("inf")

    async def is_lost() -> bool:
        nonlocal seen
        seen = (await load.fetch_json(direct.url, "/stats"))["lost"].get(tag, seen)
        return seen < float("inf")

    await load.patiently(is_lost, within_s=SEEN_WITHIN_S)
    return seen


async def one_run(compared: Sequence[Target], options: argparse.Namespace) -> dict[str, Row]:
    """All figures of all targets once, the stub's own first."""
    direct = compared[0]
    rows: dict[str, Row] = {target.name: {} for target in compared}
    for target in compared:
        row = rows[target.name]
        row |= await paced(target, alone=options.alone, each=options.each)
        for figure in ("ttft1", "ttft64", "ttft64_p95") if target is not direct else ():
            row[f"{figure.replace('ttft', 'added')}_ms"] = row[f"{figure}_ms"] - rows["direct"][f"{figure}_ms"]
    for stream in (True, False):
        for target in compared:
            rows[target.name] |= await busy(target, stream=stream, seconds=options.seconds)
    for target in compared:
        if target is not direct:
            rows[target.name] |= await hang_ups(target, direct, options.hang_ups)
    rows["satchel"] |= await skill_round(_named("satchel", compared), direct, options.alone)
    return rows


def _named(name: str, compared: Sequence[Target]) -> Target:
    return next(target for target in compared if target.name == name)


async def measured(compared: Sequence[Target], options: argparse.Namespace) -> dict[str, Row]:
    """The median of every figure; and, where LiteLLM is there, of the ratios to it in the same run."""
    for target in compared:
        print(f"warming {target.name} {target.version}", file=sys.stderr)
        for model, stream in (("paced", True), ("quick", True), ("quick", False)):
            await load.in_turn(target.url, _request(target, model, stream=stream), 3)
    runs: list[dict[str, Row]] = []
    for number in range(options.runs):
        print(f"run {number + 1} of {options.runs}, load average {os.getloadavg()[0]:.1f}", file=sys.stderr)
        rows = await one_run(compared, options)
        if peer := rows.get("litellm"):
            for row in rows.values():
                row |= {f"{figure}_x": row[figure] / peer[figure] for _, figure in RATIOS}
        runs.append(rows)
    worst = "hang_up_worst_ms"
    return {
        name: {
            figure: (max if figure == worst else statistics.median)(rows[name][figure] for rows in runs)
            for figure in runs[0][name]
        }
        for name in runs[0]
    }


Opener = Callable[[], AbstractContextManager[Target]]


def report(options: argparse.Namespace) -> dict[str, Any]:
    gateway_core, other_core = targets.cores()
    os.sched_setaffinity(0, {other_core})
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        direct = running.enter_context(targets.stub(folder, other_core))
        own = running.enter_context(targets.satchel(folder, gateway_core, direct.url))
        compared = [direct, own, replace(own, name="satchel, skills off", more=SKILLS_OFF)]
        peers: dict[str, Opener] = {
            "nginx": lambda: targets.nginx(folder, gateway_core, direct.url),
            "aiohttp proxy": lambda: targets.bare(folder, gateway_core, direct.url),
            "litellm": lambda: targets.litellm(folder, gateway_core, direct.url, options.litellm_python),
        }
        for peer, opened in peers.items():
            try:
                compared.append(running.enter_context(opened()))
            except Missing as error:
                missing[peer] = str(error)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            figures = runner.run(measured(compared, options))
    return {
        "python": platform.python_version(),
        "cores": {"server": gateway_core, "stub and load": other_core},
        "load_average": os.getloadavg(),
        "runs": options.runs,
        "versions": {target.name: target.version for target in compared if target.version},
        "missing": missing,
        "figures": {name: {key: _shown(value) for key, value in row.items()} for name, row in figures.items()},
        "targets": verdicts(figures),
    }


def _shown(value: float) -> float:
    """For JSON, which has no infinity: what did not come while it was waited for took at least that long."""
    return round(value if math.isfinite(value) else _ms(SEEN_WITHIN_S), 3)


def verdicts(figures: dict[str, Row]) -> list[dict[str, Any]]:
    """Each target with what was measured; the gateway's figures with skills on offer, ratios with them off too."""
    own = figures["satchel"]
    told: list[dict[str, Any]] = [
        {"target": said, "limit": limit, "value": _shown(own[figure]), "met": own[figure] <= limit}
        for said, figure, limit in TARGETS
    ]
    for said, figure in RATIOS:
        for name in ("satchel", "satchel, skills off"):
            value = figures[name].get(f"{figure}_x")
            told.append(
                {
                    "target": f"{said} ({name})",
                    "limit": RATIO,
                    "value": None if value is None else _shown(value),
                    "met": None if value is None else value >= RATIO,
                }
            )
    return told


def show(result: dict[str, Any]) -> None:
    figures: dict[str, Row] = result["figures"]
    print(
        f"\nPython {result['python']}, medians of {result['runs']} runs, load average {result['load_average'][0]:.1f}"
    )
    print(f"{'':<22}" + "".join(f"{title:>14}" for _, title in COLUMNS))
    for name, row in figures.items():
        cells = [f"{row[figure]:>14.2f}" if figure in row else f"{'':>14}" for figure, _ in COLUMNS]
        print(f"{name:<22}" + "".join(cells))
    for name, number in result["versions"].items():
        print(f"{name} {number}")
    for why in result["missing"].values():
        print(f"left out: {why}")
    print()
    for row in result["targets"]:
        bound, value = row["limit"], row["value"]
        if value is None:
            print(f"  ?     {row['target']}: not measured, LiteLLM is not there")
            continue
        by = "" if row["met"] else f", missed by a factor of {max(value / bound, bound / value):.2f}"
        print(f"  {'met ' if row['met'] else 'MISS'}  {row['target']}: {value:.2f} (target {bound:g}{by})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each server is kept busy (3)")
    parser.add_argument("--alone", type=int, default=10, help="streams one at a time, and skill rounds (10)")
    parser.add_argument("--each", type=int, default=4, help=f"streams of each of {STREAMS} clients (4)")
    parser.add_argument("--hang-ups", type=int, default=5, help="of each kind (5)")
    parser.add_argument("--litellm-python", default="", metavar="PATH", help="the interpreter that has LiteLLM's proxy")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    result = report(options)
    show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if all(row["met"] is not False for row in result["targets"]) else 1


if __name__ == "__main__":
    sys.exit(main())
