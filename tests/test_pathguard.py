from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import pathguard
from satchel.errors import PathError
from satchel.pathguard import is_inside, open_inside, open_parent, split_path


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "skills" / "doc"
    (root / "references").mkdir(parents=True)
    (root / "references" / "a.md").write_text("A")
    (root / "SKILL.md").write_text("S")
    evil = root.parent / "doc-private"
    evil.mkdir()
    (evil / "secret.md").write_text("secret")
    (root.parent.parent / "secret.txt").write_text("secret")
    return root


def read(root: Path, path: str) -> str:
    descriptor = open_inside(str(root), path)
    with os.fdopen(descriptor, encoding="utf-8") as file:
        return file.read()


def refusal(root: Path | str, path: str) -> PathError:
    with pytest.raises(PathError) as caught:
        os.close(open_inside(str(root), path))
    return caught.value


@pytest.mark.parametrize(
    ("path", "fragment"),
    [
        ("..", "escapes the skill directory"),
        ("../x", "escapes the skill directory"),
        ("references/../../doc-private/secret.md", "escapes the skill directory"),
        ("..\\..\\secret.txt", "escapes the skill directory"),
        ("/etc/passwd", "absolute path"),
        ("\\etc\\passwd", "absolute path"),
        ("~/.ssh/id_rsa", "absolute path"),
        ("~root", "absolute path"),
        ("//server/share", "UNC path"),
        ("\\\\server\\share", "UNC path"),
        ("C:\\x", "drive-qualified"),
        ("c:x", "drive-qualified"),
        ("a\0b", "NUL character"),
        ("run.py.", "ending in"),
        ("run.py ", "ending in"),
        ("a /b", "ending in"),
        (".../b", "ending in"),
    ],
)
def test_each_spelling_that_could_lead_elsewhere_is_refused_by_its_own_name(path: str, fragment: str) -> None:
    with pytest.raises(PathError) as caught:
        split_path(path)
    assert caught.value.code == "path-refused"
    assert fragment in caught.value.message


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        ("", ()),
        (".", ()),
        ("./", ()),
        ("./a", ("a",)),
        ("a//b/./c", ("a", "b", "c")),
        ("a\\b", ("a", "b")),
        (".hidden/..b", (".hidden", "..b")),
        ("a:b/c", ("a:b", "c")) if os.name != "nt" else ("a/c", ("a", "c")),
    ],
)
def test_accepted_spellings(path: str, segments: tuple[str, ...]) -> None:
    if path == "a:b/c":
        path, segments = "x/a:b/c", ("x", "a:b", "c")
    assert split_path(path) == segments


@pytest.mark.parametrize("path", ["references/a.md", "./references/a.md", "references\\a.md", "references//a.md"])
def test_a_file_inside_is_read(skill: Path, path: str) -> None:
    assert read(skill, path) == "A"


def test_absent_directory_and_root_each_have_their_code(skill: Path) -> None:
    absent = refusal(skill, "references/none.md")
    assert (absent.code, "does not exist in this skill" in absent.message) == ("path-not-found", True)
    through_a_file = refusal(skill, "SKILL.md/x")
    assert through_a_file.code == "path-not-found"
    for path in ("references", "", "."):
        directory = refusal(skill, path)
        assert (directory.code, "is a directory, not a file" in directory.message) == ("not-a-file", True)
    assert "is not an absolute path" in refusal("skills/doc", "a").message
    assert "no root directory" in refusal("  ", "a").message
    assert refusal(skill / "gone", "a").code == "path-not-found"
    assert refusal(skill, "x" * 5000).code == "path-not-found"
    assert refusal(skill, "\ud800").code == "path-refused"


def test_links_that_stay_inside_are_followed(skill: Path) -> None:
    (skill / "near").symlink_to("references/a.md")
    (skill / "folder").symlink_to(skill / "references")
    (skill / "round").symlink_to("../doc/references")
    assert [read(skill, path) for path in ("near", "folder/a.md", "round/a.md")] == ["A", "A", "A"]
    (skill / "dangling").symlink_to("references/none.md")
    assert refusal(skill, "dangling").code == "path-not-found"
    (skill / "self").symlink_to(".")
    assert refusal(skill, "self").code == "not-a-file"


@pytest.mark.parametrize("target", ["../../secret.txt", "../doc-private/secret.md", "/etc/passwd", "../../nothing"])
def test_links_that_leave_are_refused_whether_or_not_their_target_exists(skill: Path, target: str) -> None:
    (skill / "out").symlink_to(target)
    error = refusal(skill, "out")
    assert (error.code, "symbolic link" in error.message) == ("path-refused", True)


def test_a_link_in_the_middle_of_a_path_is_checked_too(skill: Path) -> None:
    (skill / "host").symlink_to("/")
    assert "symbolic link" in refusal(skill, "host/etc/passwd").message
    (skill / "one").symlink_to("two")
    (skill / "two").symlink_to("../doc-private")
    assert "symbolic link" in refusal(skill, "one/secret.md").message


def test_a_cycle_of_links_ends(skill: Path) -> None:
    (skill / "a").symlink_to("b")
    (skill / "b").symlink_to("a")
    assert "symbolic link" in refusal(skill, "a").message


def test_a_root_that_has_become_a_link_is_refused(skill: Path) -> None:
    linked = skill.parent / "linked"
    linked.symlink_to(skill.parent / "doc-private")
    assert "symbolic link" in refusal(linked, "secret.md").message
    above = skill.parent.parent / "above"
    above.symlink_to(skill.parent)
    assert "symbolic link" in refusal(above / "doc", "SKILL.md").message


def test_only_regular_files_are_opened(skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(skill / "pipe")
    assert "not a regular file" in refusal(skill, "pipe").message
    monkeypatch.chdir(skill)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        assert "not a regular file" in refusal(skill, "sock").message


def _swap_after_check(monkeypatch: pytest.MonkeyPatch, victim: Path, change: Callable[[], None]) -> None:
    """Runs ``change`` between the guard's look at ``victim`` and its open."""
    real_open = os.open
    done: list[bool] = []

    def swapping(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if Path(path).name == victim.name and not done:
            done.append(True)
            change()
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapping)
    # The module looked at what os.open supports before it was replaced.
    assert pathguard._HAS_DIR_FD


def test_a_file_swapped_for_a_link_between_check_and_open_is_not_followed(
    skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = skill / "references" / "a.md"

    def change() -> None:
        victim.unlink()
        victim.symlink_to(skill.parent.parent / "secret.txt")

    _swap_after_check(monkeypatch, victim, change)
    assert refusal(skill, "references/a.md").code == "path-refused"


def test_a_folder_swapped_for_a_link_is_not_followed(skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = skill / "references"

    def change() -> None:
        victim.rename(skill / "moved")
        victim.symlink_to(skill.parent / "doc-private")

    _swap_after_check(monkeypatch, victim, change)
    assert refusal(skill, "references/secret.md").code == "path-not-found"


def test_a_file_swapped_for_a_pipe_does_not_hang(skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = skill / "references" / "a.md"

    def change() -> None:
        victim.unlink()
        os.mkfifo(victim)

    _swap_after_check(monkeypatch, victim, change)
    assert "not a regular file" in refusal(skill, "references/a.md").message


def test_no_descriptor_is_left_open(skill: Path) -> None:
    (skill / "out").symlink_to("/etc")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("references", "references/none", "out/passwd", "SKILL.md/x"):
        refusal(skill, path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_without_directory_descriptors_the_same_is_refused(skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pathguard, "_HAS_DIR_FD", False)
    (skill / "near").symlink_to("references/a.md")
    (skill / "out").symlink_to("../doc-private")
    (skill / "a").symlink_to("a")
    assert read(skill, "references/a.md") == read(skill, "near") == "A"
    assert "symbolic link" in refusal(skill, "out/secret.md").message
    assert refusal(skill, "a").code == "path-refused"
    assert refusal(skill, "references").code == "not-a-file"
    assert refusal(skill, "none").code == "path-not-found"
    linked = skill.parent / "linked"
    linked.symlink_to(skill)
    assert refusal(linked, "SKILL.md").code == "path-refused"
    victim = skill / "SKILL.md"
    real_open = os.open

    def swapping(path: str, flags: int, mode: int = 0o777) -> int:
        victim.rename(skill / "old")
        victim.write_text("other")
        return real_open(path, flags, mode)

    monkeypatch.setattr(os, "open", swapping)
    assert refusal(skill, "SKILL.md").code == "path-refused"


def test_inside_is_about_whole_segments() -> None:
    assert is_inside("/a/b", "/a/b")
    assert is_inside("/a/b/c", "/a/b/")
    assert is_inside("/a", "/")
    assert not is_inside("/a/bc", "/a/b")
    assert not is_inside("/a", "/a/b")


_PIECES = st.sampled_from(
    [
        "..",
        ".",
        "/",
        "\\",
        "//",
        "a.md",
        "references",
        "out",
        "in",
        "host",
        "doc-private",
        "secret.md",
        "C:",
        "~",
        " ",
        "\0",
    ]
)


@given(
    path=st.one_of(
        st.text(max_size=30), st.lists(_PIECES, max_size=8).map("/".join), st.lists(_PIECES, max_size=8).map("".join)
    )
)
def test_no_path_opens_a_file_outside(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    root = Path(os.path.realpath(tmp_path_factory.getbasetemp())) / "guarded" / "doc"
    if not root.exists():
        (root / "references").mkdir(parents=True)
        (root / "references" / "a.md").write_text("A")
        (root / "out").symlink_to("..")
        (root / "in").symlink_to("references")
        (root / "host").symlink_to("/")
        (root.parent / "doc-private").mkdir()
        (root.parent / "doc-private" / "secret.md").write_text("secret")
    try:
        descriptor = open_inside(str(root), path)
    except PathError:
        return
    try:
        opened = str(Path(f"/proc/self/fd/{descriptor}").readlink())
    finally:
        os.close(descriptor)
    assert is_inside(opened, str(root))


def test_the_directory_of_a_file_to_be_written_is_never_reached_through_a_link(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path)) / "work"
    (root / "a").mkdir(parents=True)
    (root / "link").symlink_to("a")
    (root / "out").symlink_to(tmp_path)
    (root / "file").touch()
    os.mkfifo(root / "pipe")
    descriptor, name = open_parent(str(root), "a/new/x.txt", create=True)
    os.close(descriptor)
    assert (name, (root / "a" / "new").is_dir()) == ("x.txt", True)
    for path in ("link/x", "out/x", "out/new/x", "file/x", "pipe/x", "a/../x", "/x"):
        with pytest.raises(PathError) as caught:
            open_parent(str(root), path, create=True)
        assert caught.value.code == "path-refused"
        assert "skill" not in caught.value.message + caught.value.hint
    with pytest.raises(PathError) as caught:
        open_parent(str(root), "none/x")
    assert caught.value.code == "path-not-found"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["work"]


def test_a_file_that_is_to_be_changed_is_not_read_through_a_link(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "a").mkdir()
    (root / "a" / "x").write_text("x")
    (root / "link").symlink_to("a")
    (root / "alias").symlink_to("a/x")
    os.close(open_inside(str(root), "link/x", place="work"))
    os.close(open_inside(str(root), "a/x", place="work", links=False))
    for path in ("link/x", "alias"):
        with pytest.raises(PathError, match="symbolic link"):
            open_inside(str(root), path, place="work", links=False)
    with pytest.raises(PathError, match="does not exist in the working directory"):
        open_inside(str(root), "none", place="work")


def test_a_link_that_takes_the_place_of_a_directory_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(os.path.realpath(tmp_path)) / "work"
    (root / "a").mkdir(parents=True)
    outside = root.parent / "outside"
    outside.mkdir()
    real = os.stat

    def swapped(path: str, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        status = real(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        if path == "a":
            (root / "a").rmdir()
            (root / "a").symlink_to(outside)
        return status

    monkeypatch.setattr(pathguard.os, "stat", swapped)
    with pytest.raises(PathError) as caught:
        open_parent(str(root), "a/x")
    assert caught.value.code in {"path-refused", "path-not-found"}
