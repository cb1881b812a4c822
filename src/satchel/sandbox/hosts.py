"""Named hosts for a program without a network: the host's own proxy, reached through a socket that is bound inside."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from dataclasses import replace

from satchel.errors import SandboxError
from satchel.ports.execution import Confinement, Executor, Job, Launch, Network, Outcome, Shell
from satchel.sandbox.egress import EgressProxy, relay_command


class HostsExecutor:
    """An ``Executor`` that carries out ``Network(mode="hosts")`` over a backend that knows only all or nothing."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner

    @property
    def confinement(self) -> Confinement:
        return self._inner.confinement

    @property
    def shell(self) -> Shell | None:
        return self._inner.shell

    @property
    def unavailable_reason(self) -> str:
        return self._inner.unavailable_reason

    async def start(self, launch: Launch) -> Job:
        if launch.network.mode == "hosts":
            raise SandboxError("launch-failed", "A program that reaches named hosts is run to its end, not started.")
        return await self._inner.start(launch)

    async def run(self, launch: Launch) -> Outcome:
        if launch.network.mode != "hosts":
            return await self._inner.run(launch)
        if isinstance(launch.command, str):
            raise SandboxError("launch-failed", "A command line was given where a program and its arguments belong.")
        # Short: the path of a socket has some hundred bytes.
        folder = await asyncio.to_thread(_made)
        try:
            path = f"{folder}/egress.sock"
            async with EgressProxy(path, launch.network.hosts):
                through = replace(
                    launch,
                    command=relay_command(path, launch.command),
                    network=Network(),
                    readable=(*launch.readable, folder),
                )
                return await self._inner.run(through)
        finally:
            await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)))


def _made() -> str:
    return os.path.realpath(tempfile.mkdtemp(prefix="satchel-out-"))
