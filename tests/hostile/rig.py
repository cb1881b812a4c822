"""A host with things worth reaching, and the table run against it as root or as an ordinary user."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import satchel
from tests.hostile.table import NEEDS

HERE = Path(__file__).resolve().parent
USERS = ("root", "user")
_NOBODY = 65534
_PYTHON = "/usr/bin/python3"  # our own may lie in a home directory, which nobody else may enter


@dataclass(frozen=True)
class Result:
    """``verdicts``: for each row whether it succeeded, what was said, and the seconds. ``unavailable``: why not."""

    backend: str
    user: str
    verdicts: dict[str, tuple[bool, str, float]] = field(default_factory=dict[str, tuple[bool, str, float]])
    gaps: tuple[str, ...] = ()
    version: str = ""
    unavailable: str = ""

    def as_json(self) -> dict[str, Any]:
        """For the page; what was said and how long it took is of one run only."""
        verdicts = {name: _word(name, verdict[0]) for name, verdict in self.verdicts.items()}
        return {"backend": self.backend, "user": self.user, "version": self.version, "verdicts": verdicts}

    @property
    def succeeded(self) -> set[str]:
        return {name for name, verdict in self.verdicts.items() if verdict[0]}


def _word(row: str, succeeded: bool) -> str:
    if row in NEEDS:
        return "works" if succeeded else "fails"
    return "**open**" if succeeded else "blocked"


def uid_of(user: str) -> int | None:
    """Who runs it; None when only root could be that user."""
    if user == "root":
        return 0 if os.geteuid() == 0 else None
    return os.geteuid() or _NOBODY


def reason_against(user: str) -> str:
    """Why the table cannot be run as this user on this host, "" when it can."""
    if uid_of(user) is None:
        return "only root can be root"
    missing = [name for name in (_PYTHON, "/usr/bin/git", "/bin/bash") if not os.access(name, os.X_OK)]
    return f"{', '.join(missing)} is missing" if missing else ""


def run_table(backend: str, user: str, rows: frozenset[str] | None = None) -> Result:
    """Everything, under one backend, on a host of its own; of the rows that take a launch each, only ``rows``."""
    uid = uid_of(user)
    assert uid is not None
    asked = {"backend": backend, "rows": sorted(rows) if rows is not None else None}
    with _folders(uid) as root, _reachable(root, uid) as told:
        condemned = _sleeper(uid)
        try:
            answer = _driven(root, uid, asked | {"told": told | {"condemned": condemned.pid}})
            with contextlib.suppress(subprocess.TimeoutExpired):
                condemned.wait(0.2)
            was_ended = condemned.poll() is not None
        finally:
            condemned.kill()
            condemned.wait()
    if "unavailable" in answer:
        return Result(backend=backend, user=user, unavailable=answer["unavailable"])
    verdicts = {name: tuple(verdict) for name, verdict in answer["verdicts"].items()}
    verdicts["signal host process"] = (was_ended, *verdicts["signal host process"][1:])
    about = answer["confinement"]
    return Result(backend=backend, user=user, verdicts=verdicts, gaps=tuple(about["gaps"]), version=about["version"])


def _as(uid: int) -> dict[str, Any]:
    return {"user": uid, "group": uid, "extra_groups": []} if uid != os.geteuid() else {}


def _driven(root: Path, uid: int, asked: dict[str, Any]) -> dict[str, Any]:
    environment = {"PYTHONPATH": str(root / "source"), "HOST_TOKEN": asked["told"]["secret"], "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [_PYTHON if uid != os.geteuid() else sys.executable, "-m", "tests.hostile.driver"],
        input=json.dumps(asked).encode(),
        capture_output=True,
        cwd="/",
        env=environment,
        timeout=110,
        check=False,
        **_as(uid),
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout)


def _sleeper(uid: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen[bytes](["/bin/sleep", "300"], env={"HOST_TOKEN": "of another process"}, cwd="/", **_as(uid))


@contextmanager
def _folders(uid: int) -> Generator[Path]:
    """Not below pytest's own directory, which nobody else may enter. Everything belongs to ``uid``."""
    root = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        root.chmod(0o755)
        for name in ("work", "tmp", "outside", "home/.ssh", "skills/own", "skills/other", "source/tests/hostile"):
            (root / name).mkdir(parents=True)
        package = Path(satchel.__file__).parent
        shutil.copytree(package, root / "source" / "satchel", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("driver.py", "attacks.py"):
            shutil.copy(HERE / name, root / "source" / "tests" / "hostile")
        shutil.copy(HERE / "probe.py", root / "skills" / "own")
        for name in ("home/.ssh/id_rsa", "outside/victim", "outside/moved"):
            (root / name).write_text("secret")
        for name in ("own", "other"):
            (root / "skills" / name / "SKILL.md").write_text("read only")
        for top, folders, files in os.walk(root):
            for name in (".", *folders, *files):
                os.chown(Path(top, name), uid, uid)
        yield root
    finally:
        shutil.rmtree(root)


@contextmanager
def _reachable(root: Path, uid: int) -> Generator[dict[str, Any]]:
    """What the program is told of the host: sockets that listen, shared memory, a queue, a process."""
    libc = ctypes.CDLL(None, use_errno=True)
    name, key = f"hostile-{secrets.token_hex(8)}", secrets.randbits(30) | 1
    shared = Path("/dev/shm") / name
    with contextlib.ExitStack() as stack:
        segment = libc.shmget(key, 16, 0o1666)
        stack.callback(libc.shmctl, segment, 0, None)
        mask = os.umask(0)
        queue = libc.mq_open(f"/{name}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
        os.umask(mask)
        if queue >= 0:
            stack.callback(libc.mq_unlink, f"/{name}".encode())
            stack.callback(os.close, queue)
        stack.callback(shared.unlink)
        shared.touch()
        shared.chmod(0o666)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        echo = threading.Thread(target=_echo, args=(udp,), daemon=True)
        echo.start()
        stack.callback(echo.join)
        stack.callback(udp.sendto, b"", udp.getsockname())
        for kind, address in (
            (socket.SOCK_STREAM, "\0" + name),
            (socket.SOCK_STREAM, str(root / "outside" / "stream")),
            (socket.SOCK_DGRAM, str(root / "outside" / "datagrams")),
        ):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            listener.bind(address)
            if kind == socket.SOCK_STREAM:
                listener.listen(64)
            if address[0] == "/":
                Path(address).chmod(0o777)
        victim = _sleeper(uid)
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        yield {
            "work": str(root / "work"),
            "tmp": str(root / "tmp"),
            "outside": str(root / "outside"),
            "home": str(root / "home"),
            "skill": str(root / "skills" / "own"),
            "other_skill": str(root / "skills" / "other"),
            "name": name,
            "secret": f"secret-{secrets.token_hex(8)}",
            "key": key,
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "victim": victim.pid,
        }


def _echo(server: socket.socket) -> None:
    """Answers until it is sent nothing."""
    while True:
        data, sender = server.recvfrom(64)
        if not data:
            return
        server.sendto(data, sender)
