"""Checks 1 to 20 of the designs' acceptance list: parsing and discovery."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from satchel.context.budget import DESCRIPTION_CAP, truncate
from satchel.errors import PathError, SkillError
from satchel.library import discover, load_skill
from satchel.skills.dialects import CONTEXTCHEF, DIALECTS
from satchel.skills.manifest import parse_manifest
from tests.conformance.reading import REFUSED, D, good, names, read, skill, text, verdict, write


def test_1_line_ends_of_windows() -> None:
    for row in ("agent-sh", "contextchef", "tnsai"):
        manifest = read(row, "---\r\nname: foo\r\ndescription: hi\r\n---\r\nbody", "foo")
        assert (good(manifest).name, manifest.diagnostics) == ("foo", ())
        assert "body" in manifest.body


def test_2_a_byte_order_mark_is_no_reason_for_a_warning(tmp_path: Path) -> None:
    folder = write(tmp_path, "bom-skill", "\ufeff" + skill("bom-skill"))
    for row in ("flowcraft", "tensorsharp"):
        library = discover([tmp_path], dialect=row)
        assert (names(library), library.diagnostics) == (["bom-skill"], ())
        assert library.load("bom-skill").body.strip() == "Body."
    assert (folder / "SKILL.md").read_bytes().startswith(b"\xef\xbb\xbf")


def test_3_a_name_with_capitals_and_an_underscore() -> None:
    content = skill("My_Skill")
    assert verdict(read("flowcraft", content, "My_Skill")) == ("my-skill", "name-normalized")
    assert verdict(read("tensorsharp", content, "My_Skill")) == ("my-skill", "name-normalized")
    assert verdict(read("agent-sh", content, "My_Skill"))[:2] == (REFUSED, "name-normalized")


def test_4_a_directory_whose_name_cannot_stand_in() -> None:
    manifest = read("flowcraft", text(D), "文档")
    assert manifest.skill is None
    assert "文档" in manifest.diagnostics[0].message
    assert "not usable as a fallback" in manifest.diagnostics[0].message


def test_5_a_mismatch_beside_a_neighbour_without_a_description(tmp_path: Path) -> None:
    write(tmp_path, "bar", skill("foo"))
    write(tmp_path, "none", text("name: none"))
    for row in ("flowcraft", "tensorsharp"):
        library = discover([tmp_path], dialect=row)
        assert names(library) == ["foo"]
        assert [(item.rule, item.severity) for item in library.diagnostics] == [
            ("name-directory-mismatch", "warning"),
            ("description-missing", "error"),
        ]
    strict = discover([tmp_path], dialect="agent-sh")
    assert [(item.rule, Path(item.path).parent.name) for item in strict.diagnostics] == [
        ("name-directory-mismatch", "bar"),
        ("description-missing", "none"),
    ]


def test_6_a_name_of_65_characters() -> None:
    content = skill("a" * 65)
    assert verdict(read("flowcraft", content, "long-name-skill")) == ("long-name-skill", "name-normalized")
    assert verdict(read("agent-sh", content, "long-name-skill"))[0] == REFUSED


def test_7_a_description_of_2048_characters() -> None:
    content = text("name: a", "description: " + "描" * 2048)
    assert len(good(read("flowcraft", content)).summary) == 1024
    kept = good(read("tensorsharp", content))
    assert [item.rule for item in kept.diagnostics] == ["description-long"]
    assert len(kept.description) == 2048
    shown = truncate(kept.summary, DESCRIPTION_CAP)
    assert len(shown) <= 1024
    assert shown.endswith("...")


def test_8_folded_descriptions() -> None:
    lines = ("name: a", "description: >", "  first line", "  second line")
    assert good(read("tensorsharp", text(*lines))).summary == "first line second line"
    assert good(read("contextchef", text(*lines, "", "  para two"))).description.endswith("second line\npara two\n")


@pytest.mark.parametrize(
    ("row", "value", "tools"),
    [
        ("agent-sh", '"Read, Grep, Bash(git:*)"', ("Read", "Grep", "Bash(git:*)")),
        ("tensorsharp", "Bash(git:*) Read", ("Bash(git:*)", "Read")),
        ("agent-sh", "Bash(git log:*), Read", ("Bash(git log:*)", "Read")),
        ("portable", "Bash(git log:*), Read", ("Bash(git log:*)", "Read")),
    ],
)
def test_9_allowed_tools_as_text(row: str, value: str, tools: tuple[str, ...]) -> None:
    assert good(read(row, text("name: a", D, f"allowed-tools: {value}"))).allowed_tools == tools


@pytest.mark.parametrize("shape", ["{Read: yes}", "[Read, [Grep]]", "[Read, {a: b}]"])
def test_10_a_known_key_of_the_wrong_shape(shape: str) -> None:
    manifest = read("contextchef", text("name: a", D, f"allowedTools: {shape}"))
    assert verdict(manifest) == (REFUSED, "field-shape-unsafe")
    assert verdict(read("contextchef", text("name: a", D, f"my-tools: {shape}"))) == ("a",)


def test_11_text_stays_text_and_unknown_keys_stay() -> None:
    lines = ("license: MIT", "compatibility: node", "metadata: {version: '1.0'}", "x-vendor-field: kept")
    read_skill = good(read("tensorsharp", text("name: a", D, *lines)))
    assert read_skill.metadata == {"version": "1.0"}
    assert read_skill.frontmatter["x-vendor-field"] == "kept"
    assert (read_skill.text("license"), read_skill.compatibility) == ("MIT", "node")


def test_12_one_byte_over_the_ceiling(tmp_path: Path) -> None:
    row = DIALECTS["flowcraft"]
    content = skill("a")
    exact = content + "x" * (row.limits.manifest_bytes - len(content))
    folder = write(tmp_path, "a", exact)
    assert load_skill(folder, dialect=row).manifest_bytes == row.limits.manifest_bytes
    (folder / "SKILL.md").write_text(exact + "x")
    with pytest.raises(SkillError):
        load_skill(folder, dialect=row)
    manifest = parse_manifest((exact + "x").encode(), directory="a", dialect=row)
    assert [item.rule for item in manifest.diagnostics] == ["manifest-too-large"]


def test_13_one_name_in_two_roots(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    for root in (a, b):
        write(root, "shared", skill("shared", f"From {root.name}."))
    roots = [a, b]
    first = discover(roots, dialect="agent-sh")
    assert (first.skills[0].summary, first.skills[0].shadowed) == ("From a.", (str(b / "shared"),))
    reported = discover(roots, dialect="tensorsharp")
    assert reported.skills[0].summary == "From a."
    assert "precedence" in reported.diagnostics[0].message
    both = discover(roots, dialect="flowcraft")
    assert [item.summary for item in both.skills] == ["From a.", "From b."]
    assert both.get("shared") is both.skills[0]
    assert both.load(both.skills[1]).skill.summary == "From b."
    assert both.at(b / "shared" / "SKILL.md") is both.skills[1]
    assert discover(roots, dialect="contextchef").skills[0].summary == "From b."
    assert discover(roots, dialect=replace(CONTEXTCHEF, collision="first")).skills[0].summary == "From a."
    spaced = discover(roots, dialect=replace(CONTEXTCHEF, collision="namespace"))
    assert names(spaced) == ["a:shared", "b:shared"]
    assert spaced.load("b:shared").skill.summary == "From b."


def test_14_a_broken_skill_never_hides_a_good_one(tmp_path: Path) -> None:
    write(tmp_path / "1", "foo", skill("foo"))
    write(tmp_path / "2", "foo", text("name: foo"))
    for row in DIALECTS:
        for roots in ([tmp_path / "1", tmp_path / "2"], [tmp_path / "2", tmp_path / "1"]):
            library = discover(roots, dialect=row)
            assert [item.location for item in library.skills] == [str(tmp_path / "1" / "foo")], row


def test_15_links_to_the_root_itself(tmp_path: Path) -> None:
    write(tmp_path, "one", skill("one"))
    for link in ("again", "once-more"):
        (tmp_path / link).symlink_to(tmp_path)
    library = discover([tmp_path], dialect="flowcraft")
    assert (names(library), library.diagnostics) == (["one"], ())


def test_16_a_root_given_twice_and_an_alias(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "one", skill("one"))
    (tmp_path / "alias").symlink_to(root)
    library = discover([root, root, tmp_path / "alias"], dialect="flowcraft")
    assert (names(library), library.diagnostics) == (["one"], ())
    assert {library.root_of(item) for item in library.skills} == {str(root)}
    assert library.roots == (str(root), str(root), str(tmp_path / "alias"))


def test_17_links_out_of_the_roots_and_into_another_root(tmp_path: Path) -> None:
    root, other, outside = tmp_path / "root", tmp_path / "other", tmp_path / "outside"
    far = write(outside, "far", skill("far"))
    near = write(other, "near", skill("near"))
    folder = write(root, "one", skill("one"))
    (root / "link").symlink_to(far)
    (root / "near").symlink_to(near)
    (root / "file").mkdir()
    (root / "file" / "SKILL.md").symlink_to(far / "SKILL.md")
    library = discover([root, other], dialect="flowcraft")
    assert names(library) == ["near", "one"]
    assert [item.rule for item in library.diagnostics] == ["symlink-outside", "manifest-unreadable"]
    assert library.at(far) is None
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to(far / "SKILL.md")
    with pytest.raises(SkillError):
        library.load("one")
    with pytest.raises(PathError):
        library.read("one", "SKILL.md")


def test_18_a_skill_that_is_written_later_is_seen_after_a_reload(tmp_path: Path) -> None:
    write(tmp_path, "one", skill("one"))
    library = discover([tmp_path], dialect="flowcraft")
    before = library.catalog
    write(tmp_path, "two", skill("two"))
    assert names(library) == ["one"]
    library.reload()
    assert names(library) == ["one", "two"]
    assert [item.name for item in before.skills] == ["one"]


def test_19_disabled_by_name_and_by_path(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        write(tmp_path, name, skill(name))
    disabled = ["one", str(tmp_path / "two" / "SKILL.md")]
    library = discover([tmp_path], dialect="flowcraft", disabled=disabled)
    assert (names(library), library.diagnostics) == (["three"], ())
    assert library.at(tmp_path / "two") is None
    assert disabled == ["one", str(tmp_path / "two" / "SKILL.md")]
    # Where letter case counts, another spelling disables nothing.
    assert len(discover([tmp_path], dialect="flowcraft", disabled=["ONE"]).skills) == 3


def test_20_a_published_layout(tmp_path: Path) -> None:
    folder = write(tmp_path / "skills", "x", skill("x"))
    write(folder, "references/example", skill("example"))
    library = discover([tmp_path], dialect="tensorsharp")
    assert names(library) == ["x"]
    assert library.read("x", "references/example/SKILL.md").text.startswith("---")
