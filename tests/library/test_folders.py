from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from satchel import load_skills_dir, load_skills_dirs
from satchel.errors import SetupError
from satchel.library.library import Library
from tests.conformance.reading import skill, write


def listed(result: Any) -> list[tuple[str, str]]:
    return [(item.name, item.description) for item in result.skills]


def test_good_skills_come_with_their_bodies_and_the_errors_of_the_others(tmp_path: Path) -> None:
    write(tmp_path, "b", skill("b"))
    write(tmp_path, "a", skill("a"))
    bad = write(tmp_path, "bad", "no frontmatter")
    write(tmp_path, "group/deep", skill("deep"))
    write(tmp_path, "a/inner", skill("inner"))
    (tmp_path / "SKILL.md").write_text(skill("root"))
    result = load_skills_dir(tmp_path)
    assert [(item.name, item.body) for item in result.skills] == [("a", "Body.\n"), ("b", "Body.\n")]
    assert [(item.path, item.rule) for item in result.errors] == [(str(bad / "SKILL.md"), "frontmatter-missing")]


@pytest.mark.parametrize("dialect", ["portable", "agent-sh", "tensorsharp", "contextchef", "codex"])
def test_a_directory_that_is_not_there_is_one_error_in_every_row(tmp_path: Path, dialect: str) -> None:
    result = load_skills_dir(tmp_path / "none", dialect)
    assert (result.skills, [item.rule for item in result.errors]) == ((), ["root-missing"])


@pytest.mark.parametrize("dialect", ["portable", "tensorsharp", "flowcraft"])
def test_one_name_in_two_directories(tmp_path: Path, dialect: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write(one, "shared", skill("shared", "First."))
    write(two, "shared", skill("shared", "Second."))
    write(one, "own", skill("own", "Own."))
    both = [one, two, one]
    assert listed(load_skills_dirs(both, dialect)) == [("own", "Own."), ("shared", "Second.")]
    first = load_skills_dirs(both, dialect, collision="first")
    assert listed(first) == [("own", "Own."), ("shared", "First.")]
    assert first.errors == ()
    assert listed(load_skills_dirs(both, dialect, collision="namespace")) == [
        ("one:own", "Own."),
        ("one:shared", "First."),
        ("two:shared", "Second."),
    ]


def test_a_skill_that_breaks_after_it_was_found_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        write(tmp_path, name, skill(name))
    scan = Library._scan

    def scan_and_break(self: Library) -> Any:
        state = scan(self)
        (tmp_path / "a" / "SKILL.md").write_text("broken")
        return state

    monkeypatch.setattr(Library, "_scan", scan_and_break)
    result = load_skills_dir(tmp_path)
    assert [item.name for item in result.skills] == ["b"]
    (error,) = result.errors
    assert (error.severity, error.path) == ("error", str(tmp_path / "a" / "SKILL.md"))


def test_an_unknown_dialect(tmp_path: Path) -> None:
    with pytest.raises(SetupError):
        load_skills_dir(tmp_path, "codx")
