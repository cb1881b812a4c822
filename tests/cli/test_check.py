from __future__ import annotations

import io
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from satchel.cli.portability import portability_lines
from satchel.library.checking import check as check_skills
from satchel.skills.dialects import DIALECTS
from tests.cli.calling import Caller
from tests.support import write_skill

BROKEN = "---\ndescription: Use when: asked\nallowed_tools: Read\n---\nBody\n"
REPAIRED = "---\nname: tidy\ndescription: 'Use when: asked'\nallowed-tools: Read\n---\nBody\n"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    (tmp_path / "tidy").mkdir()
    (tmp_path / "tidy" / "SKILL.md").write_text(BROKEN, encoding="utf-8")
    return tmp_path / "tidy"


def test_a_good_skill(satchel: Caller, tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "lint")
    said = satchel("check", str(folder), "--strict")
    assert (said.code, said.out, said.err) == (0, f"{folder}: ok\n", "1 checked, 0 failed.\n")


def test_the_published_shape(satchel: Caller, root: Path) -> None:
    said = satchel("check", str(root), "--json", "--targets", "codex,portable")
    assert said.code == 1
    assert list(said.json) == ["skills", "diagnostics", "ok"]
    assert said.json["ok"] is False
    bad, deploy, lint = said.json["skills"]
    assert [list(item) for item in (bad, deploy, lint)] == [["path", "name", "ok", "diagnostics", "targets"]] * 3
    assert [(item["name"], item["ok"]) for item in (bad, deploy, lint)] == [
        ("", False),
        ("deploy", True),
        ("lint", True),
    ]
    (finding,) = bad["diagnostics"]
    assert list(finding) == ["rule", "severity", "path", "line", "column", "message", "hint"]
    assert lint["targets"] == {name: {"status": "loads", "notes": []} for name in ("codex", "portable")}
    assert bad["targets"]["codex"]["status"] == "refused"


def test_strict_fails_on_warnings_only_when_asked(satchel: Caller, broken: Path) -> None:
    assert satchel("check", str(broken)).code == 0
    strict = satchel("check", str(broken), "--strict", "--json")
    assert (strict.code, strict.json["ok"], strict.json["skills"][0]["ok"]) == (1, False, False)


def test_a_dialect_judges(satchel: Caller, broken: Path) -> None:
    said = satchel("check", str(broken), "--dialect", "agentskills")
    assert said.code == 1
    assert "[yaml-repaired]" in said.err


def tables(text: str) -> list[dict[str, list[str]]]:
    """Each table as its rows by their label; the header is the row "skill"."""
    blocks = [block.splitlines() for block in text.split("\n\n")]
    rows = ([line.split() for line in block] for block in blocks if block and block[0].startswith("skill "))
    return [{first: rest for first, *rest in table} for table in rows]


@pytest.mark.parametrize("width", [48, 80, 120, 200])
def test_the_table_has_a_column_a_harness_and_fits_the_screen(
    satchel: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    write_skill(tmp_path, "claude-notes", description="Use when asked. " + "word " * 300, body="Pay $5.\n")
    write_skill(tmp_path, "lint")
    monkeypatch.setenv("COLUMNS", str(width))
    said = satchel("check", "--targets", "all", str(tmp_path))
    shown = tables(said.out)
    assert [name for table in shown for name in table["skill"]] == list(DIALECTS)
    assert (len(shown) == 1) is (width == 200)
    assert [cell for table in shown for cell in table["lint"]] == ["✓"] * len(DIALECTS)
    cells = dict(zip(DIALECTS, (cell for table in shown for cell in table["claude-notes"]), strict=True))
    assert (cells["portable"], cells["agentskills"], cells["gemini-cli"]) == ("!", "✗", "✓")
    lines = said.out.splitlines()
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= width
    assert "✓ loads   ! loads with warnings   ✗ refused" in lines
    text = " ".join(said.out.split())
    assert "What differs for claude-notes" in text
    assert "What differs for lint" not in text
    assert "description cut at 1024 of" in text
    assert "tnsai, contextchef, claude-code: $5 taken for an argument" in text


def test_cells_stand_below_their_harness(satchel: Caller, tmp_path: Path) -> None:
    write_skill(tmp_path, "lint")
    out = satchel("check", "--targets", "tnsai,codex,mcp", str(tmp_path)).out.splitlines()
    head, row = next((head, row) for head, row in pairwise(out) if head.startswith("skill "))
    assert [index for index, cell in enumerate(row) if cell == "✓"] == [
        head.index(n) for n in ("tnsai", "codex", "mcp")
    ]


def test_skills_of_one_name_are_told_apart_by_their_folders(satchel: Caller, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_skill(tmp_path / folder, "lint")
    (table,) = tables(satchel("check", "--targets", "codex", str(tmp_path)).out)
    assert [label[-6:] for label in table if label != "skill"] == ["a/lint", "b/lint"]


def test_the_table_is_plain_where_its_signs_cannot_be_written(
    satchel: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(tmp_path, "lint")
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        assert satchel("check", "--targets", "codex", str(tmp_path)).code == 0
    out.seek(0)
    assert "+ loads   ! loads with warnings   x refused" in out.read()


def test_colours_only_on_a_terminal(satchel: Caller, tmp_path: Path) -> None:
    write_skill(tmp_path, "lint")
    assert "\x1b" not in satchel("check", "--targets", "codex", str(tmp_path)).out
    skills = check_skills(tmp_path, targets="codex,mcp").skills
    plain, coloured = (list(portability_lines(skills, width=80, colour=colour)) for colour in (False, True))
    assert coloured[1] == "lint   \x1b[32m✓\x1b[0m      \x1b[32m✓\x1b[0m"
    assert [re.sub(r"\x1b\[\d+m", "", text).rstrip() for text in coloured] == [text.rstrip() for text in plain]


def test_words_of_a_skill_do_not_break_the_table(satchel: Caller, tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "lint")
    manifest = folder / "SKILL.md"
    manifest.write_text(manifest.read_text().replace("name: lint", 'name: "li\\e[2J\\nnt"'))
    said = satchel("check", "--targets", "all", str(folder))
    assert "\x1b" not in said.out + said.err
    assert all(len(table) == 2 for table in tables(said.out))


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--dry-run", "."),
        ("no/such/folder",),
        ("no/such/SKILL.md",),
        (".", "--dialect", "nothing"),
        (".", "--targets", "codexx"),
        (".", "--nonsense"),
    ],
)
def test_a_wrong_call_ends_with_two(satchel: Caller, arguments: tuple[str, ...]) -> None:
    said = satchel("check", *arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("satchel: ")


def test_a_folder_without_skills_ends_with_one(satchel: Caller, tmp_path: Path) -> None:
    said = satchel("check", str(tmp_path), "--json")
    assert said.code == 1
    assert said.json["error"]["code"] == "skill-not-found"


def test_what_belongs_to_no_skill_is_told_apart(satchel: Caller, tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "lint")
    (tmp_path / "skills" / "gone").symlink_to(tmp_path / "skills" / "nowhere")
    said = satchel("check", str(tmp_path / "skills"), "--json", "--strict")
    assert (said.code, said.json["ok"], said.json["skills"][0]["ok"]) == (1, False, True)
    assert [item["rule"] for item in said.json["diagnostics"]] == ["symlink-dangling"]
    assert "[symlink-dangling]" in satchel("check", str(tmp_path / "skills")).err


def test_a_path_at_which_nothing_could_be_checked_fails_beside_a_good_one(satchel: Caller, tmp_path: Path) -> None:
    good, outside = write_skill(tmp_path / "good", "lint"), write_skill(tmp_path / "outside", "deploy")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "deploy").symlink_to(outside)
    assert satchel("check", str(good)).code == 0
    assert satchel("check", str(good), str(tmp_path / "linked")).code == 1


def test_a_skill_below_two_of_the_paths_is_shown_once(satchel: Caller, tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "lint")
    assert len(satchel("check", str(tmp_path), str(folder), "--json").json["skills"]) == 1


def test_a_dry_run_shows_what_a_fix_would_do(satchel: Caller, broken: Path) -> None:
    said = satchel("check", str(broken), "--fix", "--dry-run")
    assert "-allowed_tools: Read\n" in said.err
    assert "+allowed-tools: Read\n" in said.err
    assert (broken / "SKILL.md").read_text(encoding="utf-8") == BROKEN
    assert "[yaml-repaired]" in said.err


def test_a_fix_is_shown_written_and_then_judged(satchel: Caller, broken: Path) -> None:
    said = satchel("check", str(broken), "--fix", "--strict", "--json")
    assert (said.code, said.json["ok"]) == (0, True)
    assert said.json["skills"][0]["diagnostics"] == []
    assert said.err.index("+name: tidy\n") < said.err.index("Repaired ")
    assert (broken / "SKILL.md").read_text(encoding="utf-8") == REPAIRED
    assert satchel("check", str(broken), "--fix", "--strict").err == "1 checked, 0 failed.\n"


def test_words_of_a_skill_do_not_drive_the_terminal(satchel: Caller, tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "lint", body="[\x1b[31mx](gone\x1b[2J.md)\n")
    said = satchel("check", str(folder))
    assert "\x1b" not in said.out + said.err
    assert "[link-missing]" in said.err
