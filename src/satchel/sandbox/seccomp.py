"""The system calls that a confined program may not make, as a seccomp filter that every Linux backend loads.

A denied call fails with an errno, so that programs fall back instead of dying. Only a foreign ABI, whose numbers would
be read with the wrong table, kills. Numbers newer than the tables fail as calls that the kernel does not have.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from satchel.errors import SandboxError

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_JUMP_EQUAL, _JUMP_ABOVE, _JUMP_FROM, _JUMP_ANY_BIT = 0x15, 0x25, 0x35, 0x45  # BPF_JMP | ... | BPF_K
_RETURN = 0x06

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERRNO = 0x00050000

_NUMBER_OFFSET, _ARCH_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16

_NEWEST = 469  # file_setattr, Linux 6.17; tables are the same for all machines from 424 on
_X32_BIT = 0x40000000

_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET
_NEW_TIME = 0x80
_SET_ID_BITS = 0o6000
_CREATING = 0o100 | 0o20000000  # O_CREAT | __O_TMPFILE
_TERMINAL_INPUT = (0x5412, 0x541C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCSETD
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)  # Linux, 32 bit, UNAME26, a query

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE = 0
_SOCK_PACKET = 10  # an old way to AF_PACKET through AF_INET
_INET_PROTOCOLS = (0, 1, 6, 17, 58)  # default, ICMP, TCP, UDP, ICMPv6


@dataclass(frozen=True, slots=True)
class _Test:
    """The low 32 bits of an argument, masked, are ``value``; without a value: have any bit of the mask."""

    argument: int
    mask: int = 0xFFFFFFFF
    value: int | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    """What becomes of a call: the answer of the first clause whose tests all hold, else ``answer``."""

    answer: int
    clauses: tuple[tuple[tuple[_Test, ...], int], ...] = ()


_NO = _ERRNO | errno.EPERM
_ABSENT = _ERRNO | errno.ENOSYS
_NO_FAMILY = _ERRNO | errno.EAFNOSUPPORT
_NO_PROTOCOL = _ERRNO | errno.EPROTONOSUPPORT

_DENIED = _Rule(_NO)
_MISSING = _Rule(_ABSENT)
_SOCKETS = _Rule(
    _NO_FAMILY,
    (
        ((_Test(0, value=_UNIX),), _ALLOW),
        ((_Test(0, value=_NETLINK), _Test(2, value=_NETLINK_ROUTE)), _ALLOW),
        *(
            clause
            for family in (_INET, _INET6)
            for clause in (
                ((_Test(0, value=family), _Test(1, mask=0xF, value=_SOCK_PACKET)), _NO_PROTOCOL),
                *(((_Test(0, value=family), _Test(2, value=protocol)), _ALLOW) for protocol in _INET_PROTOCOLS),
                ((_Test(0, value=family),), _NO_PROTOCOL),
            )
        ),
    ),
)
# Where a program shares the host's networks, a socket that may be named reaches what listens there.
_SOCK_STREAM, _SOCK_SEQPACKET = 1, 5  # a pair of these stays connected to itself, unlike one of datagrams
_PAIRS = _Rule(
    _NO_FAMILY,
    tuple(
        ((_Test(0, value=_UNIX), _Test(1, mask=0xF, value=kind)), _ALLOW) for kind in (_SOCK_STREAM, _SOCK_SEQPACKET)
    ),
)
_NO_NETWORK: dict[str, tuple[int | None, int | None, _Rule]] = {
    "socket": (41, 198, _Rule(_NO_FAMILY)),
    "socketpair": (53, 199, _PAIRS),
}


def _no_set_id(argument: int) -> _Rule:
    # A set-id file in a writable directory outlives the sandbox, and there it works.
    return _Rule(_ALLOW, (((_Test(argument, mask=_SET_ID_BITS),), _NO),))


def _no_set_id_on_creation(flags: int, mode: int) -> _Rule:
    return _Rule(_ALLOW, (((_Test(flags, mask=_CREATING), _Test(mode, mask=_SET_ID_BITS)), _NO),))


# Name: x86_64 number, aarch64 number (None: the machine has no such call), rule.
_CALLS: dict[str, tuple[int | None, int | None, _Rule]] = {
    # What is found by a key or a name belongs to no process, so nothing would bound it, and the host's may be found.
    "shmget": (29, 194, _DENIED),
    "semget": (64, 190, _DENIED),
    "msgget": (68, 186, _DENIED),
    "mq_open": (240, 180, _DENIED),
    "mq_unlink": (241, 181, _DENIED),
    "mount": (165, 40, _DENIED),
    "umount2": (166, 39, _DENIED),
    "pivot_root": (155, 41, _DENIED),
    "chroot": (161, 51, _DENIED),
    "open_tree": (428, 428, _DENIED),
    "move_mount": (429, 429, _DENIED),
    "fsopen": (430, 430, _DENIED),
    "fsconfig": (431, 431, _DENIED),
    "fsmount": (432, 432, _DENIED),
    "fspick": (433, 433, _DENIED),
    "mount_setattr": (442, 442, _DENIED),
    "open_tree_attr": (467, 467, _DENIED),
    "statmount": (457, 457, _MISSING),
    "listmount": (458, 458, _MISSING),
    "unshare": (272, 97, _Rule(_ALLOW, (((_Test(0, mask=_NEW_NAMESPACES | _NEW_TIME),), _NO),))),
    "clone": (56, 220, _Rule(_ALLOW, (((_Test(0, mask=_NEW_NAMESPACES),), _NO),))),
    "clone3": (435, 435, _MISSING),  # its flags lie in memory, where a filter cannot look; libraries fall back to clone
    "setns": (308, 268, _DENIED),
    "add_key": (248, 217, _DENIED),
    "request_key": (249, 218, _DENIED),
    "keyctl": (250, 219, _DENIED),
    "bpf": (321, 280, _DENIED),
    "perf_event_open": (298, 241, _DENIED),
    "userfaultfd": (323, 282, _DENIED),
    "io_uring_setup": (425, 425, _MISSING),
    "io_uring_enter": (426, 426, _MISSING),
    "io_uring_register": (427, 427, _MISSING),
    "memfd_secret": (447, 447, _MISSING),
    "ptrace": (101, 117, _DENIED),
    "process_vm_readv": (310, 270, _DENIED),
    "process_vm_writev": (311, 271, _DENIED),
    "process_madvise": (440, 440, _DENIED),
    "kcmp": (312, 272, _DENIED),
    "pidfd_getfd": (438, 438, _DENIED),
    "open_by_handle_at": (304, 265, _DENIED),
    "fanotify_init": (300, 262, _DENIED),
    "kexec_load": (246, 104, _DENIED),
    "kexec_file_load": (320, 294, _DENIED),
    "init_module": (175, 105, _DENIED),
    "finit_module": (313, 273, _DENIED),
    "delete_module": (176, 106, _DENIED),
    "swapon": (167, 224, _DENIED),
    "swapoff": (168, 225, _DENIED),
    "reboot": (169, 142, _DENIED),
    "acct": (163, 89, _DENIED),
    "quotactl": (179, 60, _DENIED),
    "quotactl_fd": (443, 443, _DENIED),
    "syslog": (103, 116, _DENIED),
    "vhangup": (153, 58, _DENIED),
    "settimeofday": (164, 170, _DENIED),
    "clock_settime": (227, 112, _DENIED),
    "clock_adjtime": (305, 266, _DENIED),
    "adjtimex": (159, 171, _DENIED),
    "sethostname": (170, 161, _DENIED),
    "setdomainname": (171, 162, _DENIED),
    "lookup_dcookie": (212, 18, _MISSING),
    "nfsservctl": (180, 42, _MISSING),
    "iopl": (172, None, _DENIED),
    "ioperm": (173, None, _DENIED),
    "modify_ldt": (154, None, _MISSING),
    "uselib": (134, None, _MISSING),
    "ustat": (136, None, _MISSING),
    "sysfs": (139, None, _MISSING),
    "personality": (135, 92, _Rule(_NO, tuple(((_Test(0, value=known),), _ALLOW) for known in _PERSONALITIES))),
    "socket": (41, 198, _SOCKETS),
    "socketpair": (53, 199, _SOCKETS),
    "ioctl": (16, 29, _Rule(_ALLOW, tuple(((_Test(1, value=request),), _NO) for request in _TERMINAL_INPUT))),
    "chmod": (90, None, _no_set_id(1)),
    "fchmod": (91, 52, _no_set_id(1)),
    "fchmodat": (268, 53, _no_set_id(2)),
    "fchmodat2": (452, 452, _no_set_id(2)),
    "creat": (85, None, _no_set_id(1)),
    "mknod": (133, None, _no_set_id(1)),
    "mknodat": (259, 33, _no_set_id(2)),
    "open": (2, None, _no_set_id_on_creation(1, 2)),
    "openat": (257, 56, _no_set_id_on_creation(2, 3)),
    "openat2": (437, 437, _MISSING),  # the mode lies in memory, as with clone3
}

# Column of the table, AUDIT_ARCH value.
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


@cache
def filter_program(machine: str | None = None, *, has_sockets: bool = True) -> bytes:
    """The filter as an array of ``struct sock_filter``, for this machine or the named one (x86_64, aarch64).

    Without ``has_sockets`` it lives in the host's network and may open no socket but a connected pair.

    Raises:
        SandboxError: sandbox-unavailable, for a machine without a table.
    """
    name = os.uname().machine if machine is None else machine
    if name not in _MACHINES:
        raise SandboxError(
            "sandbox-unavailable",
            f"There is no system call filter for machines of the kind {name!r}.",
            hint=f"There is one for {' and '.join(_MACHINES)}.",
        )
    column, arch = _MACHINES[name]
    program = [_instruction(_LOAD, _ARCH_OFFSET), *_unless(_JUMP_EQUAL, arch, _KILL)]
    program.append(_instruction(_LOAD, _NUMBER_OFFSET))
    if name == "x86_64":
        program += _when(_JUMP_FROM, _X32_BIT, _KILL)
    program += _when(_JUMP_ABOVE, _NEWEST, _ABSENT)
    calls = _CALLS | ({} if has_sockets else _NO_NETWORK)
    for *numbers, rule in calls.values():
        number = numbers[column]
        if number is not None:
            body = _body(rule)
            program += [_instruction(_JUMP_EQUAL, number, 0, len(body)), *body]
    program.append(_instruction(_RETURN, _ALLOW))
    return b"".join(program)


def filter_missing() -> str:
    """Why there is no filter for this machine, "" when there is one."""
    try:
        filter_program()
    except SandboxError as error:
        return error.message
    return ""


def _body(rule: _Rule) -> list[bytes]:
    """The clauses of a rule in order; a clause that does not hold goes on to the next one."""
    program: list[bytes] = []
    for tests, answer in rule.clauses:
        clause: list[bytes] = [_instruction(_RETURN, answer)]
        for test in reversed(tests):
            clause = [*_load(test), _check(test, len(clause)), *clause]
        program += clause
    return [*program, _instruction(_RETURN, rule.answer)]


def _load(test: _Test) -> Iterable[bytes]:
    yield _instruction(_LOAD, _ARGUMENTS_OFFSET + 8 * test.argument)  # the low word, on little-endian machines
    if test.value is not None and test.mask != 0xFFFFFFFF:  # noqa: PLR2004 - the whole word
        yield _instruction(_AND, test.mask)


def _check(test: _Test, otherwise: int) -> bytes:
    if test.value is None:
        return _instruction(_JUMP_ANY_BIT, test.mask, 0, otherwise)
    return _instruction(_JUMP_EQUAL, test.value, 0, otherwise)


def _when(jump: int, value: int, answer: int) -> list[bytes]:
    return [_instruction(jump, value, 0, 1), _instruction(_RETURN, answer)]


def _unless(jump: int, value: int, answer: int) -> list[bytes]:
    return [_instruction(jump, value, 1, 0), _instruction(_RETURN, answer)]


def _instruction(code: int, value: int, when_true: int = 0, when_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, when_true, when_false, value)
