"""How the keys of a frontmatter may be written, and what each of them means in a row."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from satchel.skills.dialect import Dialect, Rule
from satchel.skills.fields import WORDS, YamlValue
from satchel.skills.frontmatter import Frontmatter

RESTRICTING = frozenset({"disable-model-invocation", "user-invocable", "disallowed-tools", "allowed-tools"})
"""The keys that say what a skill, or who may use it, is limited to."""

_HUMP = re.compile(r"(?<=[a-z0-9])[A-Z]")
_MISSPELLED = {
    "user-invokable": "user-invocable",
    "user-invokeable": "user-invocable",
    "disable-model-invokation": "disable-model-invocation",
}
_LIMITS = {"disable-model-invocation": True, "user-invocable": False}


class Note(NamedTuple):
    """A finding about a key, before a row judges it."""

    rule: Rule
    message: str
    line: int


class Keys(NamedTuple):
    """A frontmatter by key: ``values`` as the author wrote them, a key that the row reads under its kebab-case name.

    ``counted`` are the same and, by its kebab-case name, every key of ``RESTRICTING`` in a spelling that only we read;
    ``unread`` are those names. ``lines`` and ``repaired`` go with the names in both. The last of ``notes`` is
    "yaml-duplicate-key" when two spellings that the row reads disagree.
    """

    values: dict[str, YamlValue]
    counted: dict[str, YamlValue]
    unread: set[str]
    lines: dict[str, int]
    repaired: set[str]
    notes: list[Note]


def kebab_key(key: str) -> str:
    """A key in snake or camel case as the specification would spell it."""
    plain = _with_hyphens(key)
    return _MISSPELLED.get(plain, plain)


def _with_hyphens(key: str) -> str:
    return _HUMP.sub(lambda hump: "-" + hump.group().lower(), key).replace("_", "-")


def read_keys(front: Frontmatter, dialect: Dialect) -> Keys:
    """What every key of ``front`` means in ``dialect``."""
    keys = Keys({}, {}, set(), {}, set(), [])
    repaired = frozenset(front.repaired.values())
    unread: list[tuple[str, str]] = []
    for key, value in front.values.items():
        line = front.lines[key]
        meant = _meant(key, dialect.understands)
        is_read = meant == key or _is_read(key, dialect.spellings)
        name = meant if meant and is_read else key
        if name in keys.values:
            if keys.values[name] != value:
                message = f'"{key[:80]}" and another spelling of "{name}" have different values.'
                keys.notes.append(Note("yaml-duplicate-key", message, line))
                return keys
            continue
        keys.values[name] = value
        keys.lines[name] = line
        if key in repaired:
            keys.repaired.add(name)
        if meant is None:
            keys.notes.append(Note("key-unknown", f'"{key[:80]}" is not a known key.', line))
        elif not is_read and meant in RESTRICTING:
            unread.append((key, meant))
        elif not is_read:
            keys.notes.append(Note("key-misspelled", f'"{key}" means nothing here; "{meant}" does.', line))
        elif meant != key:
            # Only we read a slip, and what it restricts is not restricted elsewhere.
            rule = "restriction-spelling" if _with_hyphens(key) in _MISSPELLED else "key-spelling"
            keys.notes.append(Note(rule, f'"{key}" is read as "{meant}".', line))
    keys.counted.update(keys.values)
    for key, meant in unread:
        _count(key, meant, keys)
    return keys


def _count(key: str, meant: str, keys: Keys) -> None:
    """Lets a spelling that the row does not read count where that widens nothing, and says so."""
    value = keys.values[key]
    if keys.values.get(meant) == value:
        return
    message = f'This harness does not read "{key}"; what counts is "{meant}", which stands there too.'
    if meant not in keys.counted or _limits(meant, value):
        message = f'This harness does not read "{key}" as "{meant}"; here it counts all the same.'
        keys.counted[meant] = value
        keys.unread.add(meant)
        keys.lines[meant] = keys.lines[key]
        if key in keys.repaired:
            keys.repaired.add(meant)
    keys.notes.append(Note("restriction-spelling", message, keys.lines[key]))


def _limits(key: str, value: YamlValue) -> bool:
    """Whether the value of a switch is the one that takes something away."""
    return key in _LIMITS and isinstance(value, str) and WORDS.get(value.strip().lower()) is _LIMITS[key]


def _meant(key: str, understands: Collection[str]) -> str | None:
    if key in understands:
        return key
    plain = kebab_key(key) if key[:1].islower() else ""
    return plain if plain in understands else None


def _is_read(key: str, spellings: Collection[str]) -> bool:
    return key in spellings or ("snake" if "_" in key else "camel") in spellings
