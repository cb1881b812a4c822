"""An end that is asked for: open answers are finished first, or cut off with a word when it is asked for twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from itertools import cycle, islice, product
from pathlib import Path

import pytest

from satchel.testing.scripted_openai import ScriptedTurn, Stage
from tests.program.program import refused
from tests.program.standing import READ, Gateway, standing
from tests.program.surfaces import DEADLINE_S, SURFACES, Body, Heard, Surface

STREAMS = 50
LOOKS = ScriptedTurn(text=("Looking.",), calls=(READ,))
TEXT = "Looking.\n\nThe share is 6 %."
Opened = tuple[Surface, Heard, asyncio.Task[Heard]]


def _held(go: asyncio.Event) -> ScriptedTurn:
    """A turn that stands still in the middle."""

    async def play(stage: Stage) -> None:
        turn = ScriptedTurn(text=("The share ", "is 6 %."))
        for message in stage.form.pieces(turn):
            await stage.send(message)
            if b"The share " in stage.form.frame(message):
                await go.wait()
        for message in stage.form.ending(turn):
            await stage.send(message)
        await stage.write(stage.form.end)

    return ScriptedTurn(play=play)


async def _open(gateway: Gateway, go: asyncio.Event, forms: Sequence[tuple[Surface, bool]]) -> list[Opened]:
    """A client for each, which has heard all that is said before the model server stands still."""
    held = _held(go)

    def answer(body: Body) -> ScriptedTurn:
        return held if body["messages"][-1]["role"] == "tool" else LOOKS

    gateway.next(*[answer] * 2 * len(forms))
    opened: list[Opened] = []
    for surface, stream in forms:
        heard = Heard()
        task = asyncio.create_task(gateway.hear(surface, stream=stream, heard=heard))
        opened.append((surface, heard, task))
    async with asyncio.timeout(DEADLINE_S):
        await gateway.model.wait_for_request(2 * len(forms))
    for (_, stream), (_, heard, _) in zip(forms, opened, strict=True):
        if stream:
            await heard.until(lambda heard: heard.text == "Looking.\n\nThe share ")
    return opened


async def _refuses_newcomers(gateway: Gateway) -> None:
    await refused(gateway.bases.url)
    await refused(gateway.bases.ollama_url)


async def test_fifty_open_answers_are_finished_before_the_end(tmp_path: Path) -> None:
    forms = list(islice(cycle(product(SURFACES, (True, True, False))), STREAMS))
    go = asyncio.Event()
    async with standing(tmp_path) as gateway:
        opened = await _open(gateway, go, forms)
        gateway.process.send_signal(signal.SIGTERM)
        await _refuses_newcomers(gateway)
        assert not any(task.done() for _, _, task in opened)
        go.set()
        await asyncio.gather(*(task for _, _, task in opened))
        async with asyncio.timeout(DEADLINE_S):
            assert await gateway.process.wait() == 0
    assert [(heard.text, heard.is_ended, heard.error) for _, heard, _ in opened] == [(TEXT, True, "")] * STREAMS


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_a_second_signal_ends_at_once_and_open_streams_are_told(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    forms = [*product(SURFACES, (True, False))]
    async with standing(tmp_path) as gateway:
        opened = await _open(gateway, asyncio.Event(), forms)
        gateway.process.send_signal(number)
        await _refuses_newcomers(gateway)
        gateway.process.send_signal(number)
        async with asyncio.timeout(DEADLINE_S):
            assert await gateway.process.wait() == code
        await asyncio.gather(*(task for _, _, task in opened))
    for surface, heard, _ in opened:
        assert not heard.is_ended, surface
        assert "shutting down" in heard.error, (surface, heard.raw)
