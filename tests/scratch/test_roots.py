"""What a killed process leaves is removed by the next one, and nothing that is somebody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from satchel.scratch import roots
from satchel.scratch.roots import new_root, remove_root, sweep
from tests.backends import needs_root

HOLDS = """
import sys
from pathlib import Path
from satchel.scratch.roots import new_root
for kind in ("work", "artifacts", "etc"):
    Path(new_root(kind), "file").write_text("x")
print("made", flush=True)
sys.stdin.read()
"""
PLANTED = "satchel-0123456789"


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@contextmanager
def process(base: Path, program: str = HOLDS) -> Generator[subprocess.Popen[str]]:
    """One that has made its directories."""
    environment = {**os.environ, "TMPDIR": str(base)}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as started:
        try:
            assert _read(started.stdout) == "made\n"
            yield started
        finally:
            started.kill()


def _read(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


def test_roots_are_private_and_go_one_by_one(tmp_path: Path) -> None:
    first, second = new_root("work", str(tmp_path)), new_root("skill", str(tmp_path))
    (home,) = tmp_path.iterdir()
    assert {Path(first).parent, Path(second).parent} == {home}
    assert [oct(path.stat().st_mode & 0o777) for path in (home, Path(first))] == ["0o700", "0o700"]
    assert remove_root(first)
    assert names(home) == [Path(second).name]
    assert remove_root(second)
    assert names(tmp_path) == []


def test_a_directory_that_somebody_took_away_is_made_again(tmp_path: Path) -> None:
    remove = Path(new_root("work", str(tmp_path)))
    remove.rmdir()
    remove.parent.rmdir()
    assert Path(new_root("work", str(tmp_path))).is_dir()


def test_what_a_killed_process_held_goes_with_the_next_start(tmp_path: Path) -> None:
    with process(tmp_path) as one, process(tmp_path) as other:
        assert len(names(tmp_path)) == 2
        one.send_signal(signal.SIGKILL)
        one.wait()
        assert len(names(tmp_path)) == 2
        with process(tmp_path) as third:
            assert len(names(tmp_path)) == 2
            assert third.stdin is not None
            third.stdin.close()
            third.wait()
        # The one that still lives lost nothing to two starts and an exit.
        (home,) = tmp_path.iterdir()
        assert len(names(home)) == 3
        other.send_signal(signal.SIGTERM)
        other.wait()
    remove_root(new_root("work", str(tmp_path)))
    assert names(tmp_path) == []


def test_a_tree_that_is_large_goes_meanwhile(tmp_path: Path) -> None:
    with process(tmp_path) as one:
        (home,) = tmp_path.iterdir()
        for number in range(50):
            (home / f"{number}").touch()
        one.kill()
        one.wait()
    sweep(str(tmp_path), at_once=10)
    for _ in range(1000):
        if names(tmp_path) == []:
            return
        signal.sigtimedwait([], 0.01)
    raise AssertionError(names(home))


@pytest.mark.parametrize("name", [PLANTED, "satchel-nothing", "satchel-artifacts-abcdefgh"])
def test_what_only_looks_like_ours_stays(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    base = tmp_path / "base"
    base.mkdir()
    (base / name).symlink_to(outside)
    sweep(str(base))
    assert names(outside) == ["kept"]
    assert names(base) == [name]


@pytest.mark.parametrize("kind", ["fifo", "file", "entered by others"])
def test_odd_things_of_such_a_name_hold_nobody_up(tmp_path: Path, kind: str) -> None:
    planted = tmp_path / PLANTED
    match kind:
        case "fifo":
            os.mkfifo(planted)
        case "file":
            planted.write_text("x")
        case _:
            planted.mkdir()
            planted.chmod(0o755)
    sweep(str(tmp_path))
    assert names(tmp_path) == [PLANTED]


def test_what_another_user_planted_stays(tmp_path: Path) -> None:
    needs_root()
    planted = tmp_path / PLANTED
    planted.mkdir(mode=0o700)
    (planted / "kept").touch()
    os.chown(planted, 65534, 65534)
    sweep(str(tmp_path))
    assert names(planted) == ["kept"]


def test_links_in_what_is_swept_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    base = tmp_path / "base"
    base.mkdir()
    with process(base) as one:
        (home,) = base.iterdir()
        (home / "link").symlink_to(tmp_path / "outside")
        one.kill()
        one.wait()
    sweep(str(base))
    assert names(base) == []
    assert names(tmp_path / "outside") == ["kept"]


def test_a_start_in_the_middle_of_a_sweep_loses_nothing(tmp_path: Path) -> None:
    sweeps = (
        "import sys\nfrom satchel.scratch.roots import sweep\nprint('made', flush=True)\nwhile True: sweep(sys.argv[1])"
    )
    with process(tmp_path, sweeps.replace("sys.argv[1]", repr(str(tmp_path)))):
        for _ in range(300):
            root = Path(new_root("work", str(tmp_path)))
            (root / "file").touch()
            assert names(root) == ["file"]
            assert remove_root(str(root))


def test_what_is_swept_before_it_is_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked, taken = roots._locked, list[str]()

    def late(descriptor: int) -> bool | None:
        if not taken:
            (home,) = tmp_path.iterdir()
            home.rmdir()  # as whoever sweeps would
            taken.append(home.name)
        return locked(descriptor)

    monkeypatch.setattr(roots, "_locked", late)
    root = new_root("work", str(tmp_path))
    assert Path(root).is_dir()
    assert taken != names(tmp_path)
    remove_root(root)


def test_the_exit_of_a_child_that_was_forked_takes_nothing_away(tmp_path: Path) -> None:
    program = (
        "import os, sys\nfrom satchel.scratch.roots import new_root\nroot = new_root('work')\n"
        "if os.fork() == 0: sys.exit()\nos.wait()\nprint('made' if os.path.isdir(root) else 'gone', flush=True)\nsys.stdin.read()"
    )
    with process(tmp_path, program):
        assert len(names(tmp_path)) == 1


def test_a_child_that_was_forked_has_a_directory_of_its_own(tmp_path: Path) -> None:
    mine = Path(new_root("work", str(tmp_path)))
    child = os.fork()
    if child == 0:
        os._exit(Path(new_root("work", str(tmp_path))).parent == mine.parent)
    assert os.waitpid(child, 0)[1] == 0
    assert mine.is_dir()
    remove_root(str(mine))


def test_rubbish_that_cannot_be_listed_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("satchel-0123456780", "satchel-0123456781"):
        (tmp_path / name).mkdir(mode=0o700)
    real = roots.remove_inside
    seen: list[int] = []

    def failing(lock: int, effort: roots.Effort) -> None:
        seen.append(lock)
        if len(seen) == 1:
            raise OSError(5, "Input/output error")
        real(lock, effort)

    monkeypatch.setattr(roots, "remove_inside", failing)
    sweep(str(tmp_path))
    assert len(names(tmp_path)) == 1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(seen[0])
