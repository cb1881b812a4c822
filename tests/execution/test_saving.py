from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.execution.artifacts import Artifact, Artifacts
from satchel.execution.saving import save
from satchel.execution.workspace import ProducedFile, Workspace


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Artifacts]:
    shelf = Artifacts(base=str(tmp_path))
    yield shelf
    shelf.close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    made = tmp_path / "target"
    made.mkdir()
    return made


def kept(shelf: Artifacts, workspace: Workspace, *paths: str) -> tuple[Artifact, ...]:
    for path in paths:
        place = Path(workspace.work, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(path)
    return shelf.keep(workspace, [ProducedFile(path=path, bytes=1) for path in paths], owner="me", run="run").files


def test_files_lie_where_they_lay(shelf: Artifacts, workspace: Workspace, target: Path) -> None:
    saved = save(shelf, kept(shelf, workspace, "a", "d/e/b"), str(target))
    assert [(item.path, item.bytes, item.problem) for item in saved] == [("a", 1, ""), ("d/e/b", 5, "")]
    assert (target / "d" / "e" / "b").read_text() == "d/e/b"


@pytest.mark.parametrize("overwrite", [False, True])
def test_no_link_is_followed(
    shelf: Artifacts, workspace: Workspace, target: Path, tmp_path: Path, overwrite: bool
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("mine")
    (target / "d").symlink_to(tmp_path / "outside")
    (target / "file").symlink_to(tmp_path / "outside" / "file")
    (target / "dangling").symlink_to(tmp_path / "outside" / "none")
    saved = save(shelf, kept(shelf, workspace, "d/file", "file", "dangling"), str(target), overwrite=overwrite)
    assert [bool(item.problem) for item in saved] == [True, not overwrite, not overwrite]
    assert [(item.name, item.read_text()) for item in (tmp_path / "outside").iterdir()] == [("file", "mine")]
    assert (target / "file").is_symlink() is not overwrite


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_is_never_replaced_and_nothing_half_done_stays(
    shelf: Artifacts, workspace: Workspace, target: Path, overwrite: bool
) -> None:
    (target / "a").mkdir()
    (saved,) = save(shelf, kept(shelf, workspace, "a"), str(target), overwrite=overwrite)
    assert "exists" in saved.problem
    assert [item.name for item in target.iterdir()] == ["a"]


def test_hidden_files_and_what_is_gone_are_not_copied(shelf: Artifacts, workspace: Workspace, target: Path) -> None:
    files = kept(shelf, workspace, ".bashrc", ".git/hooks/post-checkout", "a")
    shelf.close()
    saved = save(shelf, files, str(target))
    assert ["hidden" in item.problem for item in saved] == [True, True, False]
    assert saved[-1].problem == "is no longer kept"
    assert list(target.iterdir()) == []


def test_a_backslash_hides_no_hidden_name(shelf: Artifacts, workspace: Workspace, target: Path) -> None:
    (item,) = kept(shelf, workspace, "d/a")
    (saved,) = save(shelf, [replace(item, path="d\\.git\\config")], str(target))
    assert "hidden" in saved.problem
    assert not list(target.rglob("*"))
