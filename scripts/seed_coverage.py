"""Compares the rows of tests/conformance/requirements.py with the texts of the seeds.

    python scripts/seed_coverage.py SEEDS_DIR            lists the lines of each seed that no row quotes
    python scripts/seed_coverage.py SEEDS_DIR --check    fails when a quote is not part of one line of its seed

SEEDS_DIR holds one text file a seed, whose name begins with the seed's three digits; the repository has none. Blanks
count as one, whatever and however many they are. Blank lines and fenced blocks are not listed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conformance.requirement import Requirement

ROOT = Path(__file__).resolve().parents[1]
_SEED_FILE = re.compile(r"([0-9]{3})[^0-9].*")
_FENCE = "```"
_SHOWN = 110


def fold(text: str) -> str:
    """The text with every run of whitespace as one blank."""
    return " ".join(text.split())


def read_seeds(folder: Path) -> dict[str, list[str]]:
    """The folded lines of each seed in the folder, by its three digits."""
    return {
        match[1]: [fold(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted(folder.iterdir())
        if path.is_file() and (match := _SEED_FILE.fullmatch(path.name))
    }


def countable(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """``(number from 1, line)`` of every line that is neither blank nor part of a fenced block."""
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.startswith(_FENCE):
            fenced = not fenced
        elif line and not fenced:
            yield number, line


def unquoted(lines: Sequence[str], quotes: Iterable[str]) -> list[tuple[int, str]]:
    """The countable lines that hold none of the quotes."""
    folded = [fold(quote) for quote in quotes]
    return [(number, line) for number, line in countable(lines) if not any(quote in line for quote in folded)]


def misquoted(seeds: Mapping[str, Sequence[str]], rows: Iterable[Requirement]) -> list[Requirement]:
    """Rows whose quote is not part of one line of their seed. Rows of other origin are left alone."""
    return [
        row
        for row in rows
        if row.seed.isdigit() and not any(fold(row.quote) in line for line in seeds.get(row.seed, ()))
    ]


def report(seeds: Mapping[str, Sequence[str]], rows: Sequence[Requirement]) -> None:
    """Prints the unquoted lines of every seed, then the counts."""
    counts: list[str] = []
    for seed, lines in seeds.items():
        quotes = [row.quote for row in rows if row.seed == seed]
        open_lines = unquoted(lines, quotes)
        total = sum(1 for _ in countable(lines))
        counts.append(f"{seed}: {len(quotes)} rows quote {total - len(open_lines)} of {total} lines")
        print(f"== {seed}: {len(open_lines)} lines that no row quotes")
        for number, line in open_lines:
            print(f"{number:>5}  {line if len(line) <= _SHOWN else line[:_SHOWN] + '...'}")
    print("\n".join(counts))


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 for a wrong quote, 2 for a folder without seeds."""
    parser = argparse.ArgumentParser(description="Which lines of the seeds no requirement quotes.")
    parser.add_argument("seeds_dir", type=Path, metavar="SEEDS_DIR")
    parser.add_argument("--check", action="store_true", help="only check that every quote occurs in its seed")
    given = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT))
    from tests.conformance.requirements import REQUIREMENTS

    seeds = read_seeds(given.seeds_dir) if given.seeds_dir.is_dir() else {}
    if not seeds:
        print(f"There is no seed in {given.seeds_dir}: a text file whose name begins with three digits.")
        return 2
    if not given.check:
        report(seeds, REQUIREMENTS)
        return 0
    wrong = misquoted(seeds, REQUIREMENTS)
    for row in wrong:
        print(f"{row.id}: not part of a line of {row.seed}: {row.quote}")
    quoted = sum(row.seed.isdigit() for row in REQUIREMENTS)
    print(f"{quoted - len(wrong)} of {quoted} quotes stand in their seeds.")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
