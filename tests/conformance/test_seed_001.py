"""Seed 001, skills of a server: reading, finding, files, the block and the two tools in its row."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.chat.messages import Json
from satchel.context.block import BlockOptions, plan, render_block
from satchel.errors import PathError, SkillError
from satchel.library import Library, discover, load_skill
from satchel.library.roots import default_roots
from satchel.pathguard import is_inside, open_inside
from satchel.skills.dialects import TENSORSHARP
from satchel.skills.model import LoadedSkill
from satchel.sources.directory import DirectorySource
from satchel.tools.access import SkillAccess
from satchel.tools.base import ToolCall, ToolContext, ToolResult
from satchel.tools.skills_list import SkillsList
from satchel.tools.skills_read import SkillsRead
from tests.cli.calling import caller
from tests.conformance.reading import REFUSED, D, good, names, read, skill, text, verdict, write

ROW = "tensorsharp"
LIMITS = TENSORSHARP.limits


def found(*lines: str, directory: str = "a") -> list[tuple[str, str]]:
    manifest = read(ROW, text(*lines), directory)
    assert manifest.skill is not None
    return [(item.rule, item.severity) for item in manifest.diagnostics]


@pytest.mark.parametrize(
    ("content", "directory", "rule"),
    [
        ("# Only text\n", "a", "frontmatter-missing"),
        (f"---\nname: a\n{D}\n", "a", "frontmatter-unterminated"),
        (text("name: a", D, "metadata:\n\tx: y"), "a", "yaml-invalid"),
        (text("name: a", D, "license: MIT", "license: MIT"), "a", "yaml-duplicate-key"),
        (text("name: a", "license: MIT"), "a", "description-missing"),
        (text("name: a", 'description: " \\n "'), "a", "description-missing"),
        (text("name: '!!!'", D), "文档", "name-unusable"),
    ],
)
def test_what_refuses_a_skill(content: str, directory: str, rule: str) -> None:
    assert verdict(read(ROW, content, directory)) == (REFUSED, rule)


def test_everything_else_is_a_warning() -> None:
    assert found("name: foo", D) == [("name-directory-mismatch", "warning")]
    assert found("name: My PDF Tool", D, directory="my-pdf-tool") == [("name-normalized", "warning")]
    assert found(D, directory="tool") == [("name-missing", "warning")]
    assert found("name: a", "description: " + "x" * 1068) == [("description-long", "warning")]
    assert found("name: a", D, "compatibility: " + "x" * 501) == [("compatibility-long", "warning")]
    assert found("name: a", D, "metadata: text") == [("field-shape", "warning")]
    assert found("name: a", D, "metadata: {version: '1', tags: [x]}") == [("metadata-not-text", "warning")]
    assert found("name: a", D, "license: [MIT]") == [("field-shape", "warning")]


def test_a_name_is_made_legal_before_the_directory_s_is_used() -> None:
    assert good(read(ROW, skill("My PDF Tool"), "other")).name == "my-pdf-tool"
    assert good(read(ROW, skill("a--b_"), "other")).name == "a-b"
    assert good(read(ROW, text(D), "Some Folder")).name == "some-folder"
    assert good(read(ROW, skill("'!!!'"), "folder")).name == "folder"
    assert good(read(ROW, skill("x" * 65), "x")).name == "x" * 64


def test_fields_and_the_keys_outside_them() -> None:
    a = good(
        read(
            ROW,
            text(
                "name: a",
                "description: >-",
                "  Two",
                "  lines.",
                "license: Apache-2.0",
                "compatibility: Needs python3",
                "metadata: {version: '1.2.0', author: us, extra: [x]}",
                "allowed-tools: Bash(git:*) Read",
                "Own_Key: {x: [1]}",
            ),
        )
    )
    assert (a.summary, a.text("license"), a.compatibility) == ("Two lines.", "Apache-2.0", "Needs python3")
    assert a.metadata == {"version": "1.2.0", "author": "us"}
    assert a.allowed_tools == ("Bash(git:*)", "Read")
    assert a.frontmatter["Own_Key"] == {"x": ["1"]}
    assert good(read(ROW, text("name: a", D, "allowed-tools: [Read, Write]"))).allowed_tools == ("Read", "Write")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A skill with a file of each kind and another one."""
    pdf = write(
        tmp_path,
        "pdf",
        text(
            "name: pdf",
            "description: Reads PDF files. Use for PDF.",
            "compatibility: Needs python3 with pypdf",
            body="Run `scripts/extract.py`.\n",
        ),
    )
    for path in (
        "scripts/extract.py",
        "python/run.py",
        "references/forms.md",
        "reference/api.txt",
        "examples/one.md",
        "notes.md",
        "assets/page.html",
        "core/data.csv",
    ):
        (pdf / path).parent.mkdir(exist_ok=True)
        (pdf / path).write_text(f"CONTENT OF {path}\n")
    (pdf / "core" / "blob.bin").write_bytes(b"\0" * 300)
    write(tmp_path, "xlsx", text("name: xlsx", D, body="SHEETS\n"))
    return tmp_path


def test_bundled_files_are_classified_and_any_layout_loads(root: Path) -> None:
    loaded = load_skill(root / "pdf", dialect=ROW)
    assert loaded.skill.diagnostics == ()
    assert {file.path: file.kind for file in loaded.files} == {
        "SKILL.md": "manifest",
        "scripts/extract.py": "script",
        "python/run.py": "script",
        "references/forms.md": "reference",
        "reference/api.txt": "reference",
        "examples/one.md": "reference",
        "notes.md": "reference",
        "assets/page.html": "asset",
        "core/blob.bin": "asset",
        "core/data.csv": "other",
    }
    assert [file.path for file in loaded.files if not file.is_text] == ["core/blob.bin"]


def test_ceilings_of_one_skill(tmp_path: Path) -> None:
    assert (LIMITS.manifest_bytes, LIMITS.files, LIMITS.skill_bytes) == (4 * 1024**2, 4096, 256 * 1024**2)
    folder = write(tmp_path, "a", skill("a"))
    library = discover([tmp_path], dialect=ROW)
    for number in range(4095):
        (folder / f"{number}.txt").touch()
    assert len(library.load("a").files) == 4096
    (folder / "one-more.txt").touch()
    assert [item["rule"] for item in refusals(library)] == ["too-many-files"]
    for number in range(4095):
        (folder / f"{number}.txt").unlink()
    with (folder / "one-more.txt").open("wb") as file:
        file.truncate(256 * 1024**2)
    assert [item["rule"] for item in refusals(library)] == ["skill-too-large"]


def refusals(library: Library) -> list[dict[str, object]]:
    with pytest.raises(SkillError) as caught:
        library.load("a")
    told = caught.value.data["diagnostics"]
    assert isinstance(told, list)
    return told


def test_a_registry_holds_512_skills_and_says_when_there_are_more(tmp_path: Path) -> None:
    for number in range(513):
        write(tmp_path, f"s{number:03d}", skill(f"s{number:03d}"))
    library = discover([tmp_path], dialect=ROW)
    assert len(library.skills) == 512
    assert [(item.rule, item.severity) for item in library.diagnostics] == [("too-many-skills", "error")]


def test_the_scanner_walks_three_levels_and_tells_real_violations_as_warnings(tmp_path: Path) -> None:
    long = text("name: claude-api", "description: " + "x" * 1068)
    write(tmp_path, "skills/claude-api", long)
    write(tmp_path, "skills/docx", skill("docx"))
    write(tmp_path, "template", skill("template-skill"))
    write(tmp_path, "1/2/three", skill("three"))
    write(tmp_path, "1/2/3/four", skill("four"))
    library = discover([tmp_path], dialect=ROW)
    assert names(library) == ["claude-api", "docx", "template-skill", "three"]
    told = [(item.rule, item.severity) for item in library.diagnostics if item.severity != "note"]
    assert sorted(told) == [("description-long", "warning"), ("name-directory-mismatch", "warning")]


def test_roots_by_default(tmp_path: Path) -> None:
    repository, install = tmp_path / "repo", tmp_path / "install"
    deep = repository / "a" / "b"
    near, far, above = (folder / ".agents" / "skills" for folder in (deep, repository, tmp_path))
    for folder in (near, far, above, tmp_path / ".claude" / "skills"):
        folder.mkdir(parents=True)
    # Outside a repository only the working directory counts, and nobody's personal folder ever does.
    assert default_roots(deep, install) == (str(near),)
    (repository / ".git").mkdir()
    assert default_roots(deep, install) == (str(near), str(far))
    install.mkdir()
    assert default_roots(deep, install) == (str(install), str(near), str(far))


def test_given_roots_replace_the_defaults_and_must_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("SATCHEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path, ".agents/skills/default", skill("default"))
    write(tmp_path, "one/first", skill("first"))
    write(tmp_path, "two/second", skill("second"))
    satchel = caller(capsys)
    listed = satchel("list", "--json").json["skills"]
    assert [item["name"] for item in listed] == ["default"]
    listed = satchel("list", "--skills-dir", "two", "--skills-dir", "one", "--json").json["skills"]
    assert [item["name"] for item in listed] == ["first", "second"]
    mistyped = satchel("list", "--skills-dir", "oen")
    assert (mistyped.code, mistyped.out) == (2, "")
    assert ["--skills-dir" in mistyped.err, "oen" in mistyped.err] == [True, True]


def test_a_name_in_two_roots_is_an_error_and_nothing_is_renamed(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    write(one, "pdf", skill("pdf", "One."))
    write(two, "pdf", skill("pdf", "Two."))
    library = discover([one, two], dialect=ROW)
    assert [(item.name, item.summary) for item in library.skills] == [("pdf", "One.")]
    (collision,) = library.diagnostics
    assert (collision.rule, collision.severity, collision.path) == (
        "name-shadowed",
        "error",
        str(two / "pdf" / "SKILL.md"),
    )
    assert str(one / "pdf") in collision.message


def access(root: Path, *reachable: str, page_bytes: int = 48 * 1024) -> SkillAccess:
    library = discover([root], dialect=ROW)
    skills = [item for item in library.skills if item.name in reachable]
    return SkillAccess(DirectorySource(library), skills, page_bytes=page_bytes)


async def run(tool: SkillsRead | SkillsList, **arguments: Json) -> ToolResult:
    return await tool.run(ToolCall(call_id="c", name=tool.spec.name, arguments=arguments), ToolContext())


async def test_three_tiers_of_disclosure(root: Path) -> None:
    to = access(root, "pdf", "xlsx")
    library = discover([root], dialect=ROW)
    block = render_block([await asyncio.to_thread(library.load, "pdf")], library.skills)
    assert "- pdf: Reads PDF files. Use for PDF. (" in block
    assert "- xlsx: Sample skill for tests." in block
    assert "Run `scripts/extract.py`" not in block
    assert "SHEETS" not in block
    instructions = await run(SkillsRead(to), skill="pdf", path="SKILL.md")
    assert "Run `scripts/extract.py`.\n" in instructions.text
    assert instructions.loaded is not None
    assert "- references/forms.md (" in instructions.text
    assert "CONTENT OF" not in instructions.text
    file = await run(SkillsRead(to), skill="pdf", path="references/forms.md")
    assert file.text.endswith("CONTENT OF references/forms.md\n")
    assert file.loaded is None


async def test_the_list_names_each_skill_its_description_what_it_requires_and_its_files(root: Path) -> None:
    listed = (await run(SkillsList(access(root, "pdf", "xlsx")))).text
    for part in (
        "\npdf\n",
        "Reads PDF files. Use for PDF.",
        "requires: Needs python3 with pypdf",
        "scripts/extract.py",
        "core/blob.bin [binary]",
        "\nxlsx\n",
    ):
        assert part in listed
    assert str(root) not in listed


async def test_a_page_has_48_kb_and_its_footer_is_the_next_call(root: Path) -> None:
    (root / "pdf" / "references" / "api.md").write_text("x" * 49_153)
    to = access(root, "pdf")
    first = (await run(SkillsRead(to), skill="pdf", path="references/api.md")).text
    assert first.startswith("Skill: pdf\nFile: references/api.md\nBytes 0-49152 of 49153\n\nx")
    assert first.endswith(
        '[Truncated. Continue with skills_read(skill="pdf", path="references/api.md", offset=49152).]'
    )
    rest = (await run(SkillsRead(to), skill="pdf", path="references/api.md", offset=49_152)).text
    assert rest == "Skill: pdf\nFile: references/api.md\nBytes 49152-49153 of 49153\n\nx"


async def test_a_path_inside_one_skill_never_reaches_another(root: Path) -> None:
    (root / "pdf" / "xlsx").symlink_to(root / "xlsx")
    tool = SkillsRead(access(root, "pdf"))
    for path in ("../xlsx/SKILL.md", "pdf/../../xlsx/SKILL.md", "xlsx/SKILL.md", str(root / "xlsx" / "SKILL.md")):
        refused = await run(tool, skill="pdf", path=path)
        assert not refused.ok
        assert "SHEETS" not in refused.text
    unreachable = await run(tool, skill="xlsx", path="SKILL.md")
    assert (unreachable.ok, unreachable.code) == (False, "skill-not-found")
    assert "Available skills: pdf." in unreachable.text
    both = await run(SkillsRead(access(root, "pdf", "xlsx")), skill="xlsx", path="SKILL.md")
    assert "SHEETS" in both.text


async def test_a_parent_segment_is_refused_as_one_and_never_rewritten(root: Path) -> None:
    tool = SkillsRead(access(root, "pdf"))
    for path in ("../notes.md", "references/../../none.md", "..\\xlsx\\SKILL.md"):
        refused = await run(tool, skill="pdf", path=path)
        assert refused.code == "path-refused"
        assert "escapes the skill directory" in refused.text
        assert "does not exist" not in refused.text


def test_spellings_are_refused_before_the_disk_is_touched() -> None:
    for path in ("../x", "/x", "~/x", "\\\\server\\x", "C:\\x", "a\0b", "run.py.", "run.py "):
        with pytest.raises(PathError) as caught:
            os.close(open_inside("/no/such/root", path))
        assert caught.value.code == "path-refused"
    with pytest.raises(PathError) as caught:
        os.close(open_inside("/no/such/root", "x"))
    assert caught.value.code == "path-not-found"


def test_containment_follows_the_case_rule_of_the_host() -> None:
    assert is_inside("/skills/pdf/a", "/skills/pdf")
    assert is_inside("/SKILLS/pdf/a", "/skills/pdf") is (os.path.normcase("A") == "a")


def test_every_component_of_a_path_is_resolved_not_only_the_last(root: Path, tmp_path: Path) -> None:
    library = discover([root], dialect=ROW)
    pdf = root / "pdf"
    (pdf / "references" / "host").symlink_to("/")
    (pdf / "near").symlink_to("references")
    assert library.read("pdf", "near/forms.md").text == "CONTENT OF references/forms.md\n"
    for path in ("references/host/etc/passwd", "references/host", "near/host/etc/passwd"):
        with pytest.raises(PathError) as caught:
            library.read("pdf", path)
        assert (caught.value.code, "symbolic link" in caught.value.message) == ("path-refused", True)


def selected(name: str = "pdf", body: str = "Steps.\n") -> LoadedSkill:
    data = text(f"name: {name}", "description: Reads files. Use when asked.", body=body)
    return LoadedSkill(skill=good(read(ROW, data, name)), body=body, manifest_bytes=len(data))


def test_the_rules_of_the_block() -> None:
    rules = " ".join(render_block([selected()]).split())
    for part in (
        "ask one focused question",
        "wait for the answer before any step that depends on it",
        "resume the pending task",
        "outrank your default approach",
        "not every request needs a skill",
        "also as $name",
        "call no skill tool just to start a turn",
        "read its whole SKILL.md",
        "never on the host",
        "install paths are examples",
        "Prefer a script that the skill ships",
        "Load a reference only when the task calls for it",
        "continue from the offset",
    ):
        assert part in rules


def test_the_block_changes_with_nothing_but_the_skills_and_the_options(tmp_path: Path) -> None:
    made: set[str] = set()
    for home in ("one", "two/deeper"):
        for name in ("b", "a", "c"):
            write(tmp_path / home, name, skill(name))
        library = discover([tmp_path / home], dialect=ROW)
        loaded = [library.load(name) for name in ("c", "a")]
        made |= {render_block(loaded, library.skills), render_block(loaded[::-1], library.skills[::-1])}
    assert len(made) == 1
    assert str(tmp_path) not in made.pop()


def test_a_body_that_is_too_large_is_cut_where_there_are_no_tools() -> None:
    block = plan(
        [selected(body="x" * 20_000)], [selected("b").skill], BlockOptions(read_tool=False, context_tokens=4096)
    )
    assert (block.inlined, block.advertised) == (("pdf",), ())
    assert "[The instructions are cut here" in block.text
    assert "skills_read" not in block.text


def test_a_long_description_is_trimmed_at_a_word_with_dots() -> None:
    words = replace(selected().skill, summary="word " * 300)
    line = next(line for line in render_block([], [words]).splitlines() if line.startswith("- pdf: "))
    told = line.removeprefix("- pdf: ")
    assert len(told) <= 1024
    assert told.endswith("word...")
