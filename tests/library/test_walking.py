from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from satchel import pathguard
from satchel.errors import PathError
from satchel.library import Library, discover
from satchel.pathguard import Directories, read_listed
from satchel.skills.dialect import Limits
from satchel.skills.dialects import PORTABLE
from satchel.skills.manifest import parse_manifest
from tests.support import write_skill


def before_opening(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[], None]) -> None:
    """Runs ``change`` once, right before the walk opens something called ``name``."""
    real_open = os.open
    done: list[bool] = []

    def swapping(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == name and not done:
            done.append(True)
            change()
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapping)


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    """Two directories; what lies in the second must not be read through the first."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for name in ("a", "b"):
        write_skill(root, name)
        write_skill(outside, name, description="Secret.")
    return root, outside


def descriptions(library: Library) -> dict[str, str]:
    return {skill.name: skill.description for skill in library.skills}


def test_a_directory_swapped_for_a_link_is_not_listed(
    roots: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = roots

    def change() -> None:
        (root / "a").rename(root / ".moved")
        (root / "a").symlink_to(outside / "a")

    before_opening(monkeypatch, "a", change)
    library = discover([root])
    assert list(descriptions(library)) == ["b"]
    assert [found.rule for found in library.diagnostics] == ["directory-unreadable"]


def test_a_manifest_swapped_for_a_link_is_not_followed_out(
    roots: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = roots
    manifest = root / "a" / "SKILL.md"

    def change() -> None:
        manifest.unlink()
        manifest.symlink_to(outside / "a" / "SKILL.md")

    before_opening(monkeypatch, "SKILL.md", change)
    library = discover([root])
    assert "Secret." not in descriptions(library).values()
    assert [found.rule for found in library.diagnostics] == ["manifest-unreadable"]


def test_a_manifest_swapped_for_a_pipe_does_not_hang(roots: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    root, _ = roots
    manifest = root / "a" / "SKILL.md"

    def change() -> None:
        manifest.unlink()
        os.mkfifo(manifest)

    before_opening(monkeypatch, "SKILL.md", change)
    library = discover([root])
    assert list(descriptions(library)) == ["b"]
    assert "not a regular file" in library.diagnostics[0].message


def test_a_parent_swapped_on_the_way_does_not_lead_elsewhere(
    roots: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = roots

    def change() -> None:
        root.rename(root.with_name("moved"))
        root.symlink_to(outside)

    before_opening(monkeypatch, "b", change)
    library = discover([root])
    assert "Secret." not in descriptions(library).values()


def test_without_directory_descriptors_the_same_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    write_skill(root, "plain", files={"references/a.md": "A", ".hidden": "x"})
    write_skill(root / "group", "inner", files={"sub/SKILL.md": "nested"})
    write_skill(tmp_path / "out", "far")
    (root / "link").symlink_to(tmp_path / "out" / "far")
    (root / "near").symlink_to("group/inner")
    write_skill(root, "lower")
    (root / "lower" / "SKILL.md").rename(root / "lower" / "skill.md")
    (write_skill(root, "two") / "Skill.md").write_text("x")
    (write_skill(root, "big") / "SKILL.md").write_bytes(b"---\nname: big\n" + b"x" * 5000)
    write_skill(root / ".git", "hidden")
    os.mkfifo(root / "group" / "SKILL.md")
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_bytes(b"\xff\xfe")
    row = replace(PORTABLE, limits=replace(Limits(), manifest_bytes=4000))
    usual = discover([root], dialect=row)
    monkeypatch.setattr(Directories, "usable", False)
    monkeypatch.setattr(pathguard, "_HAS_DIR_FD", False)
    other = discover([root], dialect=row)
    assert usual.skills == other.skills
    assert usual.diagnostics == other.diagnostics
    assert usual.catalog.revision == other.catalog.revision
    assert [skill.name for skill in usual.skills] == ["inner", "lower", "plain"]
    assert {"manifest-twice", "manifest-too-large", "encoding-invalid", "manifest-unreadable"} <= {
        found.rule for found in usual.diagnostics
    }


def test_no_descriptor_is_left_open(roots: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    root, _ = roots
    (root / "shut").mkdir(mode=0)
    write_skill(root / "deep" / "er", "c")
    (root / "b" / "SKILL.md").unlink()
    (root / "b" / "SKILL.md").mkdir()

    def held() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    before = held()
    assert list(descriptions(discover([root]))) == ["a", "c"]
    assert held() == before

    def fails(*_: object, **__: object) -> object:
        raise RuntimeError

    monkeypatch.setattr("satchel.library.library.parse_head", fails)
    with pytest.raises(RuntimeError):
        discover([root])
    assert held() == before


def test_directories_are_opened_by_canonical_paths_only(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    directories = Directories()
    try:
        for path in (tmp_path / "real" / "inner", tmp_path / "real", Path("/")):
            descriptor = directories.open(str(path))
            assert os.path.samestat(os.fstat(descriptor), path.stat())
            os.close(descriptor)
        with pytest.raises(OSError, match="link"):
            os.close(directories.open(str(tmp_path / "link")))
        with pytest.raises(PathError):
            os.close(directories.open(str(tmp_path / "link" / "inner")))
        with pytest.raises(FileNotFoundError):
            os.close(directories.open(str(tmp_path / "none")))
    finally:
        directories.close()


def test_a_listed_file_is_read_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_listed(directory, "a", 3) == b"abc"
        assert read_listed(directory, "empty", 3) == b""
        for name in ("link", "folder", "pipe", "none"):
            assert read_listed(directory, name, 3) is None
        assert read_listed(directory, "a", 2) is None
        monkeypatch.setattr(os, "read", lambda *_: b"ab")
        assert read_listed(directory, "a", 3) is None
    finally:
        os.close(directory)


def test_the_revision_follows_what_the_catalogue_holds(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "a", description="One.")
    library = discover([tmp_path])
    first = library.catalog.revision
    write_skill(tmp_path / "more", "b")
    second = library.reload().revision
    (folder / "SKILL.md").write_text("---\nname: a\ndescription: Two.\n---\nBody\n")
    third = library.reload().revision
    (folder / "SKILL.md").write_text("---\nname: a\ndescription: Two.\n---\n")
    fourth = library.reload().revision
    (folder / "SKILL.md").write_text("---\nname: a\ndescription: Two.\n")
    fifth = library.reload().revision
    (folder / "SKILL.md").write_text("---\nname: a\ndescription: Too.\n")
    sixth = library.reload().revision
    assert len({first, second, third, fourth, fifth, sixth}) == 6
    assert library.reload().revision == sixth


def test_the_revision_does_not_cover_bodies_and_files(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "a", description="One.", files={"x.md": "X"})
    library = discover([tmp_path])
    before = library.catalog
    (folder / "SKILL.md").write_text("---\nname: a\ndescription: One.\n---\nAnother body\n")
    (folder / "x.md").write_text("Y")
    after = library.reload()
    assert after == before
    assert library.load("a").body == "Another body\n"
    assert library.load("a").ref.digest.startswith("sha256:")


def test_a_record_made_quickly_is_the_same_record() -> None:
    data = b"---\nname: a\ndescription: D.\nallowed-tools: Read\n---\nB\n"
    skill = parse_manifest(data, directory="a", dialect=PORTABLE, location="/x/a", source="s").skill
    assert skill is not None
    again = replace(skill, ref=replace(skill.ref))
    assert (type(again), type(again.ref)) == (type(skill), type(skill.ref))
    assert (again, again.ref, repr(again)) == (skill, skill.ref, repr(skill))
    assert hash(skill.ref) == hash(again.ref)
    with pytest.raises(AttributeError):
        skill.description = "x"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        skill.ref.name = "x"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("path", [".env", ".git/config", "docs/.secret", "./.env", "docs//.secret"])
def test_hidden_files_of_a_skill_are_not_read(tmp_path: Path, path: str) -> None:
    folder = write_skill(
        tmp_path, "clone", files={".env": "KEY=1", ".git/config": "url", "docs/.secret": "s", "docs/a.md": "A"}
    )
    library = discover([tmp_path])
    assert (folder / path).exists()
    with pytest.raises(PathError) as caught:
        library.read("clone", path)
    assert caught.value.code == "path-refused"
    assert library.read("clone", "docs/a.md").text == "A"
