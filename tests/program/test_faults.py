"""Model servers that fail, and what each surface makes of it: a true error in its own form, at once, without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from satchel.testing.scripted_openai import ScriptedTurn, Stage, refuses
from tests.program.standing import GONE, KINDS, READ, Gateway, standing
from tests.program.surfaces import DEADLINE_S, SURFACES, Heard, Surface

pytestmark = pytest.mark.asyncio(loop_scope="session")

HALF = "Half an ans"
LOOKS = ScriptedTurn(text=("Looking.",), calls=(READ,))
SAID_BEFORE = "Looking.\n\n"


def _page(data: bytes, *, status: int = 200, media_type: str = "text/html") -> ScriptedTurn:
    """Bytes that are no answer of any format."""

    async def play(stage: Stage) -> None:
        await stage.open(media_type, status=status)
        await stage.write(data)

    return ScriptedTurn(play=play)


_HTML = b"<!doctype html>\n<html>\n\n<title>Welcome to nginx!</title>\n</html>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What the model server does, and what a client is told: ``status`` without a stream, ``text`` before the error.

    ``is_early`` faults strike before the model server has taken the request, so a stream has that status too.
    ``in_every_format``: the fault is one in every format of model servers.
    """

    turn: ScriptedTurn
    status: int = 502
    text: str = ""
    is_early: bool = False
    in_every_format: bool = True
    model: str = ""
    says: str = ""


FAULTS: Mapping[str, Fault] = {
    "refuses the connection": Fault(turn=ScriptedTurn(), is_early=True, model=GONE, in_every_format=False),
    "400": Fault(turn=refuses(400, "bad field"), status=400, is_early=True, says="bad field"),
    "401": Fault(turn=refuses(401, "no such key"), is_early=True, says="no such key"),
    "404": Fault(turn=refuses(404, "The model `x` does not exist"), status=404, is_early=True, says="does not exist"),
    "429": Fault(turn=refuses(429, "slow down", Retry_After="7"), status=429, is_early=True, says="slow down"),
    "500": Fault(turn=refuses(500, "out of memory"), is_early=True, says="out of memory"),
    "503": Fault(turn=refuses(503, "loading"), is_early=True, says="loading"),
    "a proxy's page for 502": Fault(turn=_page(_HTML, status=502), is_early=True),
    "a page in the place of an answer": Fault(turn=_page(_HTML)),
    "nothing at all": Fault(turn=_page(b"", media_type="text/event-stream")),
    "is cut": Fault(turn=ScriptedTurn(text=(HALF,), fault="cut"), text=HALF),
    "is reset": Fault(turn=ScriptedTurn(text=(HALF,), fault="reset"), text=HALF),
    "ends without an end": Fault(turn=ScriptedTurn(text=(HALF,), fault="end"), text=HALF),
    "garbage": Fault(turn=ScriptedTurn(text=(HALF,), fault="garbage"), text=HALF),
    "an error in the stream": Fault(
        turn=ScriptedTurn(chunks=({"error": {"message": "out of memory", "type": "server_error"}},)),
        in_every_format=False,
        says="out of memory",
    ),
    "an answer of another shape": Fault(turn=ScriptedTurn(chunks=({"choices": "none"},)), in_every_format=False),
    "half a call of ours": Fault(
        turn=ScriptedTurn(text=(HALF,), calls=(replace(READ, fragments=('{"skill": "ca',)),), fault="cut"),
        text=HALF,
        in_every_format=False,
    ),
}


def _is_told(heard: Heard, fault: Fault, *, status: int, text: str) -> None:
    assert (heard.status, heard.text, heard.is_ended) == (status, text, False), heard.raw
    assert heard.error, heard.raw
    assert fault.says in heard.error
    if status == 429:
        assert heard.headers["Retry-After"] == "7"
    assert "Traceback" not in heard.error


@pytest.mark.parametrize("surface", SURFACES, ids=str)
@pytest.mark.parametrize("name", FAULTS)
async def test_every_fault_is_a_true_error_in_the_form_of_the_surface(
    gateway: Gateway, surface: Surface, name: str
) -> None:
    fault = FAULTS[name]
    for kind in KINDS if fault.in_every_format else KINDS[:1]:
        gateway.next(fault.turn)
        streamed = await gateway.hear(surface, kind=kind, model=fault.model)
        # What fails before the first word still has a status where nothing goes out before it.
        is_status = fault.is_early or not (fault.text or surface.opens)
        _is_told(streamed, fault, status=fault.status if is_status else 200, text=fault.text)
        gateway.next(fault.turn)
        whole = await gateway.hear(surface, kind=kind, model=fault.model, stream=False)
        _is_told(whole, fault, status=fault.status, text="")
        assert len(gateway.model.requests) == (fault.model != GONE)


@pytest.mark.parametrize("surface", SURFACES, ids=str)
async def test_a_fault_in_the_second_round_is_told_in_the_stream(gateway: Gateway, surface: Surface) -> None:
    for name, fault in FAULTS.items():
        if fault.model == GONE:
            continue
        gateway.next(LOOKS, fault.turn)
        streamed = await gateway.hear(surface)
        _is_told(streamed, fault, status=200, text=(SAID_BEFORE + fault.text) if fault.text else "Looking.")
        gateway.next(LOOKS, fault.turn)
        whole = await gateway.hear(surface, stream=False)
        assert (name, whole.status) == (name, fault.status)
        assert len(gateway.model.requests) == 2


async def test_nothing_is_left_of_faults(gateway: Gateway) -> None:
    for surface in SURFACES:
        for fault in FAULTS.values():
            gateway.next(fault.turn)
            await gateway.hear(surface, model=fault.model)
    assert await gateway.settled() == gateway.idle


async def _silent(stage: Stage) -> None:
    await asyncio.Event().wait()


async def test_a_model_server_that_stalls_is_given_up(tmp_path_factory: pytest.TempPathFactory) -> None:
    stalls = ScriptedTurn(text=(HALF,), fault="stall")
    async with standing(tmp_path_factory.mktemp("stalls"), SATCHEL_UPSTREAM_SILENCE_S="1") as gateway:
        for turn, text, status in ((ScriptedTurn(play=_silent), "", 504), (stalls, HALF, 200)):
            gateway.next(*[turn] * 2 * len(SURFACES))
            heard = await asyncio.gather(
                *(gateway.hear(surface) for surface in SURFACES),
                *(gateway.hear(surface, stream=False) for surface in SURFACES),
            )
            streamed, whole = heard[: len(SURFACES)], heard[len(SURFACES) :]
            fault = Fault(turn=turn, says="did not answer in time")
            for answer in streamed:
                _is_told(answer, fault, status=status, text=text)
            for answer in whole:
                _is_told(answer, fault, status=504, text="")
            async with asyncio.timeout(DEADLINE_S):
                await asyncio.gather(*(seen.hung_up.wait() for seen in gateway.model.requests))
        assert await gateway.settled() == gateway.idle
