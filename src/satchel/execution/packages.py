"""The names of packages: what a host installs, and what is only spelled like it. Grammars, not registries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from satchel.execution.installers import form

Ecosystem = Literal["python", "node"]

_LONGEST = 300
_PYTHON = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)"
    r"(?P<extras>\[ *[A-Za-z0-9._-]+(?: *, *[A-Za-z0-9._-]+)* *\])?"
    r" *(?P<versions>\(?(?:(?:===|==|~=|!=|<=|>=|<|>) *[A-Za-z0-9._*+!-]+ *(?:, *(?=[=~!<>]))?)*\)?)"
    r"(?P<marker> *;[A-Za-z0-9 ._<>=!~()'\",-]+)?"
)
_NODE = re.compile(
    r"(?P<name>(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*)(?:@(?P<version>[A-Za-z0-9 .*+<>=~^|_-]+))?"
)
_NODE_VERSION = re.compile(r"[A-Za-z0-9^~<>=*][A-Za-z0-9 .*+<>=~^|_-]*")
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package of a registry. ``spec`` is what an installer is given: name, extras or scope, versions or tag."""

    ecosystem: Ecosystem
    name: str
    spec: str

    @property
    def key(self) -> tuple[Ecosystem, str]:
        """The same for every spelling of the name."""
        return self.ecosystem, normal_name(self.ecosystem, self.name)


def normal_name(ecosystem: Ecosystem, name: str) -> str:
    """The name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower() if ecosystem == "python" else name.lower()


def read_package(ecosystem: Ecosystem, text: str) -> Package | str:
    """A package, or a sentence why ``text`` names none that the host installs, and what to write instead."""
    shown = shorten(text)
    text = text.strip()
    if not text or len(text) > _LONGEST or text.startswith("-") or any(ord(char) < ord(" ") for char in text):
        return f"{shown!r} is not the name of a package: write its name in the registry, like {_example(ecosystem)}."
    elsewhere = _elsewhere(ecosystem, text)
    if elsewhere:
        return (
            f"{shown!r} is {elsewhere}: the host installs packages of the registry only. "
            f"Name the package, like {_example(ecosystem)}."
        )
    if ecosystem == "python":
        match = _PYTHON.fullmatch(text)
        if match:
            return Package(ecosystem=ecosystem, name=match["name"], spec=text)
        return (
            f"{shown!r} is not the name of a package with versions that can be read: "
            f"write it like {_example(ecosystem)}, in quotes."
        )
    match = _NODE.fullmatch(text)
    if match and (match["version"] is None or _NODE_VERSION.fullmatch(match["version"])):
        return Package(ecosystem=ecosystem, name=match["name"], spec=text)
    return (
        f"{shown!r} is not the name of a package with a version or tag that can be read: "
        f"write it like {_example(ecosystem)} or @scope/name@1.2.3."
    )


def outside_list(packages: Sequence[Package], allowed: Sequence[str]) -> tuple[Package, ...]:
    """Those that the allow-list does not name. () allows any."""
    if not allowed:
        return ()
    return tuple(
        package
        for package in packages
        if package.key[1] not in {normal_name(package.ecosystem, name) for name in allowed}
    )


def not_allowed(packages: Sequence[Package], allowed: Sequence[str]) -> str:
    """A sentence that names the packages outside the allow-list, "" when all may be installed. () allows any."""
    outside = outside_list(packages, allowed)
    if not outside:
        return ""
    names = dict.fromkeys(package.name for package in outside)
    rest = [package.spec for package in packages if package not in outside]
    tool = "pip" if outside[0].ecosystem == "python" else "npm"
    instead = f"Write {form(tool, rest)}" if rest else "Use one of these"
    return (
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not among the packages that may be installed here. "
        f"Allowed: {', '.join(allowed)}. {instead}, or write it with what is installed."
    )


def shorten(text: str) -> str:
    """Text of a model or a file for a sentence: one line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:77]}..."  # noqa: PLR2004 - a line of a terminal


def _elsewhere(ecosystem: Ecosystem, text: str) -> str:
    """What kind of place the text names instead of a package, "" for none."""
    lowered = text.lower()
    if re.match(r"(?:git|hg|svn|bzr)\+|(?:git|ssh)://|git@|github:|gitlab:|bitbucket:|gist:", lowered) or (
        ecosystem == "python" and re.search(r"@\s*(?:git|hg|svn|bzr)\+", lowered)
    ):
        return "a repository"
    if "://" in lowered or lowered.startswith(("file:", "http:", "https:")):
        return "an address"
    if ecosystem == "node" and re.search(r"(?:@|^)(?:npm|file|link|workspace|portal|patch|jsr):", lowered):
        return "an alias or a link"
    is_scoped = ecosystem == "node" and text.startswith("@") and text.count("/") == 1
    is_archive = lowered.endswith(_ARCHIVES)
    if text.startswith((".", "~", "/")) or "\\" in text or is_archive or ("/" in text and not is_scoped):
        return "a path or a repository"
    if ecosystem == "python" and re.search(r"[\w\]]\s*@", text):
        return "an address"
    return ""


def _example(ecosystem: Ecosystem) -> str:
    return "'name>=1.2'" if ecosystem == "python" else "name@1.2.3"
