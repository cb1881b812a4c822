from __future__ import annotations

import pytest

from satchel.skills.catalog import Catalog
from satchel.skills.diagnostics import RULES
from satchel.skills.dialects import DIALECTS
from satchel.skills.files import classify, looks_like_text, text_by_name
from satchel.skills.model import Skill, SkillRef
from satchel.skills.names import is_legal_name, normalize_name
from satchel.skills.oneline import one_line


def skill(name: str, *, location: str = "", declared: str = "") -> Skill:
    return Skill(
        ref=SkillRef(source="t", name=name),
        description=name,
        summary=name,
        location=location,
        frontmatter={"name": declared or name},
    )


@pytest.mark.parametrize(
    ("path", "is_text", "kind"),
    [
        ("SKILL.md", True, "manifest"),
        ("skill.MD", True, "manifest"),
        ("sub/SKILL.md", True, "reference"),
        ("LICENSE", True, "license"),
        ("notice.txt", True, "license"),
        ("docs/LICENSE", True, "reference"),
        ("scripts/data.csv", True, "script"),
        ("bin/tool", True, "script"),
        ("Reference/api.json", True, "reference"),
        ("examples/x.py", True, "reference"),
        ("templates/page.html", True, "asset"),
        ("tools/run.py", True, "script"),
        ("forms.md", True, "reference"),
        ("logo.svg", True, "asset"),
        ("data.csv", True, "other"),
        ("docs", True, "other"),
        ("scripts/tool.bin", False, "asset"),
        ("references/scan.png", False, "asset"),
    ],
)
def test_kinds_of_files(path: str, is_text: bool, kind: str) -> None:
    assert classify(path, is_text=is_text) == kind


def test_text_or_binary() -> None:
    assert [text_by_name(path) for path in ("a.md", "a.PNG", "Makefile", "a.unknown", ".env")] == [
        True,
        False,
        None,
        None,
        True,
    ]
    assert looks_like_text(b"abc")
    assert looks_like_text(b"x" * 512 + b"\0")
    assert not looks_like_text(b"a\0b")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My PDF Tool", "my-pdf-tool"),
        ("--a--b--", "a-b"),
        ("Ünïcode", "n-code"),
        ("!", ""),
        ("a" * 63 + "-b", "a" * 63),
    ],
)
def test_normalized_names_are_legal(text: str, name: str) -> None:
    assert normalize_name(text) == name
    assert not name or is_legal_name(name)


def test_one_line_cannot_become_two() -> None:
    assert one_line("a\r\nb\tc\x0bd\u2028e\x85f\x1b[2Jg\x00h \U000e0041 i\u202e") == "a b c d e f[2Jgh i"
    assert one_line("a\u200db") == "ab"


def test_whatever_string_was_advertised_leads_to_the_skill() -> None:  # S14
    catalog = Catalog(
        skills=(
            skill("workspace-guide", location="/x/guides", declared="Workspace Guide"),
            skill("b", location="/x/a"),
            skill("a", location="/x/b"),
        )
    )
    found = [
        catalog.get(name)
        for name in ("workspace-guide", " Workspace Guide ", "WORKSPACE-GUIDE", "guides", "a", "B", "none")
    ]
    assert [item and item.name for item in found] == ["workspace-guide"] * 4 + ["a", "b", None]


def test_an_alias_of_two_skills_leads_to_neither() -> None:
    assert Catalog(skills=(skill("a", location="/x/same"), skill("b", location="/y/same"))).get("same") is None


def test_every_rule_that_a_row_names_exists() -> None:
    for dialect in DIALECTS.values():
        assert dialect.refuses | dialect.ignores <= set(RULES)
        assert not dialect.refuses & dialect.ignores
    errors = {rule for rule, info in RULES.items() if info.severity == "error"}
    assert errors == DIALECTS["portable"].refuses
