"""A gateway in which programs really run, confined, and what they leave behind."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from satchel.chat.messages import ToolOutput
from satchel.chat.request import ChatRequest
from satchel.engine.runtime import Runtime
from satchel.execution.artifacts import Artifacts
from satchel.execution.options import ExecutionOptions
from satchel.execution.workbench import Execution
from satchel.library import discover
from satchel.ports.models import ModelClient
from satchel.sandbox.detect import detect
from satchel.sources.directory import DirectorySource
from satchel.testing.scripted_model import Reply, call
from satchel.wiring.sources import skill_hosts
from tests.gateway.serving import DEADLINE_S, serving
from tests.support import write_skill

CODE = ExecutionOptions(code=True)


@asynccontextmanager
async def working(
    models: ModelClient, base: Path, *, execution: ExecutionOptions = CODE, **options: Any
) -> AsyncGenerator[tuple[str, Artifacts]]:
    """The base URL and the shelf. Workspaces are made in ``base``, which is empty when the block has been left."""
    skills = _prepared(base)
    found = await detect("required")
    shelf = await asyncio.to_thread(lambda: Artifacts(base=str(base.parent)))
    runs = Execution(found.executor, execution, artifacts=shelf, base=str(base))
    source = DirectorySource(discover([skills]))
    try:
        async with serving(Runtime(models=models, source=source, hosts=skill_hosts, execution=runs), **options) as url:
            yield url, shelf
        # A server whose patience is over does not wait for the turns that it has cancelled.
        await until(lambda: names(base) == [])
    finally:
        await asyncio.to_thread(runs.close)


def _prepared(base: Path) -> Path:
    skills = base.parent / "skills"
    if not skills.exists():
        write_skill(skills, "geometry")
    base.mkdir(exist_ok=True)
    return skills


def shell(*commands: str, **more: object) -> list[Reply]:
    """A generation that runs the commands, each in a round of its own, and one that answers."""
    runs = [
        Reply(calls=(call("shell", json.dumps({"command": command, **more}), f"c{number}"),))
        for number, command in enumerate(commands)
    ]
    return [*runs, Reply(text=("Done.",))]


def told(request: ChatRequest) -> str:
    """The last result of a tool."""
    return [part.text for item in request.messages for part in item.parts if isinstance(part, ToolOutput)][-1]


def names(folder: Path) -> list[str]:
    """Its entries, and for the directory of a process what is in that."""
    found: list[str] = []
    for entry in folder.iterdir():
        try:
            within = [f"{entry.name}/{name.name}" for name in entry.iterdir()] if "satchel-" in entry.name else []
        except FileNotFoundError:
            continue
        found += within or [entry.name]
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def processes(mark: str) -> list[int]:
    """Those whose command line has the mark."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes().replace(b"\0", b" "):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


async def until(is_so: Callable[[], object]) -> None:
    """Waits for what must come to be so."""
    async with asyncio.timeout(DEADLINE_S):
        while not is_so():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.02)


def plain(frames: Sequence[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return [frame for frame in frames if key in frame]
