"""Which produced files a person is told of, and can still save."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from satchel.cli.produced import Produced
from satchel.engine.request import Principal
from satchel.execution.artifacts import Artifacts
from satchel.execution.workspace import ProducedFile, create_workspace, remove_workspace


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Artifacts]:
    shelf = Artifacts(base=str(tmp_path))
    yield shelf
    shelf.close()


def test_what_was_kept_when_a_turn_broke_off_is_told_and_saved_too(tmp_path: Path, shelf: Artifacts) -> None:
    workspace = create_workspace(str(tmp_path))
    for name in ("told.txt", "later.txt", "other.txt"):
        Path(workspace.work, name).write_text(name)
        run = "another" if name == "other.txt" else "run"
        assert shelf.keep(workspace, [ProducedFile(path=name, bytes=1)], owner=Principal().id, run=run).files
    remove_workspace(workspace)
    produced = Produced()
    produced.add("run", ["told.txt"], ())
    produced.catch_up(shelf)
    produced.catch_up(shelf)
    assert (produced.paths, produced.unsaved) == (("told.txt", "later.txt"),) * 2
    target = tmp_path / "out"
    target.mkdir()
    assert [item.path for item in produced.save(shelf, str(target)) if not item.problem] == ["told.txt", "later.txt"]
    assert (target / "later.txt").read_text() == "later.txt"
    assert produced.unsaved == ()
