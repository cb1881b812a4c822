"""Findings of one text, however many there are: the first of each rule are kept, the others are counted."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from satchel.skills.dialect import Rule
from satchel.skills.model import Diagnostic

MAX_EACH = 8
"""Findings of one rule in one file; the last of them says how many more there are."""

Made = Callable[[], Diagnostic]


class Tally:
    """Keeps the ``MAX_EACH`` findings of each rule that stand first in the text, in whatever order they come."""

    def __init__(self) -> None:
        self._first: dict[Rule, list[tuple[int, int, Made]]] = {}
        self._counts: Counter[Rule] = Counter()

    def add(self, rule: Rule, offset: int, made: Made) -> None:
        """Counts a finding that stands at ``offset``; ``made`` is called only when it is kept."""
        first = self._first.setdefault(rule, [])
        self._counts[rule] += 1
        if len(first) < MAX_EACH or offset < first[-1][0]:
            insort(first, (offset, self._counts[rule], made), key=lambda item: item[:2])
            del first[MAX_EACH:]

    def findings(self) -> list[Diagnostic]:
        """What was kept, rule by rule."""
        found: list[Diagnostic] = []
        for rule, first in self._first.items():
            items = [made() for _, _, made in first]
            more = self._counts[rule] - len(items)
            if more:
                items[-1] = replace(items[-1], message=f"{items[-1].message} There are {more} more.")
            found += items
        return found


def first_of_each(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The first findings of each rule in each file, the last of them saying how many more there are."""
    tallies: dict[str, Tally] = {}
    for item in found:
        tallies.setdefault(item.path, Tally()).add(item.rule, item.line, partial(replace, item))
    return [item for tally in tallies.values() for item in tally.findings()]
