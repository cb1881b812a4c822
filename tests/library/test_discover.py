from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.errors import SkillError
from satchel.library import Library, discover
from satchel.library.roots import conventional_roots, default_roots, install_dir, state_dir
from satchel.skills.dialect import Limits
from satchel.skills.dialects import PORTABLE
from tests.support import write_skill


def rules(library: Library) -> list[str]:
    return [found.rule for found in library.diagnostics]


def names(library: Library) -> list[str]:
    return [skill.name for skill in library.skills]


def limited(**limits: int | None) -> Limits:
    return replace(Limits(), **limits)


def test_a_broken_skill_stands_beside_good_ones(tmp_path: Path) -> None:
    write_skill(tmp_path, "good")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "SKILL.md").write_text("---\nname: broken\n---\nBody\n")
    library = discover([tmp_path])
    assert names(library) == ["good"]
    (found,) = library.diagnostics
    assert (found.rule, found.severity, found.path) == ("description-missing", "error", str(broken / "SKILL.md"))
    assert found.line
    assert found.hint


def test_nested_skills_are_files_of_the_outer_one(tmp_path: Path) -> None:  # S13
    write_skill(tmp_path, "site", files={"assets/starter/SKILL.md": "template"})
    for path in ("site/node_modules/pkg", "node_modules", ".git/x", "vendor", "dist/a", "build", "__pycache__"):
        write_skill(tmp_path / path, "hidden")
    write_skill(tmp_path / "group", "web")
    write_skill(tmp_path, "sdk", files={"linux/SKILL.md": "---\nname: sdk/linux\ndescription: D.\n---\nBody\n"})
    library = discover([tmp_path])
    assert names(library) == ["sdk", "site", "web"]
    assert library.read("sdk", "linux/SKILL.md").text.startswith("---")
    assert [found.rule for found in library.load("site").skill.diagnostics] == ["nested-skill"]
    descending = discover([tmp_path], dialect=replace(PORTABLE, nested="descend"))
    assert "sdk-linux" in names(descending)


def test_a_root_may_be_hidden_or_itself_a_skill(tmp_path: Path) -> None:
    write_skill(tmp_path / ".skills", "a")
    assert names(discover([tmp_path / ".skills"])) == ["a"]
    assert names(discover([tmp_path / ".skills" / "a"])) == ["a"]
    assert names(discover(str(tmp_path / ".skills"))) == ["a"]


def test_the_first_root_wins_a_name_and_a_broken_skill_never_does(tmp_path: Path) -> None:
    one, two, three = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    write_skill(one, "pdf", description="First.")
    write_skill(two, "pdf", description="Second.")
    (three / "pdf").mkdir(parents=True)
    (three / "pdf" / "SKILL.md").write_text("broken")
    library = discover([three, one, two])
    (skill,) = library.skills
    assert (skill.description, skill.shadowed) == ("First.", (str(two / "pdf"),))
    assert rules(library) == ["frontmatter-missing", "name-shadowed"]
    assert discover([two, one]).skills[0].description == "Second."


def test_missing_and_repeated_roots(tmp_path: Path) -> None:
    write_skill(tmp_path / "a", "x")
    (tmp_path / "alias").symlink_to("a")
    (tmp_path / "file").write_text("")
    library = discover([tmp_path / "none", tmp_path / "file", tmp_path / "a", tmp_path / "alias", tmp_path / "a" / "."])
    assert names(library) == ["x"]
    assert [(found.rule, found.severity) for found in library.diagnostics] == [("root-missing", "warning")] * 2
    assert discover([]).skills == ()
    odd = discover(["a\0b", "x" * 9000], disabled=["/a\0b"])
    assert rules(odd) == ["root-missing", "root-missing", "disabled-unmatched"]


def test_names_that_are_not_utf8_do_no_harm(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/od\xffd"
    os.mkdir(odd)  # noqa: PTH102
    Path(os.fsdecode(odd + b"/SKILL.md")).write_text("---\nname: odd\ndescription: D.\n---\nB\n")
    Path(os.fsdecode(odd + b"/\xfe.md")).write_text("x")
    library = discover([tmp_path])
    assert names(library) == ["odd"]
    assert [file.path for file in library.load("odd").files] == ["SKILL.md"]


def test_links_are_followed_where_they_stay_inside_the_roots(tmp_path: Path) -> None:  # S11
    store, home = tmp_path / "store", tmp_path / "home" / "skills"
    for name in ("one", "two", "three"):
        write_skill(store, name)
    (home / "two").mkdir(parents=True)
    (home / "gone").mkdir()
    (home / "one").symlink_to("../../store/one")
    (home / "two" / "SKILL.md").symlink_to("../../../store/two/SKILL.md")
    (home / "gone" / "SKILL.md").symlink_to("../../../store/missing/SKILL.md")
    (home / "again").symlink_to(".")
    (tmp_path / "rootlink").symlink_to("store")
    library = discover([home, tmp_path / "rootlink"])
    assert names(library) == ["one", "three", "two"]
    assert {skill.location for skill in library.skills} == {str(store / name) for name in ("one", "two", "three")}
    assert [(found.rule, found.severity) for found in library.diagnostics] == [("symlink-dangling", "warning")]
    assert library.load("two").body

    alone = discover([home])
    assert names(alone) == []
    assert sorted(rules(alone)) == ["manifest-unreadable", "manifest-unreadable", "symlink-outside"]


def test_a_skill_that_becomes_a_link_is_not_read_any_more(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "root", "a")
    secret = write_skill(tmp_path / "elsewhere", "a", body="secret")
    library = discover([tmp_path / "root"])
    folder.rename(tmp_path / "moved")
    folder.symlink_to(secret)
    with pytest.raises(SkillError) as caught:
        library.load("a")
    assert caught.value.code == "skill-invalid"


def test_spellings_of_the_manifest(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "lower")
    (folder / "SKILL.md").rename(folder / "skill.md")
    both = write_skill(tmp_path, "both")
    (both / "Skill.md").write_text("x")
    library = discover([tmp_path])
    assert names(library) == ["lower"]
    assert [(found.rule, found.severity) for found in library.diagnostics] == [
        ("manifest-twice", "error"),
        ("manifest-case", "warning"),
    ]
    assert [found.rule for found in library.skills[0].diagnostics] == ["manifest-case"]
    assert library.read("lower", "SKILL.md").text == library.read("lower", "").text
    assert library.load("lower").files[0].kind == "manifest"


def test_disabled_by_name_or_by_place(tmp_path: Path) -> None:
    write_skill(tmp_path / "1", "pdf", description="First.")
    write_skill(tmp_path / "2", "pdf", description="Second.")
    write_skill(tmp_path / "2", "xlsx")
    roots = [tmp_path / "1", tmp_path / "2"]
    assert names(discover(roots, disabled=["PDF"])) == ["xlsx"]
    by_place = discover(roots, disabled=[str(tmp_path / "1" / "pdf")])
    assert [skill.description for skill in by_place.skills if skill.name == "pdf"] == ["Second."]
    assert rules(by_place) == []


@pytest.mark.parametrize(
    ("limits", "rule"),
    [
        (limited(directories=3), "root-too-large"),
        (limited(entries=3), "root-too-large"),
        (limited(skills=2), "too-many-skills"),
    ],
)
def test_a_ceiling_that_is_reached_is_told(tmp_path: Path, limits: Limits, rule: str) -> None:
    for number in range(6):
        write_skill(tmp_path, f"s{number}")
    library = discover([tmp_path], dialect=replace(PORTABLE, limits=limits))
    assert len(library.skills) < 6
    assert rules(library) == [rule]


def test_depth_is_bounded(tmp_path: Path) -> None:
    write_skill(tmp_path / "1/2/3/4/5", "six")
    write_skill(tmp_path / "1/2/3/4/5/6", "seven")
    assert names(discover([tmp_path])) == ["six"]


def test_odd_things_called_skill_md(tmp_path: Path) -> None:
    write_skill(tmp_path, "good")
    (tmp_path / "folder" / "SKILL.md").mkdir(parents=True)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    (tmp_path / "latin").mkdir()
    (tmp_path / "latin" / "SKILL.md").write_bytes("---\nname: latin\ndescription: Café menu\n---\n".encode("latin-1"))
    library = discover([tmp_path])
    assert names(library) == ["good"]
    assert rules(library) == ["manifest-unreadable", "encoding-invalid", "manifest-unreadable"]


def test_roots_that_are_conventional(tmp_path: Path) -> None:
    repo, home = tmp_path / "repo", tmp_path / "home"
    deep = repo / "a" / "b"
    for folder in (deep / ".agents/skills", repo / ".claude/skills", repo / ".agents/skills", home / ".claude/skills"):
        folder.mkdir(parents=True)
    (tmp_path / ".agents" / "skills").mkdir(parents=True)
    assert conventional_roots(deep, home) == (str(deep / ".agents/skills"), str(home / ".claude/skills"))
    (repo / ".git").write_text("gitdir: elsewhere")
    expected = [deep / ".agents/skills", repo / ".agents/skills", repo / ".claude/skills", home / ".claude/skills"]
    assert conventional_roots(deep, home) == tuple(map(str, expected))
    installed = tmp_path / "installed"
    assert default_roots(deep, installed) == tuple(map(str, expected[:2]))
    installed.mkdir()
    assert default_roots(deep, installed) == tuple(map(str, [installed, *expected[:2]]))


def test_where_installed_skills_lie() -> None:
    assert install_dir({"XDG_DATA_HOME": "/data"}, platform="linux", home="/h") == "/data/satchel/skills"
    assert install_dir({"XDG_DATA_HOME": "relative"}, platform="linux", home="/h") == "/h/.local/share/satchel/skills"
    assert install_dir({}, platform="darwin", home="/h") == "/h/Library/Application Support/satchel/skills"
    assert install_dir({"LOCALAPPDATA": "/l"}, platform="win32", home="/h") == "/l/satchel/skills"


def test_the_state_directory_is_the_platforms() -> None:
    assert state_dir({"XDG_STATE_HOME": "/state", "XDG_DATA_HOME": "/data"}, platform="linux") == "/state/satchel"
    assert state_dir({"XDG_STATE_HOME": "relative"}, platform="linux", home="/h") == "/h/.local/state/satchel"
    assert state_dir({}, platform="darwin", home="/h") == "/h/Library/Application Support/satchel"
    assert state_dir({"LOCALAPPDATA": "/l"}, platform="win32", home="/h") == "/l/satchel"
