"""What a confined program on Linux sees of the host: one policy, carried out by every backend with a root of its own.

The root is empty at first. It gets the system's programs read-only, few files of ``/etc``, a device directory, a
process table of its own, and the paths of the launch at their own places. Homes, ``/run``, ``/sys`` and the rest of
``/var`` are not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from satchel.errors import SandboxError
from satchel.ports.execution import Confinement, Launch

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
DEVICE_LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)
# Below /proc: what tells of the host, or acts on it. Everything that is no process is read-only besides.
HIDDEN_OF_PROC = (
    "acpi", "asound", "bus", "config.gz", "driver", "fs", "interrupts", "iomem", "ioports", "irq", "kallsyms", "kcore",
    "key-users", "keys", "kmsg", "kpagecgroup", "kpagecount", "kpageflags", "latency_stats", "modules", "mtrr",
    "pagetypeinfo", "partitions", "pressure", "sched_debug", "scsi", "slabinfo", "swaps", "sysrq-trigger",
    "timer_list", "timer_stats", "tty", "vmallocinfo", "vmcore",
)  # fmt: skip
HOSTNAME = "sandbox"
INODES_PER_MIB = 256  # of a directory in memory, so that its files are bounded as its bytes are

_SYSTEM = ("/usr", "/nix/store", "/gnu/store")
_MERGED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_OWN = ("/proc", "/sys", "/dev")  # never bound from the host
_TMP, _VAR_TMP, _SHARED_MEMORY = "/tmp", "/var/tmp", "/dev/shm"  # noqa: S108 - of the new root
_WHOLE = ("/", "/run", _TMP, "/var", _VAR_TMP, "/home", "/root", "/etc", *_SYSTEM, *_MERGED)
# No file of these holds a credential: no pip.conf, npmrc, gitconfig, ssh, machine-id, nor private keys of TLS.
_ETC = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts",
    "dictionaries-common", "ghostscript", "gnutls", "ImageMagick-*", "inputrc", "java", "java-*", "jvm-*",
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "libreoffice", "locale.alias", "locale.conf",
    "localtime", "lsb-release", "magic", "magic.mime", "mailcap", "mime.types", "nodejs", "openmpi", "os-release",
    "papersize", "perl", "pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", "protocols",
    "python3", "python3.*", "R", "redhat-release", "rpc", "services", "sgml", "shells", "ssl/cert.pem", "ssl/certs",
    "ssl/openssl.cnf", "terminfo", "texmf", "timezone", "xml",
)  # fmt: skip
_CACHES = ("/var/cache/fontconfig", "/var/lib/texmf", "/var/lib/ghostscript")
_NAMES = b"passwd: files\ngroup: files\nhosts: files dns\nnetworks: files\nservices: files\nprotocols: files\n"
_HOSTS = b"127.0.0.1 localhost\n::1 localhost\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A path of the host at the same place inside."""

    path: str
    is_writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One root, in the order in which it is built: ``links`` (path, target), ``files`` (path, content), ``binds``.

    A bind never lies below a writable one. ``temporary`` are writable directories in memory with their size in bytes.
    """

    links: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, bytes], ...]
    temporary: tuple[tuple[str, int], ...]
    binds: tuple[Bind, ...]


def root_layout(launch: Launch) -> Layout:
    """The root for a launch. Looks at the host's directories, so it is called off the event loop.

    Raises:
        SandboxError: launch-failed, for paths that cannot be confined as they are asked for.
    """
    system_links, system = system_paths()
    given = checked_paths(launch)
    visible = [*system, *(link for link, _ in system_links)]
    binds = [Bind(path=path) for path in system]
    for bind in sorted(given, key=lambda one: one.path.count("/")):
        if any(_is_within(bind.path, shown) for shown in visible) and not bind.is_writable:
            continue
        if any(_is_within(bind.path, shown.path) for shown in binds if shown.is_writable == bind.is_writable):
            continue
        binds.append(bind)
    is_open = launch.network.mode == "open"
    if is_open and Path("/etc/resolv.conf").exists():
        binds.append(Bind(path="/etc/resolv.conf"))
    # A link on the way to a mount would be followed, to wherever it leads.
    keeps_var_tmp = any(_is_within(bind.path, _VAR_TMP) for bind in binds)
    var_tmp = () if keeps_var_tmp else ((_VAR_TMP, _TMP),)
    return Layout(
        links=(*system_links, *var_tmp, ("/var/run", "/run")),
        files=_files(launch, is_open=is_open),
        temporary=tuple(
            (path, launch.limits.tmp_bytes) for path in (_TMP, _SHARED_MEMORY, *((_VAR_TMP,) if keeps_var_tmp else ()))
        ),
        binds=tuple(binds),
    )


@cache
def system_paths() -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """``(links, paths)`` of the host's programs and of what they read in ``/etc``; a link is a path and its target.

    Looked up once a process.
    """
    links: list[tuple[str, str]] = []
    paths: list[str] = []
    for path in (*_SYSTEM, *_MERGED, *_etc(), *_CACHES):
        target = os.path.realpath(path)
        if Path(path).is_symlink() and any(_is_within(target, system) for system in _SYSTEM):
            links.append((path, str(Path(path).readlink())))
        elif Path(path).exists():
            paths.append(path)
    return tuple(links), tuple(paths)


def _etc() -> Iterable[str]:
    for pattern in _ETC:
        yield from (map(str, sorted(Path("/etc").glob(pattern))) if "*" in pattern else (f"/etc/{pattern}",))


def _files(launch: Launch, *, is_open: bool) -> tuple[tuple[str, bytes], ...]:
    """Small files whose originals would tell of the host's people and services."""
    uid, gid = (os.geteuid(), os.getegid())
    home = launch.env.get("HOME", launch.cwd)
    user, group = ("root", "root") if uid == 0 else ("user", "user")
    clean = home if ":" not in home and "\n" not in home else "/"
    passwd = f"{user}:x:{uid}:{gid}::{clean}:/bin/bash\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n"
    files = [
        ("/etc/passwd", passwd.encode()),
        ("/etc/group", f"{group}:x:{gid}:\nnogroup:x:65534:\n".encode()),
        ("/etc/nsswitch.conf", _NAMES),
        ("/etc/hostname", HOSTNAME.encode() + b"\n"),
        ("/etc/hosts", _host_names() if is_open else _HOSTS),
    ]
    return tuple(files)


def _host_names() -> bytes:
    try:
        return Path("/etc/hosts").read_bytes()
    except OSError:
        return _HOSTS


def checked_paths(launch: Launch) -> list[Bind]:
    """The launch's own paths, once each.

    Raises:
        SandboxError: launch-failed, for paths that cannot be confined as they are asked for.
    """
    writable, readable = dict.fromkeys(launch.writable), dict.fromkeys(launch.readable)
    for path in (launch.cwd, *writable, *readable):
        if not Path(path).is_absolute() or os.path.normpath(path) != path or path.startswith("//") or "\0" in path:
            raise _refusal(f"{path!r} is no plain absolute path")
    for path in (*writable, *readable):
        if not Path(path).exists():
            raise _refusal(f"{path} is not there")
        real = os.path.realpath(path)
        if {path, real} & set(_WHOLE) and not (path in readable and _is_within(real, "/usr")):
            raise _refusal(f"{path} is a directory of the whole system")
        if any(_is_within(name, own) for name in (path, real) for own in _OWN):
            raise _refusal(f"{path} lies in a directory that is made anew inside")
    for path in readable:
        pairs = ((path, other) for other in writable)
        if any(_is_within(a, b) or _is_within(os.path.realpath(a), os.path.realpath(b)) for a, b in pairs):
            raise _refusal(f"{path} should be read-only and lies in a writable directory")
    if not any(_is_within(launch.cwd, path) for path in writable):
        raise _refusal(f"The working directory {launch.cwd} is not writable")
    return [*(Bind(path=path) for path in readable), *(Bind(path=path, is_writable=True) for path in writable)]


def _refusal(reason: str) -> SandboxError:
    return SandboxError("launch-failed", f"{reason}.", hint="Name other paths for this program.")


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def full_confinement(backend: str, version: str, gaps: tuple[str, ...]) -> Confinement:
    """What a root, a network and a process table of its own hold back."""
    return Confinement(
        backend=backend, version=version, writes=True, network=True, home=True, process_tree=True, hosts=True, gaps=gaps
    )
