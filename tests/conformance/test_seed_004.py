"""Seed 004, the skill primitive: type, loaders and listing (its section 5), in its row."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from satchel.context.listings import format_skill_listing
from satchel.errors import SkillError
from satchel.library import discover, load_skill
from satchel.skills import inline
from satchel.skills.model import Flags
from tests.conformance.reading import D, good, names, read, skill, text, write

ROW = "contextchef"
DEBUG = text(
    "name: db-debug",
    "description: Diagnose database query and connection issues",
    "whenToUse: When the user reports slow SQL, connection errors, or ORM exceptions",
    "allowedTools: [query_db, tail_logs, read_file, grep]",
    body="\nDiagnostic steps:\n1. Check `SELECT 1`\n\nReferences:\n- ./docs/db-schema.md\n",
)


def test_a_skill_needs_no_file_no_loader_and_no_markdown() -> None:
    planning = inline(
        name="planning",
        description="Plan changes before editing",
        instructions="Read code, list affected files.",
        allowed_tools=["read_file", "grep"],
        dialect=ROW,
    )
    editing = inline(name="editing", description="Apply planned changes", instructions="One at a time.", dialect=ROW)
    assert (planning.body, planning.skill.allowed_tools) == ("Read code, list affected files.", ("read_file", "grep"))
    assert (planning.skill.location, planning.files) == ("", ())
    listed = format_skill_listing([planning.skill, editing.skill]).text
    assert listed == "- planning: Plan changes before editing\n- editing: Apply planned changes"


def test_the_file_format(tmp_path: Path) -> None:
    folder = write(tmp_path, "db-debug", DEBUG)
    loaded = load_skill(folder / "SKILL.md", dialect=ROW)
    debug = loaded.skill
    assert (debug.name, debug.description) == ("db-debug", "Diagnose database query and connection issues")
    assert debug.when_to_use == "When the user reports slow SQL, connection errors, or ORM exceptions"
    assert debug.allowed_tools == ("query_db", "tail_logs", "read_file", "grep")
    assert loaded.body.startswith("Diagnostic steps:")
    assert "name: db-debug" not in loaded.body
    assert debug.diagnostics == ()


@pytest.mark.parametrize("line", ["name: a", D])
def test_name_and_description_are_required(tmp_path: Path, line: str) -> None:
    folder = write(tmp_path, "a", text(line))
    with pytest.raises(SkillError) as caught:
        load_skill(folder / "SKILL.md", dialect=ROW)
    assert caught.value.code == "skill-invalid"


def test_nothing_else_is() -> None:
    a = good(read(ROW, text("name: Any Name!", "description: " + "x" * 3000, body=""), "elsewhere"))
    assert (a.name, a.when_to_use, a.allowed_tools, a.diagnostics) == ("Any Name!", "", (), ())


@pytest.mark.parametrize("line", ["model: m", "temperature: 0.1", "paths: {a: b}", "version: x", "license: [MIT]"])
def test_a_field_that_is_not_supported_is_preserved_and_does_nothing(line: str) -> None:
    a = good(read(ROW, text("name: a", D, line)))
    assert list(a.frontmatter) == ["name", "description", line.partition(":")[0]]
    assert (a.paths, a.flags, a.diagnostics) == ((), Flags(), ())


def test_allowed_tools_are_an_annotation() -> None:
    with_tools = good(read(ROW, text("name: a", D, "allowedTools: [Read]")))
    without = good(read(ROW, text("name: a", D)))
    assert (with_tools.allowed_tools, without.allowed_tools) == (("Read",), ())
    assert with_tools.flags == without.flags
    assert format_skill_listing([with_tools]) == format_skill_listing([without])


@pytest.mark.parametrize("content", ["", "# Text\n", "---\nname: a\n", text("name: a", D, "x: 'y\n  z"), text(D)])
def test_loading_one_file_raises_where_loading_a_directory_collects(tmp_path: Path, content: str) -> None:
    folder = write(tmp_path, "bad", content)
    write(tmp_path, "good", skill("good"))
    with pytest.raises(SkillError):
        load_skill(folder / "SKILL.md", dialect=ROW)
    library = discover([tmp_path], dialect=ROW)
    assert names(library) == ["good"]
    (error,) = library.diagnostics
    assert (error.severity, error.path) == ("error", str(folder / "SKILL.md"))
    assert error.message


def test_a_directory_is_looked_at_one_level_deep_and_nothing_without_being_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("skills/one", "skills/group/two", "skills/one/three", ".context-chef/skills/four"):
        write(tmp_path, folder, skill(folder.rpartition("/")[2]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert names(discover(["skills"], dialect=ROW)) == ["one"]
    assert discover([], dialect=ROW).skills == ()


def test_the_base_of_a_skill_is_absolute_and_leads_to_its_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path, "skills/db-debug", DEBUG)
    (folder / "docs").mkdir()
    (folder / "docs" / "db-schema.md").write_text("SCHEMA")
    monkeypatch.chdir(tmp_path)
    loaded = load_skill("./skills/db-debug/SKILL.md", dialect=ROW)
    assert loaded.skill.location == str(folder)
    assert "SCHEMA" not in repr(loaded)
    assert discover(["skills"], dialect=ROW).read("db-debug", "./docs/db-schema.md").text == "SCHEMA"


def test_the_listing_and_its_defaults() -> None:
    debug = good(read(ROW, DEBUG, "db-debug"))
    other = good(read(ROW, skill("frontend-refactor", "Moves components"), "x"))
    plain = (
        "- db-debug: Diagnose database query and connection issues. "
        "Use when the user reports slow SQL, connection errors, or ORM exceptions.\n"
        "- frontend-refactor: Moves components"
    )
    assert format_skill_listing([debug, other]).text == plain
    parameters = inspect.signature(format_skill_listing).parameters
    assert {name: parameters[name].default for name in ("max_chars", "format", "include_when_to_use")} == {
        "max_chars": None,
        "format": "plain",
        "include_when_to_use": True,
    }
    assert len(format_skill_listing([debug] * 500).text) > 50_000
    bare = format_skill_listing([debug], include_when_to_use=False)
    assert bare.text == "- db-debug: Diagnose database query and connection issues"
    assert len(format_skill_listing([debug, other], max_chars=40).text) == 40
    assert format_skill_listing([debug], format="xml").text.startswith("<skills>\n  <skill>\n    <name>db-debug</name>")
