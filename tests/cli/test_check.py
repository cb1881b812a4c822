from __future__ import annotations

from pathlib import Path

import pytest

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


def test_the_table_has_a_row_for_each_harness_and_fits_the_screen(satchel: Caller, tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "claude-notes", description="Use when asked. " + "word " * 300, body="Pay $5.\n")
    said = satchel("check", "--targets", "all", str(folder))
    lines = said.out.splitlines()
    rows = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
    assert rows == list(DIALECTS)
    assert max(len(line) for line in lines[1:]) <= 80
    text = " ".join(said.out.split())
    assert "refused" in text
    assert "loads with warnings" in text
    assert "description cut at 1024 of" in text
    assert "$5 taken for an argument" in text


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
