"""Scripts that hang, fork, flood and fill run for several clients at once, and nothing is left of any of them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.program.program import PATIENCE_S, variables

LOAD = Path(__file__).resolve().parents[2] / "benchmarks" / "running.py"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux tells")


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])
async def test_a_load_of_misbehaving_scripts_leaves_nothing(backend: str) -> None:
    options = ("--clients", "8", "--seconds", "3", "--backend", backend, "--untimed")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        LOAD,
        *options,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=variables(),
    )
    async with asyncio.timeout(PATIENCE_S):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    assert said.decode().startswith(f"{backend}: 8 clients")
