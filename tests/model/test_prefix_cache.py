"""The cache of a real llama.cpp server, seen through the ordinary client: what stands in front is computed once."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.chat.capabilities import ModelCapabilities, ModelInfo
from satchel.chat.events import ModelCall, ModelDone, ModelEvent, Usage
from satchel.chat.messages import Message, message
from satchel.chat.request import Caller, ChatRequest, Sampling
from satchel.engine.request import TurnRequest
from satchel.engine.runtime import Runtime
from satchel.ports.models import EmbeddedOptions, ModelClient, UpstreamOptions
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.testing.scripted_model import call
from satchel.upstream.embedded import weights
from satchel.upstream.embedded.server import start_server
from satchel.upstream.openai_chat import OpenAIChatClient
from tests.support import ask, collect, runtime_over, write_skill

pytestmark = [pytest.mark.model, pytest.mark.timeout(1200)]

MOST_LOST = 8
"""Tokens at the end of a prompt that may be computed again: the last one always is, and a template may turn the end of
a turn in another way once the turn is history."""
WORDS = ("tide", "kiln", "orchard", "ledger", "signal", "harbor", "quarry", "loom")


class Reading:
    """The real server, but the first answer to a question is a call to read a skill, as a larger model would make it."""

    def __init__(self, real: ModelClient, read: str) -> None:
        self._real = real
        self._read = read
        self.usages: list[Usage] = []

    async def models(self, caller: Caller = Caller()) -> tuple[ModelInfo, ...]:
        return await self._real.models(caller)

    async def capabilities(self, model: str, caller: Caller = Caller()) -> ModelCapabilities:
        del model, caller
        return ModelCapabilities()

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent], None]:
        async with self._real.stream(replace(request, max_tokens=2)) as events:
            yield self._played(events, is_first=request.messages[-1].role == "user")

    async def _played(self, events: AsyncIterator[ModelEvent], *, is_first: bool) -> AsyncGenerator[ModelEvent, None]:
        async for event in events:
            if not isinstance(event, ModelDone):
                continue
            assert event.usage is not None
            self.usages.append(event.usage)
            said = message("assistant", "So it is.")
            if not is_first or not self._read:
                yield replace(event, finish="stop", message=said)
                return
            use = call("skills_read", json.dumps({"skill": self._read, "path": "SKILL.md"}))
            yield ModelCall(index=0, call_id=use.call_id, name=use.name, arguments=use.arguments)
            yield replace(event, finish="tool_calls", message=Message(role="assistant", parts=(use,)))

    async def aclose(self) -> None:
        return


@pytest.fixture(scope="module")
def options() -> EmbeddedOptions:
    wanted = EmbeddedOptions(weights="large")
    path = asyncio.run(weights.fetch(wanted, UnconfinedExecutor(), lambda *step: None, environ=os.environ))
    return replace(wanted, weights=str(path), context_tokens=4096)


@pytest.fixture
async def server(options: EmbeddedOptions) -> AsyncGenerator[OpenAIChatClient]:
    engine = await start_server(Path(options.weights), options)
    client = OpenAIChatClient(UpstreamOptions(url=engine.url, api_key=engine.key))
    yield client
    await client.aclose()
    await engine.aclose()


def question(*names: str, text: str = "When is high water?") -> TurnRequest:
    return ask(text, skills=names, sampling=Sampling(temperature=0.0, seed=1))


async def usages(runtime: Runtime, model: Reading, request: TurnRequest) -> list[Usage]:
    before = len(model.usages)
    await collect(runtime, request)
    return model.usages[before:]


async def test_what_stands_in_front_is_computed_once(server: OpenAIChatClient, tmp_path: Path) -> None:
    for word in WORDS:
        write_skill(tmp_path, word, body=f"The word for {word} is {word[::-1]}.\n" * 12)
    silent = Reading(server, "")
    runtime = runtime_over(silent, tmp_path)
    names = ("tide", "kiln", "loom")

    (cold,) = await usages(runtime, silent, question(*names))
    (same,) = await usages(runtime, silent, question(*names))
    (permuted,) = await usages(runtime, silent, question(*names[::-1]))
    reader = Reading(server, "tide")
    first, second = await usages(runtime_over(reader, tmp_path), reader, question(*names))
    (other,) = await usages(runtime, silent, question(*names, text="And the kiln?"))

    table = {
        "cold": cold,
        "same": same,
        "permuted": permuted,
        "round 1": first,
        "round 2": second,
        "other question": other,
    }
    for name, usage in table.items():
        print(f"{name:>15}: prompt {usage.prompt_tokens:>5}, cached {usage.cached_tokens:>5}")  # noqa: T201
    assert cold.prompt_tokens > 300
    assert same.prompt_tokens == permuted.prompt_tokens == cold.prompt_tokens
    assert same.cached_tokens >= cold.prompt_tokens - MOST_LOST
    assert permuted.cached_tokens >= cold.prompt_tokens - MOST_LOST
    assert other.cached_tokens >= cold.prompt_tokens - 40
    assert first.cached_tokens >= cold.prompt_tokens - MOST_LOST
    assert second.prompt_tokens > first.prompt_tokens + 50
    assert second.cached_tokens >= first.prompt_tokens - MOST_LOST
