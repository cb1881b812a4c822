from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.errors import SkillError
from satchel.library import Library, discover, load_skill
from satchel.skills.collide import namespaces
from satchel.skills.dialect import Limits
from satchel.skills.dialects import CONTEXTCHEF, DIALECTS, MCP, PORTABLE, TENSORSHARP
from satchel.skills.model import Skill, SkillRef
from tests.support import write_skill


def rules(library: Library) -> list[tuple[str, str]]:
    return [(found.rule, found.severity) for found in library.diagnostics]


def names(library: Library) -> list[str]:
    return [skill.name for skill in library.skills]


def test_a_namespace_is_the_roots_own_name_and_no_two_roots_share_one(tmp_path: Path) -> None:
    for folder in ("a/skills", "b/skills", "c/.skills"):
        write_skill(tmp_path / folder, "shared", description=f"From {folder}.")
    roots = [tmp_path / folder for folder in ("a/skills", "b/skills", "c/.skills")]
    library = discover(roots, dialect=MCP)
    assert {skill.name: skill.summary for skill in library.skills} == {
        "skills:shared": "From a/skills.",
        "skills-2:shared": "From b/skills.",
        "skills-3:shared": "From c/.skills.",
    }
    assert library.diagnostics == ()
    assert library.load(SkillRef(source="directory", name="skills-2:shared")).skill.summary == "From b/skills."
    assert names(discover(roots, dialect=MCP, disabled=["skills-2:shared"])) == ["skills-3:shared", "skills:shared"]
    assert names(discover(roots, dialect=MCP, disabled=["shared"])) == []
    assert namespaces(["/", "C:\\Own Skills", "/x/文档", "/a-2", "/a", "/a", "/b/a-2"]) == (
        "root",
        "own-skills",
        "root-2",
        "a-2",
        "a",
        "a-3",
        "a-2-2",
    )


def test_of_three_the_last_root_wins_where_the_row_says_so(tmp_path: Path) -> None:
    for root in ("1", "2", "3"):
        write_skill(tmp_path / root, "pdf", description=f"{root}.")
    library = discover([tmp_path / root for root in ("1", "2", "3")], dialect=replace(CONTEXTCHEF, ignores=frozenset()))
    (skill,) = library.skills
    assert (skill.summary, skill.shadowed) == ("3.", (str(tmp_path / "1/pdf"), str(tmp_path / "2/pdf")))
    assert rules(library) == [("name-shadowed", "warning")] * 2


def test_all_of_one_name_can_be_read_each_by_its_record(tmp_path: Path) -> None:
    for root in ("2", "1"):
        write_skill(tmp_path / root, "pdf", description=f"{root}.", files={"where.txt": root})
    library = discover([tmp_path / "2", tmp_path / "1"], dialect="codex")
    first, second = library.skills
    assert [skill.summary for skill in library.skills] == ["1.", "2."]
    assert library.get("pdf") is first
    assert [library.read(skill, "where.txt").text for skill in (first, second, second.ref)] == ["1", "2", "1"]  # pyright: ignore[reportArgumentType]
    assert [library.root_of(skill) for skill in (first, second)] == [str(tmp_path / "1"), str(tmp_path / "2")]
    assert library.at(tmp_path / "2" / "pdf") is second
    assert library.at(tmp_path / "2") is None


def test_a_record_of_another_library_leads_by_its_name_or_nowhere(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf")
    library = discover([tmp_path])
    foreign = Skill(ref=SkillRef(source="x", name="pdf"), description="", summary="", location="/etc")
    assert library.load(foreign).skill.location == str(tmp_path / "pdf")
    with pytest.raises(SkillError) as caught:
        library.load(replace(foreign, ref=SkillRef(source="x", name="none")))
    assert caught.value.code == "skill-not-found"


def test_limits_of_the_caller_take_the_place_of_the_rows(tmp_path: Path) -> None:
    for number in range(4):
        write_skill(tmp_path, f"s{number}", files={"a.txt": "x", "b.txt": "x"})
    library = discover([tmp_path], dialect=TENSORSHARP, limits=replace(TENSORSHARP.limits, skills=3, files=2))
    assert len(library.skills) == 3
    assert rules(library) == [("too-many-skills", "error")]
    with pytest.raises(SkillError):
        library.load(library.skills[0])
    with pytest.raises(SkillError):
        load_skill(tmp_path / "s0", limits=Limits(files=2))
    assert load_skill(tmp_path / "s0", limits=Limits(files=3)).name == "s0"
    strict = discover([tmp_path], limits=Limits(file_bytes=1))
    found = strict.load("s0").skill.diagnostics
    assert [(item.rule, item.severity, Path(item.path).name) for item in found] == [
        ("file-too-large", "warning", "SKILL.md")
    ]


def test_a_full_registry_is_told_once_for_each_root(tmp_path: Path) -> None:
    for root in ("1", "2"):
        for number in range(3):
            write_skill(tmp_path / root, f"r{root}-{number}")
    limits = replace(PORTABLE.limits, skills=2)
    library = discover([tmp_path / "1", tmp_path / "2"], limits=limits)
    assert names(library) == ["r1-0", "r1-1"]
    assert rules(library) == [("too-many-skills", "warning")] * 2
    exact = discover([tmp_path / "1"], limits=replace(limits, skills=3))
    assert (len(exact.skills), rules(exact)) == (3, [])


def test_every_skill_that_is_passed_over_is_told(tmp_path: Path) -> None:
    for folder in (".hidden", "vendor", "plain/in/the/deep/of/it/all"):
        write_skill((tmp_path / folder).parent, (tmp_path / folder).name)
    (tmp_path / "dist").mkdir()
    (tmp_path / ".git").mkdir()
    library = discover([tmp_path])
    assert [(item.rule, item.severity, item.path.removeprefix(str(tmp_path))) for item in library.diagnostics] == [
        ("skill-not-entered", "note", "/.hidden"),
        ("skill-not-entered", "note", "/vendor"),
        ("skill-too-deep", "note", "/plain/in/the/deep/of/it"),
    ]


def test_a_single_skill_is_read_wherever_a_row_looks_for_skills(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "outer", files={"inner/SKILL.md": "---\nname: inner\ndescription: D.\n---\nB\n"})
    for row in DIALECTS:
        if row == "openai-api":  # it takes one SKILL.md, and no other below it
            with pytest.raises(SkillError):
                load_skill(folder, dialect=row)
            continue
        assert load_skill(folder, dialect=row).name == "outer"
    assert [item.rule for item in load_skill(folder, dialect="portable").skill.diagnostics] == ["nested-skill"]
    assert load_skill(folder, dialect="codex").skill.diagnostics == ()
    for row in DIALECTS:
        with pytest.raises(SkillError) as caught:
            load_skill(tmp_path, dialect=row)
        assert caught.value.code == "skill-not-found"


def test_a_skill_that_is_disabled_leaves_no_trace_and_hides_nothing(tmp_path: Path) -> None:
    write_skill(tmp_path / "1", "My Tool", description="First.")
    write_skill(tmp_path / "2", "my-tool", description="Second.")
    library = discover([tmp_path / "1", tmp_path / "2"], disabled=[str(tmp_path / "1" / "My Tool" / "SKILL.md")])
    assert ([skill.summary for skill in library.skills], rules(library)) == (["Second."], [])
    assert discover([tmp_path / "1"], disabled=[" MY-TOOL "]).catalog.skills == ()


def test_readers_never_see_half_a_reload(tmp_path: Path) -> None:
    def fill(version: int) -> None:
        for number in range(20):
            folder = tmp_path / f"s{number}"
            folder.mkdir(exist_ok=True)
            (folder / "SKILL.md").write_text(f"---\nname: s{number}\ndescription: Version {version}.\n---\nB\n")

    fill(0)
    library = discover([tmp_path])
    fill(1)
    seen: list[set[str]] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            catalog = library.catalog
            seen.append({skill.summary for skill in catalog.skills})

    reader = threading.Thread(target=watch)
    reader.start()
    for _ in range(5):
        library.reload()
    stop.set()
    reader.join()
    assert {frozenset(summaries) for summaries in seen} <= {frozenset({"Version 0."}), frozenset({"Version 1."})}
    assert {skill.summary for skill in library.skills} == {"Version 1."}
