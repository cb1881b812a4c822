from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.skills.dialects import DIALECTS, PORTABLE
from satchel.skills.fields import Argument, parse_arguments, parse_license, parse_version
from satchel.skills.manifest import Manifest, parse_manifest
from satchel.skills.model import Skill
from satchel.skills.tool_patterns import split_patterns

D = "description: Sample skill for tests."


def read(*lines: str, row: str = "portable") -> Manifest:
    text = "\n".join(["---", "name: a", D, *lines, "---", "Body.\n"])
    return parse_manifest(text.encode(), directory="a", dialect=DIALECTS[row])


def good(*lines: str, row: str = "portable") -> Skill:
    manifest = read(*lines, row=row)
    assert manifest.skill is not None, manifest.diagnostics
    return manifest.skill


def rules(manifest: Manifest) -> list[tuple[str, str, int]]:
    return [(found.rule, found.severity, found.line) for found in manifest.diagnostics]


@pytest.mark.parametrize("text", ["0.0.0", "1.2.3", "1.0.0-alpha.1", "1.0.0-0.3.7+build.5", "10.20.30+x-y"])
def test_semantic_versions_are_read_and_written_alike(text: str) -> None:
    assert str(parse_version(f" {text} ")) == text


@pytest.mark.parametrize(
    "text", ["", "1", "1.0", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "1.2.3 4", "1" * 300]
)
def test_other_versions_are_not(text: str) -> None:
    assert parse_version(text) is None


def test_a_skill_has_a_version_or_a_note() -> None:
    version = good("version: 1.2.0-beta").version
    assert version is not None
    assert (version.major, version.minor, version.patch, version.prerelease, version.build) == (1, 2, 0, "beta", "")
    assert str(good("metadata: {version: 2.0.1}").version) == "2.0.1"
    assert good().version is None
    odd = read("version: 1.10")
    assert odd.skill
    assert (odd.skill.version, odd.skill.text("version")) == (None, "1.10")
    assert rules(odd) == [("version-invalid", "note", 4)]
    assert rules(read("version: 1.10", row="tensorsharp")) == []


@pytest.mark.parametrize(
    ("text", "kind", "ids"),
    [
        ("MIT", "spdx", ("MIT",)),
        ("apache-2.0", "spdx", ("Apache-2.0",)),
        ("MIT OR (Apache-2.0 AND BSD-3-Clause)", "spdx", ("MIT", "Apache-2.0", "BSD-3-Clause")),
        ("Apache-2.0 WITH LLVM-exception", "spdx", ("Apache-2.0", "LLVM-exception")),
        ("GPL-2.0+", "spdx", ("GPL-2.0",)),
        ("LicenseRef-Own", "spdx", ("LicenseRef-Own",)),
        ("LICENSE", "file", ()),
        ("docs/LICENSE.txt", "file", ()),
        ("COPYING.md", "file", ()),
        ("terms.txt", "file", ()),
        ("Proprietary. LICENSE.txt has complete terms", "text", ()),
        ("MIT and more", "text", ()),
        ("MIT OR", "text", ()),
        ("(MIT", "text", ()),
        ("MIT)", "text", ()),
        ("../LICENSE", "text", ()),
        ("Apache 2.0", "text", ()),
        ("MIT WITH MIT", "text", ()),
        ("()", "text", ()),
    ],
)
def test_licenses(text: str, kind: str, ids: tuple[str, ...]) -> None:
    found = parse_license(text)
    assert found is not None
    assert (found.text, found.kind, found.ids) == (text, kind, ids)
    assert good(f"license: {text!r}").license == found


def test_no_license_is_none() -> None:
    assert (parse_license("  "), good().license, good("license: [MIT]").license) == (None, None, None)


def test_arguments_as_a_mapping_have_names_and_types() -> None:
    skill = good(
        "arguments:",
        "  env: {type: enum, enum: [staging, prod], required: yes, description: Where  to.}",
        "  count: {type: int, default: 3}",
        "  loud: boolean",
        "  note: What to say.",
        "  bare:",
        "  odd: {type: color, required: maybe}",
        "  listed: [a]",
    )
    assert skill.arguments_by_name
    assert skill.arguments == (
        Argument(name="env", type="enum", required=True, description="Where to.", choices=("staging", "prod")),
        Argument(name="count", type="integer", default="3"),
        Argument(name="loud", type="boolean"),
        Argument(name="note", description="What to say."),
        Argument(name="bare"),
        Argument(name="odd", required=True),
        Argument(name="listed"),
    )
    assert [(found.rule, found.severity) for found in skill.diagnostics] == [("field-shape", "warning")] * 3
    assert json.loads(json.dumps(skill.to_dict()))["arguments"][1]["default"] == "3"
    assert skill.frontmatter["arguments"] != {}


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("[env, {name: tag, required: true}]", ["env", "tag"]),
        ("env tag", ["env", "tag"]),
        ("env, tag", ["env", "tag"]),
        ("[]", []),
        ("''", []),
    ],
)
def test_arguments_as_a_list_name_positions(value: str, names: list[str]) -> None:
    skill = good(f"arguments: {value}")
    assert not skill.arguments_by_name
    assert ([argument.name for argument in skill.arguments], skill.diagnostics) == (names, ())


def test_arguments_that_mean_nothing_are_reported() -> None:
    manifest = read("arguments: [a, a, '', [b], {x: y}]")
    assert manifest.skill
    assert [argument.name for argument in manifest.skill.arguments] == ["a"]
    assert rules(manifest) == [("field-shape", "warning", 4)] * 4


def test_one_text_is_one_item_where_the_row_says_so() -> None:
    skill = good("arguments: environment name", "paths: infra dir/**", "allowed-tools: kubectl apply", row="tnsai")
    assert [argument.name for argument in skill.arguments] == ["environment name"]
    assert (skill.paths, skill.allowed_tools) == (("infra dir/**",), ("kubectl apply",))


def test_paths_are_globs() -> None:
    assert good("paths: 'src/**/*.{ts,tsx}, docs/*'").paths == ("src/**/*.{ts,tsx}", "docs/*")
    assert good("paths: ['a b/*', c]").paths == ("a b/*", "c")
    assert rules(read("paths: {a: b}")) == [("field-shape", "warning", 4)]
    assert good("paths: a", row="agent-sh").paths == ()


def test_views_of_texts() -> None:
    skill = good("when-to-use: |", "  Now", "  and then.", "argument-hint: '[file]'", "compatibility: node")
    assert (skill.when_to_use, skill.argument_hint, skill.compatibility) == ("Now and then.", "[file]", "node")
    assert (good().when_to_use, good().argument_hint) == ("", "")


def test_tools_that_are_not_allowed() -> None:
    assert good("disallowed-tools: Bash(rm *), Write").disallowed_tools == ("Bash(rm *)", "Write")


@pytest.mark.parametrize("value", ["", "[]", "Read"])
def test_a_list_that_is_no_list_is_refused_where_only_lists_are_read(value: str) -> None:
    manifest = read(f"allowed-tools: {value}", row="contextchef")
    assert (manifest.skill is None) is (value != "[]")


@given(st.text(alphabet="ab(), \t{}", max_size=40))
def test_nothing_of_a_list_of_tools_is_lost_and_nothing_in_parentheses_is_split(text: str) -> None:
    patterns = split_patterns(text)
    assert "".join("".join(patterns).split()).replace(",", "") == "".join(text.split()).replace(",", "")
    for pattern in patterns[:-1]:
        assert pattern.count("(") <= pattern.count(")")


@given(
    st.recursive(
        st.text(max_size=6),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["name", "type", "required", "enum", "default", "x"]), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_any_value_gives_arguments_with_names_of_their_own(value: object) -> None:
    arguments, _ = parse_arguments(value, ["a"])  # pyright: ignore[reportArgumentType]
    names = [argument.name for argument in arguments]
    assert all(names)
    assert len(set(names)) == len(names)
    assert json.dumps([argument.to_dict() for argument in arguments])


def test_the_portable_row_understands_the_fields_that_have_views() -> None:
    assert PORTABLE.understands >= {"version", "license", "arguments", "paths", "when-to-use", "argument-hint"}


def test_every_listed_licence_is_a_whole_identifier() -> None:
    listed, unlisted = parse_license("CC-BY-4.0"), parse_license("BY-4.0")
    assert listed is not None
    assert listed.ids == ("CC-BY-4.0",)
    assert unlisted is not None
    assert unlisted.kind == "text"
