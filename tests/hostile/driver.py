"""Runs the whole table under one backend as whoever starts it: what is there comes as JSON, verdicts go out as JSON.

Run as a program of its own, so that it can be another user, with the standard library and our package alone.
"""

# ruff: noqa: T201

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from satchel.errors import SandboxError
from satchel.ports.execution import Captured, Confinement, Executor, Launch, Limits, Outcome
from satchel.sandbox.bubblewrap import PLACES, BubblewrapExecutor
from satchel.sandbox.landlock import LandlockExecutor
from satchel.sandbox.namespaces import NamespaceExecutor
from satchel.sandbox.unconfined import UnconfinedExecutor
from tests.hostile.attacks import ATTACKS, Ended

_LEFT_S = 0.1  # for what should be gone


class PlainChild:
    """No executor at all: how a program starts another one without a thought."""

    confinement = Confinement(backend="plain")
    can_run = True
    unavailable_reason = ""

    async def run(self, launch: Launch) -> Outcome:
        return await asyncio.to_thread(self._run, launch)

    def _run(self, launch: Launch) -> Outcome:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                launch.command,
                env=os.environ | dict(launch.env),
                cwd=launch.cwd,
                close_fds=False,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
            try:
                process.wait(launch.deadline_s)
            except subprocess.TimeoutExpired:
                process.terminate()
            texts: list[bytes] = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read())
        return Outcome(exit_code=process.poll(), stdout=Captured(head=texts[0]), stderr=Captured(head=texts[1]))


BACKENDS: dict[str, Callable[[], Executor | PlainChild]] = {
    "plain": PlainChild,
    "unconfined": UnconfinedExecutor,
    "bubblewrap": lambda: BubblewrapExecutor(next((path for path in PLACES if os.access(path, os.X_OK)), PLACES[0])),
    "namespaces": NamespaceExecutor,
    "landlock": LandlockExecutor,
}


def take_terminal() -> int:
    """A terminal of our own, whose input a child may try to write; the descriptor keeps it."""
    os.setsid()
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
    os.close(theirs)
    return ours


def hold_secret(text: str) -> int:
    """A file that a child finds open when nobody closes it."""
    handle = os.memfd_create("secret", 0)
    os.write(handle, text.encode())
    return handle


class Run:
    """One backend and what it is attacked with."""

    def __init__(self, backend: str, told: dict[str, Any]) -> None:
        self.executor = BACKENDS[backend]()
        self.is_watched = backend != "plain"
        self.told: dict[str, Any] = told | {"confined": backend not in {"plain", "unconfined"}}
        self.work, self.tmp = Path(told["work"]), Path(told["tmp"])

    def launch(self, command: tuple[str, ...], limits: dict[str, int], **more: Any) -> Launch:
        fields: dict[str, Any] = {"deadline_s": 30.0} | more
        return Launch(
            command=command,
            purpose="script",
            cwd=str(self.work),
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.work), "TMPDIR": str(self.tmp), "LANG": "C.UTF-8"},
            readable=(self.told["skill"],),
            writable=(str(self.work), str(self.tmp)),
            limits=Limits(**limits),
            **fields,
        )

    async def probe(self) -> dict[str, Any]:
        command = ("python3", "-I", "-S", f"{self.told['skill']}/probe.py", json.dumps(self.told))
        knocking = asyncio.ensure_future(self._knock())
        outcome = await self.executor.run(self.launch(command, {}, max_output_bytes=1024**2))
        knocking.cancel()
        if outcome.exit_code != 0:
            raise RuntimeError(outcome.output)
        return json.loads(outcome.stdout.text)

    async def _knock(self) -> None:
        """Connects to where the program says that it listens."""
        place = self.work / "port"
        while not place.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.02)
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", int(place.read_text()))
            writer.write(b"host")
            await writer.drain()
            writer.close()

    async def attacks(self, rows: list[str] | None) -> dict[str, Any]:
        verdicts: dict[str, Any] = {}
        for name, attack in ATTACKS.items():
            if rows is not None and name not in rows:
                continue
            marker = f"hostile-{secrets.token_hex(8)}"
            outcome = await self.executor.run(
                self.launch(
                    attack.command(marker, str(self.tmp), is_watched=self.is_watched), attack.limits, **attack.more
                )
            )
            await asyncio.sleep(_LEFT_S)
            ended = Ended(outcome=outcome, marker=marker, work=self.work, tmp=self.tmp)
            verdicts[name] = [attack.succeeded(ended), ended.said, round(outcome.duration_s, 3)]
            for folder in (self.work, self.tmp):
                await asyncio.to_thread(self._empty, folder)
        return verdicts

    @staticmethod
    def _empty(folder: Path) -> None:
        for top, folders, _ in os.walk(folder):
            for name in folders:
                Path(top, name).chmod(0o700)
        for entry in folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


async def main(backend: str, told: dict[str, Any], rows: list[str] | None) -> dict[str, Any]:
    run = Run(backend, told)
    reason = run.executor.unavailable_reason
    if not reason:
        try:
            await run.executor.run(run.launch(("/bin/true",), {}))
        except SandboxError as error:
            reason = error.message
    if reason:
        return {"unavailable": reason}
    held = [take_terminal(), hold_secret(told["secret"])]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    verdicts = await run.probe() | await run.attacks(rows)
    for descriptor in held:
        os.close(descriptor)
    return {"confinement": asdict(run.executor.confinement), "verdicts": verdicts}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps(asyncio.run(main(**asked))))
