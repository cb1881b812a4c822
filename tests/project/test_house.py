"""House rules that no linter knows."""

from __future__ import annotations

import ast
import re

import pytest

from tests.project.tree import ROOT, SRC, project_files, pyproject

# Calls that start a process, wherever they are found. import-linter sees modules only, and asyncio is one of them.
_STARTERS = re.compile(
    r"create_subprocess_(exec|shell)|subprocess_(exec|shell)|fork|forkpty|posix_spawnp?|spawn[lv]p?e?|exec[lv]p?e?"
    r"|ProcessPoolExecutor"
)
_STARTERS_OF_OS = frozenset({"system", "popen", "startfile"})


def process_starts(code: str) -> list[str]:
    """``line: name`` of everything in the code that starts a process."""
    found: list[str] = []
    for node in ast.walk(ast.parse(code)):
        names: list[str] = []
        if isinstance(node, ast.Attribute):
            names = [node.attr]
            if isinstance(node.value, ast.Name) and node.value.id == "os" and node.attr in _STARTERS_OF_OS:
                found.append(f"{node.lineno}: os.{node.attr}")
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if node.module == "os":
                found += [f"{node.lineno}: os.{name}" for name in names if name in _STARTERS_OF_OS]
        found += [f"{getattr(node, 'lineno', 0)}: {name}" for name in names if _STARTERS.fullmatch(name)]
    return found


@pytest.mark.parametrize(
    "code",
    [
        "import asyncio\nasync def f(): await asyncio.create_subprocess_exec('ls')",
        "from asyncio import create_subprocess_shell as run",
        "async def f(loop): await loop.subprocess_exec(object, 'ls')",
        "import os\nos.system('ls')",
        "from os import popen",
        "import os\nos.execvp('ls', ['ls'])",
        "from concurrent.futures import ProcessPoolExecutor",
    ],
)
def test_a_started_process_is_seen(code: str) -> None:
    assert process_starts(code)


def test_calls_that_only_share_a_name_are_not_mistaken_for_one() -> None:
    assert process_starts("import platform\nplatform.system()\nmessage.system\nexecutor.run()") == []


def test_only_the_sandbox_starts_processes() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{hit}"
        for path in SRC.rglob("*.py")
        if path.relative_to(SRC).parts[0] != "sandbox"
        for hit in process_starts(path.read_text(encoding="utf-8"))
    ]
    assert found == []


# Written in pieces, so that this file does not hold what it forbids.
_FORBIDDEN = {
    "a path of one machine": re.compile("/work/" + r"(?:main|shared|\.)|/root/" + r"\.[a-z]"),
    "the address of a package registry": re.compile(
        "pypi" + r"\.org|python" + r"hosted\.org|npm" + r"js\.(?:org|com)|deb\." + r"debian\.org|crates" + r"\.io",
        re.IGNORECASE,
    ),
    "how the text came about": re.compile(
        r"co-author[e]d-by|(?:generated|written|made) (?:by|with) (?:an? )?(?:ai|llm|claude|chatgpt|copilot|codex)\b",
        re.IGNORECASE,
    ),
}


def forbidden(text: str) -> list[str]:
    """What the text holds that the tree must not."""
    found = [f"{what}: {hit[0]}" for what, pattern in _FORBIDDEN.items() for hit in pattern.finditer(text)]
    if len(ROOT.parts) > 2 and re.search(re.escape(str(ROOT)) + r"(?![\w-])", text):
        found.append(f"a path of this machine: {ROOT}")
    return found


def test_forbidden_text_is_seen() -> None:
    assert forbidden("see /work/" + "shared/x")
    assert forbidden("from https://pypi" + ".org/simple")
    assert forbidden("Co-Authored" + "-By: x")
    assert forbidden(f"cd {ROOT}/src")
    assert forbidden("cd /srv/satchel, parent /root, home /root/a") == []


def test_no_file_holds_machine_paths_registry_addresses_or_its_own_history() -> None:
    found: list[str] = []
    for path in project_files():
        text = path.read_bytes().decode("utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {what}" for what in forbidden(text)]
    assert found == []


def test_the_sources_hold_no_promises() -> None:
    marker = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    python = [path for path in project_files() if path.suffix == ".py"]
    assert [str(path) for path in python if marker.search(path.read_text(encoding="utf-8"))] == []


def pins(lock: str) -> dict[str, str]:
    """Name -> version of every package in a lock."""
    text = (ROOT / "locks" / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9._-]+)==([^\s;\\]+)", text, re.MULTILINE))


@pytest.mark.parametrize("lock", ["run.txt", "dev.txt", "tools.txt", "build.txt"])
def test_a_lock_names_versions_and_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / "locks" / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*--(?!hash=)", text, re.MULTILINE)
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(pins(lock)) > 0
    assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_people_and_tests_run_the_same_versions() -> None:
    run, dev = pins("run.txt"), pins("dev.txt")
    assert run.items() - dev.items() == set()


def test_every_declared_dependency_is_locked() -> None:
    project = pyproject()
    extras = project["project"]["optional-dependencies"]
    used = {"all", *re.findall(r"[a-z-]+", extras["all"][0].partition("[")[2])}
    declared = {
        "run.txt": [
            *project["project"]["dependencies"],
            *(item for name, extra in extras.items() if name in used for item in extra),
        ],
        "dev.txt": [*project["dependency-groups"]["dev"], *(item for extra in extras.values() for item in extra)],
        "tools.txt": project["dependency-groups"]["tools"],
        "build.txt": [*project["dependency-groups"]["build"], *project["build-system"]["requires"]],
    }
    for lock, requirements in declared.items():
        names = {re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in requirements} - {"satchel"}
        assert names - pins(lock).keys() == set(), lock


def test_the_gate_for_sizes_is_four_hundred_lines() -> None:
    assert "default_max_lines = 400" in (ROOT / "loq.toml").read_text(encoding="utf-8")
    sources = SRC.rglob("*.py")
    assert [path.name for path in sources if len(path.read_text(encoding="utf-8").splitlines()) > 400] == []
