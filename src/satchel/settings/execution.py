"""The settings that decide what may run, and which of them mean nothing without another."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, cast

from pydantic import AfterValidator, BeforeValidator, Field

from satchel.errors import SetupError
from satchel.execution.environment import is_provider_key
from satchel.execution.options import ExecutionOptions, SandboxMode
from satchel.settings.row import Row

_OPTIONS = ExecutionOptions()
_HOST = re.compile(r"(?:https?://)?(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.?)+(?::\d{1,5})?/?")
_PACKAGE = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENDING = re.compile(r"\.[A-Za-z0-9]+")
_VERSION = re.compile(r"\d{1,5}(?:\.\d{1,5}){1,2}")


def _words(value: str | Sequence[str], between: str = r"[,\s]+") -> tuple[str, ...]:
    """The elements of a list, which may stand in one text between commas or blanks."""
    parts = (value,) if isinstance(value, str) else value
    found = [word for part in parts for word in re.split(between, part) if word]
    if not found:
        raise ValueError("it lists nothing")
    return tuple(dict.fromkeys(found))


def _hosts(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not _HOST.fullmatch(value.lower()):
            raise ValueError(f'"{value}" is not a host: write a name like packages.example, with :PORT or not')
    return tuple(value.lower() for value in values)


def _packages(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not _PACKAGE.fullmatch(value):
            raise ValueError(f'"{value}" is not the name of a package: write names without versions')
    return values


def _version(value: str) -> str:
    if not _VERSION.fullmatch(value):
        raise ValueError("it is not a version like 0.12.0")
    return value


def _grants(value: str | Sequence[str]) -> dict[str, tuple[str, ...]]:
    """``SKILL=NAME,NAME`` by the skill; a skill that is named twice gets both."""
    found: dict[str, tuple[str, ...]] = {}
    for word in _words(value, between=r"\s+"):
        skill, _, listed = word.partition("=")
        names = [name for name in listed.split(",") if name]
        if not skill or not names or not all(_VARIABLE.fullmatch(name) for name in names):
            raise ValueError(f'"{word}" is no grant: write SKILL=NAME or SKILL=NAME,NAME')
        found[skill] = tuple(dict.fromkeys((*found.get(skill, ()), *names)))
    return found


def _interpreters(value: str | Mapping[str, Sequence[str]]) -> Mapping[str, tuple[str, ...]]:
    """The table with ``.py=python3 -I`` in place of the row, or without the row for ``.py=``."""
    table = dict(_OPTIONS.interpreters)
    if not isinstance(value, str):
        raise ValueError("it is not a text")  # noqa: TRY004 - what pydantic turns into a failure of the setting
    for entry in filter(None, (part.strip() for part in value.split(";"))):
        ending, equals, command = entry.partition("=")
        if not equals or not _ENDING.fullmatch(ending.strip()):
            raise ValueError(f'"{entry}" is no interpreter: write .py=/usr/bin/python3, or .py= to refuse such scripts')
        table[ending.strip().lower()] = tuple(shlex.split(command))
    return MappingProxyType({ending: command for ending, command in table.items() if command})


_Words = Annotated[tuple[str, ...], BeforeValidator(_words)]

ROWS: tuple[Row, ...] = (
    Row(
        key="execution.scripts",
        type=bool,
        default=_OPTIONS.scripts,
        flag="--skills-allow-exec",
        variable="SATCHEL_SKILLS_ALLOW_EXEC",
    ),
    Row(
        key="execution.scripts_network",
        type=bool,
        default=_OPTIONS.scripts_network,
        flag="--skills-allow-network",
        variable="SATCHEL_SKILLS_ALLOW_NETWORK",
    ),
    Row(
        key="execution.grants",
        type=Annotated[Mapping[str, tuple[str, ...]], BeforeValidator(_grants)],
        default=_OPTIONS.grants,
        flag="--skills-grant",
        variable="SATCHEL_SKILLS_GRANT",
    ),
    Row(
        key="execution.grants_provider_keys",
        type=bool,
        default=_OPTIONS.grants_provider_keys,
        variable="SATCHEL_SKILLS_GRANT_PROVIDER_KEYS",
    ),
    Row(
        key="execution.interpreters",
        type=Annotated[Mapping[str, tuple[str, ...]], BeforeValidator(_interpreters)],
        default=_OPTIONS.interpreters,
        variable="SATCHEL_SKILLS_INTERPRETERS",
    ),
    Row(
        key="execution.sandbox",
        type=SandboxMode,
        default=_OPTIONS.sandbox,
        flag="--skills-sandbox",
        variable="SATCHEL_SKILLS_SANDBOX",
    ),
    Row(
        key="execution.bwrap_floor",
        type=Annotated[str, AfterValidator(_version)],
        default=_OPTIONS.bwrap_floor,
        flag="--skills-sandbox-bwrap-floor",
        variable="SATCHEL_SKILLS_SANDBOX_BWRAP_FLOOR",
    ),
    Row(
        key="execution.code",
        type=bool,
        default=_OPTIONS.code,
        flag="--code-exec",
        variable="SATCHEL_CODE_EXEC",
    ),
    Row(
        key="execution.code_network",
        type=bool,
        default=_OPTIONS.code_network,
        flag="--code-exec-allow-network",
        variable="SATCHEL_CODE_EXEC_ALLOW_NETWORK",
    ),
    Row(
        key="execution.install.enabled",
        type=bool,
        default=_OPTIONS.install.enabled,
        flag="--code-exec-allow-install",
        variable="SATCHEL_CODE_EXEC_ALLOW_INSTALL",
    ),
    Row(
        key="execution.install.hosts",
        type=Annotated[_Words, AfterValidator(_hosts)],
        default=_OPTIONS.install.hosts,
        flag="--code-exec-install-domains",
        variable="SATCHEL_CODE_EXEC_INSTALL_DOMAINS",
        is_never_empty=True,
    ),
    Row(
        key="execution.install.packages",
        type=Annotated[_Words, AfterValidator(_packages)],
        default=_OPTIONS.install.packages,
        flag="--code-exec-packages",
        variable="SATCHEL_CODE_EXEC_PACKAGES",
        is_never_empty=True,
    ),
    Row(
        key="execution.install.public_only",
        type=bool,
        default=_OPTIONS.install.public_only,
        variable="SATCHEL_CODE_EXEC_INSTALL_PUBLIC_ONLY",
    ),
    Row(
        key="execution.unconfined",
        type=bool,
        default=_OPTIONS.unconfined,
        flag="--code-exec-unconfined",
        variable="SATCHEL_CODE_EXEC_UNCONFINED",
    ),
    Row(
        key="execution.read_first",
        type=bool,
        default=_OPTIONS.read_first,
        flag="--code-exec-read-first",
        variable="SATCHEL_CODE_EXEC_READ_FIRST",
    ),
    Row(
        key="execution.temperature",
        type=Annotated[float, Field(ge=0, le=2)],
        default=_OPTIONS.temperature,
        flag="--code-exec-temperature",
        variable="SATCHEL_CODE_EXEC_TEMPERATURE",
    ),
)

_BY_KEY = {row.key: row for row in ROWS}

# What means nothing unless one of the others is set.
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "execution.scripts_network": ("execution.scripts",),
    "execution.grants": ("execution.scripts",),
    "execution.grants_provider_keys": ("execution.grants",),
    "execution.interpreters": ("execution.scripts",),
    "execution.code_network": ("execution.code",),
    "execution.install.enabled": ("execution.code", "execution.scripts"),
    "execution.install.hosts": ("execution.install.enabled",),
    "execution.install.packages": ("execution.install.enabled",),
    "execution.install.public_only": ("execution.install.enabled",),
    "execution.unconfined": ("execution.code",),
    "execution.read_first": ("execution.code",),
    "execution.temperature": ("execution.code",),
}


_ALLOW = ("execution.scripts", "execution.code")


def check(values: Mapping[str, object], origins: Mapping[str, str]) -> tuple[str, ...]:
    """Sentences about settings that do not do what they seem to.

    Raises:
        SetupError: a flag that means nothing without another, which is named; a sandbox that is off where code may run
            without the word that it may run unconfined.
    """
    said: list[str] = []
    for key, needed in _NEEDS.items():
        if values[key] == _BY_KEY[key].default or any(values[other] for other in needed):
            continue
        missing = " or ".join(_BY_KEY[other].flag for other in needed)
        if origins[key] == _BY_KEY[key].flag:
            raise SetupError(
                "setting-invalid",
                f"{origins[key]} does nothing without {missing}.",
                hint=f"Add {missing}, or leave {origins[key]} out.",
                data={"key": key},
            )
        # A variable often stays set for commands and servers that do without.
        said.append(f"{origins[key]} does nothing without {missing} ({_variables(needed)}).")
    if values["execution.code"] and values["execution.sandbox"] == "off" and not values["execution.unconfined"]:
        raise SetupError(
            "setting-invalid",
            f"{origins['execution.sandbox']} off would run what a model writes without a sandbox, "
            "and --code-exec-unconfined is missing.",
            hint="Leave the sandbox on, or say --code-exec-unconfined too.",
            data={"key": "execution.unconfined"},
        )
    allowed = [key for key in _ALLOW if values[key]]
    if not values["skills.enabled"]:
        said.extend(
            f"{origins[key]} does nothing while skills are off ({origins['skills.enabled']})." for key in allowed
        )
    flags = " or ".join(_BY_KEY[key].flag for key in _ALLOW)
    said.extend(
        f"{origins[key]} does nothing without {flags} ({_variables(_ALLOW)})."
        for key in ("execution.sandbox", "execution.bwrap_floor")
        if not allowed and values[key] != _BY_KEY[key].default
    )
    granted = cast("Mapping[str, tuple[str, ...]]", values["execution.grants"])
    if not values["execution.grants_provider_keys"]:
        said.extend(
            f"{name} is a key of a model provider: scripts of {skill} get it only with "
            f"{_BY_KEY['execution.grants_provider_keys'].variable}=1."
            for skill, names in granted.items()
            for name in names
            if is_provider_key(name)
        )
    lists = [key for key in ("execution.install.hosts", "execution.install.packages") if values[key]]
    if lists and values["execution.code_network"]:
        names = " and ".join(origins[key] for key in lists)
        said.append(f"With {origins['execution.code_network']} code fetches what it likes, whatever {names} lists.")
    return tuple(said)


def _variables(keys: Sequence[str]) -> str:
    return " or ".join(f"{_BY_KEY[key].variable}=1" for key in keys)
