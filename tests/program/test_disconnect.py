"""A client that leaves ends what was done for it, whenever it leaves, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import cycle, islice, product

import pytest

from satchel.testing.scripted_openai import ScriptedTurn, SeenRequest, Stage
from tests.program.standing import KINDS, READ, Gateway
from tests.program.surfaces import DEADLINE_S, SURFACES, Heard, Surface

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _silent(stage: Stage) -> None:
    """Takes the request and does not even answer with a head."""
    await asyncio.Event().wait()


async def _says_one_word(stage: Stage) -> None:
    for message in stage.form.pieces(ScriptedTurn(text=("word",))):
        await stage.send(message)
    await asyncio.Event().wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a client leaves: when the model server has been asked so often, and the client has heard ``text``."""

    name: str
    turns: tuple[ScriptedTurn, ...]
    stream: bool = True
    text: str = ""

    def __str__(self) -> str:
        return self.name


_LOOKS = ScriptedTurn(text=("Looking.",), calls=(READ,))


def _plays(play: Callable[[Stage], Awaitable[None]]) -> ScriptedTurn:
    return ScriptedTurn(play=play)


MOMENTS = (
    Moment(name="before the first byte", turns=(_plays(_silent),)),
    Moment(name="in the middle", turns=(_plays(_says_one_word),), text="word"),
    Moment(name="between rounds", turns=(_LOOKS, _plays(_silent)), text="Looking."),
    Moment(name="in the second round", turns=(_LOOKS, _plays(_says_one_word)), text="Looking.\n\nword"),
    Moment(name="before a whole answer", turns=(_plays(_silent),), stream=False),
    Moment(name="while a whole answer is made", turns=(_LOOKS, _plays(_says_one_word)), stream=False),
)


async def leave(gateway: Gateway, surface: Surface, moment: Moment, kind: str = "openai") -> SeenRequest:
    """The last request of a client that left at the moment, seen by the model server to be given up."""
    gateway.next(*moment.turns)
    heard = Heard()
    client = asyncio.create_task(gateway.hear(surface, kind=kind, stream=moment.stream, heard=heard))
    async with asyncio.timeout(DEADLINE_S):
        seen = await gateway.model.wait_for_request(len(moment.turns))
        await heard.until(lambda heard: heard.text == moment.text)
        assert not seen.hung_up.is_set()
        client.cancel()
        await asyncio.gather(client, return_exceptions=True)
        await seen.hung_up.wait()
    return seen


@pytest.mark.parametrize("moment", MOMENTS, ids=str)
@pytest.mark.parametrize("surface", SURFACES, ids=str)
async def test_hanging_up_is_seen_by_the_model_server(gateway: Gateway, surface: Surface, moment: Moment) -> None:
    await leave(gateway, surface, moment)
    asked = len(gateway.model.requests)
    gateway.next(ScriptedTurn(text=("still here",)))
    assert (await gateway.hear(surface)).text == "still here"
    assert (asked, len(gateway.model.requests)) == (len(moment.turns), 1)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_model_server_of_every_kind_sees_it(gateway: Gateway, kind: str) -> None:
    for surface, moment in zip(SURFACES, cycle(MOMENTS), strict=False):
        await leave(gateway, surface, moment, kind)


async def test_fifty_that_hang_up_leave_no_task_and_no_descriptor(gateway: Gateway) -> None:
    for surface, moment in islice(cycle(product(SURFACES, MOMENTS)), 50):
        await leave(gateway, surface, moment)
    assert await gateway.settled() == gateway.idle
