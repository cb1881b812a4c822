from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.calling import Caller, caller
from tests.support import write_skill


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine at hand decides what a command does."""
    for name in list(os.environ):
        if name.startswith("SATCHEL_"):
            monkeypatch.delenv(name)


@pytest.fixture
def satchel(capsys: pytest.CaptureFixture[str]) -> Caller:
    return caller(capsys)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two good skills, one with files and arguments, and a broken one."""
    root = tmp_path / "skills"
    write_skill(root, "lint", body="Run it.\n")
    deploy = write_skill(
        root,
        "deploy",
        body="Ship $0 to ${SKILL_DIR} as ${TAG}: $ARGUMENTS\n",
        files={"scripts/go.py": "print('é')\n", "references/steps.md": "é" * 40_000},
    )
    (deploy / "logo.png").write_bytes(b"\x89PNG\0")
    manifest = deploy / "SKILL.md"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace("\n---\n", "\nargument-hint: '<app>'\n---\n", 1), encoding="utf-8")
    broken = root / "broken"
    broken.mkdir()
    (broken / "SKILL.md").write_text("---\nname: broken\n---\nBody\n", encoding="utf-8")
    return root
