"""The kernel calls that confine a program, through ctypes.

It is also run inside the children that confine themselves, by an interpreter without our package and in a hurry, so it
imports nothing but small parts of the standard library.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000

ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC = 1, 2, 4, 8
CHANGED_BY_PYTHON = (2, 13, 25)  # SIGINT, SIGPIPE, SIGXFSZ

MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000

_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _CLOEXEC = 1, 0o2000000
_FSCONFIG_SET_STRING, _FSCONFIG_CMD_CREATE = 1, 6
_MOVE_MOUNT_F_EMPTY_PATH, _MOVE_MOUNT_T_EMPTY_PATH = 0x4, 0x40
_MNT_DETACH = 2

# Numbers from 424 on are the same for all machines.
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _MOUNT_SETATTR = 428, 429, 430, 431, 432, 442
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP = 1, 4, 22
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 24, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
_SIGKILL = 9

_libc = ctypes.CDLL(None, use_errno=True)


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _done(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _call(what: str, number: int, *arguments: int | bytes | None) -> int:
    converted = [ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value) for value in arguments]
    return _done(what, _libc.syscall(ctypes.c_long(number), *converted))


def _control(what: str, *arguments: int) -> int:
    filled = (*arguments, 0, 0, 0, 0)[:5]
    return _done(what, _libc.prctl(ctypes.c_int(filled[0]), *(ctypes.c_ulong(value) for value in filled[1:])))


def unshare(flags: int) -> None:
    """Moves this process into namespaces of its own; the one for processes is for the next child."""
    _done("unshare", _libc.unshare(ctypes.c_int(flags)))


def die_with_parent() -> None:
    """Has the kernel kill this process when the thread that started it ends."""
    _control("prctl(PR_SET_PDEATHSIG)", _PR_SET_PDEATHSIG, _SIGKILL)


def hide_memory() -> None:
    """Lets no other process of this user look into this one."""
    _control("prctl(PR_SET_DUMPABLE)", _PR_SET_DUMPABLE, 0)


def default_signal(number: int) -> None:
    """Undoes what the interpreter made of a signal, also for the programs that it starts."""
    _libc.signal.restype = ctypes.c_void_p
    _libc.signal(ctypes.c_int(number), ctypes.c_void_p(0))


def mount(source: str, target: str, flags: int) -> None:
    """The old call, for what needs no file descriptor."""
    names = (os.fsencode(source), os.fsencode(target))
    _done(f"mount on {target}", _libc.mount(*names, None, ctypes.c_ulong(flags), None))


def detached_tree(path: str) -> int:
    """A copy of what is mounted at ``path`` and below, which is nowhere yet."""
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | _CLOEXEC
    return _call(f"open_tree {path}", _OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags)


def detached_filesystem(kind: str, attributes: int, **options: str) -> int:
    """A new file system, which is nowhere yet."""
    context = _call(f"fsopen {kind}", _FSOPEN, kind.encode(), 1)
    try:
        for name, value in options.items():
            _call(f"{kind} {name}", _FSCONFIG, context, _FSCONFIG_SET_STRING, name.encode(), value.encode(), 0)
        _call(f"new {kind}", _FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0)
        return _call(f"fsmount {kind}", _FSMOUNT, context, 1, attributes)
    finally:
        os.close(context)


def set_mount_attributes(mounted: int | str, attributes: int, *, is_recursive: bool) -> None:
    """Adds attributes to a mount, to those below it, too, when recursive; none of it is shared with others."""
    record = struct.pack("=4Q", attributes, 0, MS_PRIVATE, 0)
    where, path = (mounted, b"") if isinstance(mounted, int) else (_AT_FDCWD, os.fsencode(mounted))
    flags = _AT_EMPTY_PATH | (_AT_RECURSIVE if is_recursive else 0)
    _call("mount_setattr", _MOUNT_SETATTR, where, path, flags, record, len(record))


def attach(mounted: int, target: int) -> None:
    """Puts a detached mount over an open path, and closes it."""
    flags = _MOVE_MOUNT_F_EMPTY_PATH | _MOVE_MOUNT_T_EMPTY_PATH
    _call("move_mount", _MOVE_MOUNT, mounted, b"", target, b"", flags)
    os.close(mounted)


def become_root() -> None:
    """Makes the working directory, which has to be a mount, the root, and lets go of the old one."""
    _call("pivot_root", _PIVOT_ROOT[os.uname().machine], b".", b".")
    _done("umount2", _libc.umount2(b".", ctypes.c_int(_MNT_DETACH)))
    os.chdir("/")


def host_name(name: str) -> None:
    """Of the current namespace."""
    encoded = name.encode()
    _done("sethostname", _libc.sethostname(encoded, ctypes.c_size_t(len(encoded))))


def loopback_up() -> None:
    """Without it a new network namespace has no 127.0.0.1."""
    handle = _done("socket", _libc.socket(2, 0x80002, 0))  # AF_INET, SOCK_DGRAM | SOCK_CLOEXEC
    try:
        request = ctypes.create_string_buffer(struct.pack("=16sh22x", b"lo", 0x1))  # IFF_UP
        _done("loopback", _libc.ioctl(ctypes.c_int(handle), ctypes.c_ulong(0x8914), request))  # SIOCSIFFLAGS
    finally:
        os.close(handle)


def drop_capabilities() -> None:
    """All of them, for good: set-id programs gain nothing either."""
    with open("/proc/sys/kernel/cap_last_cap", "rb") as file:  # noqa: PTH123 - a module less to load
        last = int(file.read())
    for capability in range(last + 1):
        # Refused to who has none; without new privileges there is no way from this set to another either.
        _libc.prctl(ctypes.c_int(_PR_CAPBSET_DROP), ctypes.c_ulong(capability), 0, 0, 0)
    _control("prctl(PR_CAP_AMBIENT)", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    _done("capset", _libc.capset(struct.pack("=II", _CAPABILITY_VERSION, 0), bytes(24)))
    no_new_privileges()


def no_new_privileges() -> None:
    """What a filter asks of processes without capabilities."""
    _control("prctl(PR_SET_NO_NEW_PRIVS)", _PR_SET_NO_NEW_PRIVS, 1)


def load_filter(program: bytes) -> None:
    """A seccomp program, for this process and all that it starts."""
    record = _FilterProgram(len(program) // 8, program)
    _done("seccomp", _libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(record), 0, 0))


def set_limits(limits: list[tuple[int, int]]) -> None:
    """``RLIMIT`` numbers and values, soft and hard alike; a limit that is lower already stays."""
    for number, value in limits:
        _, hard = resource.getrlimit(number)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (bound, bound))


def landlock_abi() -> int:
    """The kernel's version of Landlock, 0 without it."""
    return max(0, _libc.syscall(ctypes.c_long(_LANDLOCK_CREATE), None, ctypes.c_size_t(0), ctypes.c_uint(1)))


def landlock_ruleset(files: int, network: int, scopes: int) -> int:
    """A set that handles these rights; what a kernel does not know must be 0."""
    record = struct.pack("=3Q", files, network, scopes)
    size = 24 if scopes else 16 if network else 8
    return _call("landlock_create_ruleset", _LANDLOCK_CREATE, record, size, 0)


def landlock_allow(ruleset: int, path: str, rights: int) -> None:
    """Allows rights below a path."""
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _call(f"landlock_add_rule {path}", _LANDLOCK_ADD, ruleset, 1, struct.pack("=Qi", rights, handle), 0)
    finally:
        os.close(handle)


def landlock_restrict(ruleset: int) -> None:
    """Confines this process and all that it starts."""
    _call("landlock_restrict_self", _LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def become_program(argv: list[str], env: dict[bytes, bytes]) -> NoReturn:
    """What ``os.execvpe`` does, which would load a module that may be out of sight by now."""
    if "/" in argv[0]:
        os.execve(argv[0], argv, env)  # noqa: S606 - no shell reads it
    denied: OSError | None = None
    for directory in env.get(b"PATH", b"/usr/bin:/bin").split(b":"):
        try:
            os.execve(directory + b"/" + os.fsencode(argv[0]), argv, env)  # noqa: S606
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            denied = error
    raise denied or FileNotFoundError(2, os.strerror(2), argv[0])
