from __future__ import annotations

import json
import os
import shutil
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from satchel.errors import SkillError, StoreError
from satchel.library import load_skill
from satchel.library.approvals import Approvals, approvals_file, state_dir
from satchel.library.digest import folder_digest
from tests.support import write_skill


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_skill(tmp_path / "skills", "a", files={"scripts/x.sh": "echo 1\n", ".hidden": "h", "deep/er/y": ""})


@pytest.fixture
def approvals(tmp_path: Path) -> Approvals:
    return Approvals(tmp_path / "state" / "trust.json")


def add_file(folder: Path) -> None:
    (folder / "new.txt").write_text("x", encoding="utf-8")


def hidden(folder: Path) -> None:
    (folder / ".hidden").write_text("H", encoding="utf-8")


def rename(folder: Path) -> None:
    (folder / "deep" / "er" / "y").rename(folder / "deep" / "er" / "z")


def move(folder: Path) -> None:
    (folder / "deep" / "er" / "y").rename(folder / "deep" / "y")


def remove(folder: Path) -> None:
    (folder / "deep" / "er" / "y").unlink()


def executable(folder: Path) -> None:
    (folder / "scripts" / "x.sh").chmod(0o755)


def link(folder: Path) -> None:
    (folder / "link").symlink_to("scripts")


def byte_code(folder: Path) -> None:
    (folder / "scripts" / "__pycache__").mkdir()
    (folder / "scripts" / "__pycache__" / "x.pyc").write_bytes(b"\0")


def manifest(folder: Path) -> None:
    with (folder / "SKILL.md").open("a", encoding="utf-8") as file:
        file.write(" ")


@pytest.mark.parametrize("change", [add_file, hidden, rename, move, remove, executable, link, byte_code, manifest])
def test_any_change_in_the_folder_ends_an_approval(folder: Path, approvals: Approvals, change: Any) -> None:
    approvals.add(folder)
    assert approvals.covers(str(folder))
    change(folder)
    assert not approvals.covers(str(folder))


def test_a_folder_put_back_as_it_was_is_approved_again_and_no_copy_of_it(folder: Path, approvals: Approvals) -> None:
    approvals.add(folder)
    content = (folder / "SKILL.md").read_bytes()
    manifest(folder)
    (folder / "SKILL.md").write_bytes(content)
    assert approvals.covers(str(folder))
    folder.rename(folder.parent / "b")
    assert not approvals.covers(str(folder))
    assert not approvals.covers(str(folder.parent / "b"))


def test_the_text_that_was_read_must_be_the_one_that_was_approved(folder: Path, approvals: Approvals) -> None:
    read = load_skill(folder)
    approvals.add(folder, manifest=read.ref.digest)
    assert approvals.covers(str(folder), read.ref.digest)
    assert not approvals.covers(str(folder), "sha256:" + "0" * 64)
    with pytest.raises(SkillError):
        approvals.add(folder, manifest="sha256:" + "0" * 64)


def test_a_link_counts_by_where_it_points(folder: Path) -> None:
    link(folder)
    first = folder_digest(str(folder))
    (folder / "link").unlink()
    (folder / "link").symlink_to("deep")
    assert folder_digest(str(folder)) != first


@pytest.mark.parametrize("target", ["../elsewhere", "deep/../../elsewhere", "/etc/hostname", "inward/../elsewhere"])
def test_a_link_to_what_may_change_unseen_is_not_approved(folder: Path, approvals: Approvals, target: str) -> None:
    (folder / "inward").symlink_to(".")
    (folder.parent / "elsewhere").write_text("now", encoding="utf-8")
    approvals.add(folder)
    (folder / "outward").symlink_to(target)
    with pytest.raises(SkillError) as caught:
        approvals.add(folder)
    assert "outward is a link that leads out" in caught.value.message
    assert not approvals.covers(str(folder))


def test_an_approval_that_was_taken_back_is_not_written_again(
    folder: Path, approvals: Approvals, monkeypatch: pytest.MonkeyPatch
) -> None:
    approvals.add(folder)
    other = folder.parent / "other"
    shutil.copytree(folder, other)
    reading, removing = threading.Event(), threading.Event()
    read = Approvals._read  # pyright: ignore[reportPrivateUsage] - the moment between reading and writing

    def slow(self: Approvals) -> Any:
        found = read(self)
        if threading.current_thread() is adding:
            reading.set()
            removing.wait()
        return found

    def remove() -> None:
        removing.set()
        approvals.remove(folder)

    adding = threading.Thread(target=approvals.add, args=(other,))
    monkeypatch.setattr(Approvals, "_read", slow)
    adding.start()
    reading.wait()
    taking = threading.Thread(target=remove)
    taking.start()
    for thread in (adding, taking):
        thread.join()
    assert [item.path for item in approvals.entries()] == [str(other)]


def test_what_has_no_digest_is_not_approved(folder: Path, approvals: Approvals, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe")
    for wrong, code in ((folder, "skill-invalid"), (tmp_path / "none", "skill-not-found")):
        with pytest.raises(SkillError) as caught:
            approvals.add(wrong)
        assert caught.value.code == code
    assert approvals.entries() == ()


def test_the_file_is_its_owner_s_alone_and_replaced_in_one_step(folder: Path, approvals: Approvals) -> None:
    approvals.add(folder)
    path = Path(approvals.path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    approvals.add(folder)
    assert [item.path for item in approvals.entries()] == [str(folder)]
    assert [item.name for item in path.parent.iterdir()] == ["trust.json"]


def test_an_approval_is_taken_back_even_when_the_folder_is_gone(folder: Path, approvals: Approvals) -> None:
    approvals.add(folder)
    folder.rename(folder.parent / "b")
    assert approvals.remove(folder)
    assert not approvals.remove(folder)
    assert approvals.entries() == ()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"version": 2, "approved": []}',
        '{"version": 1}',
        '{"version": 1, "approved": [{"path": "/x"}]}',
        "{" * 9,
    ],
)
def test_a_file_that_holds_something_else_approves_nothing(approvals: Approvals, content: str) -> None:
    path = Path(approvals.path)
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StoreError) as caught:
        approvals.covers("/x")
    assert caught.value.code == "state-invalid"


def test_a_file_that_others_may_change_approves_nothing(folder: Path, approvals: Approvals) -> None:
    approvals.add(folder)
    Path(approvals.path).chmod(0o666)
    with pytest.raises(StoreError) as caught:
        approvals.covers(str(folder))
    assert caught.value.code == "state-invalid"
    assert json.loads(Path(approvals.path).read_text(encoding="utf-8"))["version"] == 1


def test_where_approvals_are_kept() -> None:
    assert state_dir({}, platform="linux", home="/home/u") == "/home/u/.local/state/satchel"
    assert state_dir({"XDG_STATE_HOME": "/s"}, platform="linux", home="/home/u") == "/s/satchel"
    assert state_dir({"XDG_STATE_HOME": "s"}, platform="linux", home="/home/u") == "/home/u/.local/state/satchel"
    assert state_dir({}, platform="darwin", home="/Users/u") == "/Users/u/Library/Application Support/satchel"
    assert state_dir({"LOCALAPPDATA": "/l"}, platform="win32", home="/u") == "/l/satchel"
    assert approvals_file({"XDG_STATE_HOME": "/s"}) == "/s/satchel/trust.json"
