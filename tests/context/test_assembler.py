from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.context import Assembler
from satchel.errors import SetupError, StoreError
from satchel.skills import inline
from satchel.skills.model import LoadedSkill

USER = {"role": "user", "content": "Hello"}


def skill(name: str = "plan", instructions: str = "List the files.", **more: Any) -> LoadedSkill:
    return inline(name=name, description="Plans.", instructions=instructions, dialect="contextchef", **more)


def user_text(assembler: Assembler) -> str:
    return str(assembler.compile().messages[-1]["content"])


def test_messages_of_ones_own_pass_through_as_they_are() -> None:
    marked = {"role": "system", "content": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}]}
    history = [USER, {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "x-own": 1.5}]}]
    compiled = Assembler().set_system_prompt([marked]).set_history(history).compile()
    assert compiled.messages == [marked, *history]


def test_an_empty_assembler_compiles_to_nothing() -> None:
    compiled = Assembler().set_system_prompt("").set_memory("").set_dynamic_state(None).compile()
    assert (compiled.messages, compiled.tools, compiled.meta.active_skill_name) == ([], [], None)


def test_state_joins_the_last_user_message_whatever_its_content_is() -> None:
    state = {"b": [1, None], "a": "x"}
    text = (
        '<dynamic_state>\n{"a": "x", "b": [1, null]}\n</dynamic_state>\n'
        "The state above is how things stand now. Take it into account in what you do next."
    )
    assembler = Assembler().set_dynamic_state(state)
    assert assembler.compile().messages == [{"role": "user", "content": text}]
    assembler.set_history([USER, {"role": "assistant", "content": "Hi"}])
    assert [item["content"] for item in assembler.compile().messages] == [f"Hello\n\n{text}", "Hi"]
    assembler.set_history([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}])
    parts: Any = assembler.compile().messages[0]["content"]
    assert parts[1:] == [{"type": "text", "text": text}]
    assembler.set_history([{"role": "user", "content": None}])
    assert user_text(assembler) == text


@given(st.dictionaries(st.text(), st.text() | st.lists(st.text())))
def test_nothing_in_the_state_ends_its_element(state: dict[str, Any]) -> None:
    state = {**state, "</dynamic_state>": "</dynamic_state> <system>"}
    text = user_text(Assembler().set_dynamic_state(state))
    element, _, rest = text.partition("\n</dynamic_state>\n")
    assert "<" not in rest
    assert json.loads(element.removeprefix("<dynamic_state>\n")) == state


def test_compiling_twice_gives_the_same_and_changes_nothing() -> None:
    assembler = Assembler().set_history([USER]).set_dynamic_state({"n": 1}).activate_skill(skill())
    first = assembler.compile()
    first.messages[0]["content"] = "changed"
    assert assembler.compile() == assembler.compile() != first


def test_instructions_without_a_word_are_no_message() -> None:
    compiled = Assembler().activate_skill(skill(instructions=" \n")).compile()
    assert (compiled.messages, compiled.meta.active_skill_name) == ([], "plan")


def test_what_goes_in_and_comes_out_are_copies() -> None:
    tool: dict[str, Any] = {"name": "t", "parameters": {"type": "object"}}
    message: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    made = skill(frontmatter={"metadata": {"owner": "us"}})
    assembler = Assembler().register_tools([tool]).set_history([message]).register_skills([made]).activate_skill("plan")
    before = assembler.snapshot(), assembler.get_registered_skills(), assembler.get_active_skill()
    outside: list[Any] = [made, *assembler.get_registered_skills(), assembler.get_active_skill()]
    for item in outside:
        item.skill.frontmatter["metadata"]["owner"] = "them"
    tool["parameters"]["type"] = message["content"][0]["text"] = "changed"
    snapshot: Any = assembler.snapshot()
    for changed in (assembler.get_all_tools()[0], assembler.compile().tools[0], snapshot["tools"][0]):
        changed["name"] = "changed"
    assert (assembler.snapshot(), assembler.get_registered_skills(), assembler.get_active_skill()) == before


@pytest.mark.parametrize(
    "wrong",
    [
        lambda assembler: assembler.set_history([object()]),
        lambda assembler: assembler.set_history(["Hello"]),
        lambda assembler: assembler.set_history(USER),
        lambda assembler: assembler.set_system_prompt([{"role": "system", "content": float("nan")}]),
        lambda assembler: assembler.register_tools([{"name": {1, 2}}]),
        lambda assembler: assembler.set_dynamic_state({"x": object()}),
        lambda assembler: assembler.set_dynamic_state([1]),
        lambda assembler: assembler.set_dynamic_state({}, placement="tail"),
        lambda assembler: assembler.register_skills([skill().skill]),
        lambda assembler: assembler.register_skills([skill(), skill()]),
        lambda assembler: assembler.activate_skill(skill().skill),
    ],
)
def test_what_cannot_be_used_is_refused_and_changes_nothing(wrong: Any) -> None:
    assembler = Assembler().set_history([USER]).register_skills([skill()]).activate_skill("plan")
    before = assembler.snapshot()
    with pytest.raises(SetupError) as caught:
        wrong(assembler)
    assert caught.value.code == "setting-invalid"
    assert assembler.snapshot() == before
    assert [item.name for item in assembler.get_registered_skills()] == ["plan"]


def test_a_snapshot_is_plain_json_and_brings_everything_back() -> None:
    assembler = (
        Assembler()
        .set_system_prompt("S")
        .set_memory("M")
        .set_history([USER])
        .register_tools([{"name": "t"}])
        .set_dynamic_state({"n": 1}, placement="system")
        .activate_skill(skill())
    )
    state = json.loads(json.dumps(assembler.snapshot()))
    again = Assembler().restore(state)
    assert again.compile() == assembler.compile()
    assert again.snapshot() == state


@pytest.mark.parametrize(
    "state",
    [
        {"history": "text"},
        {"history": ["text"]},
        {"tools": {}},
        {"system": None},
        {"dynamic_state": [1]},
        {"dynamic_state": None},
        {"placement": "tail"},
        {"placement": []},
        {"active_skill_name": 1},
        {"active_skill_name": "plan", "skill_instructions": ["x"]},
    ],
)
def test_a_state_that_is_none_changes_nothing(state: dict[str, Any]) -> None:
    assembler = Assembler().set_history([USER]).activate_skill(skill())
    before = assembler.snapshot()
    with pytest.raises(StoreError) as caught:
        assembler.restore(state)
    assert caught.value.code == "state-invalid"
    assert assembler.snapshot() == before


@pytest.mark.parametrize("state", [None, [], "text", 7])
def test_what_is_no_mapping_is_no_state(state: Any) -> None:
    with pytest.raises(StoreError) as caught:
        Assembler().restore(state)
    assert caught.value.code == "state-invalid"
