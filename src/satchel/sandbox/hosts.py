"""A network that is narrowed to named hosts: the proxy runs for as long as the program that uses it."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from dataclasses import replace

from satchel.ports.execution import Confinement, Executor, Job, Launch, Network, Outcome, Shell
from satchel.sandbox.egress import EgressProxy, relay_command
from satchel.sandbox.outer import OuterJob
from satchel.sandbox.process import argument_vector
from satchel.scratch.roots import new_root, remove_root


class HostsExecutor(Executor):
    """An ``Executor`` that carries out ``Network(mode="hosts")`` over one that only can have no network at all."""

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
        if launch.network.mode != "hosts" or not launch.network.hosts:
            return await self._inner.start(launch)
        async with AsyncExitStack() as held:
            entering = asyncio.ensure_future(_with_way_out(launch, held))
            try:
                through = await asyncio.shield(entering)
            except asyncio.CancelledError:
                await asyncio.wait({entering})  # half of it could not be let go of
                raise
            job = await self._inner.start(through)
            return OuterJob(job, _ended_with(job, held.pop_all()))

    async def run(self, launch: Launch) -> Outcome:
        return await (await self.start(launch)).wait()


async def _ended_with(job: Job, held: AsyncExitStack) -> Outcome:
    async with held:
        return await job.wait()


async def _with_way_out(launch: Launch, held: AsyncExitStack) -> Launch:
    command = argument_vector(launch)
    folder, python = await asyncio.to_thread(_made)
    held.push_async_callback(asyncio.to_thread, remove_root, folder)
    proxy = await held.enter_async_context(
        EgressProxy(f"{folder}/proxy", launch.network.hosts, requires_global=launch.network.is_public)
    )
    return replace(
        launch,
        command=relay_command(proxy.socket_path, command),
        readable=tuple(dict.fromkeys((*launch.readable, folder, *python))),
        network=Network(),
    )


def _made() -> tuple[str, tuple[str, ...]]:
    """A new directory, nowhere that a program may write and with a short path, as a socket needs; what Python needs."""
    prefix = os.path.realpath(sys.base_prefix)
    folder = new_root("out")
    return folder, () if f"{prefix}/".startswith("/usr/") else (prefix,)
