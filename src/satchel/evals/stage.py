"""Skills for one run: copies in a directory of their own, with the values of this run in their places.

What a skill folder holds to test the skill (``evals/``) is left out: a model could read the expected answers there.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from satchel.errors import SetupError
from satchel.evals.exam import Dice
from satchel.evals.scenario import Scenario, place
from satchel.scratch.roots import new_root, remove_root

EVALS = "evals"


@asynccontextmanager
async def staged(
    folder: Path, names: Collection[str] = (), values: Mapping[str, str] | None = None
) -> AsyncGenerator[Path, None]:
    """A temporary directory with the skill folders ``names`` of ``folder`` (all without any).

    Raises:
        SetupError: "root-missing" when a folder is not there or cannot be copied.
    """

    def fill(root: Path) -> None:
        for source in [folder / name for name in names] if names else _skills_in(folder):
            _copy(source, root / source.name)
        if values:
            for path in root.rglob("*"):
                _fill(path, values)

    async with temporary(fill) as root:
        yield root


@asynccontextmanager
async def temporary(fill: Callable[[Path], None]) -> AsyncGenerator[Path, None]:
    """A temporary directory with what ``fill`` puts into it."""

    def make() -> Path:
        root = new_root("stage")
        try:
            fill(Path(root))
        except BaseException:
            remove_root(root)
            raise
        return Path(root)

    root = await asyncio.to_thread(make)
    try:
        yield root
    finally:
        await asyncio.to_thread(remove_root, str(root))


def draw(scenario: Scenario, seed: int) -> dict[str, str]:
    """The values of a run: the same seed gives the same."""
    dice = Dice(random.Random(f"{seed}/{scenario.id}"))  # noqa: S311 - values for questions, no secrets
    return {name: dice.value(kind) for name, kind in scenario.values.items()}


def _skills_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise SetupError("root-missing", f"There is no directory {folder}.", data={"path": str(folder)})
    return sorted(path.parent for path in folder.glob("*/SKILL.md"))


def _copy(source: Path, target: Path) -> None:
    def without_evals(directory: str, names: list[str]) -> list[str]:
        return [name for name in names if name == EVALS] if Path(directory) == source else []

    if not (source / "SKILL.md").is_file():
        raise SetupError("root-missing", f"There is no skill in {source}.", data={"path": str(source)})
    try:
        shutil.copytree(source, target, ignore=without_evals, symlinks=True)
    except OSError as error:
        raise SetupError("root-missing", f"The skill {source} cannot be copied: {error}.") from error


def _fill(path: Path, values: Mapping[str, str]) -> None:
    if path.is_symlink() or not path.is_file():
        return
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    path.write_text(place(text, values), encoding="utf-8")
