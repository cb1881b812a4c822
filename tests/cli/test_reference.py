"""The page about the command line has everything that the program has."""

from __future__ import annotations

import re

import pytest

from satchel.cli.app import app
from satchel.settings.load import TABLE
from tests.project.tree import ROOT

PAGE = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
COMMANDS = [name for name in app if not name.startswith("-")]


def section(command: str) -> str:
    """The part of the page under the command's heading."""
    found = re.search(rf"^## {re.escape(command)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def test_every_command_has_a_section_and_every_section_of_that_kind_a_command() -> None:
    headings = re.findall(r"^## ([a-z]+)$", PAGE, re.MULTILINE)
    assert sorted(headings) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_section_shows_a_call_and_the_shape_of_its_json(command: str) -> None:
    text = section(command)
    assert re.search(rf"^satchel {command}\b", text, re.MULTILINE)
    assert "--json" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_on_the_page(command: str) -> None:
    common = PAGE.partition("\n## Shapes that return")[0]
    options = {
        name
        for argument in app[command].assemble_argument_collection()
        for name in argument.names[:1]
        if name.startswith("--")
    }
    assert {name for name in options if f"`{name}" not in common + section(command)} == set()


def test_every_subcommand_is_in_the_section_of_its_command() -> None:
    for command in ("model", "trust"):
        for name in app[command]:
            if not name.startswith("-"):
                assert f"satchel {command} {name}" in section(command)


def test_every_flag_and_variable_of_the_settings_is_on_the_page() -> None:
    known = {row.flag for row in TABLE if row.flag} | {row.variable for row in TABLE if row.variable}
    assert {name for name in known if not re.search(rf"{re.escape(name)}\b", PAGE)} == set()
