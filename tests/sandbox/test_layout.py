"""Which paths a sandbox takes, and in which order it shows them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.ports.execution import Launch, Network
from satchel.sandbox.layout import root_layout

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layout is one of Linux")


def launch(work: Path, *, readable: tuple[object, ...] = (), writable: tuple[object, ...] = (), **fields) -> Launch:
    paths = {"readable": tuple(map(str, readable)), "writable": (str(work), *map(str, writable))}
    return Launch(command=("true",), purpose="script", cwd=fields.pop("cwd", str(work)), **paths, **fields)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


def test_no_bind_lies_below_a_writable_one(work: Path, tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    inner = skills / "out"
    deep = work / "deep"
    for folder in (inner, deep):
        folder.mkdir(parents=True)
    binds = root_layout(launch(work, readable=(skills,), writable=(deep, inner))).binds
    own = [(bind.path, bind.is_writable) for bind in binds if bind.path.startswith(str(tmp_path))]
    assert own == [(str(skills), False), (str(work), True), (str(inner), True)]


def test_what_the_system_shows_already_is_not_bound_again(work: Path) -> None:
    binds = [bind.path for bind in root_layout(launch(work, readable=("/usr/lib", "/usr"))).binds]
    assert binds.count("/usr") == 1
    assert "/usr/lib" not in binds


def test_no_secret_place_of_the_system_is_shown(work: Path) -> None:
    layout = root_layout(launch(work))
    shown = {bind.path for bind in layout.binds} | {path for path, _ in layout.links}
    assert not shown & {
        "/",
        "/etc",
        "/etc/shadow",
        "/etc/ssh",
        "/etc/ssl",
        "/etc/ssl/private",
        "/root",
        "/home",
        "/run",
        "/sys",
    }
    assert not any(path.startswith(("/proc", "/sys", "/dev", "/run", "/home", "/root")) for path in shown)
    assert "/etc/passwd" not in shown
    assert dict(layout.files)["/etc/passwd"].count(b"\n") == 2


@pytest.mark.parametrize(
    "odd",
    [
        "relative",
        "/",
        "//",
        "/tmp",
        "/usr",
        "/etc",
        "/home",
        "/root",
        "/run",
        "/proc/self",
        "/dev/shm",
        "/sys",
        "/a/../b",
        "/a//b",
        "/nowhere/at/all",
    ],
)
def test_a_path_that_is_no_place_to_write_is_refused(work: Path, odd: str) -> None:
    with pytest.raises(SandboxError) as caught:
        root_layout(launch(work, writable=(odd,)))
    assert caught.value.code == "launch-failed"


@pytest.mark.parametrize("odd", ["/", "/etc", "/home", "/root", "/proc", "/dev", "/sys/kernel", "relative"])
def test_a_path_that_shows_too_much_is_refused(work: Path, odd: str) -> None:
    with pytest.raises(SandboxError):
        root_layout(launch(work, readable=(odd,)))


def test_a_link_to_the_whole_system_is_refused(work: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/")
    for paths in ({"readable": (link,)}, {"writable": (link,)}):
        with pytest.raises(SandboxError):
            root_layout(launch(work, **paths))


def test_a_read_only_path_in_a_writable_one_is_refused(work: Path, tmp_path: Path) -> None:
    inner = work / "skill"
    inner.mkdir()
    link = tmp_path / "link"
    link.symlink_to(inner)
    for path in (inner, work, link):
        with pytest.raises(SandboxError) as caught:
            root_layout(launch(work, readable=(path,)))
        assert "read-only" in caught.value.message


def test_the_working_directory_is_a_writable_one(work: Path, tmp_path: Path) -> None:
    (work / "sub").mkdir()
    assert root_layout(launch(work, cwd=str(work / "sub")))
    for cwd in (str(tmp_path), str(work) + "2", "/usr"):
        with pytest.raises(SandboxError):
            root_layout(launch(work, cwd=cwd))


@pytest.mark.parametrize("mode", ["none", "hosts"])
def test_names_are_resolved_only_with_an_open_network(work: Path, mode: str) -> None:
    closed = root_layout(launch(work, network=Network(mode=mode)))  # pyright: ignore[reportArgumentType]
    opened = root_layout(launch(work, network=Network(mode="open")))
    assert not [bind for bind in closed.binds if bind.path == "/etc/resolv.conf"]
    assert [bind.path for bind in opened.binds if bind.path == "/etc/resolv.conf"] == ["/etc/resolv.conf"] * Path(
        "/etc/resolv.conf"
    ).exists()
    assert dict(closed.files)["/etc/hosts"] == b"127.0.0.1 localhost\n::1 localhost\n"


def test_a_home_that_would_write_lines_of_passwd_is_left_out(work: Path) -> None:
    layout = root_layout(launch(work, env={"HOME": "/x:/bin/sh\nroot::0:0::/:/bin/sh"}))
    assert dict(layout.files)["/etc/passwd"].splitlines()[0].endswith(f":{os.getegid()}::/:/bin/bash".encode())
