from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.events import Usage
from satchel.chat.messages import Reasoning, ToolOutput
from satchel.chat.request import ChatRequest, ToolPolicy
from satchel.engine.calls import MAX_ARGUMENTS_CHARS, MAX_REFUSED
from satchel.engine.events import (
    CallDelta,
    Notice,
    ProseJoiner,
    RoundFinished,
    SkillLoaded,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from satchel.engine.limits import LoopLimits
from satchel.errors import RequestError
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.support import ask, collect, runtime_over, text_of, write_skill

READ_PDF = '{"skill": "pdf", "path": "SKILL.md"}'


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path, "pdf", body="Secret word: OKAPI.\n", files={"references/forms.md": "Field 7 is the total.\n"})
    write_skill(tmp_path, "xlsx", body="Sheets.\n")
    return tmp_path


def outputs(request: ChatRequest) -> list[ToolOutput]:
    return [part for item in request.messages for part in item.parts if isinstance(part, ToolOutput)]


def names(request: ChatRequest) -> list[str]:
    return [tool.name for tool in request.tools]


async def test_answer_after_a_read(skills: Path) -> None:
    model = ScriptedModel(
        [Reply(text=("Let me look.",), calls=(call("skills_read", READ_PDF),)), Reply(text=("OK", "API"))]
    )
    events, done = await collect(runtime_over(model, skills), ask("What is the word?"))

    kinds = [type(event) for event in events]
    assert kinds == [
        TurnStarted,
        TextDelta,
        RoundFinished,
        ToolStarted,
        SkillLoaded,
        ToolFinished,
        TextDelta,
        TextDelta,
        RoundFinished,
        type(done),
    ]
    started = events[0]
    assert isinstance(started, TurnStarted)
    assert started.offered == ("pdf", "xlsx")
    assert started.prompt_block_tokens > 0
    assert "Secret word: OKAPI." in outputs(model.requests[1])[0].text
    assert done.rounds == 2
    assert done.finish == "stop"
    assert done.usage == Usage(prompt_tokens=20, completion_tokens=10)
    assert done.usage_by_round == (Usage(prompt_tokens=10, completion_tokens=5),) * 2
    assert [item.role for item in done.transcript] == ["assistant", "tool", "assistant"]
    joiner = ProseJoiner()
    assert "".join(joiner.feed(event) for event in events if isinstance(event, TextDelta)) == "Let me look.\n\nOKAPI"


async def test_rounds_extend_the_same_prefix(skills: Path) -> None:
    replies = [
        Reply(calls=(call("skills_read", READ_PDF, "c1"),)),
        Reply(calls=(call("skills_read", '{"skill": "pdf", "path": "references/forms.md"}', "c2"),)),
        Reply(text=("7",)),
    ]
    model = ScriptedModel(replies)
    await collect(runtime_over(model, skills), ask())
    first, second, third = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert third.messages[: len(second.messages)] == second.messages
    wire = [[replace(tool, choices=()) for tool in request.tools] for request in model.requests]
    assert wire[0] == wire[1] == wire[2]
    assert second.messages[len(first.messages)].tool_uses[0].arguments == READ_PDF


async def test_selection_order_does_not_change_the_request(skills: Path) -> None:
    seen: list[ChatRequest] = []
    for order in (("pdf", "xlsx"), ("xlsx", "pdf"), ("xlsx", "pdf", "pdf")):
        model = ScriptedModel([Reply(text=("x",))])
        await collect(runtime_over(model, skills), ask(skills=order))
        seen += model.requests
    assert seen[0].messages == seen[1].messages == seen[2].messages
    assert seen[0].tools == seen[1].tools == seen[2].tools


async def test_round_limit_ends_with_a_note_and_without_own_tools(skills: Path) -> None:
    again = Reply(text=("Hm.",), calls=(call("skills_read", READ_PDF),))
    model = ScriptedModel([again, again, again])
    events, done = await collect(runtime_over(model, skills, limits=LoopLimits(max_rounds=2)), ask(tools=("weather",)))
    assert len(model.requests) == 3
    assert names(model.requests[0]) == ["weather", "skills_list", "skills_read"]
    assert names(model.requests[2]) == ["weather"]
    note = model.requests[2].messages[-1]
    assert note.role == "user"
    assert "2 rounds" in note.text
    assert done.hit_round_limit
    assert done.rounds == 3
    assert done.finish == "stop"
    assert done.client_calls == ()
    assert "ran out of its tool-call budget" in text_of(events)
    assert done.transcript[-1].text.startswith("Hm.\n\n[This answer ran out")
    assert not done.transcript[-1].tool_uses


@pytest.mark.parametrize(
    "last",
    [Reply(text=("Done.",)), Reply(text=("Done.",), calls=(call("weather", "{}", "w"),))],
    ids=["an answer", "a call of the client's"],
)
async def test_a_turn_that_ends_in_its_last_round_did_not_run_out(skills: Path, last: Reply) -> None:
    again = Reply(text=("Hm.",), calls=(call("skills_read", READ_PDF),))
    model = ScriptedModel([again, last])
    events, done = await collect(runtime_over(model, skills, limits=LoopLimits(max_rounds=2)), ask(tools=("weather",)))
    assert (len(model.requests), done.rounds, done.hit_round_limit) == (2, 2, False)
    assert names(model.requests[1]) == ["weather", "skills_list", "skills_read"]
    assert model.requests[1].messages[-1].role == "tool"
    assert "ran out" not in text_of(events) + "".join(said.text for said in done.transcript)


async def test_an_answer_with_what_was_read_is_left_as_the_model_wrote_it(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(call("skills_read", READ_PDF),)), Reply(text=("OKAPI.",))])
    events, done = await collect(runtime_over(model, skills, limits=LoopLimits(max_rounds=1)), ask())
    assert "1 rounds" in model.requests[1].messages[-1].text
    assert (text_of(events), done.transcript[-1].text, done.hit_round_limit) == ("OKAPI.", "OKAPI.", True)


async def test_an_empty_last_round_still_says_why(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(call("skills_list"),)), Reply()])
    events, _ = await collect(runtime_over(model, skills, limits=LoopLimits(max_rounds=1)), ask())
    assert text_of(events).startswith("[This answer ran out")


async def test_no_more_than_eight_calls_a_round(skills: Path) -> None:
    calls = tuple(call("skills_read", READ_PDF, f"c{number}") for number in range(9))
    model = ScriptedModel([Reply(calls=calls), Reply(text=("done",))])
    events, _ = await collect(runtime_over(model, skills), ask())
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert [event.ok for event in finished].count(True) == 8
    told = outputs(model.requests[1])
    assert [part.call_id for part in told] == [f"c{number}" for number in range(9)]
    assert "too many tool calls" in told[8].text


async def test_refused_calls_are_not_read_and_endless_ones_are_dropped(skills: Path) -> None:
    wrapped = "```json\n" + READ_PDF + "\n```" + " " * 2000
    calls = tuple(call("skills_read", wrapped, f"c{number}") for number in range(1000))
    model = ScriptedModel([Reply(calls=calls), Reply(text=("done",))])
    events, done = await collect(runtime_over(model, skills), ask())
    kept = 8 + MAX_REFUSED
    started = [event for event in events if isinstance(event, ToolStarted)]
    assert [event.skill for event in started] == ["pdf"] * 8 + [""] * MAX_REFUSED
    told = outputs(model.requests[1])
    assert [part.call_id for part in told] == [f"c{number}" for number in range(kept)]
    assert f"{1000 - kept} further calls after this one were dropped" in told[-1].text
    uses = done.transcript[0].tool_uses
    assert [use.call_id for use in uses] == [part.call_id for part in told]
    assert {use.arguments for use in uses[:8]} == {READ_PDF}
    assert {use.arguments for use in uses[8:]} == {"{}"}


async def test_short_arguments_of_a_refused_call_are_kept(skills: Path) -> None:
    calls = tuple(call("skills_read", READ_PDF, f"c{number}") for number in range(9))
    model = ScriptedModel([Reply(calls=calls), Reply(text=("done",))])
    _, done = await collect(runtime_over(model, skills), ask())
    assert done.transcript[0].tool_uses[8].arguments == READ_PDF


async def test_arguments_beyond_the_bound_are_refused_unread(skills: Path) -> None:
    long = '{"skill": "pdf", "path": "' + "x" * MAX_ARGUMENTS_CHARS + '"}'
    model = ScriptedModel([Reply(calls=(call("skills_read", long),)), Reply(text=("done",))])
    events, done = await collect(runtime_over(model, skills), ask())
    assert [event.path for event in events if isinstance(event, ToolStarted)] == [""]
    assert "longer than 262144 characters" in outputs(model.requests[1])[0].text
    assert done.transcript[0].tool_uses[0].arguments == "{}"


async def test_a_clients_tool_is_handed_back_as_the_client_spells_it(skills: Path) -> None:
    model = ScriptedModel(
        [
            Reply(
                calls=(
                    call("GET_WEATHER", "{}", "a"),
                    call("send", "{}", "b"),
                    call("skills_read", READ_PDF, "c"),
                )
            )
        ]
    )
    events, done = await collect(runtime_over(model, skills), ask(tools=("get_Weather", "Send", "send")))
    deltas = {event.call_id: event.name for event in events if isinstance(event, CallDelta)}
    assert deltas == {"a": "get_Weather", "b": "send"}
    assert [use.name for use in done.client_calls] == ["get_Weather", "send"]
    assert [use.name for use in done.transcript[0].tool_uses] == ["get_Weather", "send", "skills_read"]


async def test_mixed_turn_returns_only_the_clients_calls(skills: Path) -> None:
    mixed = Reply(calls=(call("skills_read", READ_PDF, "own"), call("weather", '{"city": "Oslo"}', "theirs")))
    model = ScriptedModel([mixed])
    events, done = await collect(runtime_over(model, skills), ask(tools=("weather",)))
    deltas = [event for event in events if isinstance(event, CallDelta)]
    assert {(delta.index, delta.call_id, delta.name) for delta in deltas} == {(0, "theirs", "weather")}
    assert "".join(delta.arguments for delta in deltas) == '{"city": "Oslo"}'
    assert done.finish == "tool_calls"
    assert [use.call_id for use in done.client_calls] == ["theirs"]
    assert len(model.requests) == 1
    assert any(isinstance(event, SkillLoaded) for event in events)
    assert [item.role for item in done.transcript] == ["assistant", "tool"]


async def test_a_client_tool_of_the_same_name_wins(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(call("skills_read", "{}"),))])
    events, done = await collect(runtime_over(model, skills), ask(skills=("pdf",), tools=("Skills_Read",)))
    assert names(model.requests[0]) == ["Skills_Read"]
    assert [event.code for event in events if isinstance(event, Notice)] == ["tool-name-collision"]
    prompt = model.requests[0].messages[0].text
    assert "Secret word: OKAPI." in prompt
    assert "skills_read" not in prompt
    assert "xlsx" not in prompt
    assert [use.name for use in done.client_calls] == ["Skills_Read"]


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        (
            call("skils_read", READ_PDF),
            'no tool called "skils_read". Available tools: skills_list, skills_read, weather',
        ),
        (call("pdf", "{}"), 'skills_read(skill="pdf"'),
        (call("skills_read", "read the pdf skill"), "not one JSON object"),
        (call("skills_read", '{"skill": "nope"}'), "pdf, xlsx"),
    ],
)
async def test_wrong_calls_are_answered_in_the_loop(skills: Path, wrong: object, advice: str) -> None:
    model = ScriptedModel([Reply(calls=(wrong,)), Reply(text=("ok",))])  # pyright: ignore[reportArgumentType]
    _, done = await collect(runtime_over(model, skills), ask(tools=("weather",)))
    told = outputs(model.requests[1])[0]
    assert told.text.startswith("Error: ")
    assert told.is_error
    assert advice in told.text
    assert done.finish == "stop"


async def test_a_tool_that_keeps_failing_is_withdrawn(skills: Path) -> None:
    bad = Reply(calls=(call("skills_read", '{"skill": "nope"}'),))
    model = ScriptedModel([bad, bad, bad, bad, Reply(text=("ok",))])
    await collect(runtime_over(model, skills), ask())
    assert "skills_read" in names(model.requests[2])
    assert "skills_read" not in names(model.requests[3])
    assert "has failed 3 times" in outputs(model.requests[3])[-1].text
    assert "no longer available in this turn" in outputs(model.requests[4])[-1].text


async def test_forced_tool_choice_holds_for_the_first_round_only(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(call("skills_list"),)), Reply(text=("ok",))])
    await collect(runtime_over(model, skills), ask(tools=("weather",), tool_choice=ToolPolicy(mode="required")))
    assert [request.tool_choice for request in model.requests] == [ToolPolicy(mode="required"), ToolPolicy()]


async def test_tool_choice_none_inlines_and_declares_nothing(skills: Path) -> None:
    model = ScriptedModel([Reply(text=("ok",))])
    await collect(runtime_over(model, skills), ask(skills=("pdf",), tool_choice=ToolPolicy(mode="none")))
    assert names(model.requests[0]) == []
    assert "OKAPI" in model.requests[0].messages[0].text


async def test_token_budget_shrinks_and_ends_with_length(skills: Path) -> None:
    read = Reply(calls=(call("skills_read", READ_PDF),), usage=Usage(prompt_tokens=3, completion_tokens=30))
    model = ScriptedModel([read, read, read])
    _, done = await collect(runtime_over(model, skills), ask(max_tokens=60))
    assert [request.max_tokens for request in model.requests] == [60, 30]
    assert done.finish == "length"


async def test_without_reported_usage_the_budget_is_estimated(skills: Path) -> None:
    read = Reply(text=("x" * 80,), calls=(call("skills_read", READ_PDF),), usage=None)
    model = ScriptedModel([read, Reply(text=("ok",), usage=None)])
    _, done = await collect(runtime_over(model, skills), ask(max_tokens=100))
    written = -(-(80 + len(READ_PDF)) // 4)
    assert model.requests[1].max_tokens == 100 - written
    assert done.usage == Usage()


async def test_without_skills_the_request_is_left_alone(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(call("anything", "{}"),))])
    request = ask(discovery=False, tools=("weather",), tool_choice=ToolPolicy(mode="required"))
    _, done = await collect(runtime_over(model, skills), request)
    assert model.requests == [request.chat]
    assert [use.name for use in done.client_calls] == ["anything"]


async def test_unknown_skills_are_refused_with_suggestions(skills: Path) -> None:
    runtime = runtime_over(ScriptedModel([]), skills)
    with pytest.raises(RequestError) as caught:
        await collect(runtime, ask(skills=("pfd", "pdf")))
    assert caught.value.data["unknown"] == ["pfd"]
    assert caught.value.data["suggestions"] == {"pfd": ["pdf"]}
    assert "pdf" in caught.value.hint
    with pytest.raises(RequestError, match="turned off"):
        await collect(runtime_over(ScriptedModel([]), None), ask(skills=("pdf",)))


async def test_an_unselected_skill_cannot_be_read(skills: Path) -> None:
    model = ScriptedModel(
        [Reply(calls=(call("skills_read", '{"skill": "xlsx", "path": "SKILL.md"}'),)), Reply(text=("ok",))]
    )
    await collect(runtime_over(model, skills), ask(skills=("pdf",), discovery=False))
    told = outputs(model.requests[1])[0].text
    assert "Sheets" not in told
    assert "not available" in told.lower() or "is available" in told


async def test_families_without_tool_role_get_results_as_user_turns(skills: Path) -> None:
    model = ScriptedModel(
        [Reply(text=("One moment.",), calls=(call("skills_read", READ_PDF),)), Reply(text=("ok",))],
        capabilities=ModelCapabilities(tool_role=False),
    )
    await collect(runtime_over(model, skills), ask())
    said, told = model.requests[1].messages[-2:]
    assert not said.tool_uses
    assert told.role == "user"
    assert told.text.startswith("Result of your skills_read call:")
    assert "OKAPI" in told.text


@pytest.mark.parametrize(("replay", "is_kept"), [("text", True), ("drop", False)])
async def test_reasoning_goes_back_only_where_the_family_wants_it(
    skills: Path, replay: Literal["text", "drop"], *, is_kept: bool
) -> None:
    model = ScriptedModel(
        [Reply(reasoning=("hm",), calls=(call("skills_read", READ_PDF),)), Reply(text=("ok",))],
        capabilities=ModelCapabilities(reasoning_replay=replay),
    )
    await collect(runtime_over(model, skills), ask())
    said = next(item for item in model.requests[1].messages if item.role == "assistant")
    assert any(isinstance(part, Reasoning) for part in said.parts) is is_kept
    assert said.tool_uses


async def test_families_without_tools_get_bodies(skills: Path) -> None:
    model = ScriptedModel([Reply(text=("ok",))], capabilities=ModelCapabilities(tools="none"))
    events, _ = await collect(runtime_over(model, skills), ask(skills=("pdf",)))
    assert model.requests[0].tools == ()
    assert "OKAPI" in model.requests[0].messages[0].text
    loaded = [event for event in events if isinstance(event, SkillLoaded)]
    assert [(event.ref.name, event.how) for event in loaded] == [("pdf", "inlined")]


async def test_guided_models_get_choices_instead_of_a_block(skills: Path) -> None:
    model = ScriptedModel(
        [Reply(calls=(call("skills_read", READ_PDF),)), Reply(text=("ok",))],
        capabilities=ModelCapabilities(tools="guided"),
    )
    await collect(runtime_over(model, skills), ask())
    assert model.requests[0].messages == ask().chat.messages

    def choices(request: ChatRequest) -> list[tuple[str, str]]:
        spec = next(tool for tool in request.tools if tool.name == "skills_read")
        return [(choice.arguments["skill"], choice.arguments["path"]) for choice in spec.choices]

    assert choices(model.requests[0]) == [("pdf", "SKILL.md"), ("xlsx", "SKILL.md")]
    assert ("pdf", "references/forms.md") in choices(model.requests[1])
    assert ("pdf", "SKILL.md") not in choices(model.requests[1])


@pytest.mark.parametrize("discovery", [True, False])
async def test_a_model_that_cannot_wait_for_a_result_refuses_tools_of_the_client(skills: Path, discovery: bool):
    row = ModelCapabilities(tools="none", tool_role=False, client_tools=False)
    model = ScriptedModel([Reply(text=("ok",))], capabilities=row)
    with pytest.raises(RequestError) as caught:
        await collect(runtime_over(model, skills), ask(tools=("theirs",), discovery=discovery))
    assert (caught.value.code, caught.value.data["field"]) == ("invalid-request", "tools")
    assert model.requests == []
    await collect(runtime_over(model, skills), ask(skills=("pdf",), discovery=discovery))
    assert "OKAPI" in model.requests[0].messages[0].text


@pytest.mark.parametrize(
    ("reply", "shown", "theirs"),
    [
        (Reply(text=("Hm.",), calls=(call("skills_read", READ_PDF),)), "Hm.", []),
        (Reply(calls=(call("skills_read", READ_PDF), call("weather"))), "", ["weather"]),
    ],
)
async def test_a_forbidden_call_of_ours_does_not_reach_the_client(
    skills: Path, reply: Reply, shown: str, theirs: list[str]
) -> None:
    model = ScriptedModel([reply])
    request = ask(tools=("weather",), tool_choice=ToolPolicy(mode="none"))
    events, done = await collect(runtime_over(model, skills), request)
    assert text_of(events) == shown
    assert [use.name for use in done.client_calls] == theirs
    assert {event.name for event in events if isinstance(event, CallDelta)} == set(theirs)
    assert [use.name for item in done.transcript for use in item.tool_uses] == theirs
    assert done.finish == ("tool_calls" if theirs else "stop")


async def test_a_forbidden_call_alone_is_an_honest_sentence(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(call("skills_read", READ_PDF),))])
    events, done = await collect(runtime_over(model, skills), ask(tool_choice=ToolPolicy(mode="none")))
    assert "forbids" in text_of(events)
    assert done.finish == "stop"
    assert len(model.requests) == 1


async def test_without_skills_a_forbidden_call_passes(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(call("skills_read", READ_PDF),))])
    request = ask(discovery=False, tool_choice=ToolPolicy(mode="none"))
    _, done = await collect(runtime_over(model, skills), request)
    assert [use.name for use in done.client_calls] == ["skills_read"]
