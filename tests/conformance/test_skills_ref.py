"""The ``agentskills`` row against the specification's own validator, folder by folder.

Every folder must get the same verdict from both, except where ``DIFFERENCES`` gives the reason why not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pytest
import skills_ref

from satchel.errors import SkillError
from satchel.library import load_skill
from satchel.skills.model import LoadedSkill
from tests.project.tree import ROOT

BUNDLED = sorted(path.parent for path in (ROOT / "skills").glob("*/SKILL.md"))


@dataclass(frozen=True)
class Case:
    """A folder with one SKILL.md; ``labels`` say in what it departs from the plainest valid one."""

    labels: tuple[str, ...] = ()
    folder: str = "tidy-notes"
    name: str = "name: tidy-notes"
    description: str = "description: Tidies notes. Use when the user asks for a cleanup."
    extra: str = ""
    opening: str = "---\n"
    closing: str = "---\n"
    body: str = "\n# Steps\n\nFollow them.\n"
    crlf: bool = False

    def text(self) -> str:
        lines = [line for line in (self.name, self.description, self.extra) if line]
        text = self.opening + "\n".join(lines) + "\n" + self.closing + self.body
        return text.replace("\n", "\r\n") if self.crlf else text


NAMES: dict[str, tuple[str, str]] = {
    "name: as the folder": ("tidy-notes", "name: tidy-notes"),
    "name: quoted": ("tidy-notes", 'name: "tidy-notes"'),
    "name: one letter": ("x", "name: x"),
    "name: a number": ("3000", "name: 3000"),
    "name: null": ("null", "name: null"),
    "name: 64 characters": ("n" * 64, f"name: {'n' * 64}"),
    "name: 65 characters": ("n" * 65, f"name: {'n' * 65}"),
    "name: another folder's": ("tidy-notes", "name: other"),
    "name: capitals": ("Tidy-Notes", "name: Tidy-Notes"),
    "name: capitals of another folder": ("tidy-notes", "name: Tidy-Notes"),
    "name: underscore": ("tidy_notes", "name: tidy_notes"),
    "name: blank inside": ("tidy notes", "name: tidy notes"),
    "name: leading hyphen": ("-tidy", "name: -tidy"),
    "name: trailing hyphen": ("tidy-", "name: tidy-"),
    "name: two hyphens": ("tidy--notes", "name: tidy--notes"),
    "name: slash": ("tidy-notes", "name: tidy/notes"),
    "name: Chinese": ("技能", "name: 技能"),
    "name: accent": ("café", "name: café"),
    "name: empty": ("tidy-notes", "name:"),
    "name: blank": ("tidy-notes", 'name: "  "'),
    "name: missing": ("tidy-notes", ""),
    "name: list": ("tidy-notes", "name: [tidy-notes]"),
    "name: mapping": ("tidy-notes", "name:\n  is: tidy-notes"),
}

DESCRIPTIONS: dict[str, str] = {
    "description: quoted colon": 'description: "Tidies. Use when: asked"',
    "description: unquoted colon": "description: Tidies. Use when: asked",
    "description: dashes": "description: Puts --- between parts",
    "description: literal block": "description: |\n  Tidies notes.\n  Use when asked.",
    "description: folded block": "description: >-\n  Tidies notes.\n  Use when asked.",
    "description: two lines": "description: Tidies notes.\n  Use when asked.",
    "description: comment after it": "description: Tidies notes # now",
    "description: true": "description: true",
    "description: date": "description: 2026-01-31",
    "description: emoji": "description: Tidies ✅ notes — quickly",
    "description: tag in it": "description: Tidies <b>notes</b>",
    "description: 1024 characters": f"description: {'d' * 1024}",
    "description: 1025 characters": f"description: {'d' * 1025}",
    "description: empty": "description:",
    "description: blank": 'description: "   "',
    "description: missing": "",
    "description: list": "description:\n  - Tidies",
    "description: at sign": "description: @notes are tidied",
    "description: backtick": "description: `notes` are tidied",
    "description: open bracket": "description: [notes are tidied",
    "description: YAML tag": "description: !!str Tidies notes",
}

EXTRAS: dict[str, str] = {
    "extra: license": "license: MIT",
    "extra: license list": "license:\n  - MIT",
    "extra: compatibility": "compatibility: Needs git",
    "extra: compatibility empty": 'compatibility: ""',
    "extra: compatibility 500": f"compatibility: {'c' * 500}",
    "extra: compatibility 501": f"compatibility: {'c' * 501}",
    "extra: compatibility list": "compatibility:\n  - git",
    "extra: metadata": 'metadata:\n  author: me\n  version: "1.0"',
    "extra: metadata number": "metadata:\n  version: 1.10",
    "extra: metadata nested": "metadata:\n  acme:\n    bins: jq",
    "extra: metadata text": "metadata: none",
    "extra: metadata flow": "metadata: {author: me}",
    "extra: tools text": "allowed-tools: Read Bash(git:*)",
    "extra: tools block list": "allowed-tools:\n  - Read\n  - Bash",
    "extra: tools flow list": "allowed-tools: [Read, Bash]",
    "extra: tools mapping": "allowed-tools:\n  read: yes",
    "extra: tools snake case": "allowed_tools: Read",
    "extra: unknown key": "colour: red",
    "extra: version": "version: 1.0.0",
    "extra: argument-hint": "argument-hint: file",
    "extra: disable-model-invocation": "disable-model-invocation: true",
    "extra: duplicate key": "license: MIT\nlicense: MIT",
    "extra: anchor": "license: &l MIT",
    "extra: anchor and alias": "license: &l MIT\ncompatibility: *l",
    "extra: comment": "# a comment",
    "extra: blank line": "\nlicense: MIT",
    "extra: tab indent": "metadata:\n\tauthor: me",
    "extra: not a pair": "just words",
}

SHAPES: dict[str, Case] = {
    "file: plain": Case(),
    "file: CRLF": Case(crlf=True),
    "file: byte order mark": Case(opening="\ufeff---\n"),
    "file: blank line first": Case(opening="\n---\n"),
    "file: blank after the opening": Case(opening="--- \n"),
    "file: four dashes open": Case(opening="----\n"),
    "file: no opening": Case(opening=""),
    "file: blank after the closing": Case(closing="--- \n"),
    "file: dots close": Case(closing="...\n"),
    "file: indented closing": Case(closing=" ---\n"),
    "file: words after the closing": Case(closing="---# Steps\n", body=""),
    "file: no closing": Case(closing=""),
    "file: no body": Case(body=""),
    "file: rule in the body": Case(body="One\n\n---\n\nTwo\n"),
}

DIFFERENCES: dict[str, str] = {
    "name: Chinese": "The specification's text says a-z and 0-9; the validator lets every lower-case letter pass.",
    "name: accent": "The same.",
    "description: YAML tag": "A tag changes nothing where every scalar is text; strictyaml refuses tags.",
    "extra: metadata flow": "Flow style is YAML; strictyaml refuses it.",
    "extra: tools flow list": "The same; many real skills write the list so.",
    "extra: tools mapping": "A restriction of the wrong shape is never read as absent; the validator does not look.",
    "extra: compatibility list": "It tells people something and restricts nothing; the validator wants text.",
    "file: byte order mark": "Editors write it, and it says nothing; the validator does not find the fence behind it.",
    "file: dots close": "YAML ends a document so; the validator looks for dashes only.",
    "file: indented closing": "Only a line at the margin closes; the validator cuts at any three dashes.",
    "file: words after the closing": "The same: only a line of three dashes closes.",
}

# Both accept these, and read different values.
OTHER_VALUES: dict[str, str] = {
    "description: dashes": "The validator cuts the file at the first three dashes, wherever they stand.",
}


def grid() -> Iterator[Case]:
    for (name, (folder, line)), (said, description) in product(NAMES.items(), DESCRIPTIONS.items()):
        yield Case((name, said), folder, line, description)
    for name, (folder, line) in NAMES.items():
        yield Case((name,), folder, line)
    for label, description in DESCRIPTIONS.items():
        yield Case((label,), description=description)
    for label, extra in EXTRAS.items():
        yield Case((label,), extra=extra)
    for label, shape in SHAPES.items():
        yield replace(shape, labels=(label,))
    for (label, shape), (extra, line) in product(SHAPES.items(), EXTRAS.items()):
        yield replace(shape, labels=(label, extra), extra=line)


def theirs(folder: Path) -> bool:
    return skills_ref.validate(folder) == []


def ours(folder: Path) -> LoadedSkill | None:
    try:
        return load_skill(folder, dialect="agentskills")
    except SkillError:
        return None


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Case, Path]]:
    root = tmp_path_factory.mktemp("grid")
    made: list[tuple[Case, Path]] = []
    for index, case in enumerate(grid()):
        folder = root / str(index) / case.folder
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(case.text(), encoding="utf-8", newline="")
        made.append((case, folder))
    return made


@pytest.fixture(scope="module")
def verdicts(folders: list[tuple[Case, Path]]) -> list[tuple[Case, Path, bool, bool]]:
    return [(case, folder, ours(folder) is not None, theirs(folder)) for case, folder in folders]


def test_the_grid_is_large_and_has_both_verdicts(verdicts: list[tuple[Case, Path, bool, bool]]) -> None:
    assert len(verdicts) > 800
    assert sum(mine and validator for _, _, mine, validator in verdicts) > 100
    assert sum(not mine and not validator for _, _, mine, validator in verdicts) > 100


def test_the_verdict_is_the_same_or_the_reason_is_listed(verdicts: list[tuple[Case, Path, bool, bool]]) -> None:
    unexplained = [
        (case.labels, f"ours: {mine}, theirs: {validator}")
        for case, _, mine, validator in verdicts
        if mine != validator and not DIFFERENCES.keys() & set(case.labels)
    ]
    assert unexplained == []


def test_every_listed_difference_is_one(verdicts: list[tuple[Case, Path, bool, bool]]) -> None:
    differ = {case.labels[0] for case, _, mine, validator in verdicts if len(case.labels) == 1 and mine != validator}
    assert differ == set(DIFFERENCES)


def test_what_both_accept_is_read_the_same(folders: list[tuple[Case, Path]]) -> None:
    other: set[str] = set()
    for case, folder in folders:
        mine = ours(folder)
        if mine is None or not theirs(folder):
            continue
        known = skills_ref.read_properties(folder)
        if (mine.skill.name, mine.skill.description.strip()) != (known.name, known.description):
            other |= {label for label in case.labels if label.startswith("description")}
    assert other == set(OTHER_VALUES)


@pytest.mark.parametrize("folder", BUNDLED, ids=lambda folder: folder.name)
def test_both_accept_the_skills_that_come_with_satchel(folder: Path) -> None:
    assert theirs(folder)
    assert ours(folder) is not None


def test_a_folder_without_the_file_is_refused_by_both(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert not theirs(tmp_path / "empty")
    assert ours(tmp_path / "empty") is None


def test_the_small_letter_file_name_is_accepted_by_both(tmp_path: Path) -> None:
    folder = tmp_path / "tidy-notes"
    folder.mkdir()
    (folder / "skill.md").write_text(Case().text(), encoding="utf-8")
    assert theirs(folder)
    assert ours(folder) is not None
