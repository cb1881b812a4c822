"""How often the embedded model runs a script that it should, and answers with what it printed: ADR 0003 has the figures."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.engine.events import ToolFinished
from satchel.engine.runtime import Runtime
from satchel.evals.exam import holds_value
from satchel.execution.options import ExecutionOptions
from satchel.library import discover
from satchel.ports.models import EmbeddedOptions
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.sources.directory import DirectorySource
from satchel.upstream.embedded import weights
from satchel.upstream.embedded.guided import EmbeddedClient
from satchel.wiring.execution import open_execution
from satchel.wiring.sources import skill_hosts
from tests.model.held_out import FIRST, SECOND, HeldOut, Shipped
from tests.support import ask, collect, text_of

pytestmark = [pytest.mark.model, pytest.mark.timeout(3600)]

SKILLS = Path(__file__).parents[2] / "skills"
MIN_CHOSEN, MIN_FIGURES, MAX_NEEDLESS, MIN_TOLD = 0.8, 0.4, 1, 0.8


@pytest.fixture
async def model() -> AsyncGenerator[EmbeddedClient]:
    wanted = EmbeddedOptions(weights="large")
    path = await weights.fetch(wanted, UnconfinedExecutor(), lambda *step: None, environ=os.environ)
    client = EmbeddedClient(replace(wanted, weights=str(path)), environ={})
    yield client
    await client.aclose()


def printed(folder: Path, skill: Shipped, arguments: tuple[str, ...]) -> str:
    """The value in what the script prints."""
    command = [sys.executable, "-I", str(folder / skill.name / skill.script), *arguments]
    line = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return line.partition(": ")[2].split()[0]


async def sit(runtime: Runtime, text: str) -> tuple[list[str], str, str]:
    """The paths that were read or run, the arguments of the run, and the answer."""
    request = ask(text)
    events, done = await collect(runtime, replace(request, chat=replace(request.chat, model="")))
    paths = [event.path for event in events if isinstance(event, ToolFinished)]
    ran = [use.arguments for said in done.transcript for use in said.tool_uses if use.name == "skills_run"]
    return paths, " ".join(ran), text_of(events)


@pytest.mark.parametrize("held", [FIRST, SECOND], ids=["first", "second"])
async def test_scripts_that_no_prompt_was_written_for(model: EmbeddedClient, tmp_path: Path, held: HeldOut) -> None:
    for skill in held.skills:
        skill.write(tmp_path)
    by_name = {skill.name: skill for skill in held.skills}
    scripts = {skill.script for skill in held.skills}
    source = DirectorySource(discover([SKILLS, tmp_path]))
    chosen, right, needless, told, lines = 0, 0, 0, 0, list[str]()
    async with open_execution(ExecutionOptions(scripts=True)) as execution:
        runtime = Runtime(models=model, source=source, hosts=skill_hosts, execution=execution)
        for text, name, arguments in held.runs:
            value = await asyncio.to_thread(printed, tmp_path, by_name[name], arguments)
            paths, ran, answer = await sit(runtime, text)
            is_chosen = by_name[name].script in paths
            chosen += is_chosen
            right += is_chosen and holds_value(answer, (value,))
            lines.append(f"{text} | {value} | {paths} {ran} | {answer!r}")
        for text, value in held.others:
            paths, _, answer = await sit(runtime, text)
            needless += bool(scripts & set(paths))
            told += value in answer
            lines.append(f"{text} | {value} | {paths} | {answer!r}")
    counts = f"chosen {chosen}, figures {right} of {len(held.runs)}; "
    counts += f"needless runs {needless}, right answers {told} of {len(held.others)}"
    print("", counts, *lines, sep="\n  ")  # noqa: T201
    assert chosen >= MIN_CHOSEN * len(held.runs), counts
    assert right >= MIN_FIGURES * len(held.runs), counts
    assert needless <= MAX_NEEDLESS, counts
    assert told >= MIN_TOLD * len(held.others), counts
