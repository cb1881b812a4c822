"""Small skills, and what the dialects of the five designs make of them."""

from __future__ import annotations

from pathlib import Path

from satchel.library import Library, discover
from satchel.skills.dialects import DIALECTS
from satchel.skills.manifest import Manifest, parse_manifest
from satchel.skills.model import Skill

SEEDS = ("agent-sh", "tensorsharp", "flowcraft", "tnsai", "contextchef")
D = "description: Sample skill for tests."
REFUSED = "refused"


def text(*lines: str, body: str = "Body.\n", end: str = "\n") -> str:
    return end.join(["---", *lines, "---", body])


def read(row: str, content: str | bytes, directory: str = "a") -> Manifest:
    data = content.encode() if isinstance(content, str) else content
    return parse_manifest(data, directory=directory, dialect=DIALECTS[row], path="SKILL.md")


def good(manifest: Manifest) -> Skill:
    assert manifest.skill is not None, manifest.diagnostics
    return manifest.skill


def verdict(manifest: Manifest) -> tuple[str, ...]:
    """The name and the rules of the findings, or "refused" and the rules of the errors."""
    if manifest.skill is None:
        return (REFUSED, *(found.rule for found in manifest.diagnostics if found.severity == "error"))
    return (manifest.skill.name, *(found.rule for found in manifest.diagnostics))


def in_each(content: str | bytes, directory: str = "a") -> dict[str, tuple[str, ...]]:
    return {row: verdict(read(row, content, directory)) for row in SEEDS}


def write(root: Path, folder: str, content: str) -> Path:
    (root / folder).mkdir(parents=True)
    (root / folder / "SKILL.md").write_text(content, encoding="utf-8")
    return root / folder


def skill(name: str, description: str = "Sample skill for tests.") -> str:
    return text(f"name: {name}", f"description: {description}")


def names(library: Library) -> list[str]:
    return [found.name for found in library.skills]


def found_in_each(root: Path) -> dict[str, list[str]]:
    return {row: names(discover([root], dialect=row)) for row in SEEDS}
