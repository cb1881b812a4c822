"""The namespace backend and Landlock on this very kernel, as this user and as an ordinary one."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from satchel.sandbox.syscalls import CHANGED_BY_PYTHON
from tests.backends import not_here
from tests.sandbox.confined import USERS, Host, host, interpreter, interpreter_paths, processes_with, reachable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="both are parts of Linux")

# Told as gaps of Landlock; everything else in the probe has to fail.
OPEN_UNDER_LANDLOCK = {"stat outside", "chmod outside", "utime outside", "chmod a device"}
FULL = ("bubblewrap", "namespaces")
ROOT_ONLY = {"capabilities", "writable setting", "chmod a device", "read shadow"}


@pytest.fixture(params=USERS)
def there(request: pytest.FixtureRequest) -> Iterator[Host]:
    user = request.param
    if user == USERS[1] and os.geteuid() != 0:
        not_here("only root may become another user")
    if not interpreter(user):
        not_here("there is no Python that everybody may run")
    with host(user) as made:
        yield made


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces", "landlock"])
def test_what_a_hostile_program_tries(there: Host, backend: str) -> None:
    with reachable(there) as told:

        def probe(name: str) -> dict[str, Any]:
            told_more = told | {"confined": name != "none", "sockets": name != "landlock"}
            ran = there.run(name, "python3", str(there.root / "readonly" / "probe.py"), json.dumps(told_more))
            assert ran.get("code") == 0, ran
            return json.loads(ran["out"])

        free, bound = probe("none"), None
        for name in ("victim", "moved"):
            (there.outside / name).write_text("secret")
            os.chown(there.outside / name, there.uid, there.uid)
        for name in ("through", "new"):
            (there.outside / name).unlink()
        for leftover in there.work.iterdir():
            if not leftover.is_dir():
                leftover.unlink()
        bound = probe(backend)

    failed_unconfined = {name for name, succeeded in free["attacks"].items() if not succeeded}
    assert failed_unconfined <= (set() if there.uid == 0 else ROOT_ONLY)
    assert all(free["needs"].values()), free["needs"]
    succeeded = {name for name, worked in bound["attacks"].items() if worked}
    assert succeeded == (OPEN_UNDER_LANDLOCK - failed_unconfined if backend == "landlock" else set())
    assert all(bound["needs"].values()), bound["needs"]
    assert (there.outside / "victim").read_text() == "secret"
    assert len(bound["attacks"]) == 34


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces", "landlock"])
def test_a_program_has_its_environment_and_nothing_more(there: Host, backend: str) -> None:
    ran = there.run(backend, "/usr/bin/env", env={"ONLY": "this", "ODD": "a b\nc"})
    expected = {"PATH=/usr/bin:/bin", f"HOME={there.work}", f"TMPDIR={there.work}", "ONLY=this", "ODD=a b", "c"}
    expected |= {f"PWD={there.work}"} if backend == "bubblewrap" else set()
    assert set(ran["out"].splitlines()) == expected


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces", "landlock"])
def test_a_program_has_three_descriptors(there: Host, backend: str) -> None:
    script = "import os\nfor n in range(3, 1024):\n  try: print(n, os.fstat(n))\n  except OSError: pass\nprint(os.fstat(0).st_rdev)"
    assert there.run(backend, "python3", "-c", script)["out"] == f"{os.makedev(1, 3)}\n"


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces", "landlock"])
@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_it_ends_as_its_program_ends(there: Host, backend: str, script: str, code: int) -> None:
    assert there.run(backend, "/bin/sh", "-c", f"echo out; echo err >&2; {script}") == {
        "code": code,
        "stopped": "",
        "out": "out\n",
        "err": "err\n",
    }


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces", "landlock"])
def test_a_program_that_is_not_there_is_told(there: Host, backend: str) -> None:
    ran = there.run(backend, "no-such-program")
    assert (ran["error"], "No such file" in ran["message"]) == ("launch-failed", True)
    (there.work / "plain").write_text("text")
    assert there.run(backend, str(there.work / "plain"))["error"] == "launch-failed"


@pytest.mark.parametrize("backend", [*FULL, "landlock", "none"])
@pytest.mark.parametrize("how", ["--ignore-signal=HUP,INT,QUIT,USR1", "--block-signal=TERM,INT"])
def test_what_its_host_was_started_with_changes_no_signal_of_a_program(there: Host, backend: str, how: str) -> None:
    # As nohup and the background of a shell start things.
    ran = there.run(backend, "env", "--list-signal-handling", "env", behind=("/usr/bin/env", how))
    assert (ran["code"], ran["err"]) == (0, "")
    assert sorted(line.partition("=")[0] for line in ran["out"].splitlines() if "PWD" not in line) == [
        "HOME",
        "PATH",
        "TMPDIR",
    ]


@pytest.mark.parametrize("backend", [*FULL, "landlock", "none"])
@pytest.mark.parametrize("how", ["--ignore-signal=HUP", "--block-signal=TERM"])
def test_a_missing_program_is_told_under_a_background_shell_too(there: Host, backend: str, how: str) -> None:
    ran = there.run(backend, "no-such-program", behind=("/usr/bin/env", how))
    assert ran["error"] == "launch-failed", ran
    assert "no-such-program" in ran["message"]


@pytest.mark.parametrize("backend", FULL)
def test_what_a_program_needs_for_its_ending_signals(there: Host, backend: str) -> None:
    # An interpreter ignores some signals, and its children would inherit that. Others are inherited from whoever started
    # us: make has those ignored that the C library keeps to itself.
    ran = there.run(backend, "/bin/sh", "-c", "grep SigIgn /proc/self/status")
    ignored = int(ran["out"].split()[1], 16)
    assert [number for number in CHANGED_BY_PYTHON if ignored >> (number - 1) & 1] == []


@pytest.mark.parametrize("backend", FULL)
def test_a_daemon_ends_with_the_program(there: Host, backend: str) -> None:
    marker = f"marker-{secrets.token_hex(8)}"
    script = f"setsid sh -c 'sleep 300; : {marker}' </dev/null >/dev/null 2>&1 & sleep 0.2; echo started"
    assert there.run(backend, "/bin/sh", "-c", script)["out"] == "started\n"
    assert not processes_with(marker)


@pytest.mark.parametrize("backend", FULL)
def test_the_deadline_ends_everything_and_keeps_what_was_printed(there: Host, backend: str) -> None:
    marker = f"marker-{secrets.token_hex(8)}"
    script = f"trap '' TERM; echo first; (setsid sh -c 'sleep 300; : {marker}' &) ; while :; do sleep 1; done"
    ran = there.run(backend, "/bin/sh", "-c", script, deadline_s=1.0)
    assert (ran["code"], ran["stopped"], ran["out"]) == (None, "deadline", "first\n")
    assert not processes_with(marker)


@pytest.mark.parametrize("backend", FULL)
def test_everything_ends_with_the_host_process(there: Host, backend: str) -> None:
    marker = f"marker-{secrets.token_hex(8)}"
    script = f"setsid sh -c 'sleep 300; : {marker}' & touch ready; wait"
    driver = there.driver(backend, there.launch("/bin/sh", "-c", script))
    until = time.monotonic() + 30
    while not (there.work / "ready").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert processes_with(marker)
    driver.kill()
    driver.communicate()
    while processes_with(marker):
        assert time.monotonic() < until
        time.sleep(0.02)


FORKS = """
import os, time
made = 0
try:
    while made < 700:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made)
"""
THREADS = """
import threading, time
made = 0
try:
    while made < 700:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        made += 1
except RuntimeError:
    pass
print(made, flush=True)
import os; os._exit(0)
"""


@pytest.mark.parametrize("script", [FORKS, THREADS])
@pytest.mark.parametrize("backend", FULL)
def test_processes_are_bounded(there: Host, backend: str, script: str) -> None:
    ran = there.run(backend, "python3", "-c", script)
    assert 50 < int(ran["out"]) < 128


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces", "landlock"])
def test_memory_and_files_are_bounded(there: Host, backend: str) -> None:
    mebibyte = 1024**2
    limits = {"memory_bytes": 256 * mebibyte, "file_bytes": 2 * mebibyte, "tmp_bytes": mebibyte, "open_files": 64}
    script = "import os\nprint('begun', flush=True)\n" + "x = bytearray(512 * 1024**2)\n"
    ran = there.run(backend, "python3", "-c", script, limits=limits)
    assert (ran["code"], "MemoryError" in ran["err"]) == (1, True)
    ran = there.run(
        backend, "head", "-c", str(4 * mebibyte), "/dev/zero", limits=limits, log_path=str(there.root / "log")
    )
    assert ran["code"] == 153
    ran = there.run(backend, "python3", "-c", "import os\nwhile True: os.open('.', 0)", limits=limits)
    assert "Too many open files" in ran["err"]


@pytest.mark.parametrize("backend", FULL)
def test_the_directories_in_memory_are_bounded(there: Host, backend: str) -> None:
    limits = {"tmp_bytes": 1024**2}
    script = "for at in /tmp /dev/shm; do head -c 3000000 /dev/zero > $at/big; done"
    assert there.run(backend, "/bin/sh", "-c", script, limits=limits)["err"].count("No space left") == 2
    many = "import os, time\nfor n in range(100000): open(f'/tmp/{n}', 'w').close()\ntime.sleep(5)"
    ran = there.run(backend, "python3", "-c", many, limits=limits)
    assert "No space left" in ran["err"] or ran["stopped"] == "written"


@pytest.mark.parametrize("backend", FULL)
def test_what_is_written_to_the_temporary_directory_dies_with_the_program(there: Host, backend: str) -> None:
    name = f"/tmp/left-{secrets.token_hex(8)}"
    ran = there.run(backend, "/bin/sh", "-c", f"echo seen > {name}; cat {name}")
    assert (ran["out"], Path(name).exists()) == ("seen\n", False)
    assert there.run(backend, "/bin/cat", name)["code"] == 1


@pytest.mark.parametrize("backend", FULL)
def test_the_root_is_read_only_and_bare(there: Host, backend: str) -> None:
    script = "touch /x /etc/x /dev/x /usr/x; ls /home /run /root /sys /mnt; ls /; cat /etc/passwd"
    ran = there.run(backend, "/bin/sh", "-c", script)
    assert ran["err"].count("Read-only file system") == 4
    assert ran["err"].count("No such file") == 3
    name = "root" if there.uid == 0 else "user"
    assert f"{name}:x:{there.uid}:" in ran["out"]
    assert len([line for line in ran["out"].splitlines() if ":" in line and "/" in line]) == 2 + 2  # and two of ls


@pytest.mark.parametrize("backend", FULL)
def test_a_writable_directory_may_lie_in_a_readable_one(there: Host, backend: str) -> None:
    inner = there.root / "readonly" / "inner"
    inner.mkdir()
    os.chown(inner, there.uid, there.uid)
    launch = there.launch("/bin/sh", "-c", f"echo yes > {inner}/out; echo no > {inner}/../out")
    launch["writable"].append(str(inner))
    process = there.driver(backend, launch)
    ran = json.loads(process.communicate()[0])
    assert (ran["code"], (inner / "out").read_text(), inner.parent.joinpath("out").exists()) == (2, "yes\n", False)


@pytest.mark.parametrize("backend", FULL)
def test_inside_a_sandbox_there_is_no_other_one(there: Host, backend: str) -> None:
    source = str(there.root / "source")
    asked = json.dumps({"backend": backend, "launch": there.launch("/bin/true", readable=[])})
    (there.work / "asked").write_text(asked)
    ran = there.run(
        backend,
        "/bin/sh",
        "-c",
        f"exec {interpreter(there.user)} {source}/driver.py < asked",
        env={"PYTHONPATH": source},
        readable=[source, *interpreter_paths(there.user)],
    )
    assert json.loads(ran["out"])["error"] == "sandbox-unavailable", ran


def test_with_the_network_open_the_host_is_reached(there: Host) -> None:
    with reachable(there) as told:
        script = f"import socket; socket.create_connection(('127.0.0.1', {told['port']}), 2); print('reached')"
        for backend in ("bubblewrap", "namespaces", "landlock"):
            assert there.run(backend, "python3", "-c", script, network="open")["out"] == "reached\n"
            assert there.run(backend, "python3", "-c", script)["code"] == 1
