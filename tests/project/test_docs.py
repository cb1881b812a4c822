"""What the pages say is so: links, commands, options, names, dependencies."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.tree import ROOT, documents, pyproject

README = ROOT / "README.md"
SATCHEL = Path(sys.executable).with_name("satchel")


def fenced(path: Path, *languages: str) -> list[str]:
    """Bodies of the fenced code blocks in one of the languages."""
    text = path.read_text(encoding="utf-8")
    return [
        body
        for language, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        if language in languages
    ]


def anchors(path: Path) -> set[str]:
    """Anchors of a page's headings, made the way GitHub makes them."""
    headings = re.findall(r"^#{1,6} +(.+?)\s*$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    broken: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        to = (page.parent / file).resolve() if file else page
        if not to.exists() or (anchor and anchor not in anchors(to)):
            broken.append(target)
    assert broken == []


def test_the_first_test_command_of_the_readme_is_make_test() -> None:
    assert "make run" in README.read_text(encoding="utf-8")
    assert "make test" in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_make_targets_on_the_pages_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named - targets == set()


def cli_lines() -> list[tuple[str, str]]:
    """Every command line of satchel in the pages' shell blocks: page, line (continuations joined)."""
    return [
        (str(page.relative_to(ROOT)), line.removeprefix("$ ").strip())
        for page in documents()
        for body in fenced(page, "sh", "console")
        for line in body.replace("\\\n", " ").splitlines()
        if re.match(r"(\$ )?satchel\b", line)
    ]


@functools.cache
def help_of(*command: str) -> str:
    ended = subprocess.run([str(SATCHEL), *command, "--help"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"satchel {' '.join(command)} --help: {ended.stdout}{ended.stderr}"
    return ended.stdout + ended.stderr


@pytest.mark.parametrize(("page", "line"), cli_lines())
def test_commands_and_options_on_the_pages_exist(page: str, line: str) -> None:
    words = line.partition(" #")[0].split()[1:]
    command = [words[0]] if words and re.fullmatch(r"[a-z]+", words[0]) else []
    if command == ["model"] and len(words) > 1:
        command.append(words[1])
    text = help_of(*command)
    options = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help", "--version"}
    assert {option for option in options if option not in text} == set(), f"{page}: {line}"


@pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_python_on_the_pages_uses_names_that_exist(page: Path) -> None:
    for code in fenced(page, "python"):
        tree = ast.parse(code)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("satchel"):
                module = importlib.import_module(node.module or "")
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "satchel":
                assert hasattr(importlib.import_module("satchel"), node.attr), node.attr


def test_the_example_of_the_library_on_the_readme_runs_as_it_stands() -> None:
    (code,) = (code for code in fenced(README, "python") if "import discover" in code)
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "canary-deploy - The deployment procedure" in ended.stdout
    assert "| 1. canary | 6 % |" in ended.stdout


def test_dependencies_md_names_what_pyproject_names_and_nothing_else() -> None:
    project = pyproject()
    requirements = [
        *project["project"]["dependencies"],
        *(item for extra in project["project"]["optional-dependencies"].values() for item in extra),
        *(item for group in project["dependency-groups"].values() for item in group),
        *project["build-system"]["requires"],
    ]
    declared = {re.split(r"[\[<>=!~; ]", item)[0].lower() for item in requirements} - {"satchel"}
    rows = re.findall(
        r"^\| `([a-z0-9_-]+)` \|(.*)\|$", (ROOT / "DEPENDENCIES.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {name for name, _ in rows} == declared
    for name, cells in rows:
        assert all(cell.strip() for cell in cells.split("|")), f"{name}: a cell is empty"


def test_the_changelog_has_the_version() -> None:
    version = pyproject()["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(version)}\]", changelog, re.MULTILINE)


def test_decisions_are_numbered_in_one_row_and_have_the_usual_parts() -> None:
    records = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [record.name[:4] for record in records] == [f"{number:04d}" for number in range(1, len(records) + 1)]
    for record in records:
        text = record.read_text(encoding="utf-8")
        parts = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert parts[:3] == ["Context", "Decision", "Consequences"], record.name
        assert re.search(r"^Status: (accepted|superseded by \[)", text, re.MULTILINE), record.name
