from __future__ import annotations

import pytest

import satchel.skills
from satchel.context.block import render_block
from satchel.errors import SkillError
from satchel.skills import inline
from satchel.skills.dialects import DIALECTS


def test_a_skill_of_plain_values() -> None:
    loaded = inline(
        name="planning",
        description="Plan changes\nbefore editing",
        instructions=" Read code.\r\n",
        when_to_use="Before an edit",
        allowed_tools=["read_file", "grep"],
        frontmatter={"license": "MIT", "own": {"a": ["b"]}},
    )
    skill = loaded.skill
    assert (loaded.name, loaded.body, loaded.files) == ("planning", " Read code.\r\n", ())
    assert (skill.summary, skill.when_to_use, skill.allowed_tools) == (
        "Plan changes before editing",
        "Before an edit",
        ("read_file", "grep"),
    )
    assert (skill.ref.source, skill.location, skill.trusted, skill.diagnostics) == ("inline", "", False, ())
    assert skill.frontmatter["own"] == {"a": ["b"]}
    assert "planning: Plan changes before editing" in render_block([loaded])


@pytest.mark.parametrize(
    ("row", "name", "instructions", "rule"),
    [
        ("portable", " ", "x", "name-unusable"),
        ("agent-sh", "My Tool", "x", "name-normalized"),
        ("flowcraft", "a", "", "body-empty"),
        ("anthropic-api", "claude-x", "x", "name-reserved"),
    ],
)
def test_what_a_dialect_refuses_in_a_file_it_refuses_here(row: str, name: str, instructions: str, rule: str) -> None:
    with pytest.raises(SkillError) as caught:
        inline(name=name, description="D.", instructions=instructions, dialect=row)
    assert caught.value.code == "skill-invalid"
    found = caught.value.data["diagnostics"]
    assert isinstance(found, list)
    assert rule in [item["rule"] for item in found]


def test_a_description_is_needed_here_too() -> None:
    for row in DIALECTS:
        with pytest.raises(SkillError):
            inline(name="a", description=" ", instructions="x", dialect=row)
        assert inline(name="a", description="D.", instructions="x", dialect=row).skill.diagnostics == ()


def test_other_names_of_the_package_do_not_exist() -> None:
    assert not hasattr(satchel.skills, "inlined")
