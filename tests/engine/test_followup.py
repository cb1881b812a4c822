"""A second request of a conversation: with the token, with a wrong one and without any."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.messages import Message, Opaque, Reasoning, Text, ToolOutput, ToolUse, message
from satchel.chat.request import Caller, ChatRequest
from satchel.engine.events import Notice, ProseJoiner, TextDelta, TurnDone, TurnEvent
from satchel.engine.followup import without_orphans
from satchel.engine.limits import LoopLimits
from satchel.engine.request import Principal, TurnRequest
from satchel.engine.runtime import Runtime
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.support import ask, collect, runtime_over, write_skill

READ_PDF = '{"skill": "pdf", "path": "SKILL.md"}'
LOOKS = Reply(text=("Let me look.",), reasoning=("hm",), calls=(call("skills_read", READ_PDF, "own"),))
MIXED = Reply(calls=(call("skills_read", READ_PDF, "own"), call("weather", "{}", "theirs")))
PLAIN = Reply(text=("Fine.",))


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path, "pdf", body="Secret word: OKAPI.\n")
    return tmp_path


def seen(events: list[TurnEvent]) -> Message:
    """The assistant's message as a client has it: joined prose and its own calls."""
    joiner = ProseJoiner()
    text = "".join(joiner.feed(event) for event in events if isinstance(event, TextDelta))
    done = events[-1]
    assert isinstance(done, TurnDone)
    return Message(role="assistant", parts=(*([Text(text=text)] if text else []), *done.client_calls))


def then(request: TurnRequest, *more: Message, token: str = "") -> TurnRequest:
    chat = replace(request.chat, messages=(*request.chat.messages, *more))
    return replace(request, chat=chat, continuation=token)


def result(call_id: str, text: str = "Rain.") -> Message:
    return Message(role="tool", parts=(ToolOutput(call_id=call_id, text=text, name="weather"),))


def notices(events: list[TurnEvent]) -> list[str]:
    return [event.code for event in events if isinstance(event, Notice)]


def is_whole(request: ChatRequest) -> bool:
    """Whether every result follows the message with its call, and every call has a result."""
    open_calls: set[str] = set()
    for said in request.messages:
        if said.role != "tool" and open_calls:
            return False
        open_calls |= {use.call_id for use in said.tool_uses}
        for part in said.parts:
            if isinstance(part, ToolOutput):
                if part.call_id not in open_calls:
                    return False
                open_calls.discard(part.call_id)
    return not open_calls


async def test_a_token_puts_the_reads_back_where_the_answer_stands(skills: Path) -> None:
    model = ScriptedModel([LOOKS, Reply(text=("It is OKAPI.",)), PLAIN])
    runtime = runtime_over(model, skills)
    request = ask("The word?")
    events, done = await collect(runtime, request)
    assert done.continuation.startswith("cont_")
    assert seen(events).text == "Let me look.\n\nIt is OKAPI."
    follow = then(request, seen(events), message("user", "Sure?"), token=done.continuation)
    again, _ = await collect(runtime, follow)
    before, after = model.requests[1].messages, model.requests[2].messages
    assert after[: len(before)] == before
    assert [said.role for said in after[len(before) :]] == ["assistant", "user"]
    assert after[len(before)].text == "It is OKAPI."
    assert is_whole(model.requests[2])
    assert notices(again) == []


async def test_a_mixed_turn_goes_on_with_its_own_results(skills: Path) -> None:
    model = ScriptedModel([MIXED, Reply(text=("Wet.",)), PLAIN])
    runtime = runtime_over(model, skills)
    request = ask(tools=("weather",))
    events, done = await collect(runtime, request)
    follow = then(request, seen(events), result("theirs"), token=done.continuation)
    events2, done2 = await collect(runtime, follow)
    first, second = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    added = second.messages[len(first.messages) :]
    assert [said.role for said in added] == ["assistant", "tool", "tool"]
    assert [use.call_id for use in added[0].tool_uses] == ["own", "theirs"]
    assert "OKAPI" in str(added[1].parts)
    assert is_whole(second)
    # The plain second answer added nothing of its own, and still leads to the first.
    last = then(follow, seen(events2), message("user", "And now?"), token=done2.continuation)
    await collect(runtime, last)
    assert model.requests[2].messages[: len(second.messages)] == second.messages
    assert is_whole(model.requests[2])


async def test_one_token_leads_to_all_earlier_answers(skills: Path) -> None:
    replies = [LOOKS, Reply(text=("One.",)), LOOKS, Reply(text=("Two.",)), PLAIN]
    model = ScriptedModel(replies)
    runtime = runtime_over(model, skills)
    first = ask("a")
    events, done = await collect(runtime, first)
    second = then(first, seen(events), message("user", "b"), token=done.continuation)
    events, done = await collect(runtime, second)
    third = then(second, seen(events), message("user", "c"), token=done.continuation)
    await collect(runtime, third)
    whole = model.requests[-1].messages
    assert whole[: len(model.requests[3].messages)] == model.requests[3].messages
    assert [said.role for said in whole[1:]] == ["user", *["assistant", "tool", "assistant", "user"] * 2]
    ids = [use.call_id for said in whole for use in said.tool_uses]
    assert len(set(ids)) == 2
    assert is_whole(model.requests[-1])


async def test_without_a_token_a_plain_client_goes_on(skills: Path) -> None:
    model = ScriptedModel([MIXED, PLAIN])
    runtime = runtime_over(model, skills)
    request = ask(tools=("weather",))
    events, _ = await collect(runtime, request)
    again, _ = await collect(runtime, then(request, seen(events), result("theirs")))
    assert [said.role for said in model.requests[1].messages] == ["system", "user", "assistant", "tool"]
    assert is_whole(model.requests[1])
    assert notices(again) == []


@pytest.mark.parametrize("wrong", ["unknown", "other owner", "other key", "other conversation"])
async def test_a_token_that_leads_nowhere_is_told_and_nothing_else_changes(skills: Path, wrong: str) -> None:
    model = ScriptedModel([MIXED, PLAIN])
    runtime = runtime_over(model, skills)
    request = ask(tools=("weather",))
    events, done = await collect(runtime, request)
    said: Message = seen(events)
    follow = then(request, said, result("theirs"), token=done.continuation)
    if wrong == "unknown":
        follow = replace(follow, continuation="cont_x")
    elif wrong == "other owner":
        follow = replace(follow, principal=Principal(id="somebody"))
    elif wrong == "other key":
        follow = replace(follow, chat=replace(follow.chat, caller=Caller(key="k")))
    else:
        other = Message(role="assistant", parts=(ToolUse(call_id="x", name="weather", arguments="{}"),))
        follow = then(request, other, result("x"), token=done.continuation)
    again, _ = await collect(runtime, follow)
    assert notices(again) == ["continuation-unmatched"]
    assert "OKAPI" not in str(model.requests[1].messages)
    assert is_whole(model.requests[1])


async def test_a_client_that_trimmed_its_history_gets_back_what_it_still_has(skills: Path) -> None:
    model = ScriptedModel([LOOKS, Reply(text=("One.",)), MIXED, PLAIN])
    runtime = runtime_over(model, skills)
    first = ask("a", tools=("weather",))
    events, done = await collect(runtime, first)
    second = then(first, seen(events), message("user", "b"), token=done.continuation)
    events, done = await collect(runtime, second)
    trimmed = replace(first.chat, messages=(message("user", "b"), seen(events), result("theirs")))
    again, _ = await collect(runtime, replace(first, chat=trimmed, continuation=done.continuation))
    assert [said.role for said in model.requests[3].messages] == ["system", "user", "assistant", "tool", "tool"]
    assert is_whole(model.requests[3])
    assert notices(again) == []


async def test_an_answer_without_hidden_rounds_has_no_token(skills: Path) -> None:
    _, done = await collect(runtime_over(ScriptedModel([PLAIN]), skills), ask())
    assert done.continuation == ""


async def test_a_token_works_where_skills_are_off_for_the_second_request(skills: Path) -> None:
    model = ScriptedModel([LOOKS, Reply(text=("It is OKAPI.",)), PLAIN])
    runtime = runtime_over(model, skills)
    request = ask()
    events, done = await collect(runtime, request)
    follow = then(request, seen(events), message("user", "Sure?"), token=done.continuation)
    await collect(runtime, replace(follow, skills=replace(follow.skills, discovery=False)))
    assert "OKAPI" in str(model.requests[2].messages)


async def test_a_text_that_a_client_stripped_or_split_is_still_known(skills: Path) -> None:
    model = ScriptedModel([LOOKS, Reply(text=("It is OKAPI.\n",)), PLAIN])
    runtime = runtime_over(model, skills)
    request = ask()
    _, done = await collect(runtime, request)
    parts = (Text(text="Let me look. "), Text(text="It is OKAPI."))
    follow = then(request, Message(role="assistant", parts=parts), message("user", "x"), token=done.continuation)
    assert notices((await collect(runtime, follow))[0]) == []
    assert "Secret word" in str(model.requests[2].messages)


async def test_families_without_a_tool_role_keep_the_clients_call(skills: Path) -> None:
    model = ScriptedModel([MIXED, PLAIN], capabilities=ModelCapabilities(tool_role=False))
    runtime = runtime_over(model, skills)
    request = ask(tools=("weather",))
    events, done = await collect(runtime, request)
    await collect(runtime, then(request, seen(events), result("theirs"), token=done.continuation))
    said = model.requests[1].messages[2:]
    assert [use.call_id for use in said[0].tool_uses] == ["theirs"]
    assert said[1].text.startswith("Result of your skills_read call:")
    assert said[2].role == "tool"


async def test_the_last_reasoning_goes_back_as_the_family_wants_it(skills: Path) -> None:
    for replay, kept in (("text", 2), ("drop", 0)):
        model = ScriptedModel(
            [LOOKS, Reply(reasoning=("so",), text=("OKAPI.",)), PLAIN],
            capabilities=ModelCapabilities(reasoning_replay=replay),  # pyright: ignore[reportArgumentType]
        )
        runtime: Runtime = runtime_over(model, skills, limits=LoopLimits())
        request = ask()
        events, done = await collect(runtime, request)
        await collect(runtime, then(request, seen(events), message("user", "x"), token=done.continuation))
        parts = [part for said in model.requests[2].messages for part in said.parts]
        assert sum(isinstance(part, Reasoning) for part in parts) == kept


def test_a_result_without_its_call_is_told_as_a_users_message() -> None:
    lost = Message(
        role="tool",
        parts=(ToolOutput(call_id="a", text="kept"), ToolOutput(call_id="gone", text="Rain.", name="weather")),
    )
    called = Message(role="assistant", parts=(ToolUse(call_id="a", name="f", arguments="{}"),))
    chat = ChatRequest(messages=(message("user", "x"), called, lost))
    _, _, kept, told = without_orphans(chat, chat.messages)
    assert kept.parts == lost.parts[:1]
    assert (told.role, told.text) == ("user", "Result of an earlier weather call:\nRain.")
    early = ChatRequest(messages=(lost, called))
    assert [said.role for said in without_orphans(early, early.messages)] == ["user", "assistant"]


def test_calls_of_unknown_kinds_and_calls_that_the_server_holds_count() -> None:
    custom = Opaque(format="openai-chat", raw={"tool_calls": {"id": "c1", "type": "custom"}})
    item = Opaque(format="openai-responses", raw={"type": "custom_tool_call", "call_id": "c2"})
    said = Message(role="assistant", parts=(custom, item))
    chat = ChatRequest(messages=(said, result("c1"), result("c2")))
    assert without_orphans(chat, chat.messages) == chat.messages
    stored = ChatRequest(messages=(result("c3"),), extra={"openai-responses": {"previous_response_id": "resp_1"}})
    assert without_orphans(stored, stored.messages) == stored.messages


def test_results_of_one_message_that_answer_nothing_keep_their_order_beside_those_that_do() -> None:
    outputs = tuple(ToolOutput(call_id=f"c{number % 3}", text=f"r{number}") for number in range(6))
    call = Message(role="assistant", parts=(ToolUse(call_id="c1", name="f", arguments="{}"),))
    chat = ChatRequest(messages=(call, Message(role="tool", parts=outputs)))
    kept = without_orphans(chat, chat.messages)
    assert [item.role for item in kept] == ["assistant", "tool", "user"]
    assert kept[1].parts == (outputs[1], outputs[4])
    assert [part for part in ("r0", "r2", "r3", "r5") if part in kept[2].text] == ["r0", "r2", "r3", "r5"]
