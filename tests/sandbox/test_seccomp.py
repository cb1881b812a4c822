"""The filter as the kernel reads it: interpreted for both machines, and really loaded on this one."""

from __future__ import annotations

import errno
import json
import platform
import struct
import subprocess
import sys

import pytest

from satchel.errors import SandboxError
from satchel.sandbox.seccomp import filter_program

ALLOW, KILL = 0x7FFF0000, 0x80000000
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {  # name: x86_64, aarch64
    "mount": (165, 40),
    "unshare": (272, 97),
    "clone": (56, 220),
    "clone3": (435, 435),
    "setns": (308, 268),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "ptrace": (101, 117),
    "open_by_handle_at": (304, 265),
    "pidfd_getfd": (438, 438),
    "io_uring_setup": (425, 425),
    "personality": (135, 92),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ioctl": (16, 29),
    "fchmodat": (268, 53),
    "openat": (257, 56),
    "openat2": (437, 437),
    "read": (0, 63),
    "execve": (59, 221),
    "prlimit64": (302, 261),
    "seccomp": (317, 277),
    "shmget": (29, 194),
    "exit_group": (231, 94),
}
NO, ABSENT = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
FAMILY, PROTOCOL = 0x50000 | errno.EAFNOSUPPORT, 0x50000 | errno.EPROTONOSUPPORT
FORK = 0x01200011  # what a fork of the C library passes


def answer(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the kernel would make of one call."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, arch, 0, *(value & 2**64 - 1 for value in padded))
    word = at = 0
    for _ in range(len(program)):
        code, when_true, when_false, value = struct.unpack_from("=HBBI", program, at * 8)
        at += 1
        if code == 0x20:
            word = struct.unpack_from("=I", data, value)[0]
        elif code == 0x54:
            word &= value
        elif code == 0x06:
            return value
        else:
            holds = {0x15: word == value, 0x25: word > value, 0x35: word >= value, 0x45: bool(word & value)}[code]
            at += when_true if holds else when_false
    raise AssertionError


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("read", (), ALLOW),
        ("execve", (), ALLOW),
        ("prlimit64", (), ALLOW),
        ("seccomp", (), ALLOW),
        ("shmget", (), NO),
        ("exit_group", (), ALLOW),
        ("mount", (), NO),
        ("setns", (), NO),
        ("keyctl", (), NO),
        ("bpf", (), NO),
        ("ptrace", (), NO),
        ("open_by_handle_at", (), NO),
        ("pidfd_getfd", (), NO),
        ("clone3", (), ABSENT),
        ("io_uring_setup", (), ABSENT),
        ("openat2", (), ABSENT),
        ("clone", (FORK,), ALLOW),
        ("clone", (FORK | 0x10000000,), NO),
        ("clone", (FORK | 0x20000,), NO),
        ("unshare", (0x400,), ALLOW),
        ("unshare", (0x10000000,), NO),
        ("unshare", (0x80,), NO),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("personality", (0,), ALLOW),
        ("personality", (0x0040000,), NO),
        ("socket", (1, 1, 0), ALLOW),
        ("socket", (2, 0x80001, 6), ALLOW),
        ("socket", (10, 2, 17), ALLOW),
        ("socket", (2, 0x8000A, 0), PROTOCOL),
        ("socket", (10, 5, 132), PROTOCOL),
        ("socket", (2, 1, 262), PROTOCOL),
        ("socket", (16, 3, 0), ALLOW),
        ("socket", (16, 3, 12), FAMILY),
        ("socket", (17, 3, 0), FAMILY),
        ("socket", (38, 5, 0), FAMILY),
        ("socket", (40, 1, 0), FAMILY),
        ("socketpair", (1, 1, 0), ALLOW),
        ("socketpair", (30, 1, 0), FAMILY),
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), NO),
        ("ioctl", (0, 0x100005412), NO),
        ("ioctl", (0, 0x541C), NO),
        ("fchmodat", (0, 0, 0o755), ALLOW),
        ("fchmodat", (0, 0, 0o4755), NO),
        ("fchmodat", (0, 0, 0o2755), NO),
        ("openat", (0, 0, 0o101, 0o644), ALLOW),
        ("openat", (0, 0, 0o101, 0o6644), NO),
        ("openat", (0, 0, 0, 0o6644), ALLOW),
    ],
)
def test_a_call_is_answered(machine: str, name: str, arguments: tuple[int, ...], expected: int) -> None:
    number = NUMBERS[name][list(ARCH).index(machine)]
    assert answer(filter_program(machine), ARCH[machine], number, *arguments) == expected


def test_a_foreign_abi_is_killed() -> None:
    for machine, arch in ARCH.items():
        for foreign in (*ARCH.values(), 0x40000003, 0x40000028):
            assert (answer(filter_program(machine), foreign, 1) == KILL) is (foreign != arch)
    assert answer(filter_program("x86_64"), ARCH["x86_64"], 0x40000000 | 1) == KILL


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_call_that_no_table_knows_is_absent(machine: str) -> None:
    for number in (470, 900, 2**29):
        assert answer(filter_program(machine), ARCH[machine], number) == ABSENT


def test_a_machine_without_a_table_is_refused() -> None:
    with pytest.raises(SandboxError) as caught:
        filter_program("riscv64")
    assert caught.value.code == "sandbox-unavailable"


PROBE = """
import ctypes, errno, json, os, socket, sys
program = sys.stdin.buffer.read()
libc = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
record = Program(len(program) // 8, program)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(record)) == 0
def call(number, *arguments):
    ctypes.set_errno(0)
    return 0 if libc.syscall(number, *map(ctypes.c_long, arguments)) >= 0 else ctypes.get_errno()
def opened(*arguments):
    try:
        socket.socket(*arguments).close()
    except OSError as error:
        return error.errno
    return 0
def made(path, mode):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))
    except OSError as error:
        return error.errno
    return 0
def changed(path, mode):
    try:
        os.chmod(path, mode)
    except OSError as error:
        return error.errno
    return 0
numbers, place = json.loads(sys.argv[1]), sys.argv[2]
child = os.fork()
if child == 0:
    os._exit(7)
print(json.dumps({
    "calls": {name: call(number, 0, 0, 0, 0, 0, 0) for name, number in numbers.items()},
    "new user namespace": call(272 if os.uname().machine == "x86_64" else 97, 0x10000000),
    "packet": opened(17, 3, 0), "vsock": opened(40, 1, 0), "crypto": opened(38, 5, 0),
    "netfilter": opened(16, 3, 12), "route": opened(16, 3, 0), "tcp": opened(2, 1, 0), "unix": opened(1, 1, 0),
    "set-id file": made(place + "/a", 0o4755), "file": made(place + "/b", 0o755),
    "set-id mode": changed(place + "/b", 0o4755), "mode": changed(place + "/b", 0o700),
    "fork": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
}))
"""

REALLY_DENIED = {
    "mount": (165, 40),
    "setns": (308, 268),
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "open_by_handle_at": (304, 265),
    "pidfd_getfd": (438, 438),
    "init_module": (175, 105),
    "swapon": (167, 224),
    "sethostname": (170, 161),
    "settimeofday": (164, 170),
    "pivot_root": (155, 41),
    "mount_setattr": (442, 442),
}


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() not in ARCH, reason="the filter is for Linux")
def test_the_kernel_takes_the_filter_and_keeps_to_it(tmp_path) -> None:
    column = list(ARCH).index(platform.machine())
    numbers = {name: pair[column] for name, pair in REALLY_DENIED.items()}
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROBE, json.dumps(numbers), str(tmp_path)],
        input=filter_program(),
        capture_output=True,
        check=True,
    )
    seen = json.loads(ran.stdout)
    assert seen.pop("calls") == dict.fromkeys(numbers, errno.EPERM)
    assert seen == {
        "new user namespace": errno.EPERM,
        "packet": errno.EAFNOSUPPORT,
        "vsock": errno.EAFNOSUPPORT,
        "crypto": errno.EAFNOSUPPORT,
        "netfilter": errno.EAFNOSUPPORT,
        "route": 0,
        "tcp": 0,
        "unix": 0,
        "set-id file": errno.EPERM,
        "file": 0,
        "set-id mode": errno.EPERM,
        "mode": 0,
        "fork": 7,
    }


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="the ABI is one of x86_64")
def test_the_x32_abi_kills() -> None:
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROBE.split("def call", maxsplit=1)[0] + "libc.syscall(0x40000000 | 39)"],
        input=filter_program(),
        capture_output=True,
        check=False,
    )
    assert ran.returncode == -31  # SIGSYS
