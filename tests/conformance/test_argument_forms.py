"""Every form of a placeholder, with every kind of arguments and of declaration, in every dialect.

Then the points of our table of conflicts about placing arguments (28 to 37), each in the dialect of every design.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from satchel.skills.arguments import Declared
from satchel.skills.dialects import DIALECTS
from satchel.skills.substitute import substitute
from tests.conformance.reading import SEEDS

FORMS = "$ARGUMENTS|$ARGUMENTS[0]|$ARGUMENTS[1]|$0|$1|$2|$who|${who}"
GIVEN: Mapping[str, str | Sequence[str] | Mapping[str, str]] = {
    "text": 'a "b c"',
    "list": ["a", "b c"],
    "map": {"who": "a", "what": "b c"},
}
DECLARED = {
    "none": Declared(has_hint=True),
    "list": Declared(names=("who", "what")),
    "map": Declared(names=("who", "what"), by_name=True),
}
# By row, kind of arguments and kind of declaration.
PLACED = {
    "portable": {
        "text": {
            "none": 'a "b c"|a|b c|a|b c|$2|$who|${who}',
            "list": 'a "b c"|a|b c|a|b c|$2|a|a',
            "map": 'a "b c"|a|b c|a|b c|$2|$who|${who}',
        },
        "list": {
            "none": "a b c|a|b c|a|b c|$2|$who|${who}",
            "list": "a b c|a|b c|a|b c|$2|a|a",
            "map": "a b c|a|b c|a|b c|$2|$who|${who}",
        },
        "map": {
            "none": "what=b c who=a|$ARGUMENTS[0]|$ARGUMENTS[1]|$0|$1|$2|$who|${who}",
            "list": "what=b c who=a|a|b c|a|b c|$2|a|a",
            "map": "what=b c who=a|$ARGUMENTS[0]|$ARGUMENTS[1]|$0|$1|$2|a|a",
        },
    },
    # Its section 9: places come from text only, and names from an object only.
    "agent-sh": {
        "text": dict.fromkeys(DECLARED, 'a "b c"|a|"b|$0|a|"b|$who|${who}'),
        "list": dict.fromkeys(DECLARED, "a b c|a|b c|$0|a|b c|$who|${who}"),
        "map": {
            "none": "what=b c who=a|$ARGUMENTS[0]|$ARGUMENTS[1]|$0|$1|$2|$who|${who}",
            "list": "what=b c who=a|$ARGUMENTS[0]|$ARGUMENTS[1]|$0|$1|$2|$who|a",
            "map": "what=b c who=a|$ARGUMENTS[0]|$ARGUMENTS[1]|$0|$1|$2|$who|a",
        },
    },
    # Arguments are places, which a list may name, and $ARGUMENTS is all of them with one blank between them.
    "tnsai": {
        "text": dict.fromkeys(DECLARED, "a b c|a|b c|a|b c||$who|"),
        "list": dict.fromkeys(DECLARED, "a b c|a|b c|a|b c||$who|"),
        "map": {
            "none": "what=b c who=a||||||$who|",
            "list": "a b c|a|b c|a|b c||$who|",
            "map": "what=b c who=a||||||$who|",
        },
    },
    # Names are the caller's: the frontmatter declares none.
    "contextchef": {
        "text": {
            "none": 'a "b c"|a|b c|a|b c||$who|${who}',
            "list": 'a "b c"|a|b c|a|b c||a|${who}',
            "map": 'a "b c"|a|b c|a|b c|||${who}',
        },
        "list": {
            "none": "a b c|a|b c|a|b c||$who|${who}",
            "list": "a b c|a|b c|a|b c||a|${who}",
            "map": "a b c|a|b c|a|b c|||${who}",
        },
        "map": {
            "none": "what=b c who=a||||||a|${who}",
            "list": "what=b c who=a|a|b c|a|b c||a|${who}",
            "map": "what=b c who=a||||||a|${who}",
        },
    },
    "claude-code": {
        "text": {
            "none": 'a "b c"|a|b c|a|b c|$2|$who|${who}',
            "list": 'a "b c"|a|b c|a|b c|$2|a|${who}',
            "map": 'a "b c"|a|b c|a|b c|$2|$who|${who}',
        },
        "list": {
            "none": "a b c|a|b c|a|b c|$2|$who|${who}",
            "list": "a b c|a|b c|a|b c|$2|a|${who}",
            "map": "a b c|a|b c|a|b c|$2|$who|${who}",
        },
        "map": {
            "none": "what=b c who=a|$ARGUMENTS[0]|$ARGUMENTS[1]|$0|$1|$2|$who|${who}",
            "list": "what=b c who=a|a|b c|a|b c|$2|a|${who}",
            "map": "what=b c who=a|$ARGUMENTS[0]|$ARGUMENTS[1]|$0|$1|$2|a|${who}",
        },
    },
}


@pytest.mark.parametrize("row", DIALECTS)
def test_every_form_with_every_kind_of_arguments(row: str) -> None:
    untouched = dict.fromkeys(GIVEN, dict.fromkeys(DECLARED, FORMS))
    placed = {
        kind: {
            declares: substitute(FORMS, arguments, dialect=row, declared=declared).text
            for declares, declared in DECLARED.items()
        }
        for kind, arguments in GIVEN.items()
    }
    assert placed == PLACED.get(row, untouched)


def in_each(
    body: str, arguments: str | Sequence[str] | Mapping[str, str] | None, declared: Declared | None = None
) -> dict[str, str]:
    return {row: substitute(body, arguments, dialect=row, declared=declared or Declared()).text for row in SEEDS}


def expected(body: str, **rows: str) -> dict[str, str]:
    """In rows that are not named nothing is placed."""
    return dict.fromkeys(SEEDS, body) | {name.replace("_", "-"): text for name, text in rows.items()}


def test_28_what_the_first_argument_is_called() -> None:
    body = "[$0] [$1]"
    assert in_each(body, "a b") == expected(body, agent_sh="[$0] [a]", tnsai="[a] [b]", contextchef="[a] [b]")


def test_29_numbers_in_brackets_count_from_0() -> None:
    body = "[$ARGUMENTS[0]] [$ARGUMENTS[1]]"
    assert in_each(body, "a b") == expected(body, **dict.fromkeys(("agent_sh", "tnsai", "contextchef"), "[a] [b]"))


@pytest.mark.parametrize("number", ["2", "999999", "9999999", "9" * 5000, "0" * 5000 + "2"])
def test_30_a_place_without_an_argument(number: str) -> None:
    body = f"[${number}] [$ARGUMENTS[{number}]]"
    assert in_each(body, "a") == expected(body, tnsai="[] []", contextchef="[] []")


def test_30_zeros_in_front_of_a_number_mean_nothing() -> None:
    body = f"[${'0' * 5000}1] [$ARGUMENTS[{'0' * 5000}1]]"
    assert in_each(body, "a b") == expected(body, agent_sh="[a] [b]", tnsai="[b] [b]", contextchef="[b] [b]")


def test_31_a_name_in_braces_that_nobody_knows() -> None:
    assert in_each("[${NOPE}]", "a") == expected("[${NOPE}]", tnsai="[]", contextchef="[${NOPE}]\n\nARGUMENTS: a")


def test_32_no_arguments_and_empty_ones() -> None:
    body = "[$ARGUMENTS] [$0] [$1]"
    assert in_each(body, None) == expected(body, tnsai="[] [] []")
    assert in_each(body, "") == expected(body, agent_sh="[] [$0] [$1]", tnsai="[] [] []", contextchef="[] [] []")


def test_33_two_dollars() -> None:
    body = "$$1 $$"
    assert in_each(body, "a b") == expected(body, agent_sh="$a $$", tnsai="$1 $", contextchef="$b $$")


def test_34_quotes_around_an_argument() -> None:
    body = "$1|$2|$ARGUMENTS"
    assert in_each(body, "a  'b c'") == expected(
        body, agent_sh="a|'b|a  'b c'", tnsai="b c||a b c", contextchef="b c||a  'b c'"
    )


def test_35_what_was_inserted_is_not_read_again() -> None:
    body = "$ARGUMENTS"
    value = "$1 ${NOPE} $ARGUMENTS $$"
    assert in_each(body, [value]) == expected(body, **dict.fromkeys(("agent_sh", "tnsai", "contextchef"), value))


def test_36_named_arguments() -> None:
    body = "$who|${who}|$0|$1"
    given = {"who": "a", "what": "b"}
    assert in_each(body, given, DECLARED["map"]) == expected(
        body, agent_sh="$who|a|$0|$1", tnsai="$who|||", contextchef="a|${who}||"
    )
    assert in_each(body, given, DECLARED["list"]) == expected(
        body, agent_sh="$who|a|$0|$1", tnsai="$who||a|b", contextchef="a|${who}|a|b"
    )


def test_37_arguments_that_no_place_took() -> None:
    assert in_each("Body.", "a b") == expected("Body.", contextchef="Body.\n\nARGUMENTS: a b")
