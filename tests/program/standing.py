"""A whole gateway for several tests: the program before one scripted server that speaks every format."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn
from tests.program.program import start
from tests.program.surfaces import DEADLINE_S, Bases, Heard, Surface, body_of, hear
from tests.support import write_skill

KINDS = ("openai", "responses", "ollama", "anthropic")
GONE = "gone/scripted"
"""The model of a server that is not there."""

READ = ScriptedCall(name="skills_read", fragments=('{"skill": ', '"canary"}'), call_id="call_read")

_WATCH = """
import asyncio, json, os, signal

def count(number, frame):
    tasks = sorted(task.get_coro().__qualname__ for task in asyncio.all_tasks())
    with open({path!r} + ".new", "w") as file:
        json.dump(tasks, file)
    os.replace({path!r} + ".new", {path!r})

signal.signal(signal.SIGUSR1, count)
"""

Turns = ScriptedTurn | Callable[[dict[str, Any]], ScriptedTurn]


@dataclass(frozen=True, slots=True)
class Census:
    """What a process holds: the coroutines of its tasks, and so many open descriptors."""

    tasks: tuple[str, ...]
    descriptors: int


@dataclass(slots=True)
class Gateway:
    """``turns`` are what the model server says next; ``err`` is what the program wrote to stderr.

    ``idle`` is what it held before the first request.
    """

    bases: Bases
    process: asyncio.subprocess.Process
    model: ScriptedOpenAI
    folder: Path
    turns: deque[Turns] = field(default_factory=deque[Turns])
    err: bytearray = field(default_factory=bytearray)
    idle: Census = Census((), 0)

    def next(self, *turns: Turns) -> None:
        """Forgets what is left of the script and of what was asked, and begins another."""
        self.turns.clear()
        self.turns.extend(turns)
        self.model.requests.clear()

    async def hear(
        self,
        surface: Surface,
        *,
        kind: str = "openai",
        model: str = "",
        stream: bool = True,
        heard: Heard | None = None,
        **fields: Any,
    ) -> Heard:
        """What one client hears. ``fields`` go into its request; ``tools`` brings its own tool."""
        body = body_of(surface, model or f"{kind}/scripted", stream=stream, **fields)
        return await hear(self.bases.of(surface), surface, body, heard)

    async def census(self) -> Census:
        """What the process holds now."""
        path = self.folder / "census"
        path.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        async with asyncio.timeout(DEADLINE_S):
            while not path.exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.01)
        return Census(tuple(json.loads(path.read_text(encoding="utf-8"))), self._descriptors())

    async def settled(self) -> Census:
        """The census once it is what it was at the start, or as it is when it does not come to that."""
        end = asyncio.get_running_loop().time() + DEADLINE_S
        while True:
            found = await self.census()
            if found == self.idle or asyncio.get_running_loop().time() > end:
                return found
            await asyncio.sleep(0.1)

    def _descriptors(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())

    def resident(self) -> int:
        """Bytes of memory that are the process's own."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text(encoding="utf-8")
        line = next(line for line in rollup.splitlines() if line.startswith("Rss:"))
        return int(line.split()[1]) * 1024


@asynccontextmanager
async def standing(folder: Path, **environment: str) -> AsyncGenerator[Gateway]:
    """A gateway with two skills, before a model server of every kind by its kind's name, and one that is gone."""
    skills = folder / "skills"
    write_skill(skills, "canary", body="The share is 6 %.\n")
    write_skill(skills, "ledger", body="Count twice.\n")
    turns: deque[Turns] = deque()

    def answer(body: dict[str, Any]) -> ScriptedTurn:
        turn = turns.popleft()
        return turn(body) if callable(turn) else turn

    watch = folder / "watch"
    watch.mkdir()
    (watch / "sitecustomize.py").write_text(_WATCH.format(path=str(folder / "census")), encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(watch), os.environ.get("PYTHONPATH", "")]))
    shows: dict[str, Any] = {"scripted": {"capabilities": ["completion", "tools", "thinking"]}}
    async with ScriptedOpenAI([answer] * 100_000, shows=shows) as model:
        urls = {kind: model.url if kind in {"openai", "responses"} else model.root for kind in KINDS}
        upstreams = [f"--upstream={kind}={kind}:{url}" for kind, url in urls.items()]
        options = ("--skills-dir", str(skills), *upstreams, "--upstream=gone=http://127.0.0.1:9/v1")
        ports = ("--port", "0", "--ollama-port", "0")
        nothing = asyncio.subprocess.DEVNULL
        process = await start(
            "serve", "--json", *ports, *options, cwd=None, stdin=nothing, PYTHONPATH=path, **environment
        )
        assert process.stdout is not None
        assert process.stderr is not None
        said = json.loads(await process.stdout.readline())
        gateway = Gateway(Bases(url=said["url"], ollama_url=said["ollama_url"]), process, model, folder, turns)
        drain = asyncio.create_task(_drain(process.stderr, gateway.err))
        gateway.idle = await gateway.census()
        try:
            yield gateway
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(DEADLINE_S):
                await process.wait()
            await drain
    assert b"Traceback" not in gateway.err, gateway.err.decode()


async def _drain(stream: asyncio.StreamReader, into: bytearray) -> None:
    # A pipe that nobody reads would hold up who writes into it.
    while piece := await stream.read(64 * 1024):
        into += piece
