"""What the embedded model is shown and how its choice is read, and the failures that need no model."""

from __future__ import annotations

import json
import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.chat.messages import Json, Media, Message, Text, ToolOutput, ToolUse, message
from satchel.chat.request import ChatRequest, Choice, Sampling, ToolPolicy, ToolSpec
from satchel.errors import SatchelError, UpstreamError
from satchel.ports.models import EmbeddedOptions
from satchel.upstream.embedded.filling import arguments_request
from satchel.upstream.embedded.guided import EmbeddedClient
from satchel.upstream.embedded.prompts import Step, answer_request, next_step

WINDOW = 8192


def skill(name: str, label: str = "Rules of something.") -> Choice:
    return Choice(arguments={"skill": name, "path": "SKILL.md"}, label=label)


def file(name: str, path: str, label: str) -> Choice:
    return Choice(arguments={"skill": name, "path": path}, label=label)


def read_tool(*choices: Choice) -> ToolSpec:
    return ToolSpec(name="skills_read", choices=choices)


def run_tool(*choices: Choice) -> ToolSpec:
    return ToolSpec(name="skills_run", choices=choices)


def script(name: str, path: str, label: str = "Run it.", **texts: Json) -> Choice:
    schema: dict[str, Json] = {"type": "array", "items": {"type": "string"}, **texts}
    return Choice(arguments={"skill": name, "path": path}, label=label, open={"args": schema})


def ran(name: str, path: str, text: str, *, failed: bool = False) -> tuple[Message, Message]:
    arguments = json.dumps({"skill": name, "path": path, "args": ["3"]})
    use = ToolUse(call_id="c9", name="skills_run", arguments=arguments)
    told = ToolOutput(call_id="c9", name="skills_run", text=text, is_error=failed)
    return Message(role="assistant", parts=(use,)), Message(role="tool", parts=(told,))


def called(name: str, path: str, text: str, call_id: str = "c1") -> tuple[Message, Message]:
    use = ToolUse(call_id=call_id, name="skills_read", arguments=json.dumps({"skill": name, "path": path}))
    told = ToolOutput(call_id=call_id, name="skills_read", text=text)
    return Message(role="assistant", parts=(use,)), Message(role="tool", parts=(told,))


PAGE = """Skill: rules
File: SKILL.md

---
name: rules
description: Rules.
---
# Rules

The limit is 40.
Doses stand in `references/doses.md`.

[Files of this skill, not part of SKILL.md; read one with skills_read when the task calls for it]
- references/doses.md (1.0 KiB)
"""
DOSES = "Doses stand in `references/doses.md`."
ASK = message("user", "How high is the limit?")


def step_of(request: ChatRequest) -> Step:
    step = next_step(request, context_tokens=WINDOW)
    assert step is not None
    return step


def names(step: Step) -> list[str]:
    return [option.name for option in step.options]


def test_first_choice_is_among_the_skills_or_nothing() -> None:
    step = step_of(ChatRequest(messages=(ASK,), tools=(read_tool(skill("rules"), skill("tides")),)))
    assert names(step) == ["rules", "tides"]
    request = step.request()
    assert request.tools == ()
    assert request.sampling.temperature == 0
    assert request.extra["openai-chat"]["grammar"] == f'root ::= "rules" | "tides" | {json.dumps(step.otherwise)}'
    assert "- rules: Rules of something." in request.messages[-1].text
    assert request.messages[-1].text.endswith("Request: How high is the limit?")


def test_examples_name_no_skill_that_is_offered() -> None:
    step = step_of(ChatRequest(messages=(ASK,), tools=(read_tool(skill("rules")),)))
    assert all("rules:" not in item.text for item in step.messages[:-1])
    assert {item.text for item in step.messages if item.role == "assistant"} > {step.otherwise}


def test_nothing_is_chosen_without_choices_or_when_tools_are_off() -> None:
    plain = ToolSpec(name="get_weather", description="Weather of a town.")
    assert next_step(ChatRequest(messages=(ASK,)), context_tokens=WINDOW) is None
    assert next_step(ChatRequest(messages=(ASK,), tools=(plain,)), context_tokens=WINDOW) is None
    off = ChatRequest(messages=(ASK,), tools=(read_tool(skill("rules")),), tool_choice=ToolPolicy(mode="none"))
    assert next_step(off, context_tokens=WINDOW) is None


def test_after_a_skill_its_files_that_the_text_points_to() -> None:
    choices = (
        file("rules", "references/doses.md", DOSES),
        file("rules", "references/unmentioned.md", ""),
        skill("tides"),
        file("tides", "references/other.md", "Other."),
    )
    request = ChatRequest(messages=(ASK, *called("rules", "SKILL.md", PAGE)), tools=(read_tool(*choices),))
    step = step_of(request)
    assert names(step) == ["references/doses.md"]
    shown = step.messages[-1].text
    assert "The limit is 40." in shown
    assert f"- references/doses.md: {DOSES}" in shown
    assert shown.count(DOSES) == 1
    assert "description:" not in shown
    assert "[Files of this skill" not in shown


def test_after_a_skill_its_scripts_can_be_run_and_need_no_reading() -> None:
    reads = read_tool(file("rules", "references/doses.md", DOSES), file("rules", "scripts/a.py", "Run it."))
    runs = run_tool(script("rules", "scripts/a.py"), script("tides", "scripts/b.py"))
    request = ChatRequest(messages=(ASK, *called("rules", "SKILL.md", PAGE)), tools=(reads, runs))
    step = step_of(request)
    assert names(step) == ["references/doses.md", "run scripts/a.py"]
    assert "- run scripts/a.py: Run it." in step.messages[-1].text
    assert step.options[1].tool.name == "skills_run"
    assert step.picked("run scripts/a.py", {"run": 0.5, "text": 0.4}) is None
    assert step.picked("run scripts/a.py", {"run": 0.8, "text": 0.05}) == step.options[1]


def test_scripts_are_no_first_choice_while_nothing_was_read() -> None:
    request = ChatRequest(messages=(ASK,), tools=(read_tool(skill("rules")), run_tool()))
    assert names(step_of(request)) == ["rules"]


def test_after_a_run_comes_the_answer_from_what_it_printed() -> None:
    made = (*called("rules", "SKILL.md", PAGE), *ran("rules", "scripts/a.py", "stdout:\n41.7 kg"))
    reads = read_tool(file("rules", "references/doses.md", DOSES), file("rules", "scripts/a.py", "Run it."))
    request = ChatRequest(messages=(ASK, *made), tools=(reads, run_tool(script("rules", "scripts/b.py"))))
    assert next_step(request, context_tokens=WINDOW) is None
    given, told, asked = answer_request(request, default_max_tokens=100).messages
    assert [item.role for item in (given, told, asked)] == ["user", "assistant", "user"]
    assert "The limit is 40." in given.text
    assert "[Files of this skill" not in given.text
    assert given.text.endswith("\n\nRequest: How high is the limit?")
    assert told.text.endswith("\nstdout:\n41.7 kg")
    assert asked.text.endswith("\nMy request was: How high is the limit?")


def test_a_failed_run_is_answered_without_figures_of_other_documents() -> None:
    made = (*called("rules", "SKILL.md", PAGE), *ran("rules", "scripts/a.py", "no such dose", failed=True))
    (asked,) = answer_request(ChatRequest(messages=(ASK, *made)), default_max_tokens=100).messages
    assert "The limit is 40." not in asked.text
    assert "could not be worked out" in asked.text.partition("\n")[0]
    assert asked.text.endswith("Result of skills_run:\nno such dose\n\nRequest: How high is the limit?")


def test_a_failed_read_takes_nothing_away() -> None:
    use, output = called("rules", "gone.md", "Error: gone.", "c2")
    (part,) = output.parts
    assert isinstance(part, ToolOutput)
    failed = replace(output, parts=(replace(part, is_error=True),))
    made = (*called("rules", "SKILL.md", PAGE), use, failed)
    (asked,) = answer_request(ChatRequest(messages=(ASK, *made)), default_max_tokens=100).messages
    assert "The limit is 40." in asked.text
    assert "Error: gone." in asked.text


def test_arguments_left_open_are_written_from_the_request_and_the_instructions() -> None:
    runs = run_tool(script("rules", "scripts/a.py", examples=[["--dose", "4"]]))
    request = ChatRequest(
        messages=(message("system", "Be kind."), ASK, *called("rules", "SKILL.md", PAGE)),
        tools=(runs,),
        sampling=Sampling(temperature=0.9, stop=("END",)),
    )
    (option,) = step_of(request).options
    asked = arguments_request(request, option, default_max_tokens=100)
    shown = asked.messages[-1].text
    assert "The limit is 40." in shown
    assert shown.endswith('Script: scripts/a.py\nExample: {"args": ["--dose", "4"]}\nRequest: How high is the limit?')
    assert asked.sampling == Sampling(temperature=0.0)
    schema = asked.extra["openai-chat"]["response_format"]
    assert schema == {
        "type": "json_schema",
        "json_schema": {
            "schema": {"type": "object", "properties": dict(option.open), "required": ["args"]},
        },
    }


def test_declared_arguments_are_told_one_by_one_before_the_request() -> None:
    properties: dict[str, Json] = {
        "town": {"type": ["string", "null"], "description": "where to"},
        "--mode": {"enum": ["fast", "slow", None]},
        "--wind": {"type": ["number", "null"], "default": None},
        "--quick": {"type": "boolean"},
    }
    given: Json = {"type": "object", "properties": properties, "required": list(properties)}
    choice = Choice(arguments={"skill": "rules", "path": "scripts/a.py"}, label="Run it.", open={"args": given})
    request = ChatRequest(messages=(ASK, *called("rules", "SKILL.md", PAGE)), tools=(run_tool(choice),))
    (option,) = step_of(request).options
    asked = arguments_request(request, option, default_max_tokens=100)
    assert asked.messages[-1].text.endswith(
        "Script: scripts/a.py\nArguments:\n- town: text; where to\n"
        '- --mode: "fast" or "slow"\n- --wind: number or null\n- --quick: true or false\nRequest: How high is the limit?'
    )
    schema = asked.extra["openai-chat"]["response_format"]
    assert schema == {
        "type": "json_schema",
        "json_schema": {"schema": {"type": "object", "properties": {"args": given}, "required": ["args"]}},
    }
    for item in asked.messages:
        if item.role == "assistant":
            assert isinstance(json.loads(item.text)["args"], dict)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("python3 scripts/a.py --dose 4", "python3 scripts/a.py"),
        ("$ bash ./scripts/a.py 5 x", "$ bash ./scripts/a.py"),
        (
            "Say `scripts/a.py 5` or `python scripts/a.py 6 x`, not 7.",
            "Say `scripts/a.py` or `python scripts/a.py`, not 7.",
        ),
        ("scripts/a.py takes 5 of them, `scripts/a.py` none.", "scripts/a.py takes 5 of them, `scripts/a.py` none."),
        ("Left open `scripts/a.py 5", "Left open `scripts/a.py"),
        ("sh" * 20_000 + " scripts/a.py 5", "sh" * 20_000 + " scripts/a.py"),
    ],
)
def test_commands_show_no_values_where_arguments_are_asked_for_by_name(line: str, shown: str) -> None:
    given: Json = {"type": "object", "properties": {"--dose": {"type": ["number", "null"]}}, "required": ["--dose"]}
    choice = Choice(arguments={"skill": "rules", "path": "scripts/a.py"}, label="Run it.", open={"args": given})
    page = f"Skill: rules\nFile: SKILL.md\n\nThe limit is 40.\n{line}\nThe end."
    request = ChatRequest(messages=(ASK, *called("rules", "SKILL.md", page)), tools=(run_tool(choice),))
    (option,) = step_of(request).options
    told = arguments_request(request, option, default_max_tokens=100).messages[-1].text
    assert f"The limit is 40.\n{shown}\nThe end." in told


@pytest.mark.parametrize(
    ("example", "shows"),
    [(["--dose", "4"], "--guests"), (["-d", "4"], "--guests"), (["-4", "flour"], "lift.py"), (None, "--guests")],
)
def test_examples_are_of_the_kind_that_the_instructions_show(example: list[Json] | None, shows: str) -> None:
    texts: dict[str, Json] = {} if example is None else {"examples": [example]}
    runs = run_tool(script("rules", "scripts/a.py", "Run it.", **texts))
    request = ChatRequest(messages=(ASK, *called("rules", "SKILL.md", PAGE)), tools=(runs,))
    (option,) = step_of(request).options
    turns = arguments_request(request, option, default_max_tokens=100).messages[1:-1]
    told = [scheme for scheme in ("--guests", "lift.py") if any(scheme in turn.text for turn in turns)]
    assert told == [shows]


def test_a_skill_with_arguments_of_its_own_is_chosen_by_its_name_and_then_asked_for_them() -> None:
    given: Json = {"type": "object", "properties": {"file": {"type": ["string", "null"]}}, "required": ["file"]}
    choice = Choice(arguments={"name": "glazing"}, label="Glazes a file.", open={"arguments": given})
    request = ChatRequest(messages=(ASK,), tools=(ToolSpec(name="skill", choices=(choice,)),))
    step = step_of(request)
    assert names(step) == ["glazing"]
    shown = arguments_request(request, step.options[0], default_max_tokens=100).messages[-1].text
    assert (
        shown == "Text:\nGlazes a file.\n\nScript: glazing\nArguments:\n- file: text\nRequest: How high is the limit?"
    )


def test_no_call_is_offered_twice_in_a_turn() -> None:
    told = called("rules", "SKILL.md", "Error: the skill is gone.")
    request = ChatRequest(messages=(ASK, *told), tools=(read_tool(skill("rules")),))
    assert next_step(request, context_tokens=WINDOW) is None


def test_activating_one_skill_leads_to_no_other() -> None:
    other = ToolSpec(name="skill", choices=(Choice(arguments={"name": "firing"}, label="Rules of firing."),))
    use = ToolUse(call_id="c1", name="skill", arguments='{"name": "glazing"}')
    made = Message(role="assistant", parts=(use,))
    output = Message(role="tool", parts=(ToolOutput(call_id="c1", name="skill", text="Weigh it."),))
    request = ChatRequest(messages=(ASK, made, output), tools=(other,))
    assert next_step(request, context_tokens=WINDOW) is None
    assert next_step(ChatRequest(messages=(ASK,), tools=request.tools), context_tokens=WINDOW) is not None


def test_a_new_question_starts_again() -> None:
    earlier = (ASK, *called("rules", "SKILL.md", PAGE), message("assistant", "It is 40."))
    request = ChatRequest(messages=(*earlier, message("user", "And the tides?")), tools=(read_tool(skill("tides")),))
    step = step_of(request)
    assert names(step) == ["tides"]
    assert "Earlier request: How high is the limit?\nRequest: And the tides?" in step.messages[-1].text


def test_rest_of_a_long_file_can_be_chosen() -> None:
    rest = Choice(arguments={"skill": "rules", "path": "SKILL.md", "offset": "900"}, label="the rest of SKILL.md")
    request = ChatRequest(messages=(ASK, *called("rules", "SKILL.md", PAGE)), tools=(read_tool(rest),))
    assert names(step_of(request)) == ["rest of SKILL.md"]


@pytest.mark.parametrize("policy", [ToolPolicy(mode="required"), ToolPolicy(mode="named", name="Get_Weather")])
def test_forced_choice_takes_clients_tools_and_leaves_no_way_out(policy: ToolPolicy) -> None:
    weather = ToolSpec(name="get_weather", description="Weather of a town.")
    step = step_of(ChatRequest(messages=(ASK,), tools=(weather, read_tool(skill("rules"))), tool_choice=policy))
    assert names(step) == (["get_weather", "rules"] if policy.mode == "required" else ["get_weather"])
    assert step.otherwise == ""
    assert step.picked("get_weather", {}) == step.options[0]


def test_skill_named_like_the_way_out_stays_reachable() -> None:
    probe = step_of(ChatRequest(messages=(ASK,), tools=(read_tool(skill("rules")),)))
    step = step_of(ChatRequest(messages=(ASK,), tools=(read_tool(skill(probe.otherwise), skill("rules")),)))
    assert len(set(names(step))) == 2
    assert probe.otherwise not in names(step)


def test_choice_counts_only_when_nothing_was_unlikely() -> None:
    step = step_of(ChatRequest(messages=(ASK,), tools=(read_tool(skill("rules")),)))
    nothing = step.otherwise
    assert step.picked("rules", {"rules": 0.95, nothing: 0.05}) == step.options[0]
    assert step.picked("rules", {"rules": 0.55, nothing: 0.45}) is None
    assert step.picked(nothing, {nothing: 0.9, "rules": 0.1}) is None
    assert step.picked("rules", {}) == step.options[0]
    assert step.picked("something else", {"rules": 1.0}) is None


@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=300), st.text(max_size=5000))
def test_any_names_and_texts_make_a_bounded_choice(skills: list[str], asked: str) -> None:
    tools = (read_tool(*(skill(name, label=asked[:400]) for name in skills)),)
    step = step_of(ChatRequest(messages=(message("user", asked),), tools=tools))
    assert len(set(names(step))) == len(step.options) >= 1
    assert all("\n" not in name for name in names(step))
    assert len(step.messages[-1].text) < WINDOW + 4000


def test_answer_sees_what_was_read_in_the_message_that_asked() -> None:
    request = ChatRequest(
        messages=(message("system", "Be kind."), ASK, *called("rules", "SKILL.md", PAGE), *called("x", "y", "Z", "c2")),
        tools=(read_tool(skill("rules")),),
        max_tokens=7,
        sampling=Sampling(stop=("END",)),
        extra={"openai-chat": {"logit_bias": {}, "parallel_tool_calls": True}},
    )
    answer = answer_request(request, default_max_tokens=100)
    assert [item.role for item in answer.messages] == ["system", "user"]
    assert answer.messages[0].text == "Be kind."
    assert answer.messages[1].text.endswith("\n\nResult of skills_read:\nZ\n\nRequest: How high is the limit?")
    assert PAGE in answer.messages[1].text
    assert answer.tools == ()
    assert (answer.max_tokens, answer.sampling) == (7, Sampling(temperature=0.0, stop=("END",)))
    assert answer.extra == {"openai-chat": {"logit_bias": {}}}


def test_answer_without_reading_is_the_conversation_itself() -> None:
    conversation = (ASK, message("assistant", "40."), message("user", "Thanks"))
    answer = answer_request(ChatRequest(messages=conversation), default_max_tokens=100)
    assert answer.messages == conversation
    assert answer.max_tokens == 100


def test_pictures_are_refused() -> None:
    picture = Message(role="user", parts=(Text(text="What is this?"), Media(kind="image", url="https://a.test/b.png")))
    with pytest.raises(UpstreamError) as caught:
        answer_request(ChatRequest(messages=(picture,)), default_max_tokens=100)
    assert caught.value.code == "upstream-rejected"


async def failure_of(client: EmbeddedClient, request: ChatRequest) -> SatchelError:
    with pytest.raises(SatchelError) as caught:
        async with client.stream(request):
            pass
    await client.aclose()
    return caught.value


async def test_missing_weights_say_how_to_get_them(tmp_path: Path) -> None:
    client = EmbeddedClient(EmbeddedOptions(cache_dir=str(tmp_path)), environ={})
    error = await failure_of(client, ChatRequest(messages=(ASK,)))
    assert error.code == "weights-missing"
    assert "satchel model fetch" in error.hint


async def test_other_models_are_not_here() -> None:
    client = EmbeddedClient(EmbeddedOptions(), environ={})
    error = await failure_of(client, ChatRequest(model="gpt-9", messages=(ASK,)))
    assert error.code == "model-not-found"
    assert (await client.models())[0].id in error.hint


def header_only(path: Path) -> Path:
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + bytes(8))
    return path


async def test_file_that_the_engine_refuses(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    client = EmbeddedClient(EmbeddedOptions(weights=str(header_only(tmp_path / "empty.gguf"))), environ={})
    error = await failure_of(client, ChatRequest(messages=(ASK,)))
    assert error.code == "weights-corrupt"


async def test_missing_engine_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    client = EmbeddedClient(EmbeddedOptions(weights=str(header_only(tmp_path / "empty.gguf"))), environ={})
    error = await failure_of(client, ChatRequest(messages=(ASK,)))
    assert error.code == "extra-missing"


async def test_what_it_says_of_itself() -> None:
    client = EmbeddedClient(EmbeddedOptions(context_tokens=4096), environ={})
    capabilities = await client.capabilities("")
    assert (capabilities.tools, capabilities.context_tokens) == ("guided", 4096)


def test_code_is_written_without_a_penalty_on_what_repeats_itself():
    asked = ChatRequest(messages=(ASK,), sampling=Sampling(is_code=True))
    assert answer_request(asked, default_max_tokens=8).extra == {"openai-chat": {"repeat_penalty": 1.0}}
    own = replace(asked, extra={"openai-chat": {"repeat_penalty": 1.2}})
    assert answer_request(own, default_max_tokens=8).extra == {"openai-chat": {"repeat_penalty": 1.2}}
    prose = replace(asked, sampling=Sampling())
    assert answer_request(prose, default_max_tokens=8).extra == {"openai-chat": {}}
