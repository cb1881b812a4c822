"""The packages that the files of an install command ask for: requirements files and package.json. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import cast

from satchel.execution.packages import Package, read_package, shorten

_SECTIONS = ("dependencies", "devDependencies", "optionalDependencies")


class ManifestError(ValueError):
    """A file asks for something that is not installed. The text is a sentence with the next step."""


def requirements(text: str, path: str) -> tuple[Package, ...]:
    """The packages of a requirements file; options, addresses and paths in it are refused.

    Raises:
        ManifestError: a line is something else than a package.
    """
    packages: list[Package] = []
    for line in _lines(text):
        option = re.search(r"(?:^|\s)(-[^\s=]+)", line)
        if option:
            raise ManifestError(
                f"{shorten(path)}: {shorten(option[1])} is not an option this host can honour. "
                "Leave it out of the file, or name the packages: `pip install NAME`."
            )
        packages.append(_package("python", line, path))
    return tuple(packages)


def node_manifest(text: str, instead: str) -> tuple[Package, ...]:
    """The packages of a package.json. ``instead`` is the command that needs none.

    Raises:
        ManifestError: it is no manifest, or names something else than packages with versions.
    """
    try:
        manifest = cast("object", json.loads(text))
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        raise ManifestError(f"package.json is not a JSON object. Correct it, or name the packages: {instead}.")
    packages: list[Package] = []
    for section in _SECTIONS:
        wanted = cast("dict[str, object]", manifest).get(section, {})
        if not isinstance(wanted, dict):
            raise ManifestError(f"package.json: {section} is not an object of names and versions. Correct it.")
        for name, version in cast("dict[str, object]", wanted).items():
            if not isinstance(version, str):
                raise ManifestError(f"package.json: the version of {shorten(name)} is not a text. Correct it.")
            packages.append(_package("node", f"{name}@{version}" if version.strip() else name, "package.json"))
    return tuple(packages)


def _lines(text: str) -> Iterator[str]:
    """Lines that are not empty, joined where they go on, without comments."""
    joined = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\\\n", " ")
    for line in joined.split("\n"):
        content = re.sub(r"(?:^|\s)#.*", "", line).strip()
        if content:
            yield content


def _package(ecosystem: str, text: str, path: str) -> Package:
    package = read_package("node" if ecosystem == "node" else "python", text)
    if isinstance(package, str):
        raise ManifestError(f"{shorten(path)}: {package}")
    return package
