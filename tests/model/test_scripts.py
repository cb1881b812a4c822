"""The real embedded model runs what a skill ships: its answers are the output of scripts that only the script knows."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.engine.events import ToolFinished
from satchel.engine.host import ToolBox, ToolHost
from satchel.engine.runtime import HostContext, Runtime
from satchel.evals.exam import holds_value
from satchel.execution.options import INTERPRETERS, ExecutionOptions
from satchel.execution.scripts import ScriptRunner
from satchel.library import discover
from satchel.ports.models import EmbeddedOptions
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.sources.directory import DirectorySource
from satchel.tools.access import SkillAccess
from satchel.tools.skills_list import SkillsList
from satchel.tools.skills_read import SkillsRead
from satchel.tools.skills_run import SkillsRun
from satchel.upstream.embedded import weights
from satchel.upstream.embedded.guided import EmbeddedClient
from tests.support import ask, collect, text_of, write_skill

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]

SKILLS = Path(__file__).parents[2] / "skills"
BUDGET, LABEL = "scripts/budget.py", "scripts/label.py"
MIN_FIGURES, MAX_NEEDLESS = 6, 1

ORCHARD = """# Crates of the Hollin orchard

A crate holds 29 kilograms and is stacked 7 high. Every crate carries a code, which only the script knows:

    python3 scripts/label.py VARIETY YEAR

for example `python3 scripts/label.py "Long Reed" 2019`. The variety is one argument.

Prices stand in `references/prices.md`.
"""
LABELS = """import sys, zlib
variety, year = sys.argv[1:]
print(f"code: {zlib.crc32((variety + year).encode()) % 900000 + 100000}")
"""

FLIGHTS = (
    (
        "The Petrel flies 640 km with a payload of 210 kg against 18 km/h of wind. How much fuel do we load?",
        640,
        210,
        18,
    ),
    ("How much fuel does the Petrel need for 425 km with 130 kg on board and a headwind of 25 km/h?", 425, 130, 25),
    ("Plan a Petrel flight of 300 km, payload 95 kg, no wind. Fuel to load?", 300, 95, 0),
    ("Petrel fuel for 388 km with 145 kg of payload and a headwind of 9 km/h, please.", 388, 145, 9),
    ("How many kilos of fuel for the Petrel over 150 kilometres with a payload of 400 kilograms?", 150, 400, 0),
)
CRATES = (
    ("Which code goes on a crate of Amber Rose, harvest 2024, of the Hollin orchard?", "Amber Rose", 2024),
    ("Hollin orchard: I need the crate code for the variety Quince, year 2021.", "Quince", 2021),
)
READ_ONLY = (
    ("What is the largest payload of the Petrel?", "480"),
    ("How much fuel do the tanks of the Petrel hold?", "395"),
    ("How many kilograms does a crate of the Hollin orchard hold?", "29"),
    ("What does a crate of quinces cost at the Hollin orchard?", "83"),
    ("What is the capital of Norway?", "Oslo"),
)


@pytest.fixture
async def model() -> AsyncGenerator[EmbeddedClient]:
    wanted = EmbeddedOptions(weights="large")
    path = await weights.fetch(wanted, UnconfinedExecutor(), lambda *step: None, environ=os.environ)
    client = EmbeddedClient(replace(wanted, weights=str(path)), environ={})
    yield client
    await client.aclose()


def hosts(context: HostContext) -> tuple[ToolHost, ...]:
    access = SkillAccess(context.source, context.reach.reachable, runnable=INTERPRETERS)
    runner = ScriptRunner(UnconfinedExecutor(), ExecutionOptions(scripts=True, sandbox="off"))
    return (ToolBox((SkillsList(access), SkillsRead(access), SkillsRun(access, runner)), advise=access.advise),)


async def sit(client: EmbeddedClient, root: Path, text: str) -> tuple[list[str], str]:
    """The paths that were read or run for a question, and its answer."""
    request = ask(text)
    source = DirectorySource(discover([SKILLS, root]))
    runtime = Runtime(models=client, source=source, hosts=hosts)
    events, _ = await collect(runtime, replace(request, chat=replace(request.chat, model="")))
    return [event.path for event in events if isinstance(event, ToolFinished)], text_of(events)


def printed(script: Path, *words: object) -> str:
    """The figure in the last line of what the script prints."""
    command = [sys.executable, "-I", str(script), *map(str, words)]
    line = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    return line.partition(": ")[2].removesuffix(" kg")


async def test_figures_that_only_a_script_knows(model: EmbeddedClient, tmp_path: Path) -> None:
    files = {LABEL: LABELS, "references/prices.md": "A crate of apples costs 61 crowns, one of quinces 83 crowns.\n"}
    description = "Crates, codes and prices of the Hollin orchard. Use for any question about its fruit."
    skill = write_skill(tmp_path, "hollin-orchard", description=description, body=ORCHARD, files=files)

    def expected() -> list[tuple[str, str, str]]:
        budget = SKILLS / "fuel-budget" / BUDGET
        flights = [
            (text, BUDGET, printed(budget, "--distance", km, "--payload", kg, "--headwind", wind))
            for text, km, kg, wind in FLIGHTS
        ]
        return flights + [(text, LABEL, printed(skill / LABEL, variety, year)) for text, variety, year in CRATES]

    right, needless, told, told_right = 0, 0, list[str](), 0
    for text, script, figure in await asyncio.to_thread(expected):
        paths, answer = await sit(model, tmp_path, text)
        is_right = paths == ["SKILL.md", script] and holds_value(answer, (figure,))
        right += is_right
        told += [] if is_right else [f"{text} | {figure} | {paths} | {answer[:100]!r}"]
    for text, value in READ_ONLY:
        paths, answer = await sit(model, tmp_path, text)
        needless += BUDGET in paths or LABEL in paths
        told_right += holds_value(answer, (value,))
        told += [] if holds_value(answer, (value,)) else [f"{text} | {value} | {paths} | {answer[:100]!r}"]
    _, refused = await sit(model, tmp_path, "The Petrel shall fly 2000 km with 480 kg. How much fuel do we load?")
    told.append(f"2000 km | not possible | {refused[:100]!r}")
    counts = f"figures {right}/{len(FLIGHTS) + len(CRATES)}, needless runs {needless}/{len(READ_ONLY)}"
    counts += f", answers without a script {told_right}/{len(READ_ONLY)}"
    print("", counts, *told, sep="\n  ")  # noqa: T201
    assert right >= MIN_FIGURES, counts
    assert "could not be worked out" in refused, refused
    assert re.search(r"\d\.\d", refused) is None, refused
    assert needless <= MAX_NEEDLESS, counts
    assert told_right >= len(READ_ONLY) - 1, counts
