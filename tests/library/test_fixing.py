from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from satchel.errors import PathError, SkillError
from satchel.library.fixing import Fix, plan_fixes

BROKEN = "---\nname: tidy\ndescription: Use when: asked\n---\nBody\n"
REPAIRED = "---\nname: tidy\ndescription: 'Use when: asked'\n---\nBody\n"


def write(folder: Path, text: str = BROKEN) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder / "SKILL.md"


def test_a_plan_changes_nothing_and_shows_a_unified_diff(tmp_path: Path) -> None:
    path = write(tmp_path / "tidy")
    write(tmp_path / "fine", BROKEN.replace("tidy", "fine").replace("Use when: asked", "Fine"))
    (fix,) = plan_fixes(tmp_path)
    assert (fix.directory, fix.path) == (os.path.realpath(tmp_path / "tidy"), os.path.realpath(path))
    assert path.read_text(encoding="utf-8") == BROKEN
    assert fix.diff().splitlines()[2:] == [
        "@@ -1,5 +1,5 @@",
        " ---",
        " name: tidy",
        "-description: Use when: asked",
        "+description: 'Use when: asked'",
        " ---",
        " Body",
    ]


def test_a_diff_says_where_no_line_end_is() -> None:
    shown = Fix(directory="/d", path="/d/SKILL.md", before=b"a\nb", after=b"c\nb").diff()
    assert shown == "--- a/d/SKILL.md\n+++ b/d/SKILL.md\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n"


def test_writing_keeps_the_permissions_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = write(tmp_path / "tidy")
    path.chmod(0o640)
    (fix,) = plan_fixes(path)
    fix.write()
    assert path.read_text(encoding="utf-8") == REPAIRED
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [entry.name for entry in (tmp_path / "tidy").iterdir()] == ["SKILL.md"]
    assert list(plan_fixes(path)) == []


def test_a_file_that_changed_since_is_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "tidy")
    (fix,) = plan_fixes(path)
    path.write_text("something else", encoding="utf-8")
    with pytest.raises(PathError, match="has changed"):
        fix.write()
    assert path.read_text(encoding="utf-8") == "something else"


def test_a_link_is_followed_to_a_file_inside_the_skill_only(tmp_path: Path) -> None:
    inside = write(tmp_path / "skills" / "inside")
    inside.rename(inside.parent / "text.md")
    inside.symlink_to("text.md")
    (tmp_path / "skills" / "shared.md").write_text(BROKEN, encoding="utf-8")
    (tmp_path / "skills" / "outside").mkdir()
    (tmp_path / "skills" / "outside" / "SKILL.md").symlink_to("../shared.md")
    (fix,) = plan_fixes(tmp_path / "skills")
    fix.write()
    assert inside.is_symlink()
    assert (inside.parent / "text.md").read_text(encoding="utf-8").startswith("---\nname: tidy\ndescription: 'Use")
    assert (tmp_path / "skills" / "shared.md").read_text(encoding="utf-8") == BROKEN


def test_a_directory_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    path = write(tmp_path / "tidy")
    (fix,) = plan_fixes(path)
    path.unlink()
    with pytest.raises(PathError, match="cannot be written"):
        fix.write()


def test_nothing_to_fix(tmp_path: Path) -> None:
    with pytest.raises(SkillError):
        list(plan_fixes(tmp_path))
