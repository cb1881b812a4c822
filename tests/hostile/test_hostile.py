"""Every backend of this host against the hostile table, as root and as an ordinary user."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from scripts.sandbox_table import PAGE, Column, columns_of
from tests.backends import FULL, PARTS, not_here
from tests.hostile.rig import USERS, Result, reason_against, run_table
from tests.hostile.table import (
    ATTACKS,
    GAP_WORDS,
    GAP_WORDS_OF_A_PART,
    HELD_BY_THE_PORT,
    NEEDS,
    NOT_ON_EVERY_HOST,
    ONLY_ROOT,
)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="attacks on Linux"),
    pytest.mark.timeout(180),
]
ROWS = set(ATTACKS) | set(NEEDS)
Keep = Callable[[Result], None]


def run(backend: str, user: str, keep: Keep, rows: frozenset[str] | None = None) -> Result:
    """Everything under one backend. Skips with the reason where it cannot be; in CI that is a failure."""
    reason = reason_against(user)
    result = run_table(backend, user, rows) if not reason else Result(backend=backend, user=user, unavailable=reason)
    if result.unavailable:
        words = f"{backend} as {user} is not available here: {result.unavailable}"
        not_here(words, may_be_missing=backend in PARTS)
    if rows is None:
        keep(result)
    return result


def test_no_row_is_lost() -> None:
    """69 attacks and 5 needs were measured before there was a sandbox of ours; these are one row each, and 14 more."""
    assert (len(set(NEEDS)), len(set(ATTACKS))) == (5, 83)
    assert (USERS, FULL, PARTS) == (("root", "user"), ("bubblewrap", "namespaces"), ("landlock",))
    known = NOT_ON_EVERY_HOST | ONLY_ROOT | HELD_BY_THE_PORT | set(GAP_WORDS_OF_A_PART)
    assert known <= set(ATTACKS)


@pytest.mark.parametrize("user", USERS)
def test_every_attack_succeeds_where_nothing_confines_it(user: str, keep: Keep) -> None:
    free = run("unconfined", user, keep)
    careless = run("plain", user, keep, frozenset(HELD_BY_THE_PORT))
    assert set(free.verdicts) == ROWS
    assert set(careless.verdicts) >= HELD_BY_THE_PORT
    assert free.succeeded >= set(NEEDS)
    assert not free.succeeded & HELD_BY_THE_PORT
    failed = set(ATTACKS) - free.succeeded - (careless.succeeded & HELD_BY_THE_PORT)
    assert failed <= NOT_ON_EVERY_HOST | (ONLY_ROOT if user == "user" else set[str]())


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("backend", [*FULL, *PARTS])
def test_every_attack_is_blocked_or_told(backend: str, user: str, keep: Keep) -> None:
    bound = run(backend, user, keep)
    assert set(bound.verdicts) == ROWS
    words = GAP_WORDS if backend in FULL else GAP_WORDS_OF_A_PART
    not_told = {
        row: bound.verdicts[row]
        for row in bound.succeeded - set(NEEDS)
        if not any(words.get(row, "\0") in gap for gap in bound.gaps)
    }
    assert not not_told
    assert not {row: bound.verdicts[row] for row in NEEDS if row not in bound.succeeded}
    (page,) = [column for column in columns_of(PAGE.read_text(encoding="utf-8")) if column.backend == backend]
    if not (backend in PARTS and page.version != bound.version):
        measured = Column.from_results(backend, [bound.as_json()]).of(user)
        assert page.of(user) == measured, "the page is out of date, see scripts/sandbox_table.py"


def test_the_page_has_every_row_and_backend() -> None:
    columns = columns_of(PAGE.read_text(encoding="utf-8"))
    assert [column.backend for column in columns] == ["unconfined", *FULL, *PARTS]
    for column in columns:
        for user in USERS:
            assert set(column.of(user)) == ROWS
            assert all(column.of(user)[row] == "works" for row in NEEDS)
    # What may be left open is known, whatever this host can run.
    for column in columns[1:]:
        words = GAP_WORDS if column.backend in FULL else GAP_WORDS_OF_A_PART
        for user in USERS:
            assert {row for row, word in column.of(user).items() if word == "**open**"} <= set(words)
