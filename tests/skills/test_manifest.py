from __future__ import annotations

import json
from dataclasses import replace

import pytest

from satchel.skills.dialect import Limits
from satchel.skills.dialects import PORTABLE
from satchel.skills.manifest import Manifest, parse_manifest
from satchel.skills.model import Flags, Skill

D = "description: Sample skill for tests."


def read(text: str | bytes, directory: str = "a", dialect=PORTABLE) -> Manifest:
    data = text if isinstance(text, bytes) else text.encode()
    return parse_manifest(data, directory=directory, dialect=dialect, path=f"{directory}/SKILL.md", source="test")


def fields(*lines: str, directory: str = "a", body: str = "Body.\n", dialect=PORTABLE) -> Manifest:
    return read("\n".join(["---", *lines, "---", body]), directory, dialect)


def good(manifest: Manifest) -> Skill:
    assert manifest.skill is not None, manifest.diagnostics
    return manifest.skill


def rules(manifest: Manifest) -> list[tuple[str, str, int]]:
    return [(found.rule, found.severity, found.line) for found in manifest.diagnostics]


def test_a_plain_skill_has_no_findings_and_keeps_its_body() -> None:
    manifest = read("---\nname: a\ndescription: >\n  Two\n  lines.\nlicense: MIT\n---\n\r\nBody \n\n---\n")
    skill = good(manifest)
    assert manifest.body == "\r\nBody \n\n---\n"
    assert (skill.name, skill.description, skill.summary, skill.text("license")) == (
        "a",
        "Two lines.\n",
        "Two lines.",
        "MIT",
    )
    assert rules(manifest) == []


def test_unquoted_colon_in_a_description() -> None:  # S01
    manifest = fields(
        "name: tidy-notes",
        "description: Tidies notes. Use when: the user asks for a cleanup",
        "license: MIT",
        directory="tidy-notes",
    )
    skill = good(manifest)
    assert skill.description == "Tidies notes. Use when: the user asks for a cleanup"
    assert skill.text("license") == "MIT"
    assert rules(manifest) == [("yaml-repaired", "warning", 3)]
    assert manifest.diagnostics[0].path == "tidy-notes/SKILL.md"
    assert manifest.diagnostics[0].hint


def test_dashes_in_values() -> None:  # S02
    assert (
        good(fields("name: a", "description: Put a --- line between parts", "license: MIT")).description
        == "Put a --- line between parts"
    )
    inner = good(fields("name: a", "description: |", "  first", "  ---", "  last", "license: MIT"))
    assert (inner.description, inner.text("license")) == ("first\n---\nlast\n", "MIT")


def test_scalars_stay_text() -> None:  # S04
    lines = ("description: Frees a port.", "metadata:", "  updated: 2026-01-31", "  version: 1.10", "  draft: no")
    skill = good(fields("name: 3000", *lines, directory="3000"))
    assert skill.name == "3000"
    assert skill.metadata == {"updated": "2026-01-31", "version": "1.10", "draft": "no"}
    assert json.loads(json.dumps(skill.to_dict()))["metadata"]["version"] == "1.10"
    assert good(fields("name: null", D, directory="null")).name == "null"


@pytest.mark.parametrize(
    ("value", "patterns"),
    [
        ('[Read, "Bash(git log *)"]', ("Read", "Bash(git log *)")),
        ("Read, Bash(cmd:x,cmd:y), mcp__db__query", ("Read", "Bash(cmd:x,cmd:y)", "mcp__db__query")),
        ("Read Bash(git log *)", ("Read", "Bash(git log *)")),
        ("Bash(a (b, c) d),Read", ("Bash(a (b, c) d)", "Read")),
        ("", ()),
    ],
)
def test_allowed_tools(value: str, patterns: tuple[str, ...]) -> None:  # S05
    assert good(fields("name: a", D, f"allowed-tools: {value}")).allowed_tools == patterns


def test_argument_hint_is_text_in_every_spelling() -> None:  # S05
    listed = fields("name: a", D, "argument-hint: [file]")
    assert good(listed).text("argument-hint") == "[file]"
    repaired = fields("name: a", D, "argument-hint: [file] [mode]")
    assert good(repaired).text("argument-hint") == "[file] [mode]"
    assert {found.severity for found in (*listed.diagnostics, *repaired.diagnostics)} == {"warning"}


def test_vendor_blocks_in_metadata() -> None:  # S06
    manifest = fields(
        "name: a", D, "metadata:", '  version: "1.2"', "  tags: [a, b]", '  acme: {"requires": {"bins": ["jq"]}}'
    )
    skill = good(manifest)
    assert skill.metadata == {"version": "1.2"}
    assert skill.frontmatter["metadata"] == {
        "version": "1.2",
        "tags": ["a", "b"],
        "acme": {"requires": {"bins": ["jq"]}},
    }
    assert [found.rule for found in manifest.diagnostics] == ["metadata-not-text", "metadata-not-text"]
    assert json.dumps(skill.to_dict())
    ignored = fields("name: a", D, "metadata: text")
    assert (good(ignored).metadata, ignored.diagnostics[0].rule) == ({}, "field-shape")


def test_a_byte_order_mark_does_not_count() -> None:  # S07
    text = f"---\nname: a\n{D}\n---\n\ufeffBody.\n".encode()
    plain, marked = read(text), read(b"\xef\xbb\xbf" + text)
    assert (marked.skill, marked.body) == (plain.skill, plain.body)
    assert plain.body == "\ufeffBody.\n"


@pytest.mark.parametrize(
    ("data", "fragment"),
    [
        ("---\nname: a\ndescription: Café\n---\n".encode("latin-1"), "byte 0xe9 at byte offset 28"),
        (b"\xef\xbb\xbf---\nname: \xff", "byte offset 13"),
        ("---\nname: a".encode("utf-16"), "UTF-16"),
    ],
)
def test_other_encodings_are_named(data: bytes, fragment: str) -> None:  # S09
    manifest = read(data)
    assert manifest.skill is None
    assert manifest.diagnostics[0].rule == "encoding-invalid"
    assert fragment in manifest.diagnostics[0].message


def test_a_long_description_is_kept_whole() -> None:  # S10
    manifest = fields("name: a", "description: " + "x" * 1030)
    assert len(good(manifest).description) == 1030
    assert rules(manifest) == [("description-long", "warning", 3)]
    assert "1030" in manifest.diagnostics[0].message
    assert "1024" in manifest.diagnostics[0].message


@pytest.mark.parametrize(
    ("declared", "directory", "name", "expected"),
    [
        (None, "my-tool", "my-tool", ["name-missing"]),
        ("", "my-tool", "my-tool", ["name-missing"]),
        ("Workspace Guide", "workspace-guide", "workspace-guide", ["name-normalized"]),  # S14
        ("My  PDF__Tool!", "x", "my-pdf-tool", ["name-normalized", "name-directory-mismatch"]),
        ("pdf", "PDF", "pdf", []),
        ("pdf", "other", "pdf", ["name-directory-mismatch"]),
        ("x" * 70, "x" * 70, "x" * 64, ["name-normalized"]),
        ("'!!!'", "tool", "tool", ["name-normalized"]),
        ("{skill_name}", "tool", "tool", ["field-shape", "name-missing"]),
        ("'!!!'", "---", None, ["name-unusable"]),
    ],
)
def test_names(declared: str | None, directory: str, name: str | None, expected: list[str]) -> None:
    lines = [D] if declared is None else [f"name: {declared}", D]
    manifest = fields(*lines, directory=directory)
    assert (manifest.skill.name if manifest.skill else None) == name
    assert [found.rule for found in manifest.diagnostics] == expected


def test_where_the_name_comes_from_is_the_dialects_choice() -> None:
    lines = ("name: My Tool", D)
    assert good(fields(*lines, directory="box", dialect=replace(PORTABLE, name_from="directory"))).name == "box"
    assert (
        good(fields(*lines, directory="box", dialect=replace(PORTABLE, name_from="declared-verbatim"))).name
        == "My Tool"
    )
    assert good(fields(*lines, directory="box", dialect=replace(PORTABLE, name_from="declared"))).name == "my-tool"
    assert fields(D, directory="box", dialect=replace(PORTABLE, name_from="declared")).skill is None


@pytest.mark.parametrize(
    "value", ["", "description:", "description: '  '", "description: [a]", 'description: "\u200b"']
)
def test_a_description_is_required(value: str) -> None:
    manifest = fields("name: a", value)
    assert manifest.skill is None
    assert "description-missing" in [found.rule for found in manifest.diagnostics]


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("disable-model-invocation: true", Flags(model_invocable=False)),
        ("disableModelInvocation: 'Yes'", Flags(model_invocable=False)),
        ("disable_model_invocation: off", Flags()),
        ("user-invocable: false", Flags(user_invocable=False)),
        ("user-invokable: no", Flags(user_invocable=False)),
    ],
)
def test_flags_in_their_spellings(line: str, flags: Flags) -> None:
    assert good(fields("name: a", D, line)).flags == flags


def test_flags_that_a_dialect_ignores() -> None:
    ignoring = replace(PORTABLE, model_flag="ignore", user_flag="ignore")
    lines = ("name: a", D, "disable-model-invocation: true", "user-invocable: false")
    assert good(fields(*lines, dialect=ignoring)).flags == Flags()


@pytest.mark.parametrize(
    "line",
    [
        "disable-model-invocation: maybe",
        "disable-model-invocation:",
        "user-invocable: [no]",
        "allowed-tools: {Read: true}",
        "disallowed-tools: [[Bash]]",
        "disallowed-tools: [Bash, Write",
    ],
)
def test_a_restriction_that_cannot_be_read_refuses_the_skill(line: str) -> None:
    manifest = fields("name: a", D, line)
    assert manifest.skill is None
    assert rules(manifest)[-1] == ("field-shape-unsafe", "error", 4)


def test_other_fields_of_the_wrong_shape_only_warn() -> None:
    manifest = fields("name: a", D, "license: [MIT]", "compatibility: {a: b}", "argument-hint: {a: b}")
    assert good(manifest).text("license") == ""
    assert [found.rule for found in manifest.diagnostics] == ["field-shape"] * 3
    long = fields("name: a", D, "compatibility: " + "x" * 501)
    assert rules(long) == [("compatibility-long", "warning", 4)]


def test_spellings_are_one_key_and_unknown_keys_stay() -> None:
    manifest = fields("name: a", D, "allowed_tools: Read", "x-custom: {a: [1]}", "Model: big")
    skill = good(manifest)
    assert skill.allowed_tools == ("Read",)
    assert skill.frontmatter["x-custom"] == {"a": ["1"]}
    assert skill.frontmatter["Model"] == "big"
    assert rules(manifest) == [("key-spelling", "note", 4)]
    same = fields("name: a", D, "allowed-tools: Read", "allowedTools: Read")
    assert good(same).allowed_tools == ("Read",)
    different = fields("name: a", D, "allowed-tools: Read", "allowedTools: Bash")
    assert (different.skill, rules(different)) == (None, [("yaml-duplicate-key", "error", 5)])


def test_what_a_row_refuses_and_ignores_decides() -> None:
    strict = replace(PORTABLE, refuses=PORTABLE.refuses | {"description-long"}, ignores=frozenset({"body-empty"}))
    manifest = fields("name: a", "description: " + "x" * 1030, "x-unknown: 1", body="", dialect=strict)
    assert manifest.skill is None
    assert rules(manifest) == [("key-unknown", "note", 4), ("description-long", "error", 3)]
    lenient = replace(PORTABLE, refuses=PORTABLE.refuses - {"description-missing"})
    assert rules(fields("name: a", dialect=lenient)) == [("description-missing", "warning", 1)]
    short = replace(PORTABLE, limits=Limits(description=10), description_cut=4)
    assert good(fields("name: a", D, dialect=short)).summary == "Samp"


def test_an_empty_body_and_a_missing_block() -> None:
    assert rules(fields("name: a", D, body=" \n")) == [("body-empty", "warning", 0)]
    assert rules(read("# No block\n")) == [("frontmatter-missing", "error", 1)]
    assert rules(read("---\nname: a\n")) == [("frontmatter-unterminated", "error", 1)]
    small = replace(PORTABLE, limits=Limits(manifest_bytes=100))
    assert rules(fields("name: a", D, body="x" * 200, dialect=small)) == [("manifest-too-large", "error", 0)]


def test_invisible_characters_leave_the_listing_and_are_reported() -> None:  # S42
    tags = "\U000e0072\U000e0075\U000e006e"
    manifest = read(
        f"---\nname: h\ndescription: Harmless\u200b \u202ehelper\n---\nShown.\n<!-- send -->\n{tags}\n", "h"
    )
    skill = good(manifest)
    assert skill.summary == "Harmless helper"
    assert manifest.body == f"Shown.\n<!-- send -->\n{tags}\n"
    assert rules(manifest) == [("hidden-characters", "warning", 3), ("hidden-characters", "warning", 7)]
    assert "U+200B, U+202E" in manifest.diagnostics[0].message
    family = "👩\u200d👧 فارسی\u200cها"
    kept = read(f"---\nname: h\ndescription: {family}\n---\nB\n", "h")
    assert (good(kept).summary, kept.diagnostics) == (family, ())


@pytest.mark.parametrize("size", [1_000_000, 4_000_000])
@pytest.mark.parametrize("unit", ["[", "- ", "a: &a *a\n", "---x\n", "\u200b\u200d\n", "k: [\n", '"\\n', "? "])
def test_hostile_files_come_back_as_findings(unit: str, size: int) -> None:
    for text in (f"---\n{unit * (size // len(unit))}\n---\n", f"---\nname: a\n{D}\n---\n{unit * (size // len(unit))}"):
        assert read(text[:size]).diagnostics or read(text[:size]).skill


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("when_to_use", ("key-spelling", "note")),
        ("whenToUse", ("key-spelling", "note")),
        ("disableModelInvocation", ("key-spelling", "note")),
        ("user-invokable", ("restriction-spelling", "warning")),
        ("userInvokeable", ("restriction-spelling", "warning")),
        ("disable-model-invokation", ("restriction-spelling", "warning")),
    ],
)
def test_a_spelling_that_is_accepted_is_a_note_and_a_slip_a_warning(key: str, found: tuple[str, str]) -> None:
    (item,) = fields("name: a", D, f"{key}: false").diagnostics
    assert ((item.rule, item.severity), item.line) == (found, 4)


def test_a_spelling_that_a_row_does_not_read_is_a_warning() -> None:
    row = replace(PORTABLE, spellings=frozenset({"snake"}))
    manifest = fields("name: a", D, "whenToUse: x", "disableModelInvocation: true", dialect=row)
    assert good(manifest).when_to_use == ""
    assert not good(manifest).flags.model_invocable
    assert rules(manifest) == [("key-misspelled", "warning", 4), ("restriction-spelling", "warning", 5)]


@pytest.mark.parametrize("fence", ["---# Title", "--- # Title", "---\t# Title"])
@pytest.mark.parametrize("rest", ["", "- a list\n* another\n---\nmore\n", "x" * 70_000 + "\n---\n"])
def test_a_closing_fence_with_text_behind_it_is_named(fence: str, rest: str) -> None:
    (item,) = read(f"---\nname: a\n{D}\n{fence}\n{rest}".encode()).diagnostics
    assert (item.rule, item.severity, item.line) == ("frontmatter-unterminated", "error", 4)
    assert (item.column, '"# Title"' in item.message) == (len(fence) - 6, True)
    assert "line of its own" in item.hint


def test_a_longer_row_of_dashes_is_no_glued_fence() -> None:
    (item,) = read(f"---\nname: a\n{D}\n------\n".encode()).diagnostics
    assert (item.rule, item.line) == ("frontmatter-unterminated", 1)
