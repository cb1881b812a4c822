from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel.errors import PathError, SkillError
from satchel.library import Library, discover, load_skill
from satchel.skills.dialect import Limits
from satchel.skills.dialects import PORTABLE
from satchel.skills.model import LoadedSkill, Skill, SkillRef
from tests.support import write_skill


@pytest.fixture
def library(tmp_path: Path) -> Library:
    write_skill(
        tmp_path,
        "pdf",
        body="One\n",
        files={
            "references/long.md": "é" * 100,
            "scripts/run.py": "print()",
            "empty.txt": "",
            "Makefile": "all:\n",
            ".env": "hidden",
            "node_modules/x/index.js": "x",
            "LICENSE": "MIT",
        },
    )
    (tmp_path / "pdf" / "data.bin").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "pdf" / "blob").write_bytes(b"a\0b")
    (tmp_path / "pdf" / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "pdf" / "link.md").symlink_to("references/long.md")
    return discover([tmp_path])


def refusal(library: Library, path: str, offset: int = 0) -> PathError:
    with pytest.raises(PathError) as caught:
        library.read("pdf", path, offset=offset)
    return caught.value


def test_loading_gives_the_body_the_files_and_what_the_bytes_hash_to(library: Library, tmp_path: Path) -> None:
    data = (tmp_path / "pdf" / "SKILL.md").read_bytes()
    loaded = library.load("PDF")
    assert loaded.body == "One\n"
    assert loaded.manifest_bytes == len(data)
    assert loaded.modified == (tmp_path / "pdf" / "SKILL.md").stat().st_mtime
    assert loaded.skill.ref == SkillRef(
        source="directory", name="pdf", digest=f"sha256:{hashlib.sha256(data).hexdigest()}"
    )
    assert library.skills[0].ref.digest == ""
    assert [(file.path, file.kind, file.bytes, file.is_text) for file in loaded.files] == [
        ("LICENSE", "license", 3, True),
        ("Makefile", "other", 5, True),
        ("SKILL.md", "manifest", len(data), True),
        ("blob", "asset", 3, False),
        ("data.bin", "asset", 6, False),
        ("empty.txt", "reference", 0, True),
        ("latin.txt", "reference", 4, True),
        ("references/long.md", "reference", 200, True),
        ("scripts/run.py", "script", 7, True),
    ]


def test_an_unknown_skill_is_told_with_near_names(library: Library) -> None:
    with pytest.raises(SkillError) as caught:
        library.load("pfd")
    assert (caught.value.code, caught.value.hint) == ("skill-not-found", "Did you mean pdf?")


def test_a_skill_that_has_become_unusable_is_told_without_its_place(library: Library, tmp_path: Path) -> None:
    (tmp_path / "pdf" / "SKILL.md").write_text("---\nname: pdf\n---\n")
    with pytest.raises(SkillError) as caught:
        library.load("pdf")
    assert caught.value.code == "skill-invalid"
    assert str(tmp_path) not in caught.value.message
    assert caught.value.data["path"] == str(tmp_path / "pdf")


def test_ceilings_of_one_skill(tmp_path: Path) -> None:
    write_skill(tmp_path, "big", files={f"f{number}": "xxxx" for number in range(5)})
    for limits in (replace(Limits(), files=5), replace(Limits(), skill_bytes=20)):
        with pytest.raises(SkillError) as caught:
            discover([tmp_path], dialect=replace(PORTABLE, limits=limits)).load("big")
        assert caught.value.code == "skill-invalid"


def test_metadata_changes_with_a_reload_and_bodies_at_once(library: Library, tmp_path: Path) -> None:
    before = library.catalog
    (tmp_path / "pdf" / "SKILL.md").write_text("---\nname: pdf\ndescription: New.\n---\nTwo\n")
    loaded = library.load("pdf")
    assert (loaded.body, loaded.skill.description) == ("Two\n", before.skills[0].description)
    after = library.reload()
    assert after is library.catalog
    assert after.revision != before.revision
    assert (after.skills[0].description, before.skills[0].description != "New.") == ("New.", True)
    assert library.reload().revision == after.revision


def test_pages_follow_each_other_and_never_split_a_character(library: Library) -> None:
    first = library.read("pdf", "references/long.md", max_bytes=33)
    assert (first.text, first.start, first.end, first.total, first.is_last) == ("é" * 16, 0, 32, 200, False)
    assert library.read("pdf", "references/long.md", offset=33, max_bytes=4).start == 32
    last = library.read("pdf", "./references\\long.md", offset=198)
    assert (last.text, last.is_last) == ("é", True)


def test_reads_that_cannot_be_answered_name_the_reason(library: Library) -> None:
    past = refusal(library, "references/long.md", 200)
    assert past.code == "offset-past-end"
    assert "200 bytes" in past.message
    assert "offset 200" in past.message
    assert [refusal(library, path).code for path in ("data.bin", "blob", "none", "references", "../pdf/SKILL.md")] == [
        "binary-file",
        "binary-file",
        "path-not-found",
        "not-a-file",
        "path-refused",
    ]
    assert "6 bytes" in refusal(library, "data.bin").message


def test_odd_reads_that_can_be_answered(library: Library) -> None:
    assert library.read("pdf", "empty.txt", offset=9).is_last
    assert library.read("pdf", "Makefile", offset=-5).start == 0
    assert library.read("pdf", "latin.txt").text == "caf\ufffd"
    assert library.read("pdf", "link.md").total == 200
    assert library.read("pdf", "skill.MD").text.startswith("---\nname: pdf")


@given(text=st.text(max_size=40), size=st.integers(1, 12), offset=st.integers(0, 60))
def test_pages_put_together_are_the_file(
    tmp_path_factory: pytest.TempPathFactory, text: str, size: int, offset: int
) -> None:
    root = tmp_path_factory.getbasetemp() / "paged"
    if not root.exists():
        write_skill(root, "a")
    data = text.replace("\0", "").encode("utf-8", "ignore")
    (root / "a" / "f.txt").write_bytes(data)
    library = discover([root])
    pages = [library.read("a", "f.txt", max_bytes=size)]
    while not pages[-1].is_last:
        pages.append(library.read("a", "f.txt", offset=pages[-1].end, max_bytes=size))
    assert "".join(page.text for page in pages).encode() == data
    if offset < len(data):
        page = library.read("a", "f.txt", offset=offset, max_bytes=size)
        assert page.start <= offset < page.end
        assert page.text.encode() == data[page.start : page.end]


def test_load_skill_takes_a_folder_or_its_manifest(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "pdf")
    assert load_skill(folder) == load_skill(str(folder / "SKILL.md")) == satchel.load_skill(folder, dialect="portable")
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(SkillError):
            load_skill(place)
    (folder / "SKILL.md").write_text("---\nname: pdf\na: [\n---\n")
    with pytest.raises(SkillError) as caught:
        load_skill(folder)
    assert caught.value.code == "skill-invalid"
    diagnostics = caught.value.data["diagnostics"]
    assert isinstance(diagnostics, list)


def test_the_public_names_are_all_there() -> None:
    assert {name: getattr(satchel, name) for name in satchel.__all__}
    assert set(satchel.__all__) <= set(dir(satchel))
    with pytest.raises(AttributeError):
        satchel.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def test_a_skill_that_was_deleted_is_not_found_any_more(library: Library, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "pdf")
    calls: list[Callable[[], object]] = [lambda: library.load("pdf")]
    calls += [lambda path=path: library.read("pdf", path) for path in ("SKILL.md", "", "references/long.md", "none")]
    for call in calls:
        with pytest.raises(SkillError) as caught:
            call()
        assert (caught.value.code, str(tmp_path) in caught.value.message) == ("skill-not-found", False)
    assert library.get("pdf") is not None
    library.reload()
    assert library.get("pdf") is None


def test_a_skill_without_its_manifest_is_gone_and_a_broken_one_is_not(library: Library, tmp_path: Path) -> None:
    manifest = tmp_path / "pdf" / "SKILL.md"
    manifest.unlink()
    with pytest.raises(SkillError) as gone:
        library.load("pdf")
    manifest.write_text("broken")
    with pytest.raises(SkillError) as broken:
        library.load("pdf")
    assert (gone.value.code, broken.value.code) == ("skill-not-found", "skill-invalid")
    assert refusal(library, "none").code == "path-not-found"


def test_a_loaded_skill_answers_for_its_metadata(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "pdf", body="Do it.\n")
    front = (
        "name: pdf\ndescription: Reads PDFs.\nlicense: MIT\nversion: 1.2.0\nmetadata: {team: docs}\nallowed-tools: Read"
    )
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\nDo it.\n")
    loaded = load_skill(folder)
    assert (loaded.name, loaded.description, loaded.body) == ("pdf", "Reads PDFs.", "Do it.\n")
    assert (loaded.metadata, loaded.frontmatter["license"], loaded.diagnostics) == ({"team": "docs"}, "MIT", ())
    names = [*(field.name for field in fields(Skill))]
    names += [name for name, value in vars(Skill).items() if isinstance(value, property)]
    for name in names:
        assert getattr(loaded, name) == getattr(loaded.skill, name), name
    with pytest.raises((AttributeError, TypeError)):
        loaded.description = "x"  # pyright: ignore[reportAttributeAccessIssue]
    assert [field.name for field in fields(LoadedSkill)] == ["skill", "body", "manifest_bytes", "files", "modified"]


def test_a_page_says_where_the_next_one_begins(library: Library) -> None:
    assert library.read("pdf", "references/long.md", max_bytes=20).next_offset == 20
    assert library.read("pdf", "references/long.md").next_offset is None
    assert library.read("pdf", "empty.txt").next_offset is None
