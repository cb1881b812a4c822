from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest

from satchel.execution.artifacts import Artifact, Artifacts
from satchel.execution.workspace import ProducedFile, Workspace, changed_files, create_workspace, remove_workspace


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shelf(tmp_path: Path, clock: Clock) -> Iterator[Artifacts]:
    shelf = Artifacts(base=str(tmp_path), max_bytes=100, max_file_bytes=60, max_files=3, ttl_s=10, clock=clock)
    yield shelf
    shelf.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(str(tmp_path))


def produce(workspace: Workspace, path: str, size: int) -> ProducedFile:
    target = Path(workspace.work, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"x" * size)
    return ProducedFile(path=path, bytes=size)


def keep(shelf: Artifacts, workspace: Workspace, files: Iterable[ProducedFile]) -> tuple[Artifact, ...]:
    return shelf.keep(workspace, files, owner="me", run="run").files


def read(shelf: Artifacts, artifact_id: str) -> bytes | None:
    file = shelf.open(artifact_id)
    if file is None:
        return None
    with file:
        return file.read()


def test_a_kept_file_outlives_its_workspace(shelf: Artifacts, workspace: Workspace) -> None:
    (kept,) = keep(shelf, workspace, [produce(workspace, "out/report.csv", 5)])
    assert remove_workspace(workspace)
    assert (kept.path, kept.name, kept.bytes, kept.run) == ("out/report.csv", "report.csv", 5, "run")
    assert shelf.find("me", "run", kept.path) == kept
    assert shelf.find("you", "run", kept.path) is None
    assert shelf.find("me", "other", kept.path) is None
    assert shelf.of("me", "run") == (kept,)
    assert shelf.of("you", "run") == ()
    assert read(shelf, kept.id) == b"xxxxx"


def test_time_and_room_are_bounded(shelf: Artifacts, workspace: Workspace, clock: Clock, tmp_path: Path) -> None:
    (first,) = keep(shelf, workspace, [produce(workspace, "a", 50)])
    clock.now = 5
    keep(shelf, workspace, [produce(workspace, "b", 50)])
    held = shelf.open(first.id)
    (third,) = keep(shelf, workspace, [produce(workspace, "c", 1)])
    assert held is not None
    with held:
        assert held.read() == b"x" * 50
    assert shelf.find("me", "run", "a") is None
    assert read(shelf, first.id) is None
    more = keep(shelf, workspace, [produce(workspace, name, 1) for name in "de"])
    assert shelf.of("me", "run") == (third, *more)
    assert shelf.find("me", "run", "b") is None
    clock.now = 16
    assert shelf.sweep() == 0
    assert [list(found.iterdir()) for found in tmp_path.glob("satchel-*/artifacts-*")] == [[]]


def test_the_newer_version_of_a_file_replaces_the_older(shelf: Artifacts, workspace: Workspace) -> None:
    (old,) = keep(shelf, workspace, [produce(workspace, "a", 5)])
    (new,) = keep(shelf, workspace, [produce(workspace, "a", 6)])
    assert read(shelf, old.id) is None
    assert shelf.of("me", "run") == (new,)


def test_what_is_no_file_of_the_workspace_or_too_large_is_left_out(
    shelf: Artifacts, workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    Path(workspace.work, "link").symlink_to(tmp_path / "secret")
    os.mkfifo(Path(workspace.work, "pipe"))
    names = ("link", "pipe", "gone", "../secret", str(tmp_path / "secret"))
    files = [ProducedFile(path=name, bytes=1) for name in names]
    kept = shelf.keep(workspace, [*files, produce(workspace, "large", 61)], owner="me", run="run")
    assert kept.files == ()
    assert [item.path for item in kept.refused] == [*names, "large"]
    assert kept.refused[-1].reason == "is larger than the 60 bytes that a kept file may have"
    assert [list(found.iterdir()) for found in tmp_path.glob("satchel-*/artifacts-*")] == [[]]


def test_a_name_is_fit_for_a_header(shelf: Artifacts, workspace: Workspace) -> None:
    (kept,) = keep(shelf, workspace, [produce(workspace, 'd/a"b\r\nX: y.txt', 1)])
    assert kept.name == "a_b__X: y.txt"


def test_a_name_that_is_no_text_is_refused_by_one_that_can_be_printed(shelf: Artifacts, workspace: Workspace) -> None:
    kept = shelf.keep(workspace, [produce(workspace, "caf\udce9.txt", 1)], owner="me", run="run")
    assert (kept.files, [item.path for item in kept.refused]) == ((), ["caf\\xe9.txt"])


def test_what_is_too_much_at_once_is_refused_and_pushes_nothing_out(shelf: Artifacts, workspace: Workspace) -> None:
    many = shelf.keep(workspace, [produce(workspace, name, 1) for name in "abcd"], owner="me", run="run")
    assert [item.path for item in many.files] == ["a", "b", "c"]
    assert [(item.path, item.reason) for item in many.refused] == [("d", "is one of more than 3 at once")]
    large = shelf.keep(workspace, [produce(workspace, name, 55) for name in "ef"], owner="me", run="run")
    assert [item.path for item in large.files] == ["e"]
    assert [item.reason for item in large.refused] == ["is one of files that have more than 100 bytes together"]


class Gate(Artifacts):
    """Copies when it is let to."""

    def __init__(self, base: Path, max_bytes: int = 1000) -> None:
        super().__init__(base=str(base), max_bytes=max_bytes)
        self.begun, self.go_on = threading.Event(), threading.Event()

    def _copy(self, reading: BinaryIO, target: str, size: int) -> bool:
        if size > 50:
            self.begun.set()
            assert self.go_on.wait(60)
        return super()._copy(reading, target, size)


def test_a_long_copy_stops_nobody_else(workspace: Workspace, tmp_path: Path) -> None:
    shelf = Gate(tmp_path, max_bytes=100)
    try:
        with ThreadPoolExecutor(1) as pool:
            large = pool.submit(shelf.keep, workspace, [produce(workspace, "large", 60)], owner="me", run="run")
            assert shelf.begun.wait(60)
            others = shelf.keep(workspace, [produce(workspace, "small", 30)], owner="you", run="other")
            assert [item.path for item in shelf.of("you", "other")] == ["small"]
            # Its room is taken already, and is not got from anybody else.
            more = shelf.keep(workspace, [produce(workspace, "more", 20)], owner="you", run="other")
            assert [item.reason for item in more.refused] == ["had no room beside what is kept already"]
            shelf.go_on.set()
            assert [item.path for item in large.result().files] == ["large"]
        assert len(others.files) == 1
        assert shelf.sweep() == 2
    finally:
        shelf.close()


def test_a_file_that_grows_while_it_is_copied_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    shelf = Gate(tmp_path)
    file = produce(workspace, "log", 60)
    try:
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(shelf.keep, workspace, [file], owner="me", run="run")
            assert shelf.begun.wait(60)
            produce(workspace, "log", 61)
            shelf.go_on.set()
            assert [item.path for item in done.result().refused] == ["log"]
        assert [list(found.iterdir()) for found in tmp_path.glob("satchel-*/artifacts-*")] == [[]]
    finally:
        shelf.close()


def test_a_run_is_dropped_whole_and_alone(shelf: Artifacts, workspace: Workspace) -> None:
    keep(shelf, workspace, [produce(workspace, name, 1) for name in "ab"])
    shelf.keep(workspace, [produce(workspace, "c", 1)], owner="you", run="run")
    shelf.drop("me", "run")
    assert shelf.of("me", "run") == ()
    assert [item.path for item in shelf.of("you", "run")] == ["c"]


def test_a_closed_shelf_is_gone_and_keeps_nothing(shelf: Artifacts, workspace: Workspace, tmp_path: Path) -> None:
    (kept,) = keep(shelf, workspace, [produce(workspace, "a", 5)])
    shelf.close()
    assert read(shelf, kept.id) is None
    assert list(tmp_path.glob("satchel-*/artifacts-*")) == []
    assert keep(shelf, workspace, [produce(workspace, "b", 5)]) == ()


def test_a_disk_without_room_costs_the_download_and_nothing_else(shelf: Artifacts, workspace: Workspace) -> None:
    made = [produce(workspace, "large.csv", 50), produce(workspace, "small.csv", 5)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        kept = keep(shelf, workspace, made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [item.path for item in kept] == ["small.csv"]
    assert shelf.of("me", "run") == kept
    (folder,) = Path(workspace.root).parent.glob("artifacts-*")
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(("size", "times"), [(30, 8), (1, 8)])
def test_nobody_loses_a_file_to_what_somebody_else_makes(
    shelf: Artifacts, workspace: Workspace, size: int, times: int
) -> None:
    shelf.keep(workspace, [produce(workspace, "mine", 10)], owner="me", run="run")
    for number in range(times):
        shelf.keep(workspace, [produce(workspace, f"theirs-{number}", size)], owner="they", run="other")
    assert [item.path for item in shelf.of("me", "run")] == ["mine"]
    assert [item.path for item in shelf.of("they", "other")] == [f"theirs-{times - 2}", f"theirs-{times - 1}"]


@pytest.mark.skipif(os.name == "nt", reason="there it always separates directories")
def test_a_name_with_a_backslash_gives_no_other_file(shelf: Artifacts, workspace: Workspace) -> None:
    produce(workspace, "d/.hidden", 1)
    Path(workspace.work, "d\\.hidden").write_bytes(b"")
    kept = shelf.keep(workspace, changed_files(workspace, {}), owner="me", run="run")
    assert not kept.files
    assert [(item.path, item.reason) for item in kept.refused] == [("d\\.hidden", "has a name with a backslash")]


def test_what_is_said_to_be_kept_can_be_had_when_somebody_else_has_much(shelf: Artifacts, workspace: Workspace) -> None:
    theirs = shelf.keep(workspace, [produce(workspace, name, 1) for name in "ab"], owner="you", run="theirs").files
    mine = shelf.keep(workspace, [produce(workspace, name, 1) for name in "cde"], owner="me", run="run")
    assert mine.files == shelf.of("me", "run")
    assert {item.path for item in (*mine.files, *mine.refused)} == {"c", "d", "e"}
    assert mine.refused[0].reason == "had no room beside what is kept already"
    assert shelf.of("you", "theirs") == theirs


def test_an_older_version_does_not_stand_for_one_that_is_not_kept(shelf: Artifacts, workspace: Workspace) -> None:
    keep(shelf, workspace, [produce(workspace, "a", 5), produce(workspace, "b", 5)])
    kept = shelf.keep(workspace, [produce(workspace, "a", 61)], owner="me", run="run")
    assert [item.path for item in kept.refused] == ["a"]
    assert [item.path for item in shelf.of("me", "run")] == ["b"]


@pytest.mark.parametrize("name", ["~notes", "C:x", "blank ", "dot."])
def test_a_name_that_leads_elsewhere_on_some_systems_is_refused_for_that(
    shelf: Artifacts, workspace: Workspace, name: str
) -> None:
    produce(workspace, "d/e", 3)
    kept = shelf.keep(workspace, [produce(workspace, name, 1)], owner="me", run="run")
    assert kept.files == ()
    assert [(item.path, item.reason) for item in kept.refused] == [
        (name, "has a name that means something else on other systems")
    ]
