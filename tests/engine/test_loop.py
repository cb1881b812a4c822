"""What keeps the loop right whatever a model does: ids, one call at a time, empty replies, budgets of failure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.events import ModelCall, ModelDone, ModelEvent, ModelText, Usage
from satchel.chat.messages import Message, Reasoning, Text, ToolOutput, ToolUse, message
from satchel.chat.request import ChatRequest, Sampling, ToolPolicy
from satchel.engine.events import CallDelta, RoundFinished, TextDelta, ToolFinished, TurnEvent
from satchel.engine.limits import LoopLimits
from satchel.errors import UpstreamError
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.support import ask, collect, runtime_over, text_of, write_skill

READ = '{"skill": "pdf", "path": "SKILL.md"}'
LOOKS = Reply(calls=(call("skills_read", READ, "own"),))
EMPTY = Reply()


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path, "pdf", body="Secret word: OKAPI.\n", files={"a.md": "A", "b.md": "B"})
    return tmp_path


def outputs(request: ChatRequest) -> list[ToolOutput]:
    return [part for said in request.messages for part in said.parts if isinstance(part, ToolOutput)]


def ids(request: ChatRequest) -> list[str]:
    return [use.call_id for said in request.messages for use in said.tool_uses]


def shown(events: list[TurnEvent]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((event.call_id, event.name) for event in events if isinstance(event, CallDelta)))


# -- ids ---------------------------------------------------------------------------------------------------------------


async def test_an_id_that_comes_again_in_a_later_round_is_made_new(skills: Path) -> None:
    again = Reply(calls=(call("skills_read", '{"skill": "pdf", "path": "a.md"}', "own"),))
    model = ScriptedModel([LOOKS, again, Reply(text=("ok",))])
    await collect(runtime_over(model, skills), ask())
    first, second = ids(model.requests[2])
    assert first == "own"
    assert second not in {"own", ""}
    assert [part.call_id for part in outputs(model.requests[2])] == [first, second]
    # What was sent once stays: the id was made when the call came.
    assert ids(model.requests[1]) == ["own"]


async def test_one_id_for_two_calls_and_no_id_at_all(skills: Path) -> None:
    calls = (
        ToolUse(call_id="x", name="weather", arguments='{"city": "A"}'),
        ToolUse(call_id="x", name="weather", arguments='{"city": "B"}'),
        ToolUse(call_id="", name="weather", arguments='{"city": "C"}'),
        ToolUse(call_id="x", name="skills_read", arguments=READ),
    )
    model = ScriptedModel([Reply(calls=calls)])
    events, done = await collect(runtime_over(model, skills), ask(tools=("weather",)))
    made = [use.call_id for use in done.client_calls]
    assert made[0] == "x"
    assert len({*made, ""}) == 4
    assert [call_id for call_id, _ in shown(events)] == made
    for use in done.client_calls:
        fragments = (event for event in events if isinstance(event, CallDelta) and event.call_id == use.call_id)
        assert "".join(event.arguments for event in fragments) == use.arguments
    assert {event.index for event in events if isinstance(event, CallDelta)} == {0, 1, 2}
    assert outputs_of(done.transcript)[0].call_id == done.transcript[0].tool_uses[3].call_id


def outputs_of(messages: tuple[Message, ...]) -> list[ToolOutput]:
    return [part for said in messages for part in said.parts if isinstance(part, ToolOutput)]


async def test_an_id_of_the_clients_own_history_is_not_used_again(skills: Path) -> None:
    asked = ask(tools=("weather",))
    history = (
        message("user", "a"),
        Message(role="assistant", parts=(ToolUse(call_id="call_0", name="weather", arguments="{}"),)),
        Message(role="tool", parts=(ToolOutput(call_id="call_0", text="Rain."),)),
    )
    model = ScriptedModel([Reply(calls=(call("weather", "{}", "call_0"),))])
    events, done = await collect(
        runtime_over(model, skills), replace(asked, chat=replace(asked.chat, messages=history))
    )
    assert done.client_calls[0].call_id != "call_0"
    assert shown(events) == [(done.client_calls[0].call_id, "weather")]


# -- one call at a time --------------------------------------------------------------------------------------------------


async def test_one_call_at_a_time_answers_the_first_and_refuses_the_others(skills: Path) -> None:
    calls = (
        call("skills_read", READ, "a"),
        call("skills_read", '{"skill": "pdf", "path": "a.md"}', "b"),
        call("weather", "{}", "c"),
    )
    model = ScriptedModel([Reply(calls=calls), Reply(text=("ok",))])
    events, done = await collect(runtime_over(model, skills), ask(tools=("weather",), one_call=True))
    assert [request.one_call for request in model.requests] == [True, True]
    ended = {event.call_id: event.ok for event in events if isinstance(event, ToolFinished)}
    assert ended == {"a": True, "b": False, "c": False}
    told = outputs(model.requests[1])
    assert [part.call_id for part in told] == ["a", "b", "c"]
    assert "one tool call at a time" in told[1].text
    assert "one tool call at a time" in told[2].text
    assert shown(events) == []
    assert (done.client_calls, done.finish) == ((), "stop")


async def test_one_call_at_a_time_hands_back_one_of_the_clients(skills: Path) -> None:
    calls = (call("weather", "{}", "c"), call("weather", "{}", "d"), call("skills_read", READ, "a"))
    model = ScriptedModel([Reply(calls=calls)])
    events, done = await collect(runtime_over(model, skills), ask(tools=("weather",), one_call=True))
    assert shown(events) == [("c", "weather")]
    assert [use.call_id for use in done.client_calls] == ["c"]
    assert [event.ok for event in events if isinstance(event, ToolFinished)] == [False, False]
    assert {part.call_id for part in outputs_of(done.transcript)} == {"d", "a"}


async def test_one_call_at_a_time_without_tools_of_ours_is_the_servers_business(skills: Path) -> None:
    calls = (call("weather", "{}", "c"), call("weather", "{}", "d"))
    model = ScriptedModel([Reply(calls=calls)])
    _, done = await collect(runtime_over(model, skills), ask(tools=("weather",), discovery=False, one_call=True))
    assert len(done.client_calls) == 2


# -- empty replies -------------------------------------------------------------------------------------------------------


async def test_an_empty_reply_after_a_read_is_asked_for_once_more(skills: Path) -> None:
    model = ScriptedModel([LOOKS, EMPTY, Reply(text=("OKAPI",))])
    events, done = await collect(runtime_over(model, skills), ask())
    assert text_of(events) == "OKAPI"
    assert model.requests[2].messages[:-1] == model.requests[1].messages
    urged = model.requests[2].messages[-1]
    assert urged.role == "user"
    assert "empty" in urged.text
    assert [tool.name for tool in model.requests[2].tools] == [tool.name for tool in model.requests[0].tools]
    assert done.rounds == 3
    assert not any(said.role == "assistant" and not said.parts for said in done.transcript)


async def test_a_reply_that_stays_empty_is_told_honestly(skills: Path) -> None:
    model = ScriptedModel([LOOKS, EMPTY, EMPTY, EMPTY])
    events, done = await collect(runtime_over(model, skills), ask())
    assert len(model.requests) == 3
    assert text_of(events) == "[The model gave no answer after its tool calls.]"
    assert (done.finish, done.hit_round_limit) == ("stop", False)
    assert done.transcript[-1].text == text_of(events)


async def test_an_empty_reply_without_a_read_is_the_models_own(skills: Path) -> None:
    model = ScriptedModel([EMPTY])
    events, done = await collect(runtime_over(model, skills), ask())
    assert (text_of(events), done.rounds) == ("", 1)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_reply_that_was_cut_is_not_urged(skills: Path, finish: str) -> None:
    model = ScriptedModel([LOOKS, Reply(reasoning=("long",), finish=finish)])  # pyright: ignore[reportArgumentType]
    events, done = await collect(runtime_over(model, skills), ask())
    assert (len(model.requests), done.finish, text_of(events)) == (2, finish, "")


# -- budgets -------------------------------------------------------------------------------------------------------------


async def test_eight_rounds_and_one_without_our_tools_is_all_there_is(skills: Path) -> None:
    model = ScriptedModel([LOOKS] * 20)
    events, done = await collect(runtime_over(model, skills), ask(tools=("weather",)))
    assert len(model.requests) == 9
    assert [tool.name for tool in model.requests[8].tools] == ["weather"]
    assert (done.rounds, done.hit_round_limit, done.finish) == (9, True, "stop")
    assert text_of(events).startswith("[This answer ran out of its tool-call budget of 8 rounds")
    assert len(done.usage_by_round) == 9
    assert done.usage == Usage(prompt_tokens=90, completion_tokens=45)


async def test_the_clients_calls_ride_out_of_the_last_round(skills: Path) -> None:
    model = ScriptedModel([LOOKS, Reply(calls=(call("skills_read", READ, "z"), call("weather", "{}", "w")))])
    events, done = await collect(runtime_over(model, skills, limits=LoopLimits(max_rounds=1)), ask(tools=("weather",)))
    assert ([use.call_id for use in done.client_calls], done.finish) == (["w"], "tool_calls")
    assert [use.call_id for use in done.transcript[-1].tool_uses] == ["w"]
    assert "ran out" in text_of(events)


async def test_without_a_tool_role_the_limit_joins_the_users_turn(skills: Path) -> None:
    model = ScriptedModel([LOOKS, Reply(text=("ok",))], capabilities=ModelCapabilities(tool_role=False))
    await collect(runtime_over(model, skills, limits=LoopLimits(max_rounds=1)), ask())
    roles = [said.role for said in model.requests[1].messages]
    assert roles == ["system", "user", "assistant", "user"]
    assert model.requests[1].messages[-1].text.endswith("say which part you could not check.")


async def test_settings_about_tools_end_with_the_tools(skills: Path) -> None:
    extra = {"openai-chat": {"parallel_tool_calls": True, "logprobs": True, "response_format": {"type": "text"}}}
    model = ScriptedModel([LOOKS, Reply(text=("ok",))])
    request = ask(
        tool_choice=ToolPolicy(mode="required"),
        one_call=True,
        extra=extra,
        sampling=Sampling(seed=1, stop=("END",), temperature=0.5),
    )
    await collect(runtime_over(model, skills, limits=LoopLimits(max_rounds=1)), request)
    first, last = model.requests
    assert first.extra == extra
    assert (last.tools, last.tool_choice, last.one_call) == ((), None, False)
    assert last.extra == {"openai-chat": {"logprobs": True, "response_format": {"type": "text"}}}
    assert first.sampling == last.sampling == request.chat.sampling


async def test_distinct_failures_spend_the_same_budget(skills: Path) -> None:
    wrong = [Reply(calls=(call("skills_read", json.dumps({"skill": name}), name),)) for name in ("x", "y", "z")]
    model = ScriptedModel([*wrong, Reply(text=("ok",))])
    await collect(runtime_over(model, skills), ask())
    declared = [[tool.name for tool in request.tools] for request in model.requests]
    assert declared == [["skills_list", "skills_read"]] * 3 + [["skills_list"]]
    assert "has failed 3 times and is no longer available" in outputs(model.requests[3])[-1].text


async def test_the_same_failing_call_is_told_how_often_it_failed(skills: Path) -> None:
    wrong = Reply(calls=(call("skills_read", '{"skill": "nope"}', "x"),))
    model = ScriptedModel([wrong, wrong, Reply(text=("ok",))])
    await collect(runtime_over(model, skills), ask())
    first, second = outputs(model.requests[2])
    assert "This very call" not in first.text
    assert second.text.endswith("This very call has now failed 2 times.")


async def test_a_loaded_skill_that_is_loaded_forever_ends(skills: Path) -> None:
    model = ScriptedModel([LOOKS] * 9)
    _, done = await collect(runtime_over(model, skills), ask())
    told = [part.text for part in outputs(model.requests[8])]
    assert "read this before" not in told[0]
    assert all("read this before in this turn" in text for text in told[1:])
    assert done.hit_round_limit


# -- reasoning ---------------------------------------------------------------------------------------------------------


class Signing(ScriptedModel):
    """Its reasoning of one round is partly signed."""

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent], None]:
        async with super().stream(request) as events:
            yield self._signed(events)

    async def _signed(self, events: AsyncIterator[ModelEvent]) -> AsyncGenerator[ModelEvent, None]:
        async for event in events:
            if isinstance(event, ModelDone):
                signed = Reasoning(text="a", opaque={"signature": "s"}, format="anthropic")
                parts = (signed, Reasoning(text="b"), *event.message.parts)
                yield replace(event, message=replace(event.message, parts=parts), extra={"openai-chat": {"x": 1}})
            else:
                yield event


async def test_signed_reasoning_goes_back_as_it_came_and_plain_reasoning_does_not(skills: Path) -> None:
    model = Signing([LOOKS, Reply(text=("ok",))], capabilities=ModelCapabilities(reasoning_replay="opaque"))
    _, done = await collect(runtime_over(model, skills), ask())
    said = next(said for said in model.requests[1].messages if said.role == "assistant")
    assert [part.opaque for part in said.parts if isinstance(part, Reasoning)] == [{"signature": "s"}]
    assert done.extra == {"openai-chat": {"x": 1}}


# -- streaming ---------------------------------------------------------------------------------------------------------


class Paced:
    """A model that says its next piece only when it is told to."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[ModelEvent] = asyncio.Queue()

    async def models(self, caller: object = None) -> tuple[()]:
        return ()

    async def capabilities(self, model: str, caller: object = None) -> ModelCapabilities:
        return ModelCapabilities()

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent], None]:
        async def play() -> AsyncGenerator[ModelEvent, None]:
            while True:
                event = await self.pieces.get()
                yield event
                if isinstance(event, ModelDone):
                    return

        events = play()
        try:
            yield events
        finally:
            await events.aclose()

    async def aclose(self) -> None:
        return


async def test_every_piece_of_every_round_goes_out_before_the_next_one_comes(skills: Path) -> None:
    model = Paced()
    own = call("skills_read", READ, "own")
    said = Message(role="assistant", parts=(Text(text="ab"), own))
    async with runtime_over(model, skills).turn(ask()) as turn:
        for number, pieces in ((1, ("a", "b")), (2, ("c", "d"))):
            for piece in pieces:
                model.pieces.put_nowait(ModelText(text=piece))
                event = await anext(turn)
                while not isinstance(event, TextDelta):
                    assert not isinstance(event, CallDelta)
                    event = await anext(turn)
                assert (event.text, event.round) == (piece, number)
            if number == 1:
                model.pieces.put_nowait(ModelCall(index=0, call_id="own", name="skills_read", arguments=READ))
                model.pieces.put_nowait(ModelDone(finish="tool_calls", message=said))
                assert isinstance(await anext(turn), RoundFinished)
        model.pieces.put_nowait(ModelDone(finish="stop", message=message("assistant", "cd")))
        rest = [event async for event in turn]
    assert not any(isinstance(event, TextDelta) for event in rest)


async def test_a_stream_without_an_end_is_an_error(skills: Path) -> None:
    class Cut(ScriptedModel):
        @asynccontextmanager
        async def stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent], None]:
            async def play() -> AsyncGenerator[ModelEvent, None]:
                yield ModelText(text="half")

            yield play()

    with pytest.raises(UpstreamError) as caught:
        await collect(runtime_over(Cut([]), skills), ask())
    assert caught.value.code == "upstream-cut-off"
