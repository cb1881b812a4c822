"""How often the embedded model runs a script that it should, and answers with what the script printed.

    .venv/bin/python benchmarks/held_out.py [--set first|second]

Two sets of skills and questions that no prompt was written for; docs/adr/0003 has the figures. A quarter of an hour on
two processors, which is why no test does it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from held_out_questions import FIRST, SECOND, HeldOut, Shipped

from satchel.chat.messages import ToolOutput, message
from satchel.chat.request import ChatRequest
from satchel.engine.events import TextDelta, ToolFinished, TurnDone
from satchel.engine.request import SkillSelection, TurnRequest
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

SKILLS = Path(__file__).parents[1] / "skills"
SETS = {"first": FIRST, "second": SECOND}


def printed(folder: Path, skill: Shipped, arguments: tuple[str, ...]) -> str:
    """The value in what the script prints."""
    command = [sys.executable, "-I", str(folder / skill.name / skill.script), *arguments]
    line = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return line.partition(": ")[2].split()[0]


async def sit(runtime: Runtime, text: str) -> tuple[list[str], str, str, str]:
    """The paths that were read or run, the arguments of the run, what it printed, and the answer."""
    chat = ChatRequest(model="", messages=(message("user", text),))
    paths, answer, ran, output = list[str](), "", "", ""
    async with runtime.turn(TurnRequest(chat=chat, skills=SkillSelection())) as turn:
        async for event in turn:
            match event:
                case ToolFinished():
                    paths.append(event.path)
                case TextDelta():
                    answer += event.text
                case TurnDone():
                    calls = [use for said in event.transcript for use in said.tool_uses]
                    ran = " ".join(str(use.arguments) for use in calls if use.name == "skills_run")
                    parts = [part for said in event.transcript for part in said.parts]
                    output = " ".join(
                        part.text for part in parts if isinstance(part, ToolOutput) and part.name == "skills_run"
                    )
                case _:
                    pass
    return paths, ran, output, answer


async def fetched(wanted: EmbeddedOptions) -> Path:
    """The weights, which are downloaded when they are not there."""

    def said(*step: object) -> None:
        del step

    return await weights.fetch(wanted, UnconfinedExecutor(), said, environ=os.environ)


async def measure(name: str, held: HeldOut, folder: Path) -> None:
    """Asks everything once and prints what became of it."""
    for skill in held.skills:
        await asyncio.to_thread(skill.write, folder)
    by_name = {skill.name: skill for skill in held.skills}
    scripts = {skill.script for skill in held.skills}
    wanted = EmbeddedOptions(weights="large")
    model = EmbeddedClient(replace(wanted, weights=str(await fetched(wanted))), environ={})
    source = DirectorySource(await asyncio.to_thread(discover, [SKILLS, folder]))
    chosen, given, right, needless, told = 0, 0, 0, 0, 0
    async with open_execution(ExecutionOptions(scripts=True)) as execution:
        runtime = Runtime(models=model, source=source, hosts=skill_hosts, execution=execution)
        for text, skill_name, arguments in held.runs:
            value = await asyncio.to_thread(printed, folder, by_name[skill_name], arguments)
            paths, ran, output, answer = await sit(runtime, text)
            is_chosen = by_name[skill_name].script in paths
            chosen += is_chosen
            given += is_chosen and holds_value(output, (value,))
            right += is_chosen and holds_value(answer, (value,))
            print(f"  {text} | {value} | {paths} {ran} | {answer!r}", flush=True)
        for text, value in held.others:
            paths, _, _, answer = await sit(runtime, text)
            needless += bool(scripts & set(paths))
            told += value in answer
            print(f"  {text} | {value} | {paths} | {answer!r}", flush=True)
        await runtime.aclose()
    print(
        f"{name}: script chosen {chosen}, arguments right {given}, figure right {right} of {len(held.runs)}; "
        f"needless runs {needless}, answers right {told} of {len(held.others)}"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="How the embedded model runs scripts that it has not seen.")
    parser.add_argument("--set", choices=[*SETS], action="append")
    for name in parser.parse_args().set or SETS:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(name, SETS[name], Path(folder)))


if __name__ == "__main__":
    main()
