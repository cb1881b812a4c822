"""Seed 002, a read-only skill service: contract, roots and discovery, reads and the section, in its row."""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.context.listings import render_section
from satchel.errors import SkillError
from satchel.library import discover
from tests.conformance.reading import REFUSED, D, good, names, read, skill, text, verdict, write

ROW = "flowcraft"
NOTES = text(
    "name: release-notes",
    "description: Draft release notes from a merged PR list. Use when preparing a release.",
    body="\n# Release notes\n",
)


def test_the_contract_of_a_manifest(tmp_path: Path) -> None:
    write(tmp_path, "release-notes", NOTES)
    library = discover([tmp_path], dialect=ROW)
    (notes,) = library.skills
    assert (notes.name, library.diagnostics) == ("release-notes", ())
    assert notes.summary == "Draft release notes from a merged PR list. Use when preparing a release."
    assert library.load("release-notes").body == "# Release notes"


def test_a_name_that_differs_from_the_directory_is_accepted_with_a_warning() -> None:
    manifest = read(ROW, skill("foo"), "bar")
    assert good(manifest).name == "foo"
    assert [(item.rule, item.severity) for item in manifest.diagnostics] == [("name-directory-mismatch", "warning")]


@pytest.mark.parametrize(
    ("content", "directory", "rule"),
    [
        ("# Only text\n", "a", "frontmatter-missing"),
        (f"---\nname: a\n{D}\n", "a", "frontmatter-unterminated"),
        (text("name: a", D, body=" \n\n"), "a", "body-empty"),
        (text("name: a"), "a", "description-missing"),
        (text("name: '!!!'", D), "文档", "name-unusable"),
    ],
)
def test_only_malformed_files_fail(content: str, directory: str, rule: str) -> None:
    assert verdict(read(ROW, content, directory)) == (REFUSED, rule)


def test_a_root_is_one_skill_or_a_tree_or_missing_and_never_implied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = write(tmp_path, "tree/a/b/c/one", skill("one"))
    write(tmp_path, ".agents/skills/own", skill("own"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert names(discover([one], dialect=ROW)) == ["one"]
    assert names(discover([tmp_path / "tree"], dialect=ROW)) == ["one"]
    missing = discover([tmp_path / "gone"], dialect=ROW)
    assert (missing.skills, missing.diagnostics) == ((), ())
    assert discover([], dialect=ROW).skills == ()


def test_hidden_entries_are_skipped_and_a_hidden_root_is_not(tmp_path: Path) -> None:
    write(tmp_path, ".hidden/one", skill("one"))
    write(tmp_path, "seen/two", skill("two"))
    assert names(discover([tmp_path], dialect=ROW)) == ["two"]
    assert names(discover([tmp_path / ".hidden"], dialect=ROW)) == ["one"]


def test_a_linked_tree_is_walked_once_under_its_real_path(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    real = write(other, "deep/one", skill("one"))
    root.mkdir()
    (root / "alias").symlink_to(other)
    (other / "deep" / "up").symlink_to(root)
    (other / "deep" / "one" / "self").symlink_to(other / "deep")
    for roots in ([root, other], [other, root], [other, other, root, root]):
        library = discover(roots, dialect=ROW)
        assert [(item.name, item.location) for item in library.skills] == [("one", str(real))]
        assert library.diagnostics == ()


def test_what_fails_stands_among_the_diagnostics_and_fails_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, "good", skill("good"))
    write(tmp_path, "odd", skill("differs"))
    write(tmp_path, "bad", text("name: bad"))
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    library = discover([tmp_path], dialect=ROW)
    assert names(library) == ["differs", "good"]
    assert sorted((item.rule, item.severity) for item in library.diagnostics) == [
        ("description-missing", "error"),
        ("name-directory-mismatch", "warning"),
        ("symlink-dangling", "error"),
    ]


def test_results_are_sorted_by_name_then_path_and_every_copy_of_a_name_is_kept(tmp_path: Path) -> None:
    for root in ("2", "1"):
        for name in ("b", "a"):
            write(tmp_path / root, name, skill(name, f"From {root}."))
    library = discover([tmp_path / "2", tmp_path / "1"], dialect=ROW)
    assert [(item.name, item.summary) for item in library.skills] == [
        ("a", "From 1."),
        ("a", "From 2."),
        ("b", "From 1."),
        ("b", "From 2."),
    ]
    assert library.get("a") is library.skills[0]
    assert [library.load(item).skill.summary for item in library.skills[:2]] == ["From 1.", "From 2."]


def test_a_reload_swaps_a_snapshot_that_never_changes(tmp_path: Path) -> None:
    one = write(tmp_path, "one", skill("one"))
    library = discover([tmp_path], dialect=ROW)
    before = library.catalog
    write(tmp_path, "two", skill("two"))
    (one / "SKILL.md").write_text(skill("one", "Changed."))
    assert library.catalog is before
    after = library.reload()
    assert [item.summary for item in after.skills] == ["Changed.", "Sample skill for tests."]
    assert [(item.name, item.summary) for item in before.skills] == [("one", "Sample skill for tests.")]
    with pytest.raises(AttributeError):
        after.skills = ()  # pyright: ignore[reportAttributeAccessIssue]


def test_a_disabled_skill_is_left_out_before_names_are_settled(tmp_path: Path) -> None:
    first = write(tmp_path / "1", "one", skill("one", "First."))
    write(tmp_path / "2", "one", skill("one", "Second."))
    write(tmp_path / "2", "two", skill("two"))
    roots = [tmp_path / "1", tmp_path / "2"]
    by_path = discover(roots, dialect=ROW, disabled=[str(first / "SKILL.md"), "two"])
    assert [(item.name, item.summary) for item in by_path.skills] == [("one", "Second.")]
    assert by_path.at(first) is None
    assert discover(roots, dialect=ROW, disabled=["one", "two"]).skills == ()


def test_a_full_read_is_the_metadata_and_the_body_without_the_frontmatter(tmp_path: Path) -> None:
    write(tmp_path, "release-notes", NOTES)
    loaded = discover([tmp_path], dialect=ROW).load("release-notes")
    assert (loaded.skill.name, loaded.skill.summary[:19]) == ("release-notes", "Draft release notes")
    assert loaded.body == "# Release notes"


def test_a_path_that_is_not_in_the_snapshot_reads_nothing(tmp_path: Path) -> None:
    one = write(tmp_path / "root", "one", skill("one"))
    outside = write(tmp_path, "outside", skill("outside"))
    library = discover([tmp_path / "root"], dialect=ROW)
    (known,) = library.skills
    assert library.at(one / "SKILL.md") is known
    for path in (outside, outside / "SKILL.md", one / "other.md", tmp_path / "root", one / ".." / "one", "/etc/passwd"):
        assert library.at(path) is None
    (one / "SKILL.md").unlink()
    library.reload()
    assert library.at(one / "SKILL.md") is None
    with pytest.raises(SkillError) as caught:
        library.load(known)
    assert caught.value.code == "skill-not-found"


def test_a_link_that_has_left_the_roots_since_is_refused(tmp_path: Path) -> None:
    root, store = tmp_path / "root", tmp_path / "store"
    write(store, "one", skill("one"))
    secret = write(tmp_path / "outside", "one", text("name: one", D, body="SECRET\n"))
    (root / "one").mkdir(parents=True)
    (root / "one" / "SKILL.md").symlink_to(store / "one" / "SKILL.md")
    library = discover([root, store], dialect=ROW)
    (one,) = library.skills
    assert library.load(one).body == "Body."
    (store / "one" / "SKILL.md").unlink()
    (store / "one" / "SKILL.md").symlink_to(secret / "SKILL.md")
    for ask in ("one", one):
        with pytest.raises(SkillError) as caught:
            library.load(ask)
        assert caught.value.code == "skill-invalid"
        assert "SECRET" not in str(caught.value.data)


def test_the_section_lists_metadata_and_never_a_body(tmp_path: Path) -> None:
    folder = write(tmp_path, "release-notes", NOTES)
    shown = render_section(discover([tmp_path], dialect=ROW).skills).text
    head, first, entry = shown.split("\n")
    assert head == "## Skills"
    assert ["skill_search" in first, "skill_read" in first, "$name" in first] == [True, True, True]
    assert entry == (
        "- release-notes: Draft release notes from a merged PR list. Use when preparing a release. "
        f"(file: {folder / 'SKILL.md'})"
    )
    assert "# Release notes" not in shown.replace("- release-notes", "")
