"""What installers understand: their words and options, and what to write instead of each that is refused.

Tables and the sentences that belong to them; ``requests`` reads command lines by them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

PIP = re.compile(r"pip(?:3(?:\.\d{1,2})?)?")
NODE_TOOLS = frozenset(("npm", "pnpm", "yarn"))
RUNNERS = frozenset(("npx", "uvx", "pnpx", "bunx"))

INSTALL_WORDS = frozenset(("install", "i", "add", "ci", "in", "clean-install"))
ARCHIVE_WORDS = frozenset(("download", "wheel"))
UPDATE_WORDS = frozenset(("update", "up", "upgrade"))
FETCH_AND_RUN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "npm": frozenset(("exec", "x", "create")),
        "pnpm": frozenset(("dlx", "create")),
        "yarn": frozenset(("dlx", "create")),
    }
)

PROBES = frozenset(("--version", "-V", "-v", "--help", "-h"))

HARMLESS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "pip": frozenset(
            (
                "--quiet", "--verbose", "--upgrade", "--user", "--no-cache-dir", "--no-input", "--no-color",
                "--disable-pip-version-check", "--no-python-version-warning", "--no-warn-script-location",
                "--break-system-packages", "--prefer-binary", "--isolated",
            )
        ),
        "npm": frozenset(
            (
                "--silent", "-s", "--quiet", "-q", "-d", "--verbose", "--no-audit", "--no-fund", "--no-progress",
                "--no-update-notifier", "--ignore-scripts", "--save", "-S", "--save-dev", "-D", "--save-prod", "-P",
                "--no-save", "--save-exact", "-E", "--dev", "--exact", "--yes", "-y", "--non-interactive",
                "--frozen-lockfile", "--no-package-lock", "--audit=false", "--fund=false", "--progress=false",
            )
        ),
    }
)  # fmt: skip
"""Options that change nothing of what is installed in a session. Only these are passed over."""

HARMLESS_WITH_VALUE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "pip": frozenset(("--progress-bar", "--timeout", "--default-timeout", "--retries", "--root-user-action")),
        "npm": frozenset(("--loglevel",)),
    }
)
HARMLESS_SHORT: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {"pip": re.compile(r"-[qvU]+"), "npm": re.compile(r"-(?!)")}
)

OTHERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "uv": frozenset(("pip", "add", "sync", "tool", "run", "python")),
        "poetry": frozenset(("add", "install", "update", "self")),
        "pipenv": frozenset(("install", "update", "sync")),
        "pdm": frozenset(("add", "install", "sync", "update")),
        "rye": frozenset(("add", "sync", "install")),
        "hatch": frozenset(("env", "run")),
        "pipx": frozenset(("install", "run", "inject", "upgrade")),
        "conda": frozenset(("install", "create", "update", "env")),
        "mamba": frozenset(("install", "create", "update", "env")),
        "micromamba": frozenset(("install", "create", "update", "env")),
        "easy_install": frozenset(),
        "bun": frozenset(("add", "install", "i", "x", "update", "create")),
        "deno": frozenset(("install", "add")),
        "corepack": frozenset(("enable", "prepare", "install", "use")),
        "gem": frozenset(("install", "update")),
        "bundle": frozenset(("install", "add", "update")),
        "cargo": frozenset(("install", "add", "fetch", "update")),
        "go": frozenset(("install", "get")),
        "composer": frozenset(("install", "require", "update", "create-project")),
        "apt": frozenset(("install", "update", "upgrade")),
        "apt-get": frozenset(("install", "update", "upgrade")),
        "aptitude": frozenset(("install", "update")),
        "dnf": frozenset(("install", "update")),
        "yum": frozenset(("install", "update")),
        "apk": frozenset(("add", "update")),
        "zypper": frozenset(("install", "in")),
        "pacman": frozenset(("-S", "-Sy", "-Syu")),
        "brew": frozenset(("install", "upgrade", "tap")),
        "snap": frozenset(("install",)),
    }
)
"""Installers that the host does not perform, each with the words that fetch; none of them: the program alone does."""

_OF_PYTHON = frozenset(
    ("uv", "poetry", "pipenv", "pdm", "rye", "hatch", "pipx", "conda", "mamba", "micromamba", "easy_install")
)
_OF_NODE = frozenset(("bun", "deno", "corepack"))

OFF = (
    "Installing packages is not enabled here. Write it with what is installed and the standard library, "
    "or tell the user which packages are needed."
)


def form(tool: str, names: Sequence[str] = ()) -> str:
    """The command that works, with names that were read."""
    verb = "add" if tool == "yarn" else "install"
    shown = [f"'{name}'" if re.search(r"[<>;\[\]() *!~^|]", name) else name for name in names[:12]]
    return f"`{tool} {verb} {' '.join(shown) or 'NAME'}`"


def refused_option(tool: str, option: str, names: Sequence[str]) -> str:
    """Of an option that is not on the closed list."""
    name = option.partition("=")[0] if option.startswith("--") else option
    return (
        f"{name} is not an option this host can honour: it installs from its own registry into this session. "
        f"Write {form(tool, names)} without it."
    )


def refused_other(tool: str, rest: Sequence[str]) -> str:
    """Of an installer that the host does not perform."""
    if tool in _OF_PYTHON:
        names = [word for word in rest if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:[=<>~!]=?[\w.]+)?", word)]
        known = OTHERS[tool] | {"install", "sync", "pip"}
        instead = f"Write {form('pip', [name for name in names if name not in known])}"
    elif tool in _OF_NODE:
        instead = f"Write {form('npm')}"
    else:
        instead = f"Only packages of pip and npm can be installed: write {form('pip')} or {form('npm')}"
    return f"{tool} is an installer that the host cannot perform for you. {instead}, or use what is installed."


def refused_runner(tool: str, rest: Sequence[str]) -> str:
    """Of a program that fetches a package in order to run it."""
    name = _first_name(rest)
    if tool == "uvx":
        return (
            f"{tool} is an installer that the host cannot perform for you. Write {form('pip', name)} and call the "
            f"program, or call the interpreter directly with `python -m {''.join(name) or 'NAME'}`."
        )
    return (
        f"{tool} is an installer that the host cannot perform for you. Run an installed program from "
        f"node_modules/.bin/ (after {form('npm', name)}), or call the interpreter directly with `node FILE`."
    )


def refused_fetch_and_run(tool: str, word: str, rest: Sequence[str]) -> str:
    """Of ``npm exec`` and its like."""
    return (
        f"{tool} {word} fetches a package in order to run it, which goes around the host's installer. Install the tool "
        f"by name first ({form('npm', _first_name(rest))}) and then run its program from node_modules/.bin/."
    )


def _first_name(rest: Sequence[str]) -> tuple[str, ...]:
    """The package that was to be run, () when it cannot be told."""
    word = next((text for text in rest if not text.startswith("-")), "")
    return (word,) if re.fullmatch(r"(?:@[a-z0-9._-]+/)?[a-z0-9][a-z0-9._-]*(?:@[\w.^~-]+)?", word) else ()


def refused_update(tool: str, word: str) -> str:
    """Of updating whatever is installed."""
    works = "`pip install --upgrade NAME`" if tool == "pip" else form(tool, ["NAME@latest"])
    return f"{tool} {word} is not something the host does. Name the package and its version instead: {works}."


def refused_archive(tool: str, word: str) -> str:
    """Of ``pip download`` and ``pip wheel``."""
    return f"{tool} {word} is refused: the host installs packages and produces no archives. Write {form(tool)}."
