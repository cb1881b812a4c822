"""One command of a person under the policy of skills and models, to see what it makes of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from satchel.errors import SandboxError
from satchel.execution.certificates import OpenNetwork, open_network
from satchel.execution.environment import find_program, launch_paths, session_environment
from satchel.execution.lease import leased_workspace
from satchel.execution.workspace import ProducedFile, Workspace, changed_files, snapshot
from satchel.ports.execution import Executor, Launch, Network, Outcome

MAX_OUTPUT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """``command`` is a program and its arguments. ``workdir`` is where it runs and may write, "" for a scratch.

    ``workdir`` and ``readable`` are absolute and canonical.
    """

    command: tuple[str, ...]
    workdir: str = ""
    readable: tuple[str, ...] = ()
    has_network: bool = False
    deadline_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """``produced`` is what it left in the scratch, which is gone by now; () where it ran in a directory of its own."""

    outcome: Outcome
    produced: tuple[ProducedFile, ...] = ()


async def run_trial(executor: Executor, request: TrialRequest, *, host: Mapping[str, str] | None = None) -> Trial:
    """Runs it to its end or its deadline; cancelling kills everything that it started.

    Raises:
        SandboxError: launch-failed, also when there is no such program.
        OSError: there is no room for a scratch.
    """
    environ = dict(os.environ if host is None else host)
    async with leased_workspace(persistent=False) as workspace:
        launch = await asyncio.to_thread(_launch, request, workspace, environ)
        before = await asyncio.to_thread(snapshot, workspace)
        outcome = await executor.run(launch)
        produced = await asyncio.to_thread(changed_files, workspace, before)
    return Trial(outcome=outcome, produced=() if request.workdir else produced)


def _launch(request: TrialRequest, workspace: Workspace, host: Mapping[str, str]) -> Launch:
    cwd = request.workdir or workspace.work
    network = open_network(workspace, host) if request.has_network else OpenNetwork()
    environment = {**session_environment(workspace, host), **network.env, "PWD": cwd}
    name, *arguments = request.command
    program, needs = _program(name, workspace, environment)
    readable, writable = launch_paths(workspace, "script")
    return Launch(
        command=(program, *arguments),
        purpose="script",
        cwd=cwd,
        env=environment,
        readable=tuple(dict.fromkeys((*readable, *needs, *network.readable, *request.readable))),
        writable=tuple(dict.fromkeys((*writable, cwd))),
        network=Network(mode="open" if request.has_network else "none"),
        deadline_s=request.deadline_s,
        max_output_bytes=MAX_OUTPUT_BYTES,
    )


def _program(name: str, workspace: Workspace, environment: Mapping[str, str]) -> tuple[str, Sequence[str]]:
    if "/" in name or os.sep in name:
        return name, ()
    program, needs = find_program(name, workspace, environment)
    if not program:
        raise SandboxError(
            "launch-failed",
            f"There is no program {name} on the PATH of the sandbox.",
            hint="Name it with its path, and its directory with --read DIR when it lies outside the system's.",
        )
    return program, needs
