from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from satchel.errors import PathError
from satchel.execution.bundle import private_copy, unix_copy
from satchel.execution.workspace import (
    Workspace,
    changed_files,
    create_workspace,
    remove_workspace,
    snapshot,
)
from satchel.scratch.removing import remove_tree


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(str(tmp_path))


def test_a_new_workspace_is_private_and_has_its_directories(workspace: Workspace, tmp_path: Path) -> None:
    assert Path(workspace.root).parent.parent == tmp_path
    assert stat.S_IMODE(Path(workspace.root).stat().st_mode) == 0o700
    for folder in (workspace.work, workspace.tmp, workspace.state, workspace.python_packages, workspace.packages_bin):
        assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
    other = create_workspace(str(tmp_path), persistent=False)
    assert (workspace.is_persistent, other.is_persistent) == (True, False)
    assert workspace.id != other.id


def test_the_base_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert create_workspace(str(tmp_path / "link")).root.startswith(str(tmp_path / "real") + "/")


def test_changed_files_are_those_that_are_new_or_different(workspace: Workspace) -> None:
    work = Path(workspace.work)
    (work / "a").mkdir()
    (work / "a" / "same.txt").write_text("same")
    (work / "a" / "other.txt").write_text("one")
    before = snapshot(workspace)
    (work / "a" / "other.txt").write_text("two!")
    (work / "new.csv").write_text("1,2")
    found = changed_files(workspace, before)
    assert [(file.path, file.bytes) for file in found] == [("a/other.txt", 4), ("new.csv", 3)]


def test_a_file_that_was_exchanged_for_one_of_the_same_size_and_time_has_changed(workspace: Workspace) -> None:
    file = Path(workspace.work) / "x"
    file.write_text("one")
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    before = snapshot(workspace)
    (Path(workspace.work) / "y").write_text("two")
    (Path(workspace.work) / "y").rename(file)
    os.utime(file, ns=times)
    assert [item.path for item in changed_files(workspace, before)] == ["x"]


def test_junk_links_and_odd_files_are_not_shown(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    before = snapshot(workspace)
    work = Path(workspace.work)
    for folder in ("__pycache__", ".cache", "node_modules"):
        (work / folder).mkdir()
        (work / folder / "x.txt").write_text("x")
    (work / "m.pyc").write_text("x")
    (work / ".bash_history").write_text("x")
    (work / "linked").symlink_to(tmp_path / "outside")
    (work / "secret").symlink_to(tmp_path / "outside" / "secret.txt")
    os.mkfifo(work / "pipe")
    assert changed_files(workspace, before) == ()


def test_a_working_directory_that_became_a_link_shows_nothing_of_its_target(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    Path(workspace.work).rmdir()
    Path(workspace.work).symlink_to(tmp_path / "outside")
    assert snapshot(workspace) == {}


def test_every_file_is_found_and_the_walk_is_bounded(workspace: Workspace) -> None:
    for number in range(50):
        (Path(workspace.work) / f"f{number:02}").write_text("x")
    deep = Path(workspace.work)
    for _ in range(40):
        deep /= "d"
        deep.mkdir()
    (deep / "x.txt").write_text("x")
    found = changed_files(workspace, {})
    assert [file.path for file in found] == [f"f{number:02}" for number in range(50)]
    assert len(snapshot(workspace)) == 50


def test_removal_copes_with_what_programs_leave_and_touches_nothing_outside(
    workspace: Workspace, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    (outside / "kept" / "file").write_text("kept")
    (outside / "kept").chmod(0o500)
    work = Path(workspace.work)
    (work / "link").symlink_to(outside)
    (work / "dangling").symlink_to("nowhere")
    os.mkfifo(work / "pipe")
    (work / "locked" / "inner").mkdir(parents=True)
    (work / "locked" / "inner" / "x").write_text("x")
    (work / "locked" / "out").symlink_to(outside / "kept")
    (work / "locked" / "inner").chmod(0)
    (work / "locked").chmod(0)
    (work / "bad\n\udcff").write_text("x")
    (work / os.fsdecode(b"\xff\xfe")).mkdir()
    assert remove_workspace(workspace)
    assert not Path(workspace.root).exists()
    assert (outside / "kept" / "file").read_text() == "kept"
    assert stat.S_IMODE((outside / "kept").stat().st_mode) == 0o500


def test_removal_copes_with_a_tree_deeper_than_any_path(workspace: Workspace) -> None:
    at = os.open(workspace.work, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d" * 50, dir_fd=at)
        deeper = os.open("d" * 50, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = deeper
    os.close(at)
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    assert remove_workspace(workspace)
    assert len(list(Path("/proc/self/fd").iterdir())) < open_before  # the lock goes with the last directory
    assert not Path(workspace.root).exists()


def test_removing_twice_or_a_link_does_nothing(workspace: Workspace, tmp_path: Path) -> None:
    assert remove_workspace(workspace)
    assert remove_workspace(workspace)
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "x").write_text("x")
    (tmp_path / "link").symlink_to("target")
    assert not remove_tree(str(tmp_path / "link"))
    assert (tmp_path / "target" / "x").exists()


def test_what_cannot_be_filled_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: str) -> None:
        raise OSError(28, folder)

    monkeypatch.setattr("satchel.execution.workspace._write_shims", full)
    with pytest.raises(OSError, match="28"):
        create_workspace(str(tmp_path))
    with pytest.raises(PathError):
        private_copy({"a": b"x", "../b": b"x"}, str(tmp_path))
    with pytest.raises(OSError, match="no-such"):
        unix_copy(str(tmp_path / "no-such"), "a.sh", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
