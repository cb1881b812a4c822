"""The host reads and writes where programs may have left anything."""

# ruff: noqa: PTH208 - names are what is compared

from __future__ import annotations

import contextlib
import os
import stat
import threading
from pathlib import Path

import pytest

from satchel.errors import FileError, PathError
from satchel.execution import publish as publishing
from satchel.execution.files import WorkFiles
from satchel.execution.publish import MAX_FILE_BYTES, Change, FileContent
from satchel.execution.workspace import Workspace


@pytest.fixture
def files(workspace: Workspace) -> WorkFiles:
    return WorkFiles(workspace)


@pytest.fixture
def work(workspace: Workspace) -> Path:
    return Path(workspace.work)


@pytest.fixture
def secret(workspace: Workspace) -> Path:
    outside = Path(workspace.root).parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    return outside


def private(workspace: Workspace) -> list[str]:
    """What stands in the workspace's own directory beside what belongs there."""
    known = {"work", "tmp", "state", "calls", "packages", "shims"}
    return sorted(set(os.listdir(workspace.root)) - known)


def refused(files: WorkFiles, *changes: Change) -> str:
    with pytest.raises((FileError, PathError)) as caught:
        files.publish(changes)
    assert private(files.workspace) == []
    return caught.value.code


def test_one_spelling_for_each_path(files: WorkFiles, workspace: Workspace) -> None:
    for given in ("src/a.py", " ./src//a.py ", "src\\a.py", "~/src/a.py", f"{workspace.work}/src/a.py"):
        assert files.relative(given) == "src/a.py"
    for folder in ("src", "./src/", f"{workspace.work}/src", "~/src"):
        assert files.relative("a.py", folder) == "src/a.py"
    assert files.relative("~/a.py", "src") == "a.py"
    assert files.relative("a.py", workspace.work) == "a.py"


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "~root/x", "a/../../x", "C:\\x", "//host/x", "a\0b", "~", ".", ""]
)
def test_no_path_leads_elsewhere(files: WorkFiles, path: str) -> None:
    with pytest.raises(PathError) as caught:
        files.relative(path)
    assert "skill" not in caught.value.message + caught.value.hint


def test_a_neighbour_with_the_same_beginning_is_elsewhere(files: WorkFiles, workspace: Workspace) -> None:
    with pytest.raises(PathError):
        files.relative(f"{workspace.work}-other/x")
    with pytest.raises(PathError):
        files.relative("x", "../tmp")


def test_reading_follows_a_link_that_stays_inside_and_changing_does_not(files: WorkFiles, work: Path) -> None:
    (work / "real").mkdir()
    (work / "real" / "a.txt").write_text("a")
    (work / "alias").symlink_to("real")
    assert files.read("alias/a.txt").data == b"a"
    with pytest.raises(PathError, match="symbolic link"):
        files.read_to_change("alias/a.txt")
    assert refused(files, Change(path="alias/b.txt", data=b"b")) == "path-refused"
    assert os.listdir(work / "real") == ["a.txt"]


def test_links_that_lead_out_are_refused(files: WorkFiles, work: Path, secret: Path) -> None:
    (work / "out").symlink_to(secret)
    (work / "file").symlink_to(secret / "secret.txt")
    for path in ("out/secret.txt", "file"):
        for read in (files.read, files.read_to_change):
            with pytest.raises(PathError) as caught:
                read(path)
            assert caught.value.code == "path-refused"
    content = FileContent(data=b"", stamp=(0, 0, 0, 0))
    assert refused(files, Change(path="out/new", data=b"x")) == "path-refused"
    assert refused(files, Change(path="out/secret.txt", data=b"x", before=content)) == "path-refused"
    assert refused(files, Change(path="file", data=b"x", before=content)) == "file-changed"
    assert refused(files, Change(path="file", data=None, before=content)) == "file-changed"
    assert refused(files, Change(path="file", data=b"x")) == "file-exists"
    assert os.listdir(secret) == ["secret.txt"]
    assert (secret / "secret.txt").read_text() == "secret"


def test_pipes_devices_and_what_is_no_text_are_not_opened(files: WorkFiles, work: Path) -> None:
    os.mkfifo(work / "pipe")
    (work / "zero").symlink_to("/dev/zero")
    (work / "data").write_bytes(b"a\0b")
    (work / "large").write_bytes(b"")
    os.truncate(work / "large", MAX_FILE_BYTES + 1)
    (work / "folder").mkdir()
    codes: list[str] = []
    for path in ("pipe", "zero", "data", "large", "folder", "pipe/x", "none"):
        with pytest.raises((PathError, FileError)) as caught:
            files.read(path)
        codes.append(caught.value.code)
    expected = ["path-refused", "path-refused", "binary-file", "file-too-large", "not-a-file", "path-not-found"]
    assert codes == [*expected, "path-not-found"]
    assert refused(files, Change(path="pipe", data=b"x")) == "file-exists"


def test_files_are_made_with_their_directories(files: WorkFiles, work: Path, workspace: Workspace) -> None:
    files.publish([Change(path="a/b/c.txt", data=b"c"), Change(path="d.sh", data=b"d", mode=0o755)])
    assert (work / "a/b/c.txt").read_bytes() == b"c"
    assert stat.S_IMODE((work / "a/b/c.txt").stat().st_mode) == 0o644
    assert stat.S_IMODE((work / "d.sh").stat().st_mode) == 0o755
    assert private(workspace) == []


def test_a_change_keeps_the_mode_and_never_writes_into_the_old_file(files: WorkFiles, work: Path) -> None:
    script = work / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    os.link(script, work / "other-name")
    before = files.read_to_change("run.sh")
    files.publish([Change(path="run.sh", data=b"new", before=before, mode=before.mode)])
    assert (script.read_text(), stat.S_IMODE(script.stat().st_mode)) == ("new", 0o750)
    assert (work / "other-name").read_text() == "old"


@pytest.mark.parametrize("last", ["exists", "changed", "gone", "guard"])
def test_everything_or_nothing(files: WorkFiles, work: Path, workspace: Workspace, last: str) -> None:
    for name in ("kept", "removed", "late"):
        (work / name).write_text(name)
    kept, removed, late = (files.read_to_change(name) for name in ("kept", "removed", "late"))
    (work / "out").symlink_to("/")
    wrong = {
        "exists": Change(path="late", data=b"x"),
        "changed": Change(path="late", data=b"x", before=FileContent(data=b"", stamp=(0, 0, 0, 0))),
        "gone": Change(path="none", data=b"x", before=late),
        "guard": Change(path="out/x", data=b"x"),
    }[last]
    changes = [
        Change(path="kept", data=b"other", before=kept),
        Change(path="removed", data=None, before=removed),
        Change(path="new/file", data=b"new"),
        wrong,
    ]
    assert refused(files, *changes) in {"file-exists", "file-changed", "path-refused"}
    there = {path.name: path.read_text() for path in work.iterdir() if path.is_file()}
    assert there == {"kept": "kept", "removed": "removed", "late": "late"}
    assert not (work / "new" / "file").exists()


def test_a_file_that_was_written_meanwhile_is_left_alone(files: WorkFiles, work: Path) -> None:
    (work / "a").write_text("one")
    before = files.read_to_change("a")
    (work / "a").write_text("two!")
    assert refused(files, Change(path="a", data=b"x", before=before)) == "file-changed"
    assert (work / "a").read_text() == "two!"


def test_a_removed_file_makes_room_for_a_directory(files: WorkFiles, work: Path) -> None:
    (work / "a").write_text("a")
    before = files.read_to_change("a")
    files.publish([Change(path="a/b", data=b"b"), Change(path="a", data=None, before=before)])
    assert (work / "a" / "b").read_text() == "b"


def test_a_disk_that_fails_is_a_failure_with_a_reason(
    files: WorkFiles, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(publishing.os, "rename", full)
    (work / "a").write_text("a")
    before = files.read_to_change("a")
    with pytest.raises(FileError, match="No space left on device") as caught:
        files.publish([Change(path="b", data=b"b"), Change(path="a", data=b"x", before=before)])
    assert caught.value.code == "write-failed"
    assert {path.name: path.read_text() for path in work.iterdir()} == {"a": "a"}


def test_what_is_too_large_is_not_begun(files: WorkFiles, work: Path) -> None:
    assert (
        refused(files, Change(path="a", data=b"x"), Change(path="b", data=b"x" * (MAX_FILE_BYTES + 1)))
        == "file-too-large"
    )
    assert os.listdir(work) == []


def test_existing_means_anything_of_that_name(files: WorkFiles, work: Path) -> None:
    (work / "dangling").symlink_to("/nowhere")
    (work / "folder").mkdir()
    assert [files.exists(name) for name in ("dangling", "folder", "none", "none/below")] == [True, True, False, False]


def test_names_that_may_have_been_meant(files: WorkFiles, work: Path, secret: Path) -> None:
    (work / "src").mkdir()
    (work / "src" / "main.py").write_text("")
    (work / "out").symlink_to(secret)
    assert files.near("src/mian.py") == ("src/main.py",)
    assert files.near("out/secret.tx") == ()
    assert files.near("none/x") == ()


def test_no_race_of_links_leads_out(files: WorkFiles, work: Path, secret: Path) -> None:
    """A program that swaps a directory and a link to the outside as fast as it can, while the host writes and reads."""
    (work / "real").mkdir()
    (work / "link").symlink_to(secret)
    (work / "real" / "secret.txt").write_text("mine")
    stop = threading.Event()

    def swap() -> None:
        junk = 0
        while not stop.is_set():
            for name in ("real", "link"):
                try:
                    (work / name).rename(work / "door")
                except OSError:
                    # The host has made a directory of that name meanwhile.
                    junk += 1
                    (work / "door").rename(work / f"junk{junk}")
                else:
                    (work / "door").rename(work / name)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[str] = set()
    try:
        for number in range(400):
            with contextlib.suppress(PathError, FileError):
                files.publish([Change(path=f"door/{number}", data=b"x")])
                seen.add("written")
            with contextlib.suppress(PathError, FileError):
                seen.add(files.read("door/secret.txt").text)
            with contextlib.suppress(PathError, FileError):
                before = files.read_to_change("door/secret.txt")
                files.publish([Change(path="door/secret.txt", data=b"mine", before=before)])
    finally:
        stop.set()
        swapping.join()
    assert os.listdir(secret) == ["secret.txt"]
    assert (secret / "secret.txt").read_text() == "secret"
    assert "secret" not in seen
    assert private(files.workspace) == []


@pytest.mark.parametrize("name", ["a\nb", "a\r", "d\x1b[2J/x", "a\u2028b", "\ud800", "caf\udce9.txt", "a\x7f"])
def test_a_name_that_no_line_can_show_is_neither_used_nor_proposed(files: WorkFiles, work: Path, name: str) -> None:
    with pytest.raises(PathError) as caught:
        files.relative(f"x/{name}/y")
    assert caught.value.code == "path-refused"
    assert caught.value.message.isprintable()
    with contextlib.suppress(UnicodeEncodeError):
        (work / f"near{name.replace('/', '')}").touch()
    (work / "nearby").touch()
    assert files.near("nearb") == ("nearby",)


def test_a_name_that_no_file_can_have_is_refused_before_anything_is_written(files: WorkFiles) -> None:
    with pytest.raises(PathError) as caught:
        files.exists("\ud800")
    assert caught.value.code == "path-refused"
    assert refused(files, Change(path="d/\ud800", data=b"x")) == "path-refused"
    assert os.listdir(files.workspace.work) == []
