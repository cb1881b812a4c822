"""Launches under a backend as this user and as an ordinary one, and a host with things to reach."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import satchel

HERE = Path(__file__).resolve().parent
NOBODY = 65534
USERS = ("this user", "an ordinary user")


def interpreter(user: str) -> str:
    """A Python that the user may run; our own may lie in a home directory."""
    if user == USERS[0]:
        return sys.executable
    return next((path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if os.access(path, os.X_OK)), "")


def interpreter_paths(user: str) -> list[str]:
    """What that Python needs to be visible."""
    if user == USERS[0]:
        return [path for path in (sys.prefix, sys.base_prefix) if not path.startswith("/usr")]
    return []


@dataclass(frozen=True)
class Host:
    """Directories of one test. Everything belongs to ``uid``."""

    root: Path
    uid: int
    user: str

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    def launch(self, *command: str, **fields) -> dict[str, Any]:
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.work), "TMPDIR": str(self.work)} | fields.pop("env", {})
        return {
            "command": command,
            "cwd": str(self.work),
            "writable": [str(self.work)],
            "readable": [str(self.root / "readonly"), *fields.pop("readable", [])],
            "env": env,
            **fields,
        }

    def driver(self, backend: str, launch: dict[str, Any], *behind: str) -> subprocess.Popen[bytes]:
        """The driver, started, ``behind`` a program that becomes it; it has a secret in its environment."""
        other = self.uid != os.geteuid()
        process = subprocess.Popen(
            [*behind, interpreter(self.user), str(self.root / "source" / "driver.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={"PYTHONPATH": str(self.root / "source"), "HOSTSECRET": "HOSTSECRET", "PATH": "/usr/bin:/bin"},
            user=self.uid if other else None,
            group=self.uid if other else None,
            extra_groups=[] if other else None,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps({"backend": backend, "launch": launch}).encode())
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, backend: str, *command: str, behind: tuple[str, ...] = (), **fields) -> dict[str, Any]:
        process = self.driver(backend, self.launch(*command, **fields), *behind)
        out, err = process.communicate(timeout=90)
        assert process.returncode == 0, err.decode()
        return json.loads(out)


@contextmanager
def host(user: str) -> Generator[Host]:
    """Not below pytest's own directory, which nobody else may enter."""
    uid = os.geteuid() if user == USERS[0] else NOBODY
    root = Path(tempfile.mkdtemp(prefix="confined-"))
    try:
        root.chmod(0o755)
        made = Host(root=root, uid=uid, user=user)
        for folder in (made.work, made.outside, root / "readonly"):
            folder.mkdir()
        shutil.copytree(
            Path(satchel.__file__).parent, root / "source" / "satchel", ignore=shutil.ignore_patterns("__pycache__")
        )
        for name in ("driver.py", "probe.py"):
            shutil.copy(HERE / name, root / "source")
        (root / "readonly" / "file").write_text("read-only")
        shutil.copy(HERE / "probe.py", root / "readonly")
        for name in ("victim", "moved"):
            (made.outside / name).write_text("secret")
        for top, folders, files in os.walk(root):
            for name in (*folders, *files):
                os.chown(Path(top, name), uid, uid)
        os.chown(root, uid, uid)
        yield made
    finally:
        shutil.rmtree(root)


@contextmanager
def reachable(made: Host) -> Generator[dict[str, Any]]:
    """What the probe is told of the host: sockets that listen, shared memory, a process."""
    libc = ctypes.CDLL(None, use_errno=True)
    key, name, abstract = (
        secrets.randbits(30) | 1,
        f"confined-{secrets.token_hex(8)}",
        f"confined-{secrets.token_hex(8)}",
    )
    segment = libc.shmget(key, 16, 0o1666)
    shared = Path("/dev/shm") / name
    shared.touch()
    shared.chmod(0o666)
    sleeper = subprocess.Popen(
        ["/bin/sleep", "300"], env={"HOSTSECRET": "HOSTSECRET"}, user=made.uid if os.geteuid() == 0 else None
    )
    listeners = [socket.create_server(("127.0.0.1", 0), backlog=64)]
    for family, kind, address in (
        (socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract),
        (socket.AF_UNIX, socket.SOCK_STREAM, str(made.outside / "socket")),
        (socket.AF_UNIX, socket.SOCK_DGRAM, str(made.outside / "datagrams")),
    ):
        listeners.append(socket.socket(family, kind))
        listeners[-1].bind(address)
        if kind == socket.SOCK_STREAM:
            listeners[-1].listen(64)
    for path in ("socket", "datagrams"):
        (made.outside / path).chmod(0o777)
    try:
        yield {
            "outside": str(made.outside),
            "readonly": str(made.root / "readonly"),
            "home": str(made.outside),
            "port": listeners[0].getsockname()[1],
            "abstract": abstract,
            "pid": sleeper.pid,
            "key": key,
            "shared": name,
        }
    finally:
        for listener in listeners:
            listener.close()
        sleeper.kill()
        sleeper.wait()
        shared.unlink()
        libc.shmctl(segment, 0, None)


def processes_with(marker: str) -> list[int]:
    """Processes of the whole machine that were started with an argument that has the marker."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in arguments:
                found.append(int(entry.name))
    return found
