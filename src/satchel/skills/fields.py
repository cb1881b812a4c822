"""Typed views of frontmatter fields. Values come in as text, lists and mappings; nothing here raises."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

YamlValue = str | Sequence["YamlValue"] | Mapping[str, "YamlValue"]
"""A frontmatter value. Scalars are always text, exactly as the author wrote them."""

WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
"""What counts as a boolean, in any letter case."""

ArgumentType = Literal["string", "integer", "number", "boolean", "enum"]

_TYPES: dict[str, ArgumentType] = {
    "string": "string",
    "str": "string",
    "text": "string",
    "integer": "integer",
    "int": "integer",
    "number": "number",
    "float": "number",
    "boolean": "boolean",
    "bool": "boolean",
    "enum": "enum",
}
_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_LONGEST_VERSION = 256
_LONGEST_LICENSE = 1024

# The identifiers that skills and their neighbours really use; the whole SPDX list has several hundred.
_SPDX = (
    "0BSD AFL-3.0 AGPL-3.0 AGPL-3.0-only AGPL-3.0-or-later Apache-1.1 Apache-2.0 Artistic-2.0 BlueOak-1.0.0 "
    "BSD-2-Clause BSD-2-Clause-Patent BSD-3-Clause BSD-3-Clause-Clear BSD-4-Clause BSL-1.0 BUSL-1.1 CC-BY-3.0 "
    "CC-BY-4.0 CC-BY-NC-4.0 CC-BY-NC-ND-4.0 CC-BY-NC-SA-4.0 CC-BY-ND-4.0 CC-BY-SA-3.0 CC-BY-SA-4.0 CC0-1.0 CDDL-1.0 "
    "CDDL-1.1 ECL-2.0 EFL-2.0 Elastic-2.0 EPL-1.0 EPL-2.0 EUPL-1.1 EUPL-1.2 GPL-2.0 GPL-2.0-only GPL-2.0-or-later "
    "GPL-3.0 GPL-3.0-only GPL-3.0-or-later ISC LGPL-2.1 LGPL-2.1-only LGPL-2.1-or-later LGPL-3.0 LGPL-3.0-only "
    "LGPL-3.0-or-later LPPL-1.3c MIT MIT-0 MPL-1.1 MPL-2.0 MS-PL MulanPSL-2.0 NCSA ODbL-1.0 OFL-1.1 OSL-3.0 "
    "PolyForm-Noncommercial-1.0.0 PolyForm-Small-Business-1.0.0 PostgreSQL PSF-2.0 Python-2.0 Ruby SSPL-1.0 "
    "Unlicense UPL-1.0 Vim WTFPL X11 Zlib ZPL-2.1"
)
_IDS = {name.lower(): name for name in _SPDX.split()}
_EXCEPTIONS = frozenset({"llvm-exception", "classpath-exception-2.0", "gcc-exception-3.1", "bison-exception-2.2"})
_EXPRESSION = re.compile(r"\(|\)|[A-Za-z0-9.+:-]+")
_LICENSE_FILE = re.compile(
    r"(?:[A-Za-z0-9_-]+/)*(?:(?:licen[cs]e|copying|notice)(?:[._-][A-Za-z0-9._-]+)?|[A-Za-z0-9_-]+\.(?:txt|md|rst))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One declared argument. Types are checked when a skill is activated; ``choices`` are the values of an "enum".

    ``default`` is the text that the author wrote, None when there is none.
    """

    name: str
    type: ArgumentType = "string"
    required: bool = False
    description: str = ""
    default: str | None = None
    choices: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """JSON-safe."""
        return {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            "description": self.description,
            "default": self.default,
            "choices": list(self.choices),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A semantic version (semver.org, 2.0.0)."""

    major: int
    minor: int
    patch: int
    prerelease: str = ""
    build: str = ""

    def __str__(self) -> str:
        pre = f"-{self.prerelease}" if self.prerelease else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre}{f'+{self.build}' if self.build else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class License:
    """What a ``license`` field says: an "spdx" expression with its ``ids``, a bundled "file", or other "text"."""

    text: str
    kind: Literal["spdx", "file", "text"]
    ids: tuple[str, ...] = ()


def parse_version(text: str) -> Version | None:
    """``text`` as a semantic version, None when it is not one. A leading ``v`` is not part of one."""
    match = _SEMVER.fullmatch(text.strip()) if len(text) <= _LONGEST_VERSION else None
    if match is None:
        return None
    major, minor, patch, prerelease, build = match.groups()
    return Version(major=int(major), minor=int(minor), patch=int(patch), prerelease=prerelease or "", build=build or "")


def parse_license(text: str) -> License | None:
    """What a non-blank ``license`` field says, None when it is blank. Only the name of a file is looked at."""
    plain = " ".join(text.split())
    if not plain:
        return None
    ids = _spdx(plain) if len(plain) <= _LONGEST_LICENSE else ()
    if ids:
        return License(text=plain, kind="spdx", ids=ids)
    return License(text=plain, kind="file" if _LICENSE_FILE.fullmatch(plain) else "text")


def parse_arguments(value: YamlValue, names: Sequence[str] | None = None) -> tuple[tuple[Argument, ...], list[str]]:
    """``(arguments, what was wrong)``.

    A mapping declares arguments by name: ``{name: {type, required, description, default, enum}}``. A list names
    positions; its items are names, or mappings with a ``name``. ``names`` are those of a value that is text.
    """
    arguments: dict[str, Argument] = {}
    wrong: list[str] = []
    if isinstance(value, Mapping):
        entries: list[tuple[str, YamlValue]] = list(value.items())
    elif isinstance(value, str):
        entries = [(name, "") for name in names or ()]
    else:
        entries = []
        for item in value:
            if isinstance(item, str):
                entries.append((item, ""))
            elif isinstance(item, Mapping) and isinstance(name := item.get("name"), str):
                entries.append((name, {key: inner for key, inner in item.items() if key != "name"}))
            else:
                wrong.append("An item is neither a name nor a mapping with a name.")
    for name, about in entries:
        plain = " ".join(name.split())
        if not plain or plain in arguments:
            wrong.append(f'The name "{plain[:80]}" stands twice.' if plain else "A name is blank.")
        else:
            arguments[plain] = _argument(plain, about, wrong)
    return tuple(arguments.values()), wrong


def _argument(name: str, about: YamlValue, wrong: list[str]) -> Argument:
    if isinstance(about, str):
        known = _TYPES.get(about.strip().lower())
        return Argument(name=name, type=known or "string", description="" if known else " ".join(about.split()))
    if not isinstance(about, Mapping):
        wrong.append(f'"{name[:80]}" is described by a list.')
        return Argument(name=name)
    texts = {key: value for key, value in about.items() if isinstance(value, str)}
    listed = about.get("enum", about.get("choices", ()))
    choices = tuple(item for item in listed if isinstance(item, str)) if not isinstance(listed, (str, Mapping)) else ()
    kind = _TYPES.get(texts.get("type", "string").strip().lower())
    required = WORDS.get(texts.get("required", "false").strip().lower())
    if kind is None or ("type" in about and "type" not in texts):
        wrong.append(f'The type of "{name[:80]}" is not known; it is read as a string.')
    if required is None or ("required" in about and "required" not in texts):
        wrong.append(f'Whether "{name[:80]}" is required is neither true nor false; it is read as true.')
        required = True
    return Argument(
        name=name,
        type="enum" if choices and kind in {None, "string"} else kind or "string",
        required=required,
        description=" ".join(texts.get("description", "").split()),
        default=texts.get("default"),
        choices=choices,
    )


def _spdx(text: str) -> tuple[str, ...]:
    """The identifiers of an expression, () when it is none."""
    words = _EXPRESSION.findall(text)
    if "".join(words) != text.replace(" ", ""):
        return ()
    ids: list[str] = []
    depth, expects_name = 0, True
    for index, word in enumerate(words):
        if word in {"(", ")"}:
            depth += 1 if word == "(" else -1
            if depth < 0 or (word == "(") is not expects_name:
                return ()
        elif expects_name:
            known = _IDS.get(word.lower().removesuffix("+"))
            if word.startswith("LicenseRef-"):
                known = word
            elif index and words[index - 1].upper() == "WITH":
                known = word if word.lower() in _EXCEPTIONS else None
            if known is None:
                return ()
            ids.append(known)
            expects_name = False
        elif word.upper() in {"AND", "OR", "WITH"}:
            expects_name = True
        else:
            return ()
    return tuple(dict.fromkeys(ids)) if depth == 0 and not expects_name else ()
