"""Seed 004, its two modules: the blocklist (section 4) and the skills of an assembled prompt (section 6), in its row."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from satchel import format_skill_listing, load_skill, load_skills_dir
from satchel.context import Assembler, Blocklist, ToolCheck
from satchel.errors import SkillError
from satchel.skills import inline
from satchel.skills.model import LoadedSkill
from tests.conformance.reading import skill as manifest
from tests.conformance.reading import text, write
from tests.project.tree import pyproject

ROW = "contextchef"
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("read_file", "edit_file", "run_tests")]


def made(name: str, instructions: str = "", *tools: str) -> LoadedSkill:
    return inline(
        name=name,
        description=f"For {name}.",
        instructions=instructions or f"Do {name}.",
        allowed_tools=tools,
        dialect=ROW,
    )


PLANNING = made("planning", "Read the code.", "read_file")
EDITING = made("editing", "Apply the plan.", "edit_file", "run_tests")


def filled() -> Assembler:
    """An assembler with something in every place."""
    history: list[dict[str, Any]] = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Gone."}]
    return (
        Assembler()
        .set_system_prompt("You help.")
        .set_memory("The user is called Ada.")
        .set_history(history)
        .register_tools(TOOLS)
        .register_skills([PLANNING, EDITING])
    )


def contents(assembler: Assembler) -> list[tuple[object, object]]:
    return [(item["role"], item["content"]) for item in assembler.compile().messages]


# Section 4: the blocklist.


def test_nothing_is_blocked_until_it_is_said() -> None:
    blocklist = Blocklist()
    assert blocklist.get_blocked_tools() == []
    assert blocklist.check_tool_call({"name": "write_file"}) == ToolCheck(allowed=True, reason="")


def test_a_blocked_tool_is_refused_with_a_reason_for_the_model() -> None:
    blocklist = Blocklist().set_blocked_tools(["write_file", "edit_file"])
    assert blocklist.check_tool_call({"name": "edit_file"}) == ToolCheck(
        allowed=False, reason='Tool "edit_file" is blocked.'
    )
    assert blocklist.check_tool_call({"name": "read_file"}).allowed


def test_a_list_replaces_the_list_before_and_copies_go_in_and_out() -> None:
    blocklist = Blocklist()
    names = ["a"]
    assert blocklist.set_blocked_tools(names) is blocklist
    names.append("b")
    blocklist.get_blocked_tools().append("c")
    assert blocklist.get_blocked_tools() == ["a"]
    blocklist.set_blocked_tools([*blocklist.get_blocked_tools(), "b"])
    assert blocklist.get_blocked_tools() == ["a", "b"]
    assert blocklist.set_blocked_tools([]).get_blocked_tools() == []


def test_what_is_blocked_leaves_the_compiled_tools_as_they_are() -> None:
    assembler, blocklist = filled(), Blocklist()
    before = assembler.compile()
    blocklist.set_blocked_tools(["read_file", "edit_file", "run_tests"])
    assert assembler.compile() == before
    assert before.tools == TOOLS


def test_a_hint_about_what_is_blocked_is_the_programs_own() -> None:
    blocklist = Blocklist(["edit_file"])
    assembler = filled()
    assert "edit_file" not in str(assembler.compile().messages)
    assembler.set_dynamic_state({"blocked_tools": blocklist.get_blocked_tools()}, placement="last_user")
    assert '{"blocked_tools": ["edit_file"]}' in str(assembler.compile().messages[-2]["content"])


def test_a_blocklist_comes_back_from_its_snapshot() -> None:
    blocklist = Blocklist(["a", "b"])
    state: Any = blocklist.snapshot()
    assert state == {"blocked_tools": ["a", "b"]}
    assert Blocklist(["c"]).restore(state).get_blocked_tools() == ["a", "b"]
    state["blocked_tools"].append("x")
    assert blocklist.get_blocked_tools() == ["a", "b"]
    assert blocklist.restore({}).get_blocked_tools() == []


def test_the_surface_of_the_blocklist_is_no_wider_than_asked_for() -> None:
    public = {name for name, _ in inspect.getmembers(Blocklist, inspect.isfunction) if not name.startswith("_")}
    assert public == {"set_blocked_tools", "get_blocked_tools", "check_tool_call", "snapshot", "restore"}
    assert not inspect.iscoroutinefunction(Blocklist.check_tool_call)


def test_the_two_modules_do_not_know_each_other() -> None:
    (contract,) = (
        row for row in pyproject()["tool"]["importlinter"]["contracts"] if row["id"] == "assembler-blocklist"
    )
    assert (contract["type"], sorted(contract["modules"])) == (
        "independence",
        ["satchel.context.assembler", "satchel.context.blocklist"],
    )


# Section 5.6: the loaders.


def test_a_directory_of_skills_is_loaded_with_the_errors_of_the_bad_ones(tmp_path: Path) -> None:
    write(tmp_path, "one", manifest("one"))
    write(tmp_path, "bad", "# No frontmatter\n")
    write(tmp_path, "group/deep", manifest("deep"))
    result = load_skills_dir(tmp_path, ROW)
    assert [(item.name, item.body) for item in result.skills] == [("one", "Body.")]
    ((path, message),) = ((item.path, item.message) for item in result.errors)
    assert path == str(tmp_path / "bad" / "SKILL.md")
    assert message
    assert filled().register_skills(result.skills).activate_skill("one").compile().messages[1]["content"] == "Body."


# Section 6: activating a skill.


def test_a_skill_is_activated_as_an_object_by_its_name_and_not_at_all() -> None:
    assembler = filled()
    assert assembler.get_active_skill() is None
    assert assembler.activate_skill("planning") is assembler
    assert assembler.get_active_skill() == PLANNING
    assert assembler.activate_skill(made("own")).get_active_skill() == made("own")
    assert assembler.activate_skill(None).get_active_skill() is None
    assert ("system", "Do own.") not in contents(assembler)


def test_one_skill_is_active_at_a_time() -> None:
    assembler = filled().activate_skill("planning").activate_skill("editing")
    assert assembler.get_active_skill() == EDITING
    assert [text for role, text in contents(assembler) if role == "system"] == [
        "You help.",
        "Apply the plan.",
        "The user is called Ada.",
    ]


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    assembler = filled().activate_skill("planning")
    for registered, listed in (([PLANNING, EDITING], "planning, editing"), ([], "(none)")):
        assembler.register_skills(registered)
        with pytest.raises(SkillError) as caught:
            assembler.activate_skill("deploy")
        assert (caught.value.code, listed in caught.value.hint) == ("skill-not-found", True)
        assert assembler.get_active_skill() == PLANNING


def test_registering_replaces_and_copies() -> None:
    assembler = filled()
    assert [item.name for item in assembler.get_registered_skills()] == ["planning", "editing"]
    assembler.get_registered_skills().clear()
    skills = [EDITING]
    assembler.register_skills(skills)
    skills.clear()
    assert assembler.get_registered_skills() == [EDITING]


def test_the_order_of_the_messages() -> None:
    assembler = filled().activate_skill("planning").set_dynamic_state({"n": 1}, placement="system")
    roles = [role for role, _ in contents(assembler)]
    texts = [text for _, text in contents(assembler)]
    assert roles == ["system", "system", "system", "user", "assistant", "system"]
    assert texts[:5] == ["You help.", "Read the code.", "The user is called Ada.", "Go.", "Gone."]
    assert '{"n": 1}' in str(texts[5])
    assembler.set_dynamic_state({"n": 1})
    assert [role for role, _ in contents(assembler)] == roles[:5]
    assert str(contents(assembler)[3][1]).startswith("Go.\n\n<dynamic_state>\n")


def test_the_instructions_are_a_message_of_their_own() -> None:
    without = filled().compile().messages
    with_skill = filled().activate_skill("planning").compile().messages
    assert with_skill == [without[0], {"role": "system", "content": "Read the code."}, *without[1:]]


def test_the_result_says_which_skill_was_active() -> None:
    assert filled().compile().meta.active_skill_name is None
    assert filled().activate_skill("editing").compile().meta.active_skill_name == "editing"
    silent = filled().activate_skill(inline(name="silent", description="S.", instructions="", dialect=ROW))
    assert silent.compile().meta.active_skill_name == "silent"
    assert silent.compile().messages == filled().compile().messages


def test_activating_touches_nothing_else() -> None:
    assembler, blocklist = filled(), Blocklist()
    before = assembler.compile()
    assembler.activate_skill("planning")
    assert blocklist.get_blocked_tools() == []
    assert blocklist.check_tool_call({"name": "edit_file"}).allowed
    after = assembler.compile()
    assert after.tools == before.tools == assembler.get_all_tools() == TOOLS
    assert [item for item in after.messages if item not in before.messages] == [
        {"role": "system", "content": "Read the code."}
    ]


def test_nothing_is_listed_or_read_by_itself(tmp_path: Path) -> None:
    folder = write(tmp_path, "db", text("name: db", "description: Finds slow SQL.", body="Read ./schema.md.\n"))
    (folder / "schema.md").write_text("SCHEMA")
    skill = load_skill(folder / "SKILL.md", ROW)
    said = str(Assembler().register_skills([skill, PLANNING]).activate_skill("db").compile())
    assert "SCHEMA" not in said
    assert "For planning." not in said
    assert "planning: For planning." in format_skill_listing([skill, PLANNING]).text


def test_an_annotation_becomes_enforced_by_the_programs_own_line() -> None:
    assembler, blocklist = filled(), Blocklist()
    skill = assembler.activate_skill("planning").get_active_skill()
    assert skill is not None
    names = [str(tool["function"]["name"]) for tool in TOOLS]  # pyright: ignore[reportArgumentType, reportIndexIssue]
    blocklist.set_blocked_tools([name for name in names if name not in skill.allowed_tools])
    assert blocklist.get_blocked_tools() == ["edit_file", "run_tests"]


# Section 6.4: the snapshot.


def test_a_snapshot_holds_the_name_and_the_instructions_of_an_active_skill() -> None:
    assert {"active_skill_name", "skill_instructions"}.isdisjoint(filled().snapshot())
    state = filled().activate_skill("planning").snapshot()
    assert (state["active_skill_name"], state["skill_instructions"]) == ("planning", "Read the code.")
    silent = inline(name="silent", description="S.", instructions="", dialect=ROW)
    assert Assembler().activate_skill(silent).snapshot()["skill_instructions"] == ""


def test_the_registered_skill_counts_when_a_snapshot_is_restored() -> None:
    state = filled().activate_skill("planning").snapshot()
    newer = made("planning", "Read the code twice.")
    restored = Assembler().register_skills([newer]).restore(state)
    assert restored.get_active_skill() == newer


def test_without_a_registered_skill_its_instructions_are_kept() -> None:
    for instructions in ("Read the code.", ""):
        given = inline(name="planning", description="P.", instructions=instructions, dialect=ROW)
        state = Assembler().activate_skill(given).snapshot()
        kept = Assembler().restore(state).get_active_skill()
        assert kept is not None
        assert (kept.name, kept.description, kept.body) == ("planning", "", instructions)


def test_an_older_snapshot_restores_to_no_skill() -> None:
    assembler = filled().activate_skill("planning")
    assert assembler.restore({}).get_active_skill() is None
    assert assembler.compile().messages == []
    assert filled().restore({"active_skill_name": "gone"}).get_active_skill() is None


def test_one_snapshot_restores_many_times() -> None:
    state = filled().activate_skill("planning").snapshot()
    first, second = (Assembler().restore(state) for _ in range(2))
    first.set_history([]).activate_skill(None).compile().messages.clear()
    assert second.compile() == filled().activate_skill("planning").compile()
