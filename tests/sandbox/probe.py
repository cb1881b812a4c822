"""A hostile program: tries everything in the table, and prints what succeeded. It changes nothing of a host for good."""

# A hostile program writes as it likes, and answers by printing.
# ruff: noqa: PTH101, PTH104, PTH114, PTH116, PTH118, PTH123, PTH207, PTH208, PTH211, SIM115, T201

from __future__ import annotations

import ctypes
import glob
import json
import os
import socket
import subprocess
import sys
import tempfile

at = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)


def opened(path, flags=os.O_RDONLY):
    os.close(os.open(path, flags, 0o600))
    return True


def connected(family, address):
    with socket.socket(family) as client:
        client.settimeout(2)
        client.connect(address)
    return True


def datagram():
    with socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0] as client:
        client.connect(at["outside"] + "/datagrams")
    return True


def made(kind, protocol=0, family=socket.AF_INET):
    socket.socket(family, kind, protocol).close()
    return True


def changed(path, mode):
    os.chmod(path, mode)
    return True


def environments():
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if b"HOSTSECRET" in file.read():
                    return True
        except OSError:
            continue
    return False


def in_child(what):
    child = os.fork()
    if child == 0:
        os._exit(0 if what() == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def status(field):
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(field))


def writable_of_proc():
    for top, folders, files in os.walk("/proc"):
        folders[:] = [name for name in folders if not name.isdigit() and name not in {"self", "thread-self"}]
        for name in files:
            path = os.path.join(top, name)
            # Asked for, never written: these are settings of a whole machine.
            if os.access(path, os.W_OK) and not os.path.islink(path) and os.stat(path).st_rdev == 0:
                return True
    return False


def set_id():
    with open("set-id", "w"):
        pass
    os.chmod("set-id", 0o4755)
    return True


def created_set_id():
    os.umask(0)
    os.close(os.open("created", os.O_CREAT | os.O_WRONLY, 0o4755))
    return bool(os.stat("created").st_mode & 0o4000)


def hardlinked():
    os.link(at["readonly"] + "/file", "linked")
    return True


def through_link():
    os.symlink(at["outside"] + "/through", "link")
    with open("link", "w"):
        return True


outside, home = at["outside"], at["home"]
ATTACKS = {
    "write outside": lambda: opened(outside + "/new", os.O_CREAT | os.O_WRONLY),
    "write read-only": lambda: opened(at["readonly"] + "/new", os.O_CREAT | os.O_WRONLY),
    "truncate outside": lambda: opened(outside + "/victim", os.O_WRONLY | os.O_TRUNC),
    "write through a link": through_link,
    "hard link of a read-only file": hardlinked,
    "rename into the work": lambda: os.rename(outside + "/moved", "moved") is None,
    "read outside": lambda: opened(outside + "/victim"),
    "list home": lambda: bool(os.listdir(home)),
    "stat outside": lambda: bool(os.stat(outside + "/victim")),
    "chmod outside": lambda: changed(outside + "/victim", 0o600),
    "utime outside": lambda: os.utime(outside + "/victim") is None,
    "TCP to the host": lambda: connected(socket.AF_INET, ("127.0.0.1", at["port"])),
    "abstract socket": lambda: connected(socket.AF_UNIX, "\0" + at["abstract"]),
    "socket by path": lambda: connected(socket.AF_UNIX, outside + "/socket"),
    "datagram by path": datagram,
    "AF_VSOCK": lambda: made(socket.SOCK_STREAM, family=socket.AF_VSOCK),
    "AF_NETLINK netfilter": lambda: made(socket.SOCK_RAW, 12, socket.AF_NETLINK),
    "environment of others": environments,
    "see a process": lambda: opened(f"/proc/{at['pid']}/cmdline"),
    "signal a process": lambda: os.kill(at["pid"], 0) is None,
    "shared memory by key": lambda: libc.shmget(at["key"], 16, 0) >= 0,
    "shared memory by name": lambda: opened("/dev/shm/" + at["shared"]),
    "new user namespace": lambda: in_child(lambda: libc.unshare(0x10000000)),
    "set-id mode": set_id,
    "set-id from the start": created_set_id,
    "io_uring": lambda: libc.syscall(425, 1, ctypes.create_string_buffer(120)) >= 0,
    "memory of process 1": lambda: opened(f"/proc/{os.getppid()}/mem", os.O_RDWR),
    "own memory as a file": lambda: opened("/proc/self/mem", os.O_RDWR),
    "new privileges": lambda: status("NoNewPrivs") == "0",
    "capabilities": lambda: int(status("CapEff"), 16) != 0,
    "writable setting": writable_of_proc,
    "chmod a device": lambda: changed("/dev/null", 0o666),
    "read shadow": lambda: opened("/etc/shadow"),
    "hostname": lambda: libc.sethostname(b"changed", 7) == 0 if at["confined"] else True,
}


def listened():
    if not at["sockets"]:
        return True
    with socket.create_server(("127.0.0.1", 0)) as server:
        return connected(socket.AF_INET, server.getsockname())


def ran(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


NEEDS = {
    "write here": lambda: opened("here", os.O_CREAT | os.O_WRONLY),
    "temporary file": lambda: bool(tempfile.TemporaryFile()),
    "read the read-only": lambda: opened(at["readonly"] + "/file"),
    "devices": lambda: opened("/dev/null", os.O_WRONLY) and opened("/dev/urandom"),
    "shell": lambda: ran("sh", "-c", "echo x > made && test -s made"),
    "bash": lambda: ran("bash", "-c", "set -o pipefail; diff <(echo a) <(echo a)"),
    "python": lambda: ran("python3", "-c", "import hashlib, json, ssl"),
    "git": lambda: ran("git", "init", "-q", "repository"),
    "pair": lambda: all(end.close() is None for end in socket.socketpair()),
    "loopback": listened,
    "modes": lambda: changed("here", 0o755),
}


def tried(table):
    results = {}
    for name, attempt in table.items():
        try:
            results[name] = bool(attempt())
        except OSError:
            results[name] = False
    return results


print(json.dumps({"attacks": tried(ATTACKS), "needs": tried(NEEDS)}))
