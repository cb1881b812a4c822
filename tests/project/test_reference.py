"""The reference pages that are made from the code are as the code makes them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from satchel.skills.diagnostics import RULES
from satchel.skills.dialect import Dialect
from satchel.skills.dialects import DIALECTS
from scripts.generate_reference import fields_shown, pages

PAGES = pages()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_committed_page_is_what_the_script_makes(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES[path], "run scripts/generate_reference.py"


def test_the_page_of_dialects_shows_every_field_of_every_row() -> None:
    assert sorted(fields_shown()) == sorted(field.name for field in fields(Dialect))
    (page,) = (text for path, text in PAGES.items() if path.name == "dialects.md")
    for row in DIALECTS.values():
        assert page.count(f"| `{row.id}` |") == 8
        assert f"| {row.read_on} |" in page


def test_the_page_of_rules_shows_every_rule() -> None:
    (page,) = (text for path, text in PAGES.items() if path.name == "rules.md")
    assert all(f"\n| `{rule}` | {info.severity} |" in page for rule, info in RULES.items())
