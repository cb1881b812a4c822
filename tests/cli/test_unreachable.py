"""Skill folders whose SKILL.md leads nowhere, elsewhere or to no file: failed skills beside good ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from satchel.errors import SkillError
from satchel.library import discover, load_skill
from satchel.library.checking import check
from satchel.skills.dialects import DIALECTS
from tests.cli.calling import Caller
from tests.support import write_skill

GOOD = "Tidies notes. Use when the user asks."


def outside(folder: Path) -> None:
    (folder / "SKILL.md").symlink_to(write_skill(folder.parents[1] / "outside", "far") / "SKILL.md")


def beside(folder: Path) -> None:
    shared = folder.parent / "shared.md"
    shared.write_text(f"---\nname: bad\ndescription: {GOOD}\n---\nB\n")
    (folder / "SKILL.md").symlink_to(shared)


def dangling(folder: Path) -> None:
    (folder / "SKILL.md").symlink_to("nothing.md")


def endless(folder: Path) -> None:
    (folder / "SKILL.md").symlink_to("SKILL.md")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "SKILL.md")


def directory(folder: Path) -> None:
    (folder / "SKILL.md" / "inner").mkdir(parents=True)


def linked_directory(folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "SKILL.md").symlink_to("docs")


def is_dangling(root: Path) -> bool:
    """Whether SKILL.md is a link to a file that is not there: a warning, though the skill fails (public report S11)."""
    link = root / "bad" / "SKILL.md"
    return link.is_symlink() and str(link.readlink()) == "nothing.md"


WAYS = [outside, beside, dangling, endless, pipe, directory, linked_directory]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    way: Callable[[Path], None] = request.param
    root = tmp_path / "skills"
    write_skill(root, "good", description=GOOD)
    (root / "bad").mkdir()
    way(root / "bad")
    return root


def test_it_is_an_error_and_its_neighbour_loads(root: Path) -> None:
    library = discover(root)
    assert [skill.name for skill in library.skills] == ["good"]
    (found,) = library.diagnostics
    told = ("symlink-dangling", "warning") if is_dangling(root) else ("manifest-unreadable", "error")
    assert (found.rule, found.severity, found.path) == (*told, str(root / "bad" / "SKILL.md"))
    with pytest.raises(SkillError) as caught:
        load_skill(root / "bad")
    assert caught.value.code == "skill-invalid"


def test_a_check_counts_it_as_failed(root: Path) -> None:
    report = check(root, targets="all")
    bad, good = report.skills
    assert (bad.path, bad.name, bad.ok, good.ok, report.diagnostics) == (str(root / "bad"), "", False, True, ())
    rule = "symlink-dangling" if is_dangling(root) else "manifest-unreadable"
    assert [item.rule for item in bad.diagnostics] == [rule]
    assert {verdict.status for verdict in bad.targets.values()} == {"refused"}
    assert len(bad.targets) == len(DIALECTS)
    assert (report.ok(), report.ok(strict=True)) == (False, False)
    alone = check(root / "bad")
    assert ([skill.ok for skill in alone.skills], alone.ok()) == ([False], False)


@pytest.mark.parametrize("strict", [(), ("--strict",)])
def test_so_does_the_command(satchel: Caller, root: Path, strict: tuple[str, ...]) -> None:
    said = satchel("check", str(root), "--json", *strict)
    assert (said.code, said.json["ok"]) == (1, False)
    assert [(item["path"], item["ok"]) for item in said.json["skills"]] == [
        (str(root / "bad"), False),
        (str(root / "good"), True),
    ]
    shown = satchel("check", str(root), *strict)
    assert shown.code == 1
    assert f"{root / 'bad'}: fails" in shown.out
    assert shown.err.endswith("2 checked, 1 failed.\n")
    assert satchel("check", str(root / "bad"), *strict).code == 1


def test_a_directory_called_like_the_manifest_hides_nothing_below_it(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").mkdir()
    write_skill(tmp_path / "group", "good")
    library = discover(tmp_path)
    assert [skill.name for skill in library.skills] == ["good"]
    assert [(found.rule, found.path) for found in library.diagnostics] == [
        ("manifest-unreadable", str(tmp_path / "SKILL.md"))
    ]
