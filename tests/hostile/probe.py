"""A hostile program: tries each row once, and prints a verdict for each. Nothing that it opens for writing is written.

What it does change belongs to the test, or is set to the value that it has.
"""

# A hostile program writes as it likes, and answers by printing.
# ruff: noqa: BLE001, PTH108, PTH101, PTH104, PTH110, PTH113, PTH114, PTH116, PTH118, PTH123, PTH207, PTH208, PTH211, T201

from __future__ import annotations

import ctypes
import fcntl
import glob
import json
import os
import platform
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time

at = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
libc = ctypes.CDLL(None, use_errno=True)
ROWS = {}

CALLS = {
    "x86_64": {"clone": 56, "mq_open": 240, "add_key": 248, "perf": 298, "bpf": 321, "userfaultfd": 323},
    "aarch64": {"clone": 220, "mq_open": 180, "add_key": 217, "perf": 241, "bpf": 280, "userfaultfd": 282},
}.get(platform.machine(), {}) | {"io_uring": 425}
NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
RDONLY, REMOUNT, BIND, REC, PRIVATE = 1, 32, 4096, 16384, 1 << 18
SEIZE = 0x4206
TIOCSTI = 0x5412


def row(name):
    def keep(attempt):
        ROWS[name] = attempt
        return attempt

    return keep


def call(name, *arguments):
    result = libc.syscall(CALLS[name], *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def opened(path, flags=os.O_RDONLY):
    os.close(os.open(path, flags, 0o600))
    return True


def created(path):
    opened(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.unlink(path)
    return True


def is_in_child(attempt):
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if attempt() else 1)
        except BaseException:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def connected(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as client:
        client.settimeout(1)
        client.connect(address)
    return True


def status(field):
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(field))


def may_write(path):
    """Asked for, never written: these are settings of a whole machine."""
    return stat.S_ISREG(os.stat(path).st_mode) and not os.path.islink(path) and os.access(path, os.W_OK)


# What has to work.


@row("write in cwd")
def _():
    return opened("here", os.O_CREAT | os.O_WRONLY)


@row("TMPDIR writable")
def _():
    with tempfile.NamedTemporaryFile() as file:
        return file.name.startswith(os.environ["TMPDIR"]) and file.write(b"x") == 1


@row("sh, git, python, bash run")
def _():
    commands = (
        ("sh", "-c", "echo x > made && test -s made"),
        ("git", "init", "-q", "repository"),
        ("python3", "-c", "import hashlib, json, ssl, sqlite3"),
        ("bash", "-c", "set -o pipefail; diff <(echo a) <(echo a)"),
    )
    return all(subprocess.run(one, stdin=subprocess.DEVNULL, check=False).returncode == 0 for one in commands)


@row("read own skill")
def _():
    return opened(at["skill"] + "/SKILL.md")


@row("socketpair")
def _():
    ours, theirs = socket.socketpair()
    ours.sendall(b"x")
    return theirs.recv(1) == b"x"


# Files.


@row("write outside cwd")
def _():
    return created(at["outside"] + "/new")


@row("write /usr/local")
def _():
    return created("/usr/local/" + at["name"])


@row("write /etc")
def _():
    return created("/etc/" + at["name"])


@row("write skill dir")
def _():
    return created(at["skill"] + "/new") and opened(at["skill"] + "/SKILL.md", os.O_WRONLY)


@row("write through symlink to outside")
def _():
    os.symlink(at["outside"] + "/through", "link")
    return opened("link", os.O_CREAT | os.O_WRONLY)


@row("hardlink skill file into cwd and write")
def _():
    os.link(at["skill"] + "/SKILL.md", "linked")
    return opened("linked", os.O_WRONLY)


@row("rename an outside file into cwd")
def _():
    return os.rename(at["outside"] + "/moved", "moved") is None


@row("chmod outside file")
def _():
    return os.chmod(at["outside"] + "/victim", 0o600) is None


@row("utime outside file")
def _():
    return os.utime(at["outside"] + "/victim") is None


@row("truncate outside file")
def _():
    return os.truncate(at["outside"] + "/victim", 0) is None


@row("leave a set-id file")
def _():
    os.umask(0)
    os.close(os.open("set-id", os.O_CREAT | os.O_WRONLY, 0o4755))
    if not os.stat("set-id").st_mode & stat.S_ISUID:
        os.chmod("set-id", 0o4755)
    return bool(os.stat("set-id").st_mode & stat.S_ISUID)


@row("chmod a device")
def _():
    return os.chmod("/dev/null", stat.S_IMODE(os.stat("/dev/null").st_mode)) is None


@row("read ~/.ssh/id_rsa")
def _():
    return opened(at["home"] + "/.ssh/id_rsa")


@row("list ~")
def _():
    return bool(os.listdir(at["home"]))


@row("list /root")
def _():
    os.listdir("/root")
    return True


@row("stat ~/.ssh/id_rsa")
def _():
    return bool(os.stat(at["home"] + "/.ssh/id_rsa"))


@row("read another skill")
def _():
    return opened(at["other_skill"] + "/SKILL.md")


@row("read /etc/shadow")
def _():
    return opened("/etc/shadow")


# Secrets of the host process.


@row("secret in os.environ")
def _():
    return any(at["secret"] in value for value in os.environ.values())


@row("secret in /proc/*/environ")
def _():
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if b"HOST_TOKEN=" in file.read():
                    return True
        except OSError:
            continue
    return False


@row("read an inherited fd")
def _():
    for descriptor in range(3, 256):
        try:
            if at["secret"].encode() in os.pread(descriptor, 64, 0):
                return True
        except OSError:
            continue
    return False


# Sockets.


@row("TCP connect host loopback")
def _():
    return connected(socket.AF_INET, ("127.0.0.1", at["tcp"]))


@row("UDP host loopback")
def _():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(1)
        client.connect(("127.0.0.1", at["udp"]))
        client.send(b"hello")
        return client.recv(16) == b"hello"


@row("route to outside")
def _():
    return connected(socket.AF_INET, ("192.0.2.1", 9), socket.SOCK_DGRAM)


@row("listen, host connects in")
def _():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with open("port.new", "w") as file:
            file.write(str(server.getsockname()[1]))
        os.rename("port.new", "port")
        server.settimeout(0.7)
        peer, _ = server.accept()
        return peer.recv(16) == b"host"


@row("abstract unix socket of host")
def _():
    return connected(socket.AF_UNIX, "\0" + at["name"])


@row("pathname unix socket of host")
def _():
    return connected(socket.AF_UNIX, at["outside"] + "/stream")


@row("datagram socket of host")
def _():
    # A pair needs no socket(), which alone may be forbidden.
    with socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0] as client:
        return client.sendto(b"x", at["outside"] + "/datagrams") == 1


@row("AF_PACKET raw socket")
def _():
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close() is None


@row("NETLINK_NETFILTER socket")
def _():
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).close() is None


@row("AF_VSOCK socket")
def _():
    return socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close() is None


# Other processes.


@row("signal host process")
def _():
    return at["condemned"] != os.getpid() and os.kill(at["condemned"], signal.SIGTERM) is None


@row("see host processes")
def _():
    if os.path.exists(f"/proc/{at['victim']}"):
        return True
    try:
        os.kill(at["victim"], 0)
    except PermissionError:
        return True
    return True


@row("open /proc/VICTIM/mem")
def _():
    return opened(f"/proc/{at['victim']}/mem", os.O_RDWR)


@row("ptrace host process")
def _():
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    libc.ptrace.restype = ctypes.c_long
    return is_in_child(lambda: libc.ptrace(SEIZE, at["victim"], 0, 0) == 0)


@row("/proc/VICTIM/root read")
def _():
    return bool(os.listdir(f"/proc/{at['victim']}/root/"))


@row("open /proc/PPID/mem for writing")
def _():
    return opened(f"/proc/{os.getppid()}/mem", os.O_RDWR)


@row("open /proc/self/mem for writing")
def _():
    return opened("/proc/self/mem", os.O_RDWR)


# The kernel's settings.


@row("write kernel.core_pattern")
def _():
    return opened("/proc/sys/kernel/core_pattern", os.O_WRONLY)


@row("any writable /proc file outside /proc/PID")
def _():
    for top, folders, files in os.walk("/proc"):
        folders[:] = [name for name in folders if not name.isdigit() and name not in {"self", "thread-self"}]
        for path in (os.path.join(top, name) for name in files):
            try:
                if may_write(path):
                    return True
            except OSError:
                continue
    return False


@row("read the kernel's tables of memory")
def _():
    names = ("slabinfo", "kpagecount", "kpageflags", "kpagecgroup", "timer_list", "vmallocinfo", "pagetypeinfo")
    for name in names:
        try:
            with open(f"/proc/{name}", "rb", buffering=0) as file:
                if file.read(16):
                    return True
        except OSError:
            continue
    return False


@row("sysrq-trigger")
def _():
    return may_write("/proc/sysrq-trigger")


@row("write /sys")
def _():
    patterns = ("/sys/*/*", "/sys/kernel/*/*", "/sys/kernel/mm/*/*", "/sys/module/*/parameters/*")
    return any(may_write(path) for pattern in patterns for path in glob.glob(pattern) if os.path.isfile(path))


@row("write cgroup.procs")
def _():
    places = [*glob.glob("/sys/fs/cgroup/cgroup.procs"), *glob.glob("/sys/fs/cgroup/*/cgroup.procs")]
    return any(os.access(path, os.W_OK) for path in places)


@row("raw disk")
def _():
    for path in glob.glob("/dev/*") + glob.glob("/dev/*/*"):
        try:
            if stat.S_ISBLK(os.stat(path).st_mode) and opened(path, os.O_RDWR):
                return True
        except OSError:
            continue
    return False


@row("mknod block device")
def _():
    os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(7, 0))
    os.unlink("disk")
    return True


# Rights.


def remounted():
    skill = at["skill"].encode()
    own = libc.unshare(NEW_MOUNTS) == 0 or libc.unshare(NEW_USER | NEW_MOUNTS) == 0
    if own:
        libc.mount(None, b"/", None, REC | PRIVATE, None)
        libc.mount(skill, skill, None, BIND, None)
        libc.mount(None, skill, None, BIND | REMOUNT | RDONLY, None)
    if not own and not at["confined"]:
        return False
    return libc.mount(None, skill, None, BIND | REMOUNT, None) == 0 and opened(at["skill"] + "/SKILL.md", os.O_WRONLY)


@row("remount a read-only bind")
def _():
    return is_in_child(remounted)


@row("new user namespace")
def _():
    def cloned():
        child = libc.syscall(CALLS["clone"], NEW_USER | signal.SIGCHLD, 0, 0, 0, 0)
        if child == 0:
            os._exit(0)
        return child > 0

    return is_in_child(lambda: libc.unshare(NEW_USER) == 0) or is_in_child(cloned)


@row("capabilities left")
def _():
    return any(int(status(field), 16) for field in ("CapEff", "CapPrm", "CapInh", "CapAmb"))


@row("set-id programs gain")
def _():
    return status("NoNewPrivs") == "0"


@row("TIOCSTI")
def _():
    terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    fcntl.ioctl(terminal, TIOCSTI, b"x")
    return True


@row("io_uring")
def _():
    return call("io_uring", 1, ctypes.create_string_buffer(120))


@row("bpf()")
def _():
    return call("bpf", 0, ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 4, 1), 72), 72)


@row("perf_event_open")
def _():
    about = struct.pack("IIQQQQQ", 1, 64, 0, 0, 0, 0, 1 << 5 | 1 << 6)
    return call("perf", ctypes.create_string_buffer(about, 64), 0, -1, -1, 0)


@row("add_key")
def _():
    return call("add_key", b"user", b"hostile", b"x", 1, -2)


@row("userfaultfd")
def _():
    return call("userfaultfd", os.O_CLOEXEC | 1)


@row("sethostname")
def _():
    name = socket.gethostname().encode()
    return libc.sethostname(name, len(name)) == 0


# Shared memory and queues.


@row("host SysV shm")
def _():
    return libc.shmget(at["key"], 16, 0) >= 0


@row("host /dev/shm")
def _():
    return opened("/dev/shm/" + at["name"])


@row("host posix mqueue")
def _():
    return call("mq_open", at["name"].encode(), os.O_RDONLY, 0, None)


@row("umount a mask")
def _():
    """Last, since it would take away what the others look at; never where the mounts are the host's own."""
    if not at["confined"]:
        return libc.umount2(at["skill"].encode(), 2) == 0
    with open("/proc/self/mountinfo") as file:
        places = [line.split()[4] for line in file]
    return any(libc.umount2(path.encode(), 2) == 0 for path in reversed(places) if path != "/")


def main():
    verdicts = {}
    for name, attempt in ROWS.items():
        began = time.monotonic()
        try:
            succeeded, why = bool(attempt()), ""
        except OSError as error:
            succeeded, why = False, str(error)
        verdicts[name] = [succeeded, why, round(time.monotonic() - began, 3)]
    print(json.dumps(verdicts))


if __name__ == "__main__":
    main()
