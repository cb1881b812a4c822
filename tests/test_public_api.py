from __future__ import annotations

from pathlib import Path

import pytest

import satchel
from satchel.errors import SatchelError
from satchel.skills import inline
from tests.support import write_skill


def test_the_published_signatures(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "good", files={"references/a.md": "0123456789"})
    assert satchel.load_skill(folder, "codex").name == "good"
    library = satchel.discover([tmp_path], disabled="other")
    assert library.read("good", "references/a.md", 4).text == "456789"
    assert [skill.name for skill in satchel.discover(tmp_path, disabled="good").skills] == []
    assert satchel.format_skill_listing(library.skills, dialect="codex").text.startswith("- good: ")


def test_an_unknown_dialect_is_one_of_our_errors(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "good")
    for wrong in (
        lambda: satchel.load_skill(folder, "codx"),
        lambda: satchel.discover([tmp_path], dialect="codx"),
        lambda: satchel.substitute("$0", "a", dialect="codx"),
        lambda: satchel.check(folder, dialect="codx"),
        lambda: inline(name="a", description="d", instructions="i", dialect="codx"),
    ):
        with pytest.raises(SatchelError) as caught:
            wrong()
        assert (caught.value.code, "codex" in caught.value.hint) == ("setting-invalid", True)


def test_patterns_in_one_text_are_split_as_in_a_file() -> None:
    made = inline(name="a", description="d", instructions="i", allowed_tools="Read, Bash(git log:*)")
    assert made.skill.allowed_tools == ("Read", "Bash(git log:*)")
