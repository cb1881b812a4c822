from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.chat.arguments import (
    MAX_LITERAL_CHARS,
    MAX_OBJECTS,
    MAX_TOLERANT_CHARS,
    read_arguments,
    replayable,
    settle,
    to_json,
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("  \n", {}),
        ("null", {}),
        ("\ufeff{}", {}),
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```{"a": 1}```', {"a": 1}),
        ('```json {"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('"```json\\n{\\"a\\": 1}\\n```"', {"a": 1}),
        ('{}{"path": "x"}', {"path": "x"}),
        ('{"a": 1}{"b": 2}', {"a": 1, "b": 2}),
        ('{"a": 1},\n{"b": 2}', {"a": 1, "b": 2}),
        ('{"path": "a"}{"path": "b"}', {"path": "a"}),
        ('{"a": 1}{"b": 2}{"a": 3, "c": 4}', {"a": 1, "b": 2}),
        ('{"a": 1}</tool_call>', {"a": 1}),
        ("{} and so on", {}),
        ("{'a': True, \"b\": None, 'c': (1, 2.5)}", {"a": True, "b": None, "c": [1, 2.5]}),
        ('{"text": "one\ntwo"}', {"text": "one\ntwo"}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        ('{"a": "x\\ud83d"}', {"a": "x\ufffd"}),
    ],
)
def test_what_models_write_is_read(text: str, expected: dict[str, object]):
    assert read_arguments(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        "7",
        "true",
        '"plain"',
        "hello",
        '{"a": 1',
        '{"a": NaN}',
        '{"a": 1e999}',
        "{'a': {1}}",
        "{'a': f()}",
        "{1: 2}",
    ],
)
def test_what_is_no_object_is_not_guessed(text: str):
    assert read_arguments(text) is None
    assert replayable(text) == "{}"


@pytest.mark.parametrize(
    "text", ['{"a":' * 100_000, "{'a': " + "[" * 3000, '"' * 100_000, "```" * 50_000, "{" * 100_000]
)
def test_hostile_nesting_is_refused_without_harm(text: str):
    assert read_arguments(text) is None


def test_a_literal_over_the_bound_is_not_evaluated():
    room = MAX_LITERAL_CHARS - len("{'a': ''}")
    assert read_arguments("{'a': '" + "x" * room + "'}") == {"a": "x" * room}
    assert read_arguments("{'a': '" + "x" * (room + 1) + "'}") is None


@pytest.mark.parametrize("wrap", ["```%s```", "%s trailing", "\ufeff%s", "{}%s"])
def test_long_text_is_read_only_when_it_is_one_object(wrap: str):
    long = '{"a": "' + "x" * MAX_TOLERANT_CHARS + '"}'
    assert settle(long) == ({"a": "x" * MAX_TOLERANT_CHARS}, long)
    assert settle(wrap % long) == (None, "{}")


def test_a_bounded_number_of_objects_is_merged():
    text = "".join(f'{{"k{number}": 1}}' for number in range(MAX_OBJECTS + 5))
    assert list(read_arguments(text) or {}) == [f"k{number}" for number in range(MAX_OBJECTS)]
    assert read_arguments("{}" * MAX_OBJECTS + '{"a": 1}') == {}


@given(OBJECTS, st.sampled_from([None, 1]), st.booleans())
def test_one_object_is_replayed_byte_for_byte(value: dict[str, object], indent: int | None, ascii_only: bool):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert replayable(text) == text
    assert read_arguments(text) == value


@given(st.text() | OBJECTS.map(str) | OBJECTS.map(lambda value: json.dumps(value) * 2))
def test_what_is_replayed_is_always_one_object_and_stays(text: str):
    out = replayable(text)
    assert isinstance(json.loads(out), dict)
    assert replayable(out) == out
    out.encode()


@given(OBJECTS)
def test_a_python_literal_reads_as_the_same_object(value: dict[str, object]):
    assert read_arguments(str(value)) == value


def test_broken_pairs_never_leave_as_they_came():
    assert replayable('{"a": "\\udc00"}') == to_json({"a": "\ufffd"})
