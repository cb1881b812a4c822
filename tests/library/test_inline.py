"""Skills without a file in a library, beside those of its roots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import satchel
from satchel.errors import PathError, SetupError, SkillError
from satchel.library import Library, discover
from satchel.skills.dialects import CONTEXTCHEF, DIALECTS, MCP
from satchel.skills.model import LoadedSkill, SkillRef
from satchel.sources.directory import DirectorySource
from tests.support import write_skill


def made(name: str = "plan", description: str = "Plans changes.", body: str = "Read $0 first.\n") -> LoadedSkill:
    return satchel.inline(name=name, description=description, instructions=body)


def summaries(library: Library) -> list[tuple[str, str]]:
    return [(skill.name, skill.summary) for skill in library.skills]


def test_they_stand_beside_the_skills_of_the_roots(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf", description="Reads PDFs.")
    library = satchel.discover(tmp_path, inline=[made()])
    assert summaries(library) == [("pdf", "Reads PDFs."), ("plan", "Plans changes.")]
    plan = library.get("PLAN")
    assert plan is not None
    assert (plan.location, plan.ref.source, library.root_of(plan), library.at("")) == ("", "inline", "", None)
    for asked in ("plan", plan, plan.ref, SkillRef(source="directory", name="plan")):
        loaded = library.load(asked)
        assert (loaded.body, loaded.skill, loaded.files) == ("Read $0 first.\n", plan, ())
    assert library.diagnostics == ()


def test_no_roots_are_needed() -> None:
    library = discover([], inline=iter([made("a"), made("b")]))
    assert [skill.name for skill in library.skills] == ["a", "b"]
    with pytest.raises(SkillError) as caught:
        library.load("c")
    assert caught.value.code == "skill-not-found"


def test_the_body_is_read_in_pages_as_skill_md(tmp_path: Path) -> None:
    library = discover(tmp_path, inline=[made(body="é" * 10), made("empty", body="")])
    for path in ("", "SKILL.md", "./skill.MD"):
        assert library.read("plan", path).text == "é" * 10
    first = library.read("plan", "SKILL.md", max_bytes=7)
    assert (first.text, first.start, first.end, first.total, first.next_offset) == ("é" * 3, 0, 6, 20, 6)
    assert library.read("plan", "SKILL.md", 7).start == 6
    assert library.read("plan", "", 18).next_offset is None
    assert library.read("empty", "SKILL.md", 5).total == 0


@pytest.mark.parametrize(
    ("path", "offset", "code"),
    [
        ("references/a.md", 0, "path-not-found"),
        ("../x", 0, "path-refused"),
        ("/etc/passwd", 0, "path-refused"),
        ("SKILL.md", 99, "offset-past-end"),
    ],
)
def test_there_are_no_files_to_read(tmp_path: Path, path: str, offset: int, code: str) -> None:
    library = discover(tmp_path, inline=[made()])
    with pytest.raises(PathError) as caught:
        library.read("plan", path, offset)
    assert caught.value.code == code
    assert code != "path-not-found" or "no files" in caught.value.message


def test_code_comes_before_every_root_and_the_rest_is_told(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "plan", description="On disk.")
    library = discover(tmp_path, inline=[made(), made(description="Again.")])
    assert summaries(library) == [("plan", "Plans changes.")]
    assert library.skills[0].shadowed == (str(folder),)
    assert library.load("plan").skill == library.skills[0]
    assert [(found.rule, found.path) for found in library.diagnostics] == [
        ("name-shadowed", ""),
        ("name-shadowed", str(folder / "SKILL.md")),
    ]
    assert "by a skill without a file" in library.diagnostics[0].message


def test_a_row_s_rule_for_one_name_holds_for_them_too(tmp_path: Path) -> None:
    write_skill(tmp_path / "inline", "plan", description="On disk.")
    two = [made(), made(description="Again.", body="Two.")]
    for row in DIALECTS.values():
        library = discover(tmp_path / "inline", inline=two, dialect=replace(row, min_depth=1, refuses=frozenset()))
        expected = {
            "first": [("plan", "Plans changes.")],
            "last": [("plan", "On disk.")],
            "all": [("plan", "Plans changes."), ("plan", "Again."), ("plan", "On disk.")],
            "namespace": [("inline-2:plan", "On disk."), ("inline:plan", "Plans changes.")],
        }
        assert summaries(library) == expected[row.collision]
        assert [library.load(skill).summary for skill in library.skills] == [item[1] for item in summaries(library)]
    every = discover(tmp_path / "inline", inline=two, dialect="codex")
    assert [library_body(every, skill) for skill in every.skills[:2]] == ["Read $0 first.\n", "Two."]
    last = discover(tmp_path / "inline", inline=two, dialect=CONTEXTCHEF)
    assert last.skills[0].shadowed == ()
    assert discover(tmp_path, inline=[made()], dialect=MCP).load("inline:plan").name == "inline:plan"


def library_body(library: Library, skill: satchel.Skill) -> str:
    return library.read(skill, "SKILL.md").text


def test_a_reload_keeps_them(tmp_path: Path) -> None:
    library = discover(tmp_path, inline=[made()])
    before = library.catalog
    write_skill(tmp_path, "pdf")
    assert [skill.name for skill in library.reload().skills] == ["pdf", "plan"]
    assert library.load("plan").body == "Read $0 first.\n"
    assert [skill.name for skill in before.skills] == ["plan"]


def test_a_skill_of_a_directory_is_not_taken_for_one(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as caught:
        discover([], inline=[satchel.load_skill(write_skill(tmp_path, "pdf"))])
    assert caught.value.code == "setting-invalid"


def test_what_a_row_tolerates_in_them_is_told_too() -> None:
    tolerated = satchel.inline(name="My Plan", description="D.", instructions="x")
    library = discover([], inline=[tolerated])
    assert [found.rule for found in library.diagnostics] == ["name-normalized"]
    assert library.get("my plan") == library.get("my-plan") == tolerated.skill


def test_the_rest_of_the_package_takes_them() -> None:
    plan = made()
    assert satchel.format_skill_listing([plan]).text == "- plan: Plans changes."
    assert satchel.format_skill_listing([plan]) == satchel.format_skill_listing([plan.skill])
    assert satchel.available_skills([plan]) == satchel.available_skills([plan.skill])
    assert satchel.render_section([plan]) == satchel.render_section([plan.skill])
    assert satchel.slash_menu([plan]).text == "/plan - Plans changes."
    assert "- plan: Plans changes." in satchel.render_block([plan])
    assert "- plan: Plans changes." in satchel.render_block(others=discover([], inline=[plan]).skills)
    assert satchel.substitute(plan.body, ["notes"], dialect="claude-code").text == "Read notes first.\n"
    assert satchel.substitute_skill(plan, "notes", dialect="claude-code").text == "Read notes first.\n"


async def test_a_runtime_s_source_serves_them() -> None:
    source = DirectorySource(discover([], inline=[made()]))
    catalog = await source.scan()
    assert catalog is not None
    (skill,) = catalog.skills
    assert (await source.load(skill.ref)).body == "Read $0 first.\n"
    assert (await source.read(skill.ref, "SKILL.md", max_bytes=4)).text == "Read"
