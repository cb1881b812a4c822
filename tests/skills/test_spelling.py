from __future__ import annotations

from dataclasses import replace

import pytest

from satchel.skills.dialects import DIALECTS, PORTABLE
from satchel.skills.fix import fix_manifest
from satchel.skills.manifest import Manifest, parse_manifest, parse_values
from satchel.skills.model import Skill
from satchel.skills.spelling import kebab_key

SWITCH = "disable-model-invocation"


def read(row: str, *lines: str) -> Manifest:
    data = "\n".join(["---", "name: a", "description: Sample skill for tests.", *lines, "---", "Body."]).encode()
    return parse_manifest(data, directory="a", dialect=DIALECTS[row], path="SKILL.md")


def good(manifest: Manifest) -> Skill:
    assert manifest.skill is not None, manifest.diagnostics
    return manifest.skill


def found(manifest: Manifest) -> list[tuple[str, str, int]]:
    return [(item.rule, item.severity, item.line) for item in manifest.diagnostics]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("allowedTools", "allowed-tools"),
        ("allowed_tools", "allowed-tools"),
        ("disableModelInvocation", SWITCH),
        ("user-invokable", "user-invocable"),
        ("userInvokable", "user-invocable"),
        ("x-own", "x-own"),
        ("", ""),
    ],
)
def test_keys_in_other_cases(key: str, expected: str) -> None:
    assert kebab_key(key) == expected


@pytest.mark.parametrize("row", ["agent-sh", "tensorsharp", "contextchef", "claude-code", "openai-api"])
def test_a_restriction_in_a_spelling_that_the_harness_does_not_read_counts_and_is_told(row: str) -> None:
    read_too = {"contextchef": "allowed_tools"}
    key = read_too.get(row, "allowedTools")
    manifest = read(row, f"{key}: [Read]")
    skill = good(manifest)
    assert skill.allowed_tools == ("Read",)
    assert found(manifest) == [("restriction-spelling", "warning", 4)]
    assert f'does not read "{key}" as "allowed-tools"' in manifest.diagnostics[0].message
    # What the harness would hand on as an unknown key is still there, under the name that it has in the file.
    assert (skill.frontmatter[key], "allowed-tools" in skill.frontmatter) == (["Read"], False)


@pytest.mark.parametrize("row", ["agentskills", "anthropic-api"])
def test_a_harness_that_refuses_unknown_keys_refuses_it(row: str) -> None:
    manifest = read(row, "allowedTools: [Read]")
    assert (manifest.skill, found(manifest)) == (None, [("restriction-spelling", "error", 4)])


@pytest.mark.parametrize("row", ["flowcraft", "codex", "gemini-cli", "opencode", "mcp"])
def test_where_a_restriction_means_nothing_no_spelling_of_it_does(row: str) -> None:
    manifest = read(row, "allowedTools: [Read]", "disable_model_invocation: true")
    assert good(manifest).allowed_tools == ()
    assert "restriction-spelling" not in {item.rule for item in manifest.diagnostics}


@pytest.mark.parametrize("key", ["disable_model_invocation", "disableModelInvocation"])
@pytest.mark.parametrize("row", ["agent-sh", "tnsai", "claude-code"])
def test_switches_count_in_every_spelling(row: str, key: str) -> None:
    manifest = read(row, f"{key}: true", "user-invokable: false")
    skill = good(manifest)
    assert (skill.flags.model_invocable, skill.flags.user_invocable) == (False, False)
    assert found(manifest) == [("restriction-spelling", "warning", 4), ("restriction-spelling", "warning", 5)]


def test_the_harness_s_own_spelling_counts_first() -> None:
    manifest = read("agent-sh", "allowed-tools: Read", "allowedTools: [read_file]")
    assert good(manifest).allowed_tools == ("Read",)
    assert found(manifest) == [("restriction-spelling", "warning", 5)]
    assert 'what counts is "allowed-tools"' in manifest.diagnostics[0].message
    same = read("agent-sh", "allowed-tools: Read", "allowedTools: Read")
    assert (good(same).allowed_tools, same.diagnostics) == (("Read",), ())
    # Where a row reads both, nobody knows which of them is meant.
    assert read("portable", "allowed-tools: Read", "allowedTools: [read_file]").skill is None
    assert found(read("tnsai", "allowed-tools: Read", "allowed_tools: X"))[-1] == ("yaml-duplicate-key", "error", 5)


@pytest.mark.parametrize(
    ("own", "other", "model_may"),
    [("false", "true", False), ("true", "false", False), ("false", "perhaps", True), ("true", "[x]", False)],
)
def test_a_switch_that_takes_something_away_counts_beside_the_harness_s_own(
    own: str, other: str, model_may: bool
) -> None:
    for lines in (
        (f"{SWITCH}: {own}", f"disableModelInvocation: {other}"),
        (f"disableModelInvocation: {other}", f"{SWITCH}: {own}"),
    ):
        manifest = read("agent-sh", *lines)
        assert good(manifest).flags.model_invocable is model_may
        assert {item.rule for item in manifest.diagnostics} == {"restriction-spelling"}
    menu = read("claude-code", "user-invocable: yes", "user_invocable: 'no'")
    assert not good(menu).flags.user_invocable


def test_a_shape_that_cannot_be_read_as_a_restriction_refuses() -> None:
    assert found(read("agent-sh", "allowedTools: {Read: yes}"))[-1] == ("field-shape-unsafe", "error", 4)
    assert found(read("agent-sh", "disable_model_invocation: perhaps"))[-1] == ("field-shape-unsafe", "error", 4)
    broken = read("tensorsharp", "allowedTools: [Read] [Grep]")
    assert (broken.skill, found(broken)[-1][0]) == (None, "field-shape-unsafe")
    # A row that takes no text for a list takes it from a key that it would not read at all, and restricts.
    assert good(read("contextchef", "allowed_tools: Read, Grep")).allowed_tools == ("Read", "Grep")
    assert read("contextchef", "allowed-tools: Read, Grep").skill is None


def test_only_the_listed_spellings_are_read() -> None:
    tnsai = read("tnsai", "when_to_use: Now", "argument_hint: '[x]'", "allowed_tools: Read")
    skill = good(tnsai)
    assert (skill.when_to_use, skill.argument_hint, skill.allowed_tools) == ("Now", "[x]", ("Read",))
    assert tnsai.diagnostics == ()
    claude = read("claude-code", "when_to_use: Now", "argument_hint: '[x]'")
    assert (good(claude).when_to_use, good(claude).argument_hint) == ("Now", "")
    assert found(claude) == [("key-misspelled", "warning", 5)]
    heard = parse_manifest(
        b"---\nname: a\ndescription: D.\nwhenToUse: Now\n---\nB",
        directory="a",
        dialect=replace(PORTABLE, spellings=frozenset({"when_to_use"})),
    )
    assert [item.message for item in heard.diagnostics] == ['"whenToUse" means nothing here; "when-to-use" does.']


def test_a_skill_without_a_file_is_read_alike() -> None:
    values = {"name": "a", "description": "D.", "allowedTools": ["Read"]}
    manifest = parse_values(values, "Body.", directory="a", dialect=DIALECTS["agent-sh"])
    assert good(manifest).allowed_tools == ("Read",)
    assert found(manifest) == [("restriction-spelling", "warning", 0)]


def test_nothing_is_renamed_that_the_harness_would_then_begin_to_read() -> None:
    data = b"---\nname: a\ndescription: D.\nallowedTools: [Read]\n---\nB\n"
    for row in ("agent-sh", "tensorsharp"):
        assert fix_manifest(data, directory="a", dialect=DIALECTS[row]) == data
    assert b"allowed-tools: [Read]" in fix_manifest(data, directory="a", dialect=PORTABLE)
