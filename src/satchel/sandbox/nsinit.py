"""What runs in the child of the namespace backend: makes the namespaces and the root, then is process 1 in them.

The first process stays outside and waits; its child is process 1, reaps, and ends as the program ends, which ends
everything else inside. Both die with the process that started them. It is run without our package, by ``confined``.
"""

from __future__ import annotations

import os

from satchel.sandbox import syscalls as sys_

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, TypedDict

    class Plan(TypedDict):
        """Everything the child is told; plain values alone, since it is handed over by ``marshal``."""

        argv: list[str]
        env: dict[bytes, bytes]
        cwd: str
        entrance: str
        parent: int
        namespaces: int
        hostname: str
        links: list[tuple[str, str]]
        files: list[tuple[str, bytes]]
        temporary: list[tuple[str, dict[str, str]]]
        binds: list[tuple[str, bool]]
        devices: list[str]
        device_links: list[tuple[str, str]]
        hidden: list[str]
        limits: list[tuple[int, int]]
        pid_max: int
        pids_used: int
        filter: bytes


_SETUP_FAILED, _NOT_STARTED, _SIGNALLED = 125, 127, 128
_LAST_PID = "/proc/sys/kernel/ns_last_pid"
_ROOT_BYTES = 1024**2
_KIND, _DIRECTORY = 0o170000, 0o040000  # of a mode


def main(plan: Plan, status: int) -> NoReturn:
    """Never returns. ``status`` gets a line with the number of process 1, and a line with what failed, if anything."""
    try:
        inner, alive = _enter(plan)
    except OSError as error:
        _fail(status, "setup", error)
    if inner == 0:
        _process_one(plan, status, alive)
    os.write(status, b"%d\n" % inner)
    os.close(status)
    _, ended = os.waitpid(inner, 0)
    os._exit(_code(ended))


def _enter(plan: Plan) -> tuple[int, int]:
    uid, gid = os.geteuid(), os.getegid()
    if plan["entrance"]:
        _write(plan["entrance"], "0")
    if uid == 0:
        try:  # noqa: SIM105 - a module less to load
            os.setgroups([])
        except PermissionError:
            pass  # a root without that right has the groups that it was given
    sys_.unshare(plan["namespaces"])
    sys_.die_with_parent()  # a change of credentials before would undo it
    if os.getppid() != plan["parent"]:
        os._exit(_SETUP_FAILED)
    # One user, as it is outside: what it writes belongs to it, and nobody else is there to become.
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        _write(f"/proc/self/{name}", text)
    reading, writing = os.pipe()
    inner = os.fork()
    os.close(writing if inner == 0 else reading)
    return inner, reading


def _process_one(plan: Plan, status: int, alive: int) -> NoReturn:
    try:
        sys_.die_with_parent()
        os.set_blocking(alive, False)
        try:
            gone = os.read(alive, 1) == b""
        except BlockingIOError:
            gone = False
        if gone:  # before it could be told
            os._exit(_SETUP_FAILED)
        os.close(alive)
        _make_root(plan)
        for number in sys_.CHANGED_BY_PYTHON:
            sys_.default_signal(number)
        sys_.drop_capabilities()
        sys_.set_limits(plan["limits"])
        sys_.hide_memory()
        sys_.load_filter(plan["filter"])
        child = os.fork()
    except OSError as error:
        _fail(status, "setup", error)
    if child == 0:
        _program(plan, status)
    os.close(status)
    for stream in range(3):
        os.close(stream)  # the program's alone, so that its end is seen
    ended = None
    while ended is None:
        pid, how = os.waitpid(-1, 0)
        if pid == child:
            ended = how
    os._exit(_code(ended))


def _program(plan: Plan, status: int) -> NoReturn:
    try:
        os.setsid()
        os.chdir(plan["cwd"])
        sys_.become_program(plan["argv"], plan["env"])
    except (OSError, ValueError) as error:
        _fail(status, "program", error)


def _make_root(plan: Plan) -> None:
    sys_.mount("", "/", sys_.MS_REC | sys_.MS_PRIVATE)
    trees = [(path, _tree(path, writable)) for path, writable in plan["binds"]]
    devices = [(name, _device(name)) for name in plan["devices"]]
    quiet = sys_.ATTR_NOSUID | sys_.ATTR_NODEV
    processes = sys_.detached_filesystem("proc", quiet | sys_.ATTR_NOEXEC)
    terminals = sys_.detached_filesystem("devpts", sys_.ATTR_NOSUID | sys_.ATTR_NOEXEC, ptmxmode="0666", mode="0620")
    root = sys_.detached_filesystem("tmpfs", quiet, mode="0755", size=str(_ROOT_BYTES))
    base = os.open("/tmp", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)  # noqa: S108 - any directory would do
    sys_.attach(root, base)
    os.close(base)
    os.chdir("/tmp")  # noqa: S108
    sys_.become_root()

    for path, target in plan["links"]:
        _parent_of(path)
        os.symlink(target, path)  # noqa: PTH211 - a module less to load
    for path, content in plan["files"]:
        _parent_of(path)
        _write(path, content)
    for path, options in plan["temporary"]:
        _put(sys_.detached_filesystem("tmpfs", quiet, **options), path, is_directory=True)
    for path, tree in trees:
        _put(tree, path, is_directory=_is_directory(tree))
    for name, tree in devices:
        _put(tree, f"/dev/{name}", is_directory=False)
    _put(terminals, "/dev/pts", is_directory=True)
    for name, target in plan["device_links"]:
        os.symlink(target, f"/dev/{name}")  # noqa: PTH211
    for path in ("/run", "/var", "/home", "/.empty"):
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
    _put(processes, "/proc", is_directory=True)
    _settle(plan)
    sys_.set_mount_attributes("/", sys_.ATTR_RDONLY, is_recursive=False)


def _settle(plan: Plan) -> None:
    """What is written through the new process table, which is read-only from then on."""
    _write("/proc/sys/user/max_user_namespaces", "0")  # of our own user namespace
    if plan["pid_max"]:  # of our own process table, as is the next
        _write("/proc/sys/kernel/pid_max", str(plan["pid_max"]))
        if os.path.exists(_LAST_PID):  # noqa: PTH110
            _write(_LAST_PID, str(plan["pids_used"]))
    _write("/proc/self/oom_score_adj", "500")
    for name in plan["hidden"]:
        path = f"/proc/{name}"
        if os.path.isdir(path):  # noqa: PTH112
            sys_.mount("/.empty", path, sys_.MS_BIND)
        elif os.path.exists(path):  # noqa: PTH110
            sys_.mount("/dev/null", path, sys_.MS_BIND)
    sys_.set_mount_attributes("/proc", sys_.ATTR_RDONLY, is_recursive=True)
    if plan["namespaces"] & sys_.CLONE_NEWUTS:
        sys_.host_name(plan["hostname"])
    if plan["namespaces"] & sys_.CLONE_NEWNET:
        sys_.loopback_up()


def _tree(path: str, writable: bool) -> int:
    tree = sys_.detached_tree(path)
    attributes = sys_.ATTR_NOSUID | sys_.ATTR_NODEV | (0 if writable else sys_.ATTR_RDONLY)
    sys_.set_mount_attributes(tree, attributes, is_recursive=True)
    return tree


def _device(name: str) -> int:
    tree = sys_.detached_tree(f"/dev/{name}")
    # Read-only keeps the host's node as it is, which its owner could change; the device is written to all the same.
    sys_.set_mount_attributes(tree, sys_.ATTR_NOSUID | sys_.ATTR_NOEXEC | sys_.ATTR_RDONLY, is_recursive=True)
    return tree


def _is_directory(tree: int) -> bool:
    return os.fstat(tree).st_mode & _KIND == _DIRECTORY


def _parent_of(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120


def _put(mounted: int, path: str, *, is_directory: bool) -> None:
    """Mounts at a path of the new root; no component of it may be a link."""
    at = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    *parents, last = path.strip("/").split("/")
    for name in (*parents, last) if is_directory else parents:
        try:
            os.mkdir(name, 0o755, dir_fd=at)
        except FileExistsError:
            pass
        except OSError as error:
            # A read-only tree says so before it says that the name is there.
            if not _exists(name, at):
                raise OSError(error.errno, f"{path}: {error.strerror}") from error
        at = _step(name, at, os.O_DIRECTORY)
    if not is_directory:
        if not _exists(last, at):
            os.close(os.open(last, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644, dir_fd=at))
        at = _step(last, at, 0)
    sys_.attach(mounted, at)
    os.close(at)


def _step(name: str, at: int, flags: int) -> int:
    following = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=at)
    os.close(at)
    return following


def _exists(name: str, at: int) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _write(path: str, content: str | bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(handle, content.encode() if isinstance(content, str) else content)
    finally:
        os.close(handle)


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNALLED - code


def _fail(status: int, what: str, error: OSError | ValueError) -> NoReturn:
    os.write(status, f"{what}: {error}\n".encode())
    os._exit(_SETUP_FAILED if what == "setup" else _NOT_STARTED)
