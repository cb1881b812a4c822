"""``satchel sandbox``: a command of yours under the policy that holds for skills and models."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from satchel.cli.allowed import confined_by, shape
from satchel.cli.console import bytes_text, line, print_json, say
from satchel.cli.options import Json, SandboxOptions, settings_from
from satchel.errors import SandboxError, SetupError
from satchel.execution.options import refusal
from satchel.execution.results import how_it_ended
from satchel.execution.trial import Trial, TrialRequest, run_trial
from satchel.execution.workspace import MOST_SHOWN
from satchel.ports.execution import Captured, Confinement, Outcome
from satchel.settings import Settings
from satchel.wiring.sandbox import find_sandbox

_TIMED_OUT = 124
_KILLED = 137


def sandbox(
    *command: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="The program and its arguments, behind --. Try what should fail: "
            "satchel sandbox -- cat ~/.ssh/id_ed25519",
        ),
    ],
    workdir: Annotated[
        str | None,
        Parameter(
            name="--workdir",
            help="Where it runs and may write; without it an empty directory that is removed afterwards.",
        ),
    ] = None,
    read: Annotated[
        tuple[str, ...],
        Parameter(name="--read", help="A file or directory that it may read, at the same path; repeat it for several."),
    ] = (),
    network: Annotated[bool, Parameter(name="--network", help="Let it reach the network.")] = False,
    timeout: Annotated[
        float, Parameter(name="--timeout", validator=Number(gt=0, lte=86400), help="Seconds until it is killed (60).")
    ] = 60.0,
    options: SandboxOptions = SandboxOptions(),
    json: Json = False,
) -> int:
    """Run a command in the sandbox that scripts of skills and commands of models get, and see what it can do.

    Its output is shown when it has ended, and its exit code is this command's; 124 when its time was up, 137 when it
    was killed for what it used.
    """
    if not command or not command[0].strip():
        raise SetupError(
            "setting-invalid", "There is no command to run.", hint="satchel sandbox -- python3 -c 'print(1)'"
        )
    if command[0].startswith("-"):
        # It would be looked for as a program, and what it was meant to change would not be.
        raise SetupError(
            "setting-invalid",
            f"{command[0]} is no option of satchel sandbox.",
            hint="satchel sandbox --help shows its options; the program comes after --.",
        )
    settings = settings_from(options)
    request = TrialRequest(
        command=command,
        workdir=_existing(workdir, "--workdir", is_directory=True) if workdir else "",
        readable=tuple(_existing(path, "--read") for path in read),
        has_network=network,
        deadline_s=timeout,
    )
    trial, confinement = asyncio.run(_run(settings, request))
    if json:
        print_json(_shape(trial, confinement))
    else:
        _print(trial, confinement)
    return _code(trial.outcome)


async def _run(settings: Settings, request: TrialRequest) -> tuple[Trial, Confinement]:
    executor = (await find_sandbox(settings.execution)).executor
    reason = refusal(executor, settings.execution.sandbox)
    if reason:
        raise SandboxError(
            "sandbox-unavailable",
            reason,
            hint="satchel doctor says how to get a sandbox; --skills-sandbox preferred does with what there is.",
        )
    return await run_trial(executor, request), executor.confinement


def _existing(given: str, flag: str, *, is_directory: bool = False) -> str:
    path = os.path.realpath(os.path.expanduser(given))  # noqa: PTH111 - plain strings, as paths of launches are
    if not (os.path.isdir(path) if is_directory else os.path.exists(path)):  # noqa: PTH110, PTH112
        what = "is not a directory" if is_directory else "does not exist"
        raise SetupError("setting-invalid", f"{given} {what}.", hint=f"Check {flag}.", data={"path": given})
    return path


def _print(trial: Trial, confinement: Confinement) -> None:
    """The streams as they were, byte by byte, then one line about them."""
    outcome = trial.outcome
    sys.stdout.flush()
    sys.stdout.buffer.write(_bytes(outcome.stdout))
    sys.stdout.buffer.flush()
    sys.stderr.flush()
    errors = _bytes(outcome.stderr)
    sys.stderr.buffer.write(errors if errors.endswith(b"\n") or not errors else errors + b"\n")
    sys.stderr.buffer.flush()
    said = f"sandbox: {how_it_ended(outcome)}, {confined_by(confinement)}"
    if trial.produced:
        files = ", ".join(f"{file.path} ({bytes_text(file.bytes)})" for file in trial.produced[:MOST_SHOWN])
        if len(trial.produced) > MOST_SHOWN:
            files += f" and {len(trial.produced) - MOST_SHOWN} more"
        said += f"; wrote {files}, gone now (--workdir DIR keeps what is written)"
    say(line(said))


def _bytes(captured: Captured) -> bytes:
    return captured.text.encode() if captured.dropped_bytes else captured.head + captured.tail


def _code(outcome: Outcome) -> int:
    if outcome.exit_code is not None:
        return outcome.exit_code
    return _TIMED_OUT if outcome.stopped == "deadline" else _KILLED


def _shape(trial: Trial, confinement: Confinement) -> dict[str, object]:
    outcome = trial.outcome
    return {
        "exit_code": outcome.exit_code,
        "stopped": outcome.stopped,
        "duration_s": round(outcome.duration_s, 3),
        "stdout": outcome.stdout.text,
        "stderr": outcome.stderr.text,
        "produced": [asdict(file) for file in trial.produced],
        "confinement": shape(confinement),
    }
