from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.skills.names import near_names, similar_names

NAMES = ("kiln-firing", "invoice-number", "canary-deploy", "Fuel-Budget")


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("kiln", ("kiln-firing",)),
        ("KILN-FIRNG", ("kiln-firing",)),
        ("deploy", ("canary-deploy",)),
        ("fuel-budgt", ("Fuel-Budget",)),
        ("", ()),
        ("zzz", ()),
    ],
)
def test_the_name_that_was_meant(wanted: str, near: tuple[str, ...]) -> None:
    assert near_names(wanted, NAMES) == near


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("tweet-threads", ("tweet-thread", "tweet-threat")),
        ("tweet-thread", ("tweet-thread", "tweet-threat")),
        ("deplyo", ("deploy",)),
        ("abc", ("abcd", "xbc")),
        ("", ()),
        ("zzz", ()),
    ],
)
def test_similar_names_are_ranked_by_their_distance(wanted: str, found: tuple[str, ...]) -> None:
    assert similar_names(wanted, ["deploy", "tweet-threat", "tweet-thread", "xbc", "abcd", "ayz"]) == found


def test_at_most_three_similar_names_of_the_same_distance_in_their_order() -> None:
    assert similar_names("skill-0", [f"skill-{n}" for n in range(9, 0, -1)]) == ("skill-9", "skill-8", "skill-7")


@given(st.text("ab-", max_size=9), st.text("ab-", max_size=9))
def test_the_distance_is_that_of_the_textbook(left: str, right: str) -> None:
    row = list(range(len(right) + 1))
    for index, char in enumerate(left, 1):
        above, row = row, [index]
        for column, other in enumerate(right, 1):
            row.append(min(above[column] + 1, row[-1] + 1, above[column - 1] + (char != other)))
    longest = max(len(left), len(right))
    expected = (right,) if row[-1] <= longest * 0.4 + 1e-9 else ()
    assert similar_names(left, [right]) == expected
