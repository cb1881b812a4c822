"""Skills for one run: copies in a directory of their own, with the values of this run in their places.

What a skill folder holds to test the skill (``evals/``) is left out: a model could read the expected answers there.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from satchel.errors import SetupError
from satchel.evals.exam import Dice
from satchel.evals.scenario import Scenario, place

EVALS = "evals"


@contextmanager
def staged(
    folder: Path, names: Collection[str] = (), values: Mapping[str, str] | None = None
) -> Generator[Path, None, None]:
    """A temporary directory with the skill folders ``names`` of ``folder`` (all without any).

    Raises:
        SetupError: "root-missing" when a folder is not there.
    """
    chosen = [folder / name for name in names] if names else _skills_in(folder)
    for source in chosen:
        if not (source / "SKILL.md").is_file():
            raise SetupError("root-missing", f"There is no skill in {source}.", data={"path": str(source)})
    with tempfile.TemporaryDirectory(prefix="satchel-") as made:
        root = Path(made).resolve()
        for source in chosen:
            shutil.copytree(source, root / source.name, ignore=_without_evals(source), symlinks=True)
            for path in (root / source.name).rglob("*"):
                if values and path.is_file() and not path.is_symlink():
                    _fill(path, values)
        yield root


def draw(scenario: Scenario, seed: int) -> dict[str, str]:
    """The values of a run: the same seed gives the same."""
    dice = Dice(random.Random(f"{seed}/{scenario.id}"))  # noqa: S311 - values for questions, no secrets
    return {name: dice.value(kind) for name, kind in scenario.values.items()}


def _skills_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise SetupError("root-missing", f"There is no directory {folder}.", data={"path": str(folder)})
    return sorted(path.parent for path in folder.glob("*/SKILL.md"))


def _without_evals(skill: Path):  # noqa: ANN202 - as shutil takes it
    def ignored(directory: str, names: list[str]) -> list[str]:
        return [name for name in names if name == EVALS] if Path(directory) == skill else []

    return ignored


def _fill(path: Path, values: Mapping[str, str]) -> None:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    path.write_text(place(text, values), encoding="utf-8")
