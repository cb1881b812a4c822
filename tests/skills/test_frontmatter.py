from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from satchel.skills import frontmatter
from satchel.skills.diagnostics import RULES
from satchel.skills.frontmatter import FrontmatterError, parse_frontmatter, repair, split_fences

PURE_AND_C = [getattr(yaml, "CBaseLoader", yaml.BaseLoader), yaml.BaseLoader]


def rule_of(block: str) -> tuple[str, int]:
    with pytest.raises(FrontmatterError) as caught:
        parse_frontmatter(block)
    return caught.value.rule, caught.value.line


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_fences_in_every_line_ending(end: str) -> None:
    fenced = split_fences(end.join(["--- \t", "name: a", "---", "", "Body", ""]))
    assert fenced.yaml == f"name: a{end}"
    assert fenced.body == f"{end}Body{end}"


def test_three_dots_close_too_and_the_body_may_be_missing() -> None:
    assert split_fences("---\nname: a\n...").body == ""
    assert split_fences("---\n---\n").yaml == ""


def test_dashes_inside_a_value_do_not_close() -> None:
    fenced = split_fences(
        "---\na: Put a --- line\nb: |\n  first\n  ---\n  last\n---x: y\n ---\n---\nOne\n\n---\n\nTwo\n"
    )
    assert fenced.yaml.endswith("---x: y\n ---\n")
    assert fenced.body == "One\n\n---\n\nTwo\n"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "frontmatter-missing"),
        (" \n\t", "frontmatter-missing"),
        ("\n---\na: b\n---\n", "frontmatter-missing"),
        (" ---\na: b\n---\n", "frontmatter-missing"),
        ("----\na: b\n---\n", "frontmatter-missing"),
        ("# Title\n", "frontmatter-missing"),
        ("---", "frontmatter-unterminated"),
        ("---\nname: a\n", "frontmatter-unterminated"),
        ("---\nname: a\n --- \n", "frontmatter-unterminated"),
        ("---\na: " + "x" * 70_000 + "\n---\n", "frontmatter-too-large"),
    ],
)
def test_blocks_that_are_not_there(text: str, rule: str) -> None:
    with pytest.raises(FrontmatterError) as caught:
        split_fences(text)
    assert caught.value.rule == rule


@given(
    st.lists(st.sampled_from(["---", "...", "--- ", " ---", "a: b", "", "text", "- x"]), max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_nothing_of_a_file_is_lost_between_its_fences(lines: list[str], end: str) -> None:
    text = end.join(["---", *lines])
    closing = next((at for at, line in enumerate(lines) if line.rstrip(" \t") in {"---", "..."}), None)
    if closing is None:
        with pytest.raises(FrontmatterError):
            split_fences(text)
        return
    fenced = split_fences(text)
    assert fenced.yaml == "".join(line + end for line in lines[:closing])
    assert fenced.body == end.join(lines[closing + 1 :])


@pytest.mark.parametrize("loader", PURE_AND_C)
def test_every_scalar_stays_as_it_was_written(loader: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontmatter, "_LOADER", loader)
    block = "name: 3000\nother: null\nmetadata:\n  updated: 2026-01-31\n  version: 1.10\n  draft: no\n  empty:\nlist: [1.0, ~, 'on']\n"
    read = parse_frontmatter(block)
    assert read.values == {
        "name": "3000",
        "other": "null",
        "metadata": {"updated": "2026-01-31", "version": "1.10", "draft": "no", "empty": ""},
        "list": ["1.0", "~", "on"],
    }
    assert dict(read.lines) == {"name": 2, "other": 3, "metadata": 4, "list": 9}
    assert json.dumps(read.values)


@pytest.mark.parametrize("loader", PURE_AND_C)
@pytest.mark.parametrize(
    ("block", "rule", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", "yaml-duplicate-key", 4),
        ("m:\n  x: 1\n  x: 2\n", "yaml-duplicate-key", 4),
        ("a: &x 1\nb: *x\n", "yaml-alias", 2),
        ("b: *x\n", "yaml-alias", 2),
        ("- a\n- b\n", "yaml-not-mapping", 2),
        ("just text\n", "yaml-not-mapping", 2),
        ("? {a: b}\n: c\n", "yaml-invalid", 2),
        ("a: b\n--- c\n", "frontmatter-unterminated", 3),
        ("a: 'b\n  c\n", "yaml-invalid", 4),
        ("a: b\x07c\n", "yaml-invalid", 2),
        ("a: " + "[" * 40 + "]" * 40 + "\n", "yaml-too-complex", 2),
        ("a: [" + "x," * 9000 + "]\n", "yaml-too-complex", 2),
    ],
)
def test_what_is_refused_names_its_line(
    loader: type, block: str, rule: str, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontmatter, "_LOADER", loader)
    assert rule_of(block) == (rule, line)


def test_an_empty_block_is_an_empty_mapping() -> None:
    assert parse_frontmatter("").values == parse_frontmatter("# only a comment\n").values == {}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("description: Use when: the user asks", "Use when: the user asks"),
        ("description: @here we go", "@here we go"),
        ("description: `code` first", "`code` first"),
        ("description: [file] [mode]", "[file] [mode]"),
        ("description: it's: so", "it's: so"),
        ('description: "quoted" and more', '"quoted" and more'),
        ("description: *bold* text", "*bold* text"),
        ("description: % of a: b # not a comment", "% of a: b # not a comment"),
    ],
)
def test_values_that_are_not_yaml_are_taken_as_text(line: str, value: str) -> None:
    read = parse_frontmatter(f"name: a\n{line}\r\nlicense: MIT\nblock: |\n  x: y: z\n")
    assert read.values == {"name": "a", "description": value, "license": "MIT", "block": "x: y: z\n"}
    assert dict(read.repaired) == {3: "description"}


def test_a_value_that_goes_on_is_not_repaired() -> None:
    assert rule_of("description: a: b\n  more text\n")[0] == "yaml-invalid"
    assert repair("m:\n  a: b: c\n") == ("m:\n  a: b: c\n", {})


def test_the_error_of_the_file_as_written_is_told_when_repair_does_not_help() -> None:
    with pytest.raises(FrontmatterError) as caught:
        parse_frontmatter("a: b: c\n\tx: 1\n")
    assert (caught.value.rule, caught.value.line) == ("yaml-invalid", 2)


_LINES = st.sampled_from(
    [
        "name: a",
        "b: c: d",
        "c: [x] [y]",
        "d: |",
        "  text: more: x",
        "e: 'q'",
        "f: @x",
        "- g",
        "",
        "h:",
        "  i: j",
        "k: {l: m}",
        "\tn: o",
    ]
)


@given(st.one_of(st.lists(_LINES, max_size=8).map("\n".join), st.text(max_size=60)))
def test_a_block_that_is_yaml_is_never_changed(block: str) -> None:
    try:
        before = frontmatter._read(block, {})
    except FrontmatterError:
        return
    after = parse_frontmatter(block)
    assert after == before
    assert not after.repaired


@given(st.text(max_size=200))
def test_reading_ends_in_values_or_in_one_named_rule(text: str) -> None:
    rule = ""
    try:
        parse_frontmatter(text)
    except FrontmatterError as error:
        rule = error.rule
    assert rule in {"", *(known for known in RULES if known.startswith("yaml-"))}
