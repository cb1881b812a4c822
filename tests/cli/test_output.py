from __future__ import annotations

from pathlib import Path

import pytest

from satchel.cli.console import line, wants_json
from tests.cli.calling import Caller
from tests.support import write_skill


@pytest.mark.parametrize("command", ["list", "files", "show", "check", "doctor"])
def test_no_name_starts_a_line_of_its_own(satchel: Caller, tmp_path: Path, command: str) -> None:
    root = tmp_path / "roots\nforged: one\x1b[1m"
    folder = write_skill(root, "canary")
    (folder / "a\nforged: two\u2028forged: three").write_text("text")
    broken = write_skill(root, "broken\nforged: four", body="")
    (broken / "SKILL.md").write_text("no frontmatter")
    arguments = {
        "list": ("--skills-dir", str(root)),
        "doctor": ("--skills-dir", str(root)),
        "files": ("canary", "--skills-dir", str(root)),
        "show": ("canary", "--skills-dir", str(root)),
        "check": (str(root), "--targets", "all"),
    }[command]
    said = satchel(command, *arguments)
    written = said.out + said.err
    assert "forged" in written
    assert not [one for one in written.splitlines() if one.lstrip().startswith("forged")]
    assert "\x1b" not in written


def test_an_error_is_one_line_and_its_hint_another(satchel: Caller, root: Path) -> None:
    said = satchel("show", "x\nsatchel: forged\r\x1b[2K", "--skills-dir", str(root))
    assert said.code == 1
    assert [one.split(":")[0].strip() for one in said.err.splitlines()] == ["satchel", "hint"]
    assert "\x1b" not in said.err


def test_a_field_is_one_visible_line() -> None:
    assert line("a\n b\t\x1b[1mc\u202e\udce9") == "a b [1mc?"


def test_options_come_after_the_command_and_json_before_the_dashes(satchel: Caller) -> None:
    said = satchel("--json", "list")
    assert said.code == 2
    assert "Options come after the command: satchel list --json" in said.json["error"]["hint"]
    assert wants_json(["list", "--json"])
    assert not wants_json(["read", "--", "--json"])
    said = satchel("show", "--", "--json")
    assert (said.code != 0, said.out) == (True, "")
