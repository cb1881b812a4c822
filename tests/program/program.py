"""The installed program as a person or an operator starts it: a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PROGRAM = Path(sys.executable).parent / "satchel"
PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[Any]:
        """Stdout as one JSON object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


def variables(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SATCHEL_")}
    return {**kept, **more}


async def start(
    *arguments: str, cwd: Path | None = None, stdin: int = asyncio.subprocess.DEVNULL, **environment: str
) -> asyncio.subprocess.Process:
    """The running program, with its two outputs as pipes."""
    return await asyncio.create_subprocess_exec(
        PROGRAM,
        *arguments,
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env=variables(**environment),
    )


async def satchel(*arguments: str, given: str = "", cwd: Path | None = None, **environment: str) -> Ended:
    """Runs the program to its end."""
    process = await start(*arguments, cwd=cwd, stdin=asyncio.subprocess.PIPE, **environment)
    async with asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate(given.encode())
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def redirected(redirection: str, *arguments: str, cwd: Path | None = None, **environment: str) -> Ended:
    """The same, started by a shell that redirects streams first, such as ``>&-``. Standard input is empty."""
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        f'exec "$0" "$@" {redirection}',
        PROGRAM,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env=variables(**environment),
    )
    async with asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


def at_import(folder: Path, module: str, action: str) -> str:
    """A ``PYTHONPATH`` that makes the program do ``action`` (Python) when it first looks for ``module``."""
    (folder / "sitecustomize.py").write_text(
        f"""import os, signal, sys
class Hook:
    seen = False
    def find_spec(self, name, path=None, target=None):
        if name == {module!r} and not self.seen:
            Hook.seen = True
            {action}
sys.meta_path.insert(0, Hook())
""",
        encoding="utf-8",
    )
    return str(folder)


@asynccontextmanager
async def serving(*arguments: str, **environment: str) -> AsyncGenerator[tuple[str, asyncio.subprocess.Process]]:
    """``satchel serve`` on a free port: its base URL, as it says it, and the process."""
    process = await start(
        "serve", "--port", "0", "--json", *arguments, cwd=None, stdin=asyncio.subprocess.DEVNULL, **environment
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            line = await process.stdout.readline()
        said: Mapping[str, str] = json.loads(line) if line else {}
        assert said.get("event") == "listening", (
            line,
            (await process.stderr.read() if process.stderr else b"").decode(),
        )
        yield said["url"], process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                await process.communicate()


async def refused(url: str) -> None:
    """Returns when nobody listens there any more."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
            except ConnectionError:
                return
            writer.close()
            await asyncio.sleep(0.02)
