"""Where pip and npm of this host get packages from: what they are configured to use, without its passwords. Sync."""

# ruff: noqa: PTH111, PTH112, PTH113, PTH117, PTH118 - plain strings, as everywhere in this layer.

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

_LARGEST_FILE = 256 * 1024
_SECTIONS = ("global", "install")
_NPM_LINE = re.compile(r"\s*(?P<name>registry|cafile|@[a-z0-9~-][a-z0-9._~-]*:registry)\s*=\s*(?P<value>\S+)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonIndex:
    """``url`` is "" where pip's own default holds. ``folders`` are directories of wheels on this host.

    ``is_offline``: no index is used at all, only ``folders``. ``is_unusable``: what is configured in place of the
    default is no address that can be asked. ``has_secret``: an address had a user or password, which was taken out.
    """

    url: str = ""
    more: tuple[str, ...] = ()
    is_offline: bool = False
    is_unusable: bool = False
    folders: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    certificates: str = ""
    has_secret: bool = False

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the addresses, as ``Network.hosts`` has them."""
        return host_entries((self.url, *self.more))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRegistry:
    """``url`` is "" where npm's own default holds; ``scopes`` maps ``@scope`` to the registry of its packages.

    ``is_unusable``: an address that is configured cannot be asked.
    """

    url: str = ""
    is_unusable: bool = False
    scopes: Mapping[str, str] = field(default_factory=dict[str, str])
    certificates: str = ""
    has_secret: bool = False

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the addresses, as ``Network.hosts`` has them."""
        return host_entries((self.url, *self.scopes.values()))


def python_index(host: Mapping[str, str]) -> PythonIndex:
    """What pip is configured to use: its files, then its variables in ``host``."""
    values: dict[str, str] = {}
    for path in _pip_files(host):
        values.update(_pip_values(path))
    for name in ("index-url", "extra-index-url", "no-index", "find-links", "trusted-host", "cert"):
        given = host.get(f"PIP_{name.upper().replace('-', '_')}", "")
        if given:
            values[name] = given
    is_offline = values.get("no-index", "").strip().lower() in {"1", "yes", "y", "true", "t", "on"}
    addresses = [] if is_offline else values.get("index-url", "").split()[:1]
    url = next(iter(_readable(addresses)), "")
    more = [] if is_offline else list(_readable(values.get("extra-index-url", "").split()))
    folders = (entry.removeprefix("file://") for entry in values.get("find-links", "").split())
    return PythonIndex(
        url=without_secret(url),
        more=tuple(without_secret(entry) for entry in more),
        is_offline=is_offline,
        is_unusable=bool(addresses) and not url,
        folders=tuple(folder for folder in folders if os.path.isabs(folder) and os.path.isdir(folder)),
        trusted=tuple(values.get("trusted-host", "").split()),
        certificates=values.get("cert", ""),
        has_secret=any("@" in urlsplit(entry).netloc for entry in (url, *more)),
    )


def node_registry(host: Mapping[str, str]) -> NodeRegistry:
    """What npm is configured to use: its files, then its variables in ``host``. Tokens are not even read."""
    values: dict[str, str] = {}
    for path in _npm_files(host):
        for line in _text(path).splitlines():
            match = _NPM_LINE.fullmatch(line)
            if match:
                # What npm would put there is not looked up: it is where passwords stand.
                values[match["name"]] = "" if "${" in match["value"] else match["value"].strip("\"'")
    for name, value in host.items():
        key = name.lower().removeprefix("npm_config_")
        if name.lower().startswith("npm_config_") and key in {"registry", "cafile"} and value:
            values[key] = value
    addresses = {name: value for name, value in values.items() if any(_readable([value]))}
    scopes = {name.partition(":")[0]: without_secret(value) for name, value in addresses.items() if name[0] == "@"}
    return NodeRegistry(
        url=without_secret(addresses.get("registry", "")),
        is_unusable=bool(values.keys() - addresses.keys() - {"cafile"}),
        scopes=scopes,
        certificates=values.get("cafile", ""),
        has_secret=any("@" in urlsplit(value).netloc for value in addresses.values()),
    )


def without_secret(url: str) -> str:
    """The address without a user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if "@" in parts.netloc else url


def host_entries(urls: Iterable[str]) -> tuple[str, ...]:
    """``name``, ``name:port`` or ``http://name:port`` of each address, each once."""
    entries: dict[str, None] = {}
    for url in urls:
        parts = urlsplit(url)
        if parts.hostname:
            place = parts.netloc.rpartition("@")[2]
            entries[f"http://{place}" if parts.scheme == "http" else place] = None
    return tuple(entries)


def _pip_files(host: Mapping[str, str]) -> Iterator[str]:
    if host.get("PIP_CONFIG_FILE") == os.devnull:
        return
    home = host.get("HOME", "") or os.path.expanduser("~")
    for folder in reversed((host.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)):
        yield os.path.join(folder, "pip", "pip.conf")
    yield from ("/etc/pip.conf", "/Library/Application Support/pip/pip.conf")
    yield os.path.join(home, ".pip", "pip.conf")
    yield os.path.join(host.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "pip", "pip.conf")
    yield os.path.join(sys.prefix, "pip.conf")
    if host.get("PIP_CONFIG_FILE"):
        yield host["PIP_CONFIG_FILE"]


def _pip_values(path: str) -> Iterator[tuple[str, str]]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(_text(path))
    except configparser.Error:
        return
    for section in _SECTIONS:
        if parser.has_section(section):
            for name, value in parser.items(section):
                yield name.lower().replace("_", "-"), value or ""


def _npm_files(host: Mapping[str, str]) -> Iterator[str]:
    home = host.get("HOME", "") or os.path.expanduser("~")
    yield "/etc/npmrc"
    yield host.get("NPM_CONFIG_GLOBALCONFIG") or host.get("npm_config_globalconfig") or "/usr/local/etc/npmrc"
    yield host.get("NPM_CONFIG_USERCONFIG") or host.get("npm_config_userconfig") or os.path.join(home, ".npmrc")


def _text(path: str) -> str:
    try:
        if not os.path.isfile(path):
            return ""
        with Path(path).open("rb") as file:
            return file.read(_LARGEST_FILE).decode("utf-8", "replace")
    except OSError:
        return ""


def _readable(addresses: Iterable[str]) -> Iterator[str]:
    """Those that can be asked for something, and be taken apart."""
    for address in addresses:
        try:
            parts = urlsplit(address)
            is_whole = bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            continue
        if is_whole and parts.scheme in {"http", "https"}:
            yield address
