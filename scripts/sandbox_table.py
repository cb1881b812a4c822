"""Writes the measured table of docs/concepts/sandbox.md.

    .venv/bin/pytest -n0 tests/hostile --sandbox-table table.json
    .venv/bin/python scripts/sandbox_table.py table.json

The suite runs twice when the page is out of date: the first time it measures, the second time it agrees.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "concepts" / "sandbox.md"
BEGIN, END = (
    "<!-- measured by tests/hostile, written by scripts/sandbox_table.py -->",
    "<!-- end of what was measured -->",
)
BACKENDS = ("unconfined", "bubblewrap", "namespaces", "landlock")
USERS = ("root", "user")
_CELL = re.compile(r"(?:root: (?P<root>\*{0,2}\w+\*{0,2}), user: )?(?P<user>\*{0,2}\w+\*{0,2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One backend: for each user and row one word: ``works``, ``fails``, ``blocked`` or ``**open**``."""

    backend: str
    version: str = ""
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    @classmethod
    def from_results(cls, backend: str, results: Iterable[Mapping[str, Any]]) -> Column:
        """From what the suite has kept."""
        mine = [one for one in results if one["backend"] == backend]
        words = {one["user"]: one["verdicts"] for one in mine}
        return cls(backend=backend, version=mine[0]["version"] if backend == "landlock" else "", words=words)

    def of(self, user: str) -> Mapping[str, str]:
        """The words of a user."""
        return self.words[user]

    def cell(self, row: str) -> str:
        """What the table says, once when both users have it alike."""
        root, user = (self.words[who][row] for who in USERS)
        return user if root == user else f"root: {root}, user: {user}"

    @property
    def title(self) -> str:
        """The heading of the column."""
        return f"{self.backend} {self.version}".rstrip()


def table(results: list[dict[str, Any]]) -> str:
    """The generated part of the page, its markers included."""
    present = {one["backend"] for one in results}
    columns = [Column.from_results(name, results) for name in BACKENDS if name in present]
    first = columns[0].of("user")
    rows = sorted(first, key=lambda row: first[row] != "works")  # what has to work stands above
    lines = [
        f"| | {' | '.join(column.title for column in columns)} |",
        f"| --- |{' --- |' * len(columns)}",
        *(f"| {row} | {' | '.join(column.cell(row) for column in columns)} |" for row in rows),
    ]
    return "\n".join([BEGIN, "", *lines, "", END])


def columns_of(page: str) -> list[Column]:
    """The columns as they stand on the page."""
    lines = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in page.partition(BEGIN)[2].partition(END)[0].splitlines()
        if line.startswith("|")
    ]
    head, rows = (lines[0], lines[2:]) if lines else ([""], [])
    columns: list[Column] = []
    for number, title in enumerate(head[1:], 1):
        backend, _, version = title.partition(" ")
        words: dict[str, dict[str, str]] = {user: {} for user in USERS}
        for row in rows:
            if found := _CELL.fullmatch(row[number]):
                words["user"][row[0]] = found["user"]
                words["root"][row[0]] = found["root"] or found["user"]
        columns.append(Column(backend=backend, version=version, words=words))
    return columns


def main() -> None:
    results = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + table(results) + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
