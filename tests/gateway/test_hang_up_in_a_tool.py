"""A client that leaves while one of our tools runs stops the tool, on every surface, streamed or whole."""

from __future__ import annotations

import asyncio

import pytest

from satchel.skills.model import LoadedSkill, SkillRef
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.gateway.serving import Shelf, runtime_over, serving, soon
from tests.gateway.shelf import INVOICE
from tests.program.surfaces import SURFACES, Surface, body_of, hear


class SlowShelf(Shelf):
    """A shelf whose skills never come."""

    def __init__(self) -> None:
        super().__init__(INVOICE)
        self.entered = asyncio.Event()
        self.left = asyncio.Event()

    async def load(self, ref: SkillRef) -> LoadedSkill:
        self.entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()
        return await super().load(ref)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("surface", [surface for surface in SURFACES if not surface.on_second_port], ids=str)
async def test_hanging_up_stops_the_tool_that_runs(surface: Surface, stream: bool) -> None:
    shelf = SlowShelf()
    model = ScriptedModel([Reply(text=("Looking.",), calls=(call("skills_read", '{"skill": "invoice"}'),))])
    async with serving(runtime_over(model, shelf)) as base:
        client = asyncio.create_task(hear(base + surface.path, surface, body_of(surface, "m", stream=stream)))
        await soon(shelf.entered)
        assert not shelf.left.is_set()
        client.cancel()
        await soon(shelf.left)
        await asyncio.gather(client, return_exceptions=True)
    assert len(model.requests) == 1
