"""Where the project's own files are, and how to walk them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "satchel"

_NOT_OURS = frozenset(
    {
        ".git",
        ".venv",
        ".tools",
        ".cache",
        ".ruff_cache",
        ".hypothesis",
        ".pytest_cache",
        ".import_linter_cache",
        ".loq_cache",
        "__pycache__",
        "dist",
        "build",
    }
)


def project_files(under: Path = ROOT) -> Iterator[Path]:
    """Every file that belongs to the project, without environments and caches."""
    for entry in sorted(under.iterdir()):
        if entry.name in _NOT_OURS:
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from project_files(entry)
        elif entry.is_file():
            yield entry


def documents() -> list[Path]:
    """The pages that people read, bundled skills not among them."""
    return [path for path in project_files() if path.suffix == ".md" and "skills" not in path.relative_to(ROOT).parts]


def pyproject() -> dict[str, Any]:
    """pyproject.toml as it stands."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
