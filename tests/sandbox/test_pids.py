"""Where groups that bound processes are made, on trees of either kind of control groups."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.ports.execution import Limits
from satchel.sandbox.namespaces import NamespaceExecutor
from satchel.sandbox.pids import PARENT, find_parent, make_group
from tests.backends import needs_root, not_here
from tests.sandbox.confined import USERS, host
from tests.sandbox.test_confined import FORKS
from tests.sandbox.test_jobs import launch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="control groups are a part of Linux")


def kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])


def pid_max() -> str:
    return Path("/proc/sys/kernel/pid_max").read_text()


def parent_in(tmp_path: Path, own: str, mounts: str) -> str:
    (tmp_path / "own").write_text(own)
    (tmp_path / "mounts").write_text(mounts)
    return find_parent(str(tmp_path / "own"), str(tmp_path / "mounts"))


def test_the_first_version_has_a_tree_for_processes(tmp_path: Path) -> None:
    (tmp_path / "pids" / "service").mkdir(parents=True)
    mounts = f"cgroup {tmp_path}/cpu cgroup rw,cpu 0 0\ncgroup {tmp_path}/pids cgroup rw,relatime,pids 0 0\n"
    assert parent_in(tmp_path, "4:memory:/other\n8:pids:/service\n0::/\n", mounts) == f"{tmp_path}/pids/service"
    assert parent_in(tmp_path, "8:pids:/\n", mounts) == f"{tmp_path}/pids"
    assert parent_in(tmp_path, "8:pids:/gone\n", mounts) == ""


def test_in_the_second_version_groups_lie_beside_our_own(tmp_path: Path) -> None:
    own = tmp_path / "user.slice" / "session.scope"
    own.mkdir(parents=True)
    mounts = f"cgroup2 {tmp_path} cgroup2 rw,nosuid 0 0\n"
    for folder, controllers in ((own, ""), (own.parent, "memory"), (tmp_path, "memory pids")):
        (folder / "cgroup.subtree_control").write_text(controllers)
    assert parent_in(tmp_path, "0::/user.slice/session.scope\n", mounts) == ""
    (own.parent / "cgroup.subtree_control").write_text("memory pids")
    assert parent_in(tmp_path, "0::/user.slice/session.scope\n", mounts) == str(own.parent)
    assert parent_in(tmp_path, "0::/\n", mounts) == str(tmp_path)


def test_without_any_there_is_no_group(tmp_path: Path) -> None:
    assert parent_in(tmp_path, "0::/\n", "proc /proc proc rw 0 0\n") == ""
    assert find_parent(str(tmp_path / "missing")) == ""
    assert make_group("", 5) is None
    assert make_group(str(tmp_path / "missing"), 5) is None


def test_what_a_killed_host_left_is_removed(tmp_path: Path) -> None:
    stale, used, other = (
        tmp_path / name for name in ("satchel-999999999-ab", f"satchel-{os.getpid()}-ab", "session.scope")
    )
    for folder in (stale, used, other):
        folder.mkdir()
    group = make_group(str(tmp_path), 5)
    assert group is not None
    assert Path(group.path, "pids.max").read_text() == "5"
    assert (stale.exists(), used.exists(), other.exists()) == (False, True, True)


async def test_a_group_is_gone_with_its_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_root()
    if not PARENT:
        not_here("no control group can be made here", may_be_missing=True)
    monkeypatch.setattr("satchel.sandbox.pids._PID_MAX_PER_NAMESPACE", (99, 0))

    def ours() -> list[Path]:
        return list(Path(PARENT).glob(f"satchel-{os.getpid()}-*"))

    with host(USERS[0]) as there:
        job = await NamespaceExecutor().start(launch(there, "/bin/sleep", "300"))
        assert len(ours()) == 1
        await job.kill()
        await NamespaceExecutor().run(launch(there, "/bin/true"))
        few = Limits(processes=20)
        many = await NamespaceExecutor().run(launch(there, "python3", "-c", FORKS, limits=few))
        assert 10 <= int(many.stdout.text) < 20
        with pytest.raises(SandboxError):
            await NamespaceExecutor().run(launch(there, "/no/such/program"))
    assert ours() == []


async def test_the_numbers_of_processes_bound_root() -> None:
    needs_root()
    if kernel() < (6, 14):
        not_here("this kernel bounds the numbers of all processes together", may_be_missing=True)
    before = pid_max()
    with host(USERS[0]) as there:
        few = Limits(processes=20)
        many = await NamespaceExecutor().run(launch(there, "python3", "-c", FORKS, limits=few))
        # The numbers are used up many times over, by ever the same few processes.
        script = "n=0; while [ $n -lt 500 ]; do n=$((n+1)); echo x | cat >/dev/null || exit 1; done; echo $n"
        long = await NamespaceExecutor().run(launch(there, "/bin/sh", "-c", script, limits=few))
    assert 10 <= int(many.stdout.text) < 20
    assert (long.exit_code, long.stdout.text, long.stderr.text) == (0, "500\n", "")
    assert pid_max() == before
