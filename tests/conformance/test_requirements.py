"""The rows of requirements: each names a test that exists, and each test of a seed stands in a row."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from satchel.skills.dialects import AGENT_SH, CONTEXTCHEF, FLOWCRAFT, TENSORSHARP, TNSAI
from scripts.seed_coverage import countable, main, misquoted, read_seeds, unquoted
from tests.conformance.requirements import REQUIREMENTS, Requirement
from tests.project.tree import ROOT

SEED_ROWS = {"000": AGENT_SH, "001": TENSORSHARP, "002": FLOWCRAFT, "003": TNSAI, "004": CONTEXTCHEF}
MATRIX = range(1, 31)
CHECKS = (*range(1, 38), 40)
STREAMING = range(1, 29)
RECOVERIES = range(1, 16)
HERE = "tests/conformance/test_requirements.py"
LONGEST_QUOTE = 90


@cache
def functions(module: str) -> frozenset[str]:
    """The test functions that pytest collects from a module, () for one that it does not look at."""
    path = ROOT / module
    if not (re.fullmatch(r"tests/(?:[a-z_]+/)*test_[a-z0-9_]+\.py", module) and path.is_file()):
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    found = (node.name for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return frozenset(name for name in found if name.startswith("test_"))


def without_test(rows: Iterable[Requirement]) -> list[str]:
    """Rows whose test, or whose twin of it, is not there."""
    return [row.id for row in rows if not all(is_there(test) for test in (row.test, row.twin or row.test))]


def is_there(test: str) -> bool:
    module, _, name = test.partition("::")
    return name in functions(module)


def numbers(rows: Iterable[Requirement], prefix: str) -> list[int]:
    """The first number behind the prefix in the ids, each once."""
    found = (re.match(rf"{re.escape(prefix)}-([0-9]+)(?:-|\Z)", row.id) for row in rows)
    return sorted({int(match[1]) for match in found if match})


def twice(values: Iterable[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


def test_every_row_names_a_test_that_exists() -> None:
    assert without_test(REQUIREMENTS) == []


@pytest.mark.parametrize(
    "test",
    [
        "tests/conformance/test_requirements.py::test_not_there",
        "tests/conformance/test_requirements.py::functions",
        "tests/conformance/test_requirements.py",
        "tests/conformance/reading.py::test_x",
        "tests/gone/test_x.py::test_x",
        "scripts/seed_coverage.py::main",
    ],
)
def test_a_row_without_a_test_is_seen(test: str) -> None:
    assert without_test([Requirement("000-1-1", "000", "x", test)]) == ["000-1-1"]
    with_twin = Requirement("000-1-1", "000", "x", f"{HERE}::test_ids_are_unique_and_begin_with_their_seed", test)
    assert without_test([with_twin]) == ["000-1-1"]


def test_what_a_host_does_of_its_own_accord_has_a_test_of_when_it_must_not() -> None:
    """Eleven for the ten rows of the seed's table of what goes wrong, and four for what stands below it."""
    rows = [row for row in REQUIREMENTS if row.id.startswith("001-recovery-")]
    assert numbers(rows, "001-recovery") == list(RECOVERIES)
    assert [row.id for row in rows if row.twin in {"", row.test}] == []
    assert twice([*(row.test for row in rows), *(row.twin for row in rows)]) == []


def test_ids_are_unique_and_begin_with_their_seed() -> None:
    assert twice(row.id for row in REQUIREMENTS) == []
    assert [row.id for row in REQUIREMENTS if not re.fullmatch(rf"{row.seed}-(?:[\w.]+-)?[0-9]+", row.id)] == []


def test_quotes_are_there_unique_short_and_on_one_line() -> None:
    assert twice(row.quote for row in REQUIREMENTS) == []
    quotes = [row.quote for row in REQUIREMENTS]
    assert [quote for quote in quotes if quote != " ".join(quote.split()) or not quote] == []
    assert [row.quote for row in REQUIREMENTS if row.seed.isdigit() and len(row.quote) > LONGEST_QUOTE] == []


def test_every_seed_with_a_dialect_has_rows() -> None:
    counts = Counter(row.seed for row in REQUIREMENTS)
    assert [seed for seed in SEED_ROWS if counts[seed] < 20] == []
    assert set(counts) == {*SEED_ROWS, "checks", "streaming"}


def test_the_matrix_and_the_checks_are_complete() -> None:
    assert numbers(REQUIREMENTS, "000-13.1") == list(MATRIX)
    assert numbers(REQUIREMENTS, "checks") == list(CHECKS)
    assert numbers(REQUIREMENTS, "streaming") == list(STREAMING)


@pytest.mark.parametrize("seed", SEED_ROWS)
def test_every_test_of_a_seed_stands_in_a_row_and_in_its_dialect(seed: str) -> None:
    module = f"tests/conformance/test_seed_{seed}.py"
    named = {row.test for row in REQUIREMENTS if row.seed == seed}
    assert {f"{module}::{name}" for name in functions(module)} - named == set()
    assert f'ROW = "{SEED_ROWS[seed].id}"' in (ROOT / module).read_text(encoding="utf-8")


@pytest.mark.parametrize(("module", "seed"), [("activation_000", "000"), ("turns_003", "003"), ("context_004", "004")])
def test_every_test_of_one_part_of_a_seed_stands_in_a_row_and_in_its_dialect(module: str, seed: str) -> None:
    module = f"tests/conformance/test_{module}.py"
    named = {row.test for row in REQUIREMENTS if row.seed == seed}
    assert {f"{module}::{name}" for name in functions(module)} - named == set()
    assert f'ROW = "{SEED_ROWS[seed].id}"' in (ROOT / module).read_text(encoding="utf-8")


def test_every_acceptance_test_of_reading_stands_in_a_row() -> None:
    module = "tests/conformance/test_acceptance_reading.py"
    named = {row.test for row in REQUIREMENTS if row.seed == "checks"}
    assert {f"{module}::{name}" for name in functions(module)} - named == set()


SEED = "# Title\n\nFirst   line.\n```text\nFenced.\n```\n\tSecond line: é → x\n"


def row(quote: str) -> Requirement:
    return Requirement("000-1-1", "000", quote, "")


def test_lines_that_no_row_quotes_are_listed_without_blank_and_fenced_ones(tmp_path: Path) -> None:
    (tmp_path / "000_abc.txt").write_text(SEED, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    seeds = read_seeds(tmp_path)
    assert list(seeds) == ["000"]
    assert list(countable(seeds["000"])) == [(1, "# Title"), (3, "First line."), (7, "Second line: é → x")]
    assert unquoted(seeds["000"], ["First line", "é  → x"]) == [(1, "# Title")]


def test_a_quote_must_be_part_of_one_line_of_its_own_seed(tmp_path: Path) -> None:
    (tmp_path / "000_abc.txt").write_text(SEED, encoding="utf-8")
    seeds = read_seeds(tmp_path)
    right = [row("First line."), row("Second line: é"), row("Fenced."), Requirement("checks-1", "checks", "ours", "")]
    assert misquoted(seeds, right) == []
    wrong = [row("first line."), row("Title First"), Requirement("001-a-1", "001", "First line.", "")]
    assert misquoted(seeds, wrong) == wrong


def test_the_script_lists_counts_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = next(requirement for requirement in REQUIREMENTS if requirement.seed == "000")
    (tmp_path / "000_abc.txt").write_text(f"Unknown.\n{known.quote}\n", encoding="utf-8")
    assert main([str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert "    1  Unknown.\n" in listed
    assert "rows quote 1 of 2 lines" in listed
    assert main([str(tmp_path), "--check"]) == 1
    checked = capsys.readouterr().out
    assert f"{known.id}: " not in checked
    assert checked.count("not part of a line of 001") == sum(item.seed == "001" for item in REQUIREMENTS)
    assert main([str(tmp_path / "none")]) == 2
