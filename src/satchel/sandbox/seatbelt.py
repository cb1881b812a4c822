"""Confinement by macOS's Seatbelt: the profile of a launch as text, and the command line that applies it.

In a profile the last rule that matches decides. Reads of the system stay open, the shared temporary directories are
open for writing since native programs use them whatever the environment says, and a child that detaches itself is not
stopped: the last two are told as gaps.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from satchel.errors import SandboxError
from satchel.ports.execution import Confinement, Executor, Launch, Limits, Network, Outcome, Shell
from satchel.sandbox.process import ProcessJob, argument_vector, start_process
from satchel.sandbox.shells import BASH

PROGRAM = "/usr/bin/sandbox-exec"
CONFINEMENT = Confinement(
    backend="seatbelt",
    writes=True,
    network=True,
    home=True,
    gaps=(
        "a child process that detaches itself may outlive the request",
        "the system's shared temporary directories, with their sockets, are readable and writable",
        "memory and the number of processes are not bounded by the system",
    ),
)

HOMES = ("/Users", "/var/root")

_DARWIN_USER_TEMP_DIR = 65537  # of confstr
_LOOPBACK_PROXY = re.compile(r"http://(?:127\.0\.0\.1|localhost):(\d{1,5})/?")
_SHARED_TEMPORARY = "/private/tmp"
_LINKED = ("/tmp", "/var", "/etc")  # noqa: S108 - links to the same names below /private
_SYSTEM_READS = (
    "/bin", "/sbin", "/usr", "/opt", "/System", "/Library", "/Applications", "/dev/fd", "/private/etc",
    "/private/var/db", "/private/var/select", "/private/var/run/resolv.conf", "/nix/store",
)  # fmt: skip
_SYSTEM_FILES = (
    "/", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/autofs_nowait", "/dev/dtracehelper",
)  # fmt: skip
_SECRET_READS = (
    "/private/etc/master.passwd", "/private/etc/ssh", "/private/etc/sudoers", "/private/etc/sudoers.d",
    "/private/var/db/dslocal", "/Library/Keychains",
)  # fmt: skip
# None of these starts a program outside of the sandbox, as the services for opening documents would.
_SERVICES = (
    "com.apple.FontObjectsServer", "com.apple.bsd.dirhelper", "com.apple.diagnosticd", "com.apple.fonts",
    "com.apple.logd", "com.apple.system.logger", "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo", "com.apple.system.opendirectoryd.membership",
)  # fmt: skip
_NETWORK_SERVICES = (
    "com.apple.SystemConfiguration.DNSConfiguration", "com.apple.SystemConfiguration.configd", "com.apple.networkd",
    "com.apple.trustd", "com.apple.trustd.agent",
)  # fmt: skip
_RESOLVER = "/private/var/run/mDNSResponder"
_LAUNCHD_SOCKETS = r"^(/private)?/tmp/com\.apple\.launchd"
_SELF_NAMED = "[0-9]+$"  # a service that a program registers for its own children ends in its process's number
_WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_IOKIT_CLIENTS = ("RootDomainUserClient", "IOSurfaceRootUserClient")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a profile allows. Paths are absolute; ``homes`` are hidden but for what lies in them and is named.

    ``user_temporary`` is the one directory that the system reports for this user, "" when it reports none.
    ``proxy_port`` is the only port of this machine that is reached when the network is narrowed to hosts.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    homes: tuple[str, ...] = HOMES
    user_temporary: str = ""
    network: Network = field(default_factory=Network)
    proxy_port: int = 0


class SeatbeltExecutor(Executor):
    """An ``Executor`` under the profile of each launch."""

    @property
    def confinement(self) -> Confinement:
        return CONFINEMENT

    @property
    def shell(self) -> Shell | None:
        return BASH

    @property
    def unavailable_reason(self) -> str:
        return "" if sys.platform == "darwin" else "Seatbelt is a part of macOS."

    async def start(self, launch: Launch) -> ProcessJob:
        if not self.can_run:
            raise SandboxError("sandbox-unavailable", self.unavailable_reason)
        argv = await asyncio.to_thread(_command, launch)
        return await start_process(argv, launch)

    async def run(self, launch: Launch) -> Outcome:
        return await (await self.start(launch)).wait()


def _command(launch: Launch) -> tuple[str, ...]:
    if not os.access(PROGRAM, os.X_OK):
        raise SandboxError("sandbox-unavailable", f"{PROGRAM} is missing.", hint="It is a part of every macOS.")
    return command(launch, profile(policy_of(launch)))


def policy_of(launch: Launch) -> Policy:
    """What a launch may do on this host; paths are resolved, so this is called off the event loop.

    Raises:
        SandboxError: launch-failed, for a path that is to be read-only in a writable directory.
    """
    readable, writable = (
        tuple(dict.fromkeys(name for path in paths for name in (path, os.path.realpath(path))))
        for paths in (launch.readable, launch.writable)
    )
    for path in readable:
        if any(path == root or path.startswith(f"{root}/") for root in writable):
            raise SandboxError(
                "launch-failed",
                f"{path} should be read-only and lies in a writable directory.",
                hint="Name other paths for this program.",
            )
    home = os.path.realpath(Path.home())
    return Policy(
        readable=readable,
        writable=writable,
        homes=tuple(dict.fromkeys((*HOMES, home))),
        user_temporary=_user_temporary(),
        network=launch.network,
        proxy_port=_proxy_port(launch),
    )


def _user_temporary() -> str:
    """The directory that the system itself reports for this user, nothing that the environment says."""
    reported = os.confstr(_DARWIN_USER_TEMP_DIR) if sys.platform == "darwin" else None
    return os.path.realpath(reported) if reported else ""


def _proxy_port(launch: Launch) -> int:
    """The port on this machine that the program is told to send its requests to, 0 for none."""
    found = _LOOPBACK_PROXY.fullmatch(launch.env.get("HTTPS_PROXY", ""))
    return int(found[1]) if found and launch.network.mode == "hosts" else 0


def profile(policy: Policy) -> str:
    """The profile as text.

    Raises:
        SandboxError: launch-failed, for a path that a profile cannot name, or hosts without the port of their proxy.
    """
    shared = (_SHARED_TEMPORARY, policy.user_temporary)
    named = (*policy.readable, *policy.writable)
    rules = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork sysctl-read system-fsctl)",
        "(allow signal process-info* (target same-sandbox))",
        "(allow file-read* file-test-existence",
        *_literals(_SYSTEM_FILES),
        *_subpaths(_SYSTEM_READS),
        ")",
        "(allow file-map-executable",
        *_subpaths((*_SYSTEM_READS, *named)),
        ")",
        "(allow file-write-data file-ioctl",
        *_literals(("/dev/null", "/dev/zero", "/dev/dtracehelper")),
        ")",
        "(allow pseudo-tty)",
        '(allow file-read* file-write* file-ioctl (literal "/dev/ptmx"))',
        '(allow file-read* file-write* (require-all (regex #"^/dev/ttys[0-9]+") (extension "com.apple.sandbox.pty")))',
        "(allow ipc-posix-sem ipc-posix-shm*)",
        *_services(_SERVICES),
        f'(allow mach-register (global-name-regex #"{_SELF_NAMED}"))',
        "(allow iokit-open",
        *(f"  (iokit-user-client-class {_text(name)})" for name in _IOKIT_CLIENTS),
        ")",
        "(deny file-read*",
        *_subpaths((*policy.homes, *_SECRET_READS)),
        ")",
        "(allow file-read-metadata file-test-existence",
        *_literals(_ancestors((*_SYSTEM_READS, *shared, *named))),
        ")",
        "(allow file-read* file-write* file-test-existence",
        *_subpaths(shared),
        ")",
        *_paths_rules(policy),
        *_pinned(policy, shared),
        "(deny file-write-setugid)",
        *_network_rules(policy),
        "(allow system-socket (socket-domain AF_UNIX))",
        *(
            f"(allow {operation} ({side} unix-socket {rule.strip()}))"
            for operation, side in (("network-bind", "local"), ("network-outbound", "remote"))
            for rule in _subpaths((*shared, *policy.writable))
        ),
        f'(deny network-outbound (regex #"{_LAUNCHD_SOCKETS}"))',
    ]
    return "\n".join(rules) + "\n"


def command(launch: Launch, text: str) -> tuple[str, ...]:
    """The argument vector that runs a launch under a profile, with the limits that the system keeps.

    Raises:
        SandboxError: launch-failed, when there is no program to run.
    """
    program = argument_vector(launch)
    return (PROGRAM, "-p", text, "--", "/bin/sh", "-c", _limits(launch.limits), "sh", *program)


def _limits(limits: Limits) -> str:
    """Sets them and becomes the program; its arguments are never read as text of a shell."""
    blocks = max(1, limits.file_bytes // 512)
    bounds = (f"-c 0; ulimit -t {limits.cpu_s}", f"-f {blocks}", f"-n {limits.open_files}")
    return "".join(f"ulimit {bound} || exit 125; " for bound in bounds) + 'exec "$@"'


def _paths_rules(policy: Policy) -> Iterable[str]:
    if policy.readable:
        yield from ("(allow file-read* file-test-existence", *_subpaths(policy.readable), ")")
        # Some of them may lie in a shared temporary directory.
        yield from ("(deny file-write*", *_subpaths(policy.readable), ")")
    if policy.writable:
        yield from ("(allow file-read* file-write* file-test-existence", *_subpaths(policy.writable), ")")


def _pinned(policy: Policy, shared: tuple[str, ...]) -> Iterable[str]:
    """A root, or a directory above it, that could be replaced by a link would lead the next launch elsewhere."""
    open_above = tuple(f"{path}/" for path in _spelled((*shared, *policy.writable)))
    above = [path for path in _ancestors((*policy.readable, *policy.writable)) if path.startswith(open_above)]
    pinned = dict.fromkeys((*policy.writable, *above))
    if pinned:
        yield from ("(deny file-write-unlink", *_literals(pinned), ")")


def _network_rules(policy: Policy) -> Iterable[str]:
    mode = policy.network.mode
    if mode == "none":
        yield "(deny network*)"
        return
    yield "(allow system-socket)"
    if mode == "hosts":
        if not policy.proxy_port:
            raise SandboxError(
                "launch-failed",
                "The network cannot be narrowed to hosts without a proxy on this machine.",
                hint="Set HTTPS_PROXY of the program to http://127.0.0.1:PORT.",
            )
        yield f'(allow network-outbound (remote ip "localhost:{policy.proxy_port}"))'
        return
    yield '(allow network-outbound (remote ip "*:*"))'
    yield '(allow network-bind network-inbound (local ip "*:*"))'
    yield f"(allow network-outbound (literal {_text(_RESOLVER)}))"
    yield from _services(_NETWORK_SERVICES)


def _services(names: Iterable[str]) -> Iterable[str]:
    yield from ("(allow mach-lookup", *(f"  (global-name {_text(name)})" for name in names), ")")


def _subpaths(paths: Iterable[str]) -> Iterable[str]:
    return (f"  (subpath {_text(path)})" for path in _spelled(paths))


def _literals(paths: Iterable[str]) -> Iterable[str]:
    return (f"  (literal {_text(path)})" for path in _spelled(paths))


def _spelled(paths: Iterable[str]) -> Iterable[str]:
    """Each path once in both of its spellings: rules are matched without following the links to /private."""
    found: dict[str, None] = {}
    for path in paths:
        if path:
            plain = path.removeprefix("/private")
            is_linked = any(plain == link or plain.startswith(f"{link}/") for link in _LINKED)
            found |= dict.fromkeys((f"/private{plain}", plain) if is_linked else (path,))
    return found


def _ancestors(paths: Iterable[str]) -> Iterable[str]:
    """The directories on the way to paths, whose existence a program has to see."""
    found: dict[str, None] = {}
    for path in _spelled(paths):
        parts = path.strip("/").split("/")
        found |= {"/" + "/".join(parts[:count]): None for count in range(len(parts) + 1)}
    return sorted(found)


def _text(value: str) -> str:
    if any(ord(sign) < ord(" ") and sign not in _WRITTEN for sign in value):
        raise SandboxError("launch-failed", f"{value!r} cannot be named in a profile.", hint="Rename it.")
    return '"' + "".join(_WRITTEN.get(sign, sign) for sign in value) + '"'
