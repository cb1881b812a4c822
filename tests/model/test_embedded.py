"""The real embedded model under the real loop: what it finds, and that it stops, stays silent and keeps its word."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from satchel.chat.events import ModelCall, ModelDone, ModelEvent, ModelText
from satchel.chat.messages import message
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy, ToolSpec
from satchel.engine.events import ToolFinished
from satchel.errors import UpstreamError
from satchel.evals.exam import Question, make_exam
from satchel.ports.models import EmbeddedOptions
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.skills.model import MANIFEST
from satchel.upstream.embedded import weights
from satchel.upstream.embedded.guided import EmbeddedClient
from tests.support import ask, collect, runtime_over, text_of

pytestmark = [pytest.mark.model, pytest.mark.timeout(1200)]

SEED = int(os.environ.get("EXAM_SEED", "7"))
QUESTIONS, DEEP, PLAIN = 10, 3, 5
MIN_ANSWERS, MIN_FOLLOWED, MAX_NEEDLESS = 7, 2, 1


@pytest.fixture(scope="module")
def options() -> EmbeddedOptions:
    """The large model, fetched when it is not in the cache."""
    wanted = EmbeddedOptions(weights="large")
    path = asyncio.run(weights.fetch(wanted, UnconfinedExecutor(), lambda *step: None, environ=os.environ))
    return replace(wanted, weights=str(path))


@pytest.fixture
async def model(options: EmbeddedOptions) -> AsyncGenerator[EmbeddedClient]:
    client = EmbeddedClient(options, environ={})
    yield client
    await client.aclose()


async def events_of(client: EmbeddedClient, request: ChatRequest) -> tuple[list[ModelEvent], ModelDone]:
    async with client.stream(request) as stream:
        events = [event async for event in stream]
    done = events[-1]
    assert isinstance(done, ModelDone)
    return events, done


def chat(text: str, **changes: object) -> ChatRequest:
    return ChatRequest(messages=(message("user", text),), **changes)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one question led to."""

    question: Question
    reads: tuple[tuple[str, str], ...]
    answer: str

    @property
    def is_right_skill(self) -> bool:
        return any(skill == self.question.skill for skill, _ in self.reads)

    @property
    def is_answered(self) -> bool:
        """A guess that happens to be right does not count."""
        return self.is_right_skill and self.question.is_answered_by(self.answer)

    @property
    def is_followed(self) -> bool:
        """Whether the manifest was read, then the file that it points to, then nothing more."""
        skill = self.question.skill
        return self.question.path != MANIFEST and self.reads == ((skill, MANIFEST), (skill, self.question.path))

    def __str__(self) -> str:
        wanted = f"{self.question.skill}/{self.question.path} {self.question.expected}"
        return f"{self.question.text} | {wanted} | read {self.reads} | {self.answer[:100]!r}"


async def sit(client: EmbeddedClient, root: Path, question: Question) -> Outcome:
    request = ask(question.text)
    runtime = runtime_over(client, root)
    events, _ = await collect(runtime, replace(request, chat=replace(request.chat, model="")))
    reads = tuple((event.skill, event.path) for event in events if isinstance(event, ToolFinished))
    return Outcome(question=question, reads=reads, answer=text_of(events))


async def test_answers_that_only_the_skills_can_give(model: EmbeddedClient, tmp_path: Path) -> None:
    exam = make_exam(SEED)
    await asyncio.to_thread(exam.write, tmp_path)
    outcomes = [await sit(model, tmp_path, question) for question in exam.questions]
    plain = [await sit(model, tmp_path, question) for question in exam.plain]
    right_skill = sum(outcome.is_right_skill for outcome in outcomes)
    answered = [outcome for outcome in outcomes if outcome.is_answered]
    needless = [outcome for outcome in plain if outcome.reads]
    followed = [outcome for outcome in outcomes if outcome.is_followed]
    missed = [outcome for outcome in outcomes if outcome not in answered]
    counts = f"seed {SEED}: right skill {right_skill}/{QUESTIONS}, answers {len(answered)}/{QUESTIONS}, "
    counts += f"references followed {len(followed)}/{DEEP}, needless {len(needless)}/{PLAIN}"
    print("", counts, *(f"  {outcome}" for outcome in (*missed, *needless)), sep="\n")  # noqa: T201
    assert len(answered) >= MIN_ANSWERS, counts
    assert len(needless) <= MAX_NEEDLESS, counts
    assert len(followed) >= MIN_FOLLOWED, counts


async def test_same_request_gives_the_same_text_and_counts_its_tokens(model: EmbeddedClient) -> None:
    request = chat("Count from one to five in words.")
    first, done = await events_of(model, request)
    _, again = await events_of(model, request)
    assert done.message.text == again.message.text
    assert done.message.text == "".join(event.text for event in first if isinstance(event, ModelText))
    assert done.finish == "stop"
    assert done.usage is not None
    assert again.usage is not None
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (
        again.usage.prompt_tokens,
        again.usage.completion_tokens,
    )
    assert again.usage.cached_tokens > 0


async def test_spent_budget_is_a_length(model: EmbeddedClient) -> None:
    _, done = await events_of(model, chat("Count from one to fifty.", max_tokens=4))
    assert done.finish == "length"
    assert done.usage is not None
    assert done.usage.completion_tokens == 4


async def test_leaving_the_block_frees_the_engine_for_the_next(model: EmbeddedClient) -> None:
    await events_of(model, chat("Say yes.", max_tokens=2))
    async with model.stream(chat("Write a very long story. " * 40, max_tokens=900)) as stream:
        await anext(stream)
    async with asyncio.timeout(60):
        _, done = await events_of(model, chat("Say yes.", max_tokens=2))
    assert done.message.text


async def test_requests_wait_for_each_other_and_a_cancelled_one_leaves_the_queue(model: EmbeddedClient) -> None:
    tasks = [asyncio.ensure_future(events_of(model, chat(f"Say {word}.", max_tokens=3))) for word in ("a", "b", "c")]
    await asyncio.sleep(0)
    tasks[1].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[1], asyncio.CancelledError)
    assert isinstance(results[0], tuple)
    assert isinstance(results[2], tuple)


async def test_closing_breaks_off_an_open_answer(options: EmbeddedOptions) -> None:
    client = EmbeddedClient(options, environ={})
    async with client.stream(chat("Write a very long story.", max_tokens=900)) as stream:
        await anext(stream)
        await client.aclose()
        with pytest.raises(UpstreamError):
            async for _ in stream:
                pass


async def test_cancelling_while_it_loads(options: EmbeddedOptions) -> None:
    client = EmbeddedClient(options, environ={})
    task = asyncio.ensure_future(events_of(client, chat("Say yes.", max_tokens=2)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    _, done = await events_of(client, chat("Say yes.", max_tokens=2))
    assert done.message.text
    await client.aclose()


async def test_conversation_beyond_the_window_is_said(options: EmbeddedOptions) -> None:
    client = EmbeddedClient(replace(options, context_tokens=512), environ={})
    with pytest.raises(UpstreamError) as caught:
        await events_of(client, chat("word " * 2000))
    assert caught.value.code == "context-overflow"
    assert caught.value.hint
    await client.aclose()


async def test_forced_tool_gets_arguments_that_fit_its_schema(model: EmbeddedClient) -> None:
    weather = ToolSpec(
        name="get_weather",
        description="The weather of a town.",
        parameters={"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    )
    policy = ToolPolicy(mode="named", name="get_weather")
    events, done = await events_of(model, chat("How is the weather in Lisbon?", tools=(weather,), tool_choice=policy))
    assert done.finish == "tool_calls"
    (use,) = done.message.tool_uses
    assert use.name == "get_weather"
    assert "lisbon" in json.loads(use.arguments)["town"].lower()
    assert [event.arguments for event in events if isinstance(event, ModelCall)] == [use.arguments]


async def test_engine_writes_nothing_to_the_terminal(
    options: EmbeddedOptions, capfd: pytest.CaptureFixture[str]
) -> None:
    client = EmbeddedClient(options, environ={})
    await events_of(client, chat("Say yes.", max_tokens=2, sampling=Sampling(temperature=0.7, seed=3)))
    await client.aclose()
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
