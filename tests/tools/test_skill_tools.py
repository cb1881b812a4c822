from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from satchel.chat.messages import Json
from satchel.library import discover
from satchel.skills.model import Skill
from satchel.sources.directory import DirectorySource
from satchel.tools.access import SkillAccess, mention
from satchel.tools.base import ToolCall, ToolContext, ToolResult
from satchel.tools.skills_list import SkillsList
from satchel.tools.skills_read import SkillsRead
from tests.support import write_skill

BODY = "# PDF\n\nFill forms as `references/forms.md` says.\nRun scripts/run.py for tables.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    pdf = write_skill(
        tmp_path,
        "pdf",
        body=BODY,
        files={
            "references/forms.md": "Field 7\n",
            "scripts/run.py": "print(7)\n",
            "LICENSE": "MIT",
            "pdf/own.md": "own\n",
        },
    )
    (pdf / "assets").mkdir()
    (pdf / "assets" / "t.bin").write_bytes(b"\0" * 2000)
    (pdf / "out").symlink_to("../xlsx")
    write_skill(tmp_path, "xlsx", body="Sheets.\n")
    write_skill(tmp_path, "hidden", body="Secret.\n")
    return tmp_path


def access(
    root: Path, *, reachable: Collection[str] = ("pdf", "xlsx"), selected: Collection[str] = (), page_bytes: int = 49152
) -> SkillAccess:
    library = discover([root])
    skills: list[Skill] = [skill for skill in library.skills if skill.name in reachable]
    return SkillAccess(DirectorySource(library), skills, selected=selected, page_bytes=page_bytes)


async def read(to: SkillAccess, **arguments: Json) -> ToolResult:
    return await SkillsRead(to).run(ToolCall(call_id="c", name="skills_read", arguments=arguments), ToolContext())


async def listing(to: SkillAccess, **arguments: Json) -> ToolResult:
    return await SkillsList(to).run(ToolCall(call_id="c", name="skills_list", arguments=arguments), ToolContext())


async def test_reading_the_instructions(root: Path) -> None:
    result = await read(access(root), skill="pdf", path="SKILL.md")
    data = (root / "pdf" / "SKILL.md").read_text()
    assert result.text == (
        f"Skill: pdf\nFile: SKILL.md\n\n{data}\n"
        "[Files of this skill, not part of SKILL.md; read one with skills_read when the task calls for it]\n"
        "- assets/t.bin [binary] (2 KB)\n- pdf/own.md (4 B)\n- references/forms.md (8 B)\n- scripts/run.py (9 B)"
    )
    assert (result.ok, result.skill, result.path, result.loaded_bytes) == (True, "pdf", "SKILL.md", len(data))
    assert result.loaded is not None
    assert result.loaded.digest.startswith("sha256:")


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"skill": "PDF"}, "SKILL.md"),
        ({"skill": " $pdf ", "path": ""}, "SKILL.md"),
        ({"skill": "pdf", "path": "."}, "SKILL.md"),
        ({"skill": "pdf", "path": "pdf/SKILL.md"}, "SKILL.md"),
        ({"skill": "pdf", "path": "./skill.md"}, "SKILL.md"),
        ({"skill": "pdf", "path": "pdf/references/forms.md"}, "references/forms.md"),
        ({"skill": "pdf", "file": "references\\forms.md"}, "references/forms.md"),
        ({"skill": "pdf", "resource": "./references/forms.md"}, "references/forms.md"),
        ({"skill": "pdf", "script": "scripts/run.py"}, "scripts/run.py"),
        ({"skill": "pdf", "path": "pdf/own.md"}, "pdf/own.md"),
    ],
)
async def test_slightly_wrong_arguments_are_understood(root: Path, arguments: dict[str, Json], path: str) -> None:
    result = await read(access(root), **arguments)
    assert (result.ok, result.path) == (True, path)
    assert f"\nFile: {path}\n" in result.text


@pytest.mark.parametrize("written", [300, 300.7, "300", " 300 ", "3e2"])
async def test_an_offset_is_read_however_it_is_written(root: Path, written: Json) -> None:
    (root / "pdf" / "long.txt").write_text("x" * 400)
    result = await read(access(root), skill="pdf", path="long.txt", offset=written)
    assert "\nBytes 300-400 of 400\n" in result.text


@pytest.mark.parametrize("written", [None, True, [], {}, "soon", -5, "nan", float("inf"), "9" * 5000])
async def test_an_offset_that_cannot_be_read_is_the_start(root: Path, written: Json) -> None:
    result = await read(access(root), skill="pdf", path="references/forms.md", offset=written)
    assert result.text == "Skill: pdf\nFile: references/forms.md\n\nField 7\n"


async def test_a_long_file_comes_in_pages_with_the_call_for_the_next(root: Path) -> None:
    (root / "pdf" / "long.md").write_text("é" * 300)
    to = access(root, page_bytes=1)
    first = await read(to, skill="pdf", path="pdf/long.md")
    assert first.text.startswith("Skill: pdf\nFile: long.md\nBytes 0-256 of 600\n\né")
    assert first.text.endswith('é\n\n[Truncated. Continue with skills_read(skill="pdf", path="long.md", offset=256).]')
    last = await read(to, skill="pdf", path="long.md", offset=512)
    assert last.text == f"Skill: pdf\nFile: long.md\nBytes 512-600 of 600\n\n{'é' * 44}"
    past = await read(to, skill="pdf", path="long.md", offset=600)
    assert (past.ok, past.code) == (False, "offset-past-end")
    assert "600" in past.text


async def test_long_instructions_count_as_loaded_with_their_last_page(root: Path) -> None:
    write_skill(root, "long", body="y" * 400)
    to = access(root, reachable=["long"], page_bytes=256)
    first = await read(to, skill="long")
    assert first.loaded is None
    assert "[Files of this skill" not in first.text
    last = await read(to, skill="long", offset=256)
    assert last.loaded is not None
    assert last.loaded_bytes > 400


async def test_a_second_read_answers_again_and_says_so(root: Path) -> None:
    to = access(root)
    first = await read(to, skill="pdf", path="references/forms.md")
    second = await read(to, skill="pdf", path="references/forms.md")
    note = "(You have read this before in this turn; here it is again.)\n"
    assert note not in first.text
    assert second.text.replace(note, "") == first.text
    assert second.ok


@pytest.mark.parametrize(
    ("arguments", "code", "fragments"),
    [
        ({}, "missing-argument", ["needs the name of a skill", "Available skills: pdf, xlsx."]),
        ({"skill": ["pdf"]}, "missing-argument", ["Available skills"]),
        ({"skill": "pdfs"}, "skill-not-found", ['No skill called "pdfs" is available. Available skills: pdf, xlsx.']),
        ({"skill": "hidden"}, "skill-not-found", ['No skill called "hidden" is available.']),
        ({"skill": "../hidden"}, "skill-not-found", ["is available"]),
        ({"skill": "pdf", "path": "../hidden/SKILL.md"}, "path-refused", ["escapes the skill directory"]),
        ({"skill": "pdf", "path": "pdf/../../hidden/SKILL.md"}, "path-refused", ["escapes the skill directory"]),
        ({"skill": "pdf", "path": "out/SKILL.md"}, "path-refused", ["symbolic link"]),
        ({"skill": "pdf", "path": "/etc/passwd"}, "path-refused", ["absolute path"]),
        ({"skill": "pdf", "path": "hidden/SKILL.md"}, "path-not-found", ["does not exist in this skill"]),
        ({"skill": "pdf", "path": "forms.md"}, "path-not-found", ["Did you mean references/forms.md?"]),
        ({"skill": "pdf", "path": "references"}, "not-a-file", ["is a directory", "references/forms.md"]),
        ({"skill": "pdf", "path": "zzz"}, "path-not-found", ['skills_list(skill="pdf")']),
        ({"skill": "pdf", "path": "assets/t.bin"}, "binary-file", ["binary file", "2000"]),
    ],
)
async def test_failures_are_sentences_that_say_what_to_do(
    root: Path, arguments: dict[str, Json], code: str, fragments: list[str]
) -> None:
    result = await read(access(root), **arguments)
    assert (result.ok, result.code) == (False, code)
    assert result.text.startswith("Error: ")
    assert [fragment for fragment in fragments if fragment not in result.text] == []
    assert "Secret" not in result.text
    assert str(root) not in result.text


async def test_no_skills_at_all(root: Path) -> None:
    result = await read(access(root, reachable=[]), skill="pdf")
    assert result.text == "Error: No skills are available in this conversation."


async def test_a_skill_that_broke_meanwhile_is_told_without_its_place(root: Path) -> None:
    to = access(root)
    (root / "pdf" / "SKILL.md").write_text("broken")
    for result in (await read(to, skill="pdf"), await listing(to, skill="pdf")):
        assert (result.ok, result.code) == (False, "skill-invalid")
        assert str(root) not in result.text
    whole = await listing(to)
    assert "cannot be read now" in whole.text
    assert "xlsx" in whole.text


async def test_listing_skills_and_their_files(root: Path) -> None:
    (root / "xlsx" / "SKILL.md").write_text(
        "---\nname: xlsx\ndescription: Sheets.\ncompatibility: Needs\n  python3\n---\nB\n"
    )
    result = await listing(access(root, selected=["xlsx"]))
    assert result.text == (
        "2 skills are available.\n\n"
        "pdf\n  Knows all about pdf. Use when the user asks for pdf.\n"
        "  files: SKILL.md, assets/t.bin [binary], pdf/own.md, references/forms.md, scripts/run.py\n\n"
        "xlsx (selected for this conversation)\n  Sheets.\n  requires: Needs python3\n  files: SKILL.md only"
    )
    assert (await listing(access(root, reachable=["xlsx"]))).text.startswith("1 skill is available.\n\nxlsx\n")


async def test_many_skills_come_in_pages(root: Path) -> None:
    names = [f"skill-{number:02d}" for number in range(40)]
    for name in names:
        write_skill(root, name)
    to = access(root, reachable=names, page_bytes=1000)
    seen: list[str] = []
    offset: Json = 0
    while offset is not None:
        text = (await listing(to, offset=offset)).text
        assert len(text.encode()) < 1200
        seen += [line for line in text.splitlines() if line in names]
        _, cut, rest = text.partition("[More skills follow. Continue with skills_list(offset=")
        offset = rest.removesuffix(").]") if cut else None
    assert seen == names


async def test_many_files_are_counted_and_listed_on_request(root: Path) -> None:
    write_skill(root, "many", files={f"references/{number:03d}.md": "x" for number in range(100)})
    to = access(root, reachable=["many"], page_bytes=1000)
    assert "references/029.md, … and 70 more" in (await listing(to)).text
    instructions = await read(to, skill="many")
    assert instructions.text.endswith('- references/039.md (1 B)\n(60 more; call skills_list(skill="many"))')
    first = await listing(to, skill="many")
    assert first.text.startswith("many: SKILL.md and 100 bundled files.\n- references/000.md\n")
    assert '[More files follow. Continue with skills_list(skill="many", offset=' in first.text
    assert (await listing(to, skill="many", offset=99)).text.endswith("\n- references/099.md")
    assert not (await listing(to, skill="none")).ok


def test_a_model_that_nobody_leads_is_offered_no_choices(root: Path) -> None:
    source = DirectorySource(discover([root]))
    skills = source.library.skills
    assert SkillsRead(SkillAccess(source, skills)).spec.choices
    assert SkillsRead(SkillAccess(source, skills, offers_choices=False)).spec.choices == ()


async def test_choices_follow_what_was_read(root: Path) -> None:
    to = access(root, selected=["xlsx"])
    tool = SkillsRead(to)

    def offered() -> list[tuple[dict[str, str], str]]:
        return [(dict(choice.arguments), choice.label) for choice in tool.spec.choices]

    xlsx = ({"skill": "xlsx", "path": "SKILL.md"}, "Knows all about xlsx. Use when the user asks for xlsx.")
    assert offered() == [
        xlsx,
        ({"skill": "pdf", "path": "SKILL.md"}, "Knows all about pdf. Use when the user asks for pdf."),
    ]
    await read(to, skill="pdf")
    forms = ({"skill": "pdf", "path": "references/forms.md"}, "Fill forms as `references/forms.md` says.")
    assert offered() == [
        xlsx,
        ({"skill": "pdf", "path": "pdf/own.md"}, ""),
        forms,
        ({"skill": "pdf", "path": "scripts/run.py"}, "Run scripts/run.py for tables."),
    ]
    await read(to, skill="pdf", path="references/forms.md")
    assert forms not in offered()
    await read(to, skill="xlsx")
    assert [arguments["path"] for arguments, _ in offered()] == ["pdf/own.md", "scripts/run.py"]


async def test_the_rest_of_a_long_file_is_a_choice(root: Path) -> None:
    write_skill(root, "long", body="y" * 400)
    to = access(root, reachable=["long"], page_bytes=256)
    await read(to, skill="long")
    (choice,) = SkillsRead(to).spec.choices
    assert choice.arguments == {"skill": "long", "path": "SKILL.md", "offset": "256"}
    await read(to, **choice.arguments)
    assert SkillsRead(to).spec.choices == ()


def test_declarations_are_flat(root: Path) -> None:
    to = access(root)
    for tool in (SkillsList(to), SkillsRead(to)):
        parameters = tool.spec.parameters
        properties = parameters["properties"]
        assert isinstance(properties, dict)
        assert all(isinstance(item, dict) and item["type"] in {"string", "integer"} for item in properties.values())
    assert SkillsList(to).spec.parameters["required"] == []
    assert SkillsRead(to).spec.parameters["required"] == ["skill"]


def test_a_skill_called_as_a_tool_is_explained(root: Path) -> None:
    to = access(root)
    assert 'skills_read(skill="pdf", path="SKILL.md")' in to.advise("PDF")
    assert to.advise("hidden") == to.advise("view_image") == ""


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("a\n- **Forms**: see `references/forms.md`.\nb", "- **Forms**: see `references/forms.md`."),
        ("see forms.md\r\nmore", "see forms.md"),
        ("see my-references/forms.md", ""),
        ("see references/forms.mdx", ""),
        ("", ""),
    ],
)
def test_the_line_that_mentions_a_file(body: str, line: str) -> None:
    assert mention(body, "references/forms.md") == line
