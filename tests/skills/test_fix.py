from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from satchel.skills.dialects import PORTABLE
from satchel.skills.fix import fix_manifest
from satchel.skills.manifest import Manifest, parse_manifest


def fixed(text: str, directory: str = "tidy") -> str:
    return fix_manifest(text.encode(), directory=directory, dialect=PORTABLE).decode()


def read(text: str | bytes, directory: str = "tidy") -> Manifest:
    data = text if isinstance(text, bytes) else text.encode()
    return parse_manifest(data, directory=directory, dialect=PORTABLE)


def test_a_value_that_is_not_yaml_is_quoted_where_it_stands() -> None:
    text = "---\nname: tidy\ndescription:  It's for: notes  \nlicense: MIT\n---\nBody: x\n"
    assert fixed(text) == text.replace("  It's for: notes  ", " 'It''s for: notes'")


def test_keys_are_spelled_as_the_specification_does() -> None:
    text = "---\nname: tidy\ndescription: D\nallowed_tools : Read\nuserInvokable: no\nargumentHint: x\n---\nB\n"
    expected = text.replace("allowed_tools", "allowed-tools").replace("userInvokable", "user-invocable")
    assert fixed(text) == expected.replace("argumentHint", "argument-hint")


def test_a_spelling_that_others_depend_on_is_left_alone() -> None:
    text = "---\nname: tidy\ndescription: D\nwhen_to_use: always\n---\nB\n"
    assert fixed(text) == text


def test_two_spellings_of_one_key_are_left_alone() -> None:
    text = "---\nname: tidy\ndescription: D\nallowed-tools: Read\nallowed_tools: Read\n---\nB\n"
    assert read(text).skill is not None
    assert fixed(text) == text


@pytest.mark.parametrize(
    ("directory", "line"),
    [("tidy", "name: tidy"), ("My Notes", "name: my-notes"), ("3000", 'name: "3000"'), ("null", 'name: "null"')],
)
def test_a_missing_name_becomes_the_one_that_is_used(directory: str, line: str) -> None:
    text = "---\ndescription: D\n---\nB\n"
    assert fixed(text, directory) == f"---\n{line}\ndescription: D\n---\nB\n"
    assert yaml.safe_load(line) == {"name": read(text, directory).skill.name}  # pyright: ignore[reportOptionalMemberAccess]


def test_a_blank_name_is_filled_in() -> None:
    assert fixed("---\ndescription: D\nname:  \n---\nB\n") == "---\ndescription: D\nname: tidy\n---\nB\n"


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_everything_else_stays_byte_for_byte(newline: str) -> None:
    text = "\ufeff--- \nallowed_tools: Read\ndescription: a: b  \n# note\n---\t\n\nBody \u2028 x: y\n\n---\nEnd"
    data = text.replace("\n", newline).encode()
    expected = "\ufeff--- \nname: tidy\nallowed-tools: Read\ndescription: 'a: b'\n# note\n---\t\n\nBody \u2028 x: y\n\n---\nEnd"
    assert fix_manifest(data, directory="tidy", dialect=PORTABLE) == expected.replace("\n", newline).encode()


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: tidy\ndescription: Fine\n---\nB\n",
        "---\nname: Tidy Notes\ndescription: Another name would be another skill\n---\nB\n",
        "---\n{description: D, allowed_tools: Read}\n---\nB\n",
        "---\nname: tidy\n---\nNo description\n",
        "No fences at all\n",
        "---\nname: tidy\ndescription: D\nmetadata:\n  allowed_tools: Read\n---\nB\n",
    ],
)
def test_what_cannot_be_repaired_safely_is_left_alone(text: str) -> None:
    assert fixed(text) == text


def test_bytes_that_are_not_text_are_left_alone() -> None:
    data = b"---\nname: tidy\ndescription: caf\xe9: x\n---\nB\n"
    assert fix_manifest(data, directory="tidy", dialect=PORTABLE) == data


def test_a_dialect_that_does_not_read_a_spelling_does_not_rename_it() -> None:
    row = replace(PORTABLE, spellings=frozenset())
    data = b"---\nname: tidy\ndescription: D\nargument_hint: x\n---\nB\n"
    assert fix_manifest(data, directory="tidy", dialect=row) == data


KEYS = st.sampled_from(
    ["name", "description", "license", "allowed_tools", "argumentHint", "userInvokable", "when_to_use", "other_key"]
)
VALUES = st.one_of(
    st.sampled_from(["a: b", "[a] [b]", "@x", "`x`", 'it\'s: "so"', "no", "plain", "", "'q'", "# c", "a #b: c", "*x"]),
    st.text(alphabet="ab:'\" #-[]{}@`|>\t", max_size=12),
)


@given(st.lists(st.tuples(KEYS, VALUES), max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_repaired_file_means_the_same_and_needs_no_second_repair(pairs: list[tuple[str, str]], newline: str) -> None:
    lines = ["---", "description: D", *(f"{key}: {value}" for key, value in pairs), "---", "Body", ""]
    data = newline.join(lines).encode()
    after = fix_manifest(data, directory="tidy", dialect=PORTABLE)
    old, new = read(data), read(after)
    assert new.body == old.body
    if old.skill is None or new.skill is None:
        assert after == data
        return
    added = {"name": "tidy"} if "name-missing" in {item.rule for item in old.diagnostics} else {}
    assert dict(new.skill.frontmatter) | added == dict(old.skill.frontmatter) | added
    assert (new.skill.name, new.skill.flags, new.skill.allowed_tools, new.skill.arguments) == (
        old.skill.name,
        old.skill.flags,
        old.skill.allowed_tools,
        old.skill.arguments,
    )
    assert len(new.diagnostics) <= len(old.diagnostics)
    assert fix_manifest(after, directory="tidy", dialect=PORTABLE) == after
