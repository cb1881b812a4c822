"""Runs launches under a backend as whoever starts it: launches come as JSON, outcomes go out as JSON.

Run as a program of its own, so that it can be another user, with the standard library and our package alone.
"""

# ruff: noqa: T201

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from satchel.errors import SandboxError
from satchel.ports.execution import Launch, Limits, Network
from satchel.sandbox.bubblewrap import BubblewrapExecutor
from satchel.sandbox.landlock import LandlockExecutor
from satchel.sandbox.namespaces import NamespaceExecutor
from satchel.sandbox.unconfined import UnconfinedExecutor

BACKENDS = {
    "bubblewrap": BubblewrapExecutor,
    "namespaces": NamespaceExecutor,
    "landlock": LandlockExecutor,
    "none": UnconfinedExecutor,
}


def launch_of(fields: dict[str, Any]) -> Launch:
    rest = {name: tuple(fields.pop(name)) for name in ("command", "readable", "writable") if name in fields}
    limits, network = Limits(**fields.pop("limits", {})), Network(mode=fields.pop("network", "none"))
    return Launch(purpose="script", limits=limits, network=network, **rest, **fields)


async def outcome_of(backend: str, fields: dict[str, Any]) -> dict[str, Any]:
    try:
        outcome = await BACKENDS[backend]().run(launch_of(fields))
    except SandboxError as error:
        return {"error": error.code, "message": error.message}
    return {
        "code": outcome.exit_code,
        "stopped": outcome.stopped,
        "out": outcome.stdout.text,
        "err": outcome.stderr.text,
    }


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps(asyncio.run(outcome_of(asked["backend"], asked["launch"]))))
