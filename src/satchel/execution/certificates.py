"""What a program with the network needs of the host: its proxies and the certificates it trusts, without secrets."""

# ruff: noqa: PTH103, PTH118 - plain strings and descriptors, as in the workspace.

from __future__ import annotations

import functools
import hashlib
import os
import re
import ssl
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from satchel.execution.workspace import Workspace

MOST_BYTES = 16 * 1024**2
"""A larger bundle is not taken."""

CERTIFICATE_VARIABLES = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
)  # fmt: skip
"""The variables that name a bundle of certificates."""

_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_PROXY_SCHEMES = frozenset(("http", "https", "socks4", "socks4a", "socks5", "socks5h"))
_BYPASS = re.compile(r"[A-Za-z0-9.,*:/\[\] _-]{0,2000}")
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]{1,65536}?-----END CERTIFICATE-----")
_MOST_CERTIFICATES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNetwork:
    """``env`` belongs into the environment of a launch with the open network, ``readable`` among what it sees."""

    env: Mapping[str, str] = field(default_factory=dict[str, str])
    readable: tuple[str, ...] = ()


def open_network(workspace: Workspace, host: Mapping[str, str]) -> OpenNetwork:
    """The host's proxies without credentials and its certificates as a snapshot in ``workspace``. Sync: reads files.

    A proxy that needs a password is left out, so is a bundle that cannot be read or holds no certificate.
    """
    certificates = snapshot_certificates(workspace, host)
    return OpenNetwork(env={**proxy_settings(host), **certificates.env}, readable=certificates.readable)


def proxy_settings(host: Mapping[str, str]) -> dict[str, str]:
    """The proxy variables of ``host``, in either spelling, that carry no user or password."""
    found: dict[str, str] = {}
    for name in (*_PROXY_VARIABLES, *(name.lower() for name in _PROXY_VARIABLES)):
        value = host.get(name, "").strip()
        is_fit = _BYPASS.fullmatch(value) if name.lower() == "no_proxy" else _is_plain_proxy(value)
        if value and is_fit:
            found[name] = value
    return found


def snapshot_certificates(workspace: Workspace, host: Mapping[str, str]) -> OpenNetwork:
    """Copies the certificates of authorities in the bundles that ``host`` names into read-only files. Sync.

    Only certificates that can be read as such are written, each anew; what else the bundle holds, private keys above
    all, is not. The same bundle is written once.
    """
    folder = os.path.join(workspace.root, "certificates")
    env: dict[str, str] = {}
    copies: dict[str, str] = {}
    for name in CERTIFICATE_VARIABLES:
        source = host.get(name, "")
        if not source:
            continue
        if source not in copies:
            bundle = _bundle(source)
            copies[source] = _kept(folder, bundle) if bundle else ""
        if copies[source]:
            env[name] = copies[source]
    return OpenNetwork(env=env, readable=(folder,) if env else ())


def _is_plain_proxy(value: str) -> bool:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        is_whole = parts.port is None or parts.port > 0
    except ValueError:
        return False
    if not value.isprintable():
        return False
    has_secret = "@" in value or bool(parts.query) or bool(parts.fragment) or parts.path not in {"", "/"}
    return is_whole and parts.scheme in _PROXY_SCHEMES and bool(parts.hostname) and not has_secret


def _bundle(path: str) -> bytes:
    """The certificates of authorities in a file, b"" for none. It is read anew only when it has changed."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return b""
    return _bundle_as_of(path, (status.st_ino, status.st_size, status.st_mtime_ns))


@functools.lru_cache(maxsize=4)
def _bundle_as_of(path: str, state: tuple[int, int, int]) -> bytes:
    del state
    return _authorities(_read(path))


def _read(path: str) -> bytes:
    """A regular file's bytes; b"" when it is something else, too large or cannot be read. Never waits for a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError):
        return b""
    try:
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                return b""
            data = file.read(MOST_BYTES + 1)
    except OSError:
        return b""
    return data if len(data) <= MOST_BYTES else b""


def _authorities(data: bytes) -> bytes:
    """The certificates of authorities in a bundle, written anew from what a parser made of them."""
    found: list[bytes] = []
    for block in dict.fromkeys(_CERTIFICATE.findall(data)):
        try:
            found.append(ssl.PEM_cert_to_DER_cert(block.decode("ascii")))
        except ValueError:
            continue
    found = found[:_MOST_CERTIFICATES]
    try:
        kept = _parsed(b"".join(found))
    except ssl.SSLError:  # one of them is none
        kept = [der for each in found for der in _parsed_or_none(each)]
    order = {der: place for place, der in enumerate(found)}
    kept = sorted(dict.fromkeys(kept), key=lambda der: order.get(der, len(order)))
    return "".join(ssl.DER_cert_to_PEM_cert(der) for der in kept).encode("ascii")


def _parsed(ders: bytes) -> list[bytes]:
    if not ders:
        return []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ders)
    return context.get_ca_certs(binary_form=True)


def _parsed_or_none(der: bytes) -> list[bytes]:
    try:
        return _parsed(der)
    except ssl.SSLError:
        return []


def _kept(folder: str, bundle: bytes) -> str:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, f"{hashlib.sha256(bundle).hexdigest()[:16]}.pem")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o444)
    except FileExistsError:
        return path
    with os.fdopen(descriptor, "wb") as file:
        file.write(bundle)
    return path
