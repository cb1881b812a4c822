"""The packages that files ask for: requirements files, package.json, the header of a script (PEP 723). Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import cast

from satchel.execution.packages import Package, read_package, shorten

_MOST_LENIENT_LINES = 16
_SECTIONS = ("dependencies", "devDependencies", "optionalDependencies")
_HEADER = re.compile(r"^# /// script[ \t]*$\s(?P<content>(?:^#(?:| .*)$\s)+?)^# ///[ \t]*$", re.MULTILINE)
_LONGEST_SCRIPT = 256 * 1024


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


def lenient_requirements(text: str) -> tuple[Package, ...]:
    """The packages that a skill's own requirements file asks for: of its first 16 lines, those that name one."""
    found = [read_package("python", line) for line, _ in zip(_lines(text), range(_MOST_LENIENT_LINES), strict=False)]
    return tuple(package for package in found if isinstance(package, Package))


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


def script_dependencies(text: str) -> tuple[Package, ...]:
    """The dependencies in the header of a Python script (PEP 723); () when it has none.

    Raises:
        ManifestError: the header cannot be read, or asks for something else than packages.
    """
    headers = list(_HEADER.finditer(text[:_LONGEST_SCRIPT].replace("\r\n", "\n")))
    if not headers:
        return ()
    if len(headers) > 1:
        raise ManifestError("The script has more than one header `# /// script`. Keep one.")
    rows = headers[0]["content"].splitlines()
    try:
        header = tomllib.loads("\n".join(row[2:] if row.startswith("# ") else row[1:] for row in rows))
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"The header `# /// script` is not TOML: {error}. Correct it.") from error
    wanted = header.get("dependencies", [])
    if not isinstance(wanted, list):
        raise ManifestError("`dependencies` in the header `# /// script` is not a list of texts. Correct it.")
    return tuple(_package("python", str(item), "# /// script") for item in cast("list[object]", wanted))


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
