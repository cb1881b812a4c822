"""A request of a stateless surface has a working directory of its own, which is gone with it, however it ends."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from satchel.testing.scripted_model import ScriptedModel
from tests.gateway.benches import names, processes, shell, told, until, working
from tests.program.surfaces import SURFACES, Surface, body_of, hear

HERE = [surface for surface in SURFACES if not surface.on_second_port]
SLEEP = "sleep 77601"
LONGEST_S = 1.0  # from a hang-up to the end of its programs


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "base"


@pytest.mark.parametrize("surface", HERE, ids=str)
async def test_rounds_share_it_and_requests_do_not(surface: Surface, base: Path) -> None:
    model = ScriptedModel([*shell("echo 7 > x", "cat x"), *shell("cat x; ls -A")])
    async with working(model, base) as (url, _):
        for _ in range(2):
            heard = await hear(url + surface.path, surface, body_of(surface, "m", stream=False))
            assert heard.text == "Done."
            await until(lambda: names(base) == [])
    assert told(model.requests[2]).endswith("stdout:\n7")
    assert "No such file" in told(model.requests[-1])


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("surface", HERE, ids=str)
async def test_a_client_that_leaves_ends_its_program_at_once(surface: Surface, stream: bool, base: Path) -> None:
    model = ScriptedModel(shell(f"setsid {SLEEP} & {SLEEP}"))
    async with working(model, base) as (url, _):
        client = asyncio.create_task(hear(url + surface.path, surface, body_of(surface, "m", stream=stream)))
        await until(lambda: len(processes(SLEEP)) > 1)
        assert len(names(base)) == 1
        left = time.monotonic()
        client.cancel()
        await until(lambda: not processes(SLEEP))
        assert time.monotonic() - left < LONGEST_S
        await until(lambda: names(base) == [])
        await asyncio.gather(client, return_exceptions=True)


@pytest.mark.parametrize("surface", HERE, ids=str)
async def test_a_model_that_fails_after_a_run_leaves_nothing(surface: Surface, base: Path) -> None:
    model = ScriptedModel(shell(SLEEP, run_in_background="true")[:1])
    async with working(model, base) as (url, _):
        heard = await hear(url + surface.path, surface, body_of(surface, "m", stream=False))
        assert heard.error or heard.status >= 500
        await until(lambda: names(base) == [])
        assert processes(SLEEP) == []


@pytest.mark.parametrize("surface", HERE[:1], ids=str)
async def test_the_end_of_the_server_ends_what_runs(surface: Surface, base: Path) -> None:
    model = ScriptedModel(shell(SLEEP))
    async with working(model, base) as (url, _):
        client = asyncio.create_task(hear(url + surface.path, surface, body_of(surface, "m", stream=True)))
        await until(lambda: processes(SLEEP))
    assert processes(SLEEP) == []
    await asyncio.gather(client, return_exceptions=True)
