"""What is left out by name or by place, and what becomes of entries that mean nothing."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from satchel.library import Library, discover
from satchel.skills import inline
from satchel.skills.dialects import MCP
from tests.support import write_skill


def names(library: Library) -> list[str]:
    return [skill.name for skill in library.skills]


def told(library: Library) -> list[tuple[str, str, str]]:
    return [(found.rule, found.severity, found.path) for found in library.diagnostics]


def declared(root: Path, folder: str, name: str) -> Path:
    (root / folder).mkdir(parents=True)
    (root / folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: D.\n---\nB\n", encoding="utf-8")
    return root / folder


def broken(root: Path, folder: str) -> Path:
    (root / folder).mkdir(parents=True)
    (root / folder / "SKILL.md").write_text("broken")
    return root / folder


@pytest.mark.parametrize("entry", ["pdff", "", "/nowhere/pdf", "/nowhere\0"])
def test_an_entry_that_matches_nothing_is_a_warning(tmp_path: Path, entry: str) -> None:
    write_skill(tmp_path, "pdf")
    library = discover(tmp_path, disabled=[entry, entry])
    assert names(library) == ["pdf"]
    assert told(library) == [("disabled-unmatched", "warning", entry)]
    assert ("Did you mean pdf?" in library.diagnostics[0].hint) == (entry == "pdff")


@pytest.mark.parametrize("entry", ["pdf/", "./pdf", "skills/pdf/SKILL.md", "../pdf", "~/pdf"])
def test_a_relative_path_is_told_to_be_absolute(tmp_path: Path, entry: str) -> None:
    write_skill(tmp_path, "pdf")
    (found,) = discover(tmp_path, disabled=entry).diagnostics
    assert (found.rule, "absolute path" in found.hint, "relative path" in found.message) == (
        "disabled-unmatched",
        True,
        True,
    )


def test_a_name_with_a_slash_is_a_name_when_a_skill_declares_it(tmp_path: Path) -> None:
    declared(tmp_path, "linux", "sdk/linux")
    assert names(discover(tmp_path)) == ["sdk-linux"]
    library = discover(tmp_path, disabled="sdk/linux")
    assert (names(library), told(library)) == ([], [])


@pytest.mark.parametrize("entry", ["My  Tool", "my tool", "my-tool", " MY-TOOL"])
def test_the_declared_name_and_the_legal_one_are_one(tmp_path: Path, entry: str) -> None:
    declared(tmp_path, "x", "My  Tool")
    library = discover(tmp_path, disabled=[entry.replace("  ", " ")])
    assert (names(library), told(library)) == ([], [])


@pytest.mark.parametrize("row", ["portable", "flowcraft", "contextchef"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_another_unicode_form_is_the_same_name(tmp_path: Path, row: str, form: str) -> None:
    name = "menu-caf\u00e9"
    declared(tmp_path, "x", unicodedata.normalize("NFD" if form == "NFC" else "NFC", name))
    assert len(discover(tmp_path, dialect=row).skills) == 1
    entry = unicodedata.normalize(form, name)  # pyright: ignore[reportArgumentType]
    library = discover(tmp_path, dialect=row, disabled=[entry])
    assert (names(library), told(library)) == ([], [])


def test_a_broken_folder_is_silenced_by_its_name_or_its_place(tmp_path: Path) -> None:
    folder = broken(tmp_path, "old")
    write_skill(tmp_path, "good")
    assert len(discover(tmp_path).diagnostics) == 1
    for entry in ("old", "OLD", str(folder), str(folder) + "/", str(folder / "SKILL.md"), folder):
        library = discover(tmp_path, disabled=[entry])
        assert (names(library), told(library)) == (["good"], []), entry


def test_so_is_one_whose_manifest_cannot_be_reached(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_skill(root, "good")
    outside = write_skill(tmp_path / "outside", "far")
    (root / "gone").mkdir()
    (root / "gone" / "SKILL.md").symlink_to("nothing")
    (root / "out").mkdir()
    (root / "out" / "SKILL.md").symlink_to(outside / "SKILL.md")
    (root / "linked").symlink_to(outside)
    (root / "lost").symlink_to("nowhere")
    (root / "dir" / "SKILL.md").mkdir(parents=True)
    folders = ("gone", "out", "linked", "lost", "dir")
    assert len(discover(root).diagnostics) == 5
    for left_out in (
        folders,
        [str(root / name) for name in folders],
        [str(root / name / "SKILL.md") for name in ("gone", "out", "dir")] + ["linked", "lost"],
    ):
        library = discover(root, disabled=left_out)
        assert (names(library), told(library)) == (["good"], [])


def test_a_folder_s_name_counts_only_where_no_skill_has_it(tmp_path: Path) -> None:
    declared(tmp_path, "pdf", "other")
    assert names(discover(tmp_path, disabled="pdf")) == []
    declared(tmp_path, "x", "pdf")
    assert names(discover(tmp_path, disabled="pdf")) == ["other"]


def test_a_root_that_is_called_like_something_disabled_is_still_told_of(tmp_path: Path) -> None:
    (tmp_path / "pdf").mkdir()
    write_skill(tmp_path / "pdf" / "deep", "xlsx")
    library = discover([tmp_path / "pdf", tmp_path / "no" / "pdf"], dialect=MCP, disabled=["pdf", "pdf:xlsx"])
    assert names(library) == []
    assert told(library) == [
        ("root-missing", "warning", str(tmp_path / "no" / "pdf")),
        ("disabled-unmatched", "warning", "pdf"),
    ]


def test_an_inline_skill_is_disabled_by_its_name(tmp_path: Path) -> None:
    made = inline(name="pdf", description="D.", instructions="B")
    write_skill(tmp_path, "xlsx")
    library = discover(tmp_path, inline=[made], disabled=["PDF"])
    assert (names(library), told(library), library.get("pdf")) == (["xlsx"], [], None)


def test_what_is_disabled_stays_so_after_a_reload(tmp_path: Path) -> None:
    write_skill(tmp_path, "good")
    library = discover(tmp_path, disabled="late")
    assert told(library) == [("disabled-unmatched", "warning", "late")]
    write_skill(tmp_path, "late")
    library.reload()
    assert (names(library), told(library)) == (["good"], [])
