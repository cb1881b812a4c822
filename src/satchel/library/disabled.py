"""What a caller wants left out of a library, by name or by place, before anything else is decided."""

# ruff: noqa: PTH117, PTH118, PTH119, PTH120 - see the walk.

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from satchel.library.walk import Found, Place
from satchel.skills.collide import name_key
from satchel.skills.diagnostics import finding, judge
from satchel.skills.dialect import Dialect
from satchel.skills.files import is_manifest
from satchel.skills.model import Diagnostic, LoadedSkill, Skill
from satchel.skills.names import near_names
from satchel.skills.oneline import one_line

_SHOWN = 80


class Reading(NamedTuple):
    """What was read at a place, with the skill when it is usable; or a skill without a file, which is its own home."""

    home: Place | LoadedSkill
    skill: Skill | None
    diagnostics: tuple[Diagnostic, ...]
    namespace: str = ""


class Disabled:
    """``entries`` are names, or absolute paths of single skills (their directory or SKILL.md).

    A name is the skill's, or the one that its file declares, in any Unicode form; or its directory's, when the skill
    is broken or no skill has that name. ``directories`` are those that the paths mean; they are not even read.
    """

    def __init__(self, entries: Iterable[str | os.PathLike[str]], dialect: Dialect) -> None:
        given = tuple(dict.fromkeys(os.fspath(entry) for entry in entries))
        self._dialect = dialect
        self._places = {entry: _directories(entry) for entry in given if os.path.isabs(entry)}
        self._names = {entry: self._key(entry) for entry in given if not os.path.isabs(entry)}
        self._wanted = frozenset(self._names.values())
        self.directories = frozenset[str]().union(*self._places.values())

    def __bool__(self) -> bool:
        return bool(self._places or self._names)

    def leave_out(
        self, found: Found, read: Sequence[Reading], roots: Iterable[str]
    ) -> tuple[list[Reading], list[Diagnostic]]:
        """``(what stays of read, findings)`` after a walk below ``roots`` that was told of ``directories``.

        The findings are those of the walk that are not about something disabled, and one for each entry that matched
        nothing.
        """
        whole = {*roots, *found.roots}
        names = [self._names_of(item) for item in read]
        taken = self._wanted.intersection(frozenset[str]().union(*names))
        matched = {*taken, *found.left_out}
        stays: list[Reading] = []
        for item, own in zip(read, names, strict=True):
            if own & self._wanted:
                continue
            if isinstance(item.home, Place):
                folder = self._key(os.path.basename(item.home.directory))
                if folder in self._wanted and (item.skill is None or folder not in taken):
                    matched.add(folder)
                    continue
            stays.append(item)
        diagnostics: list[Diagnostic] = []
        for noticed in found.diagnostics:
            folder = self._key(os.path.basename(noticed.path))
            if noticed.path in whole or not (noticed.path in self.directories or folder in self._wanted):
                diagnostics.append(noticed)
            else:
                matched |= {noticed.path, folder}
        known = [item.skill.name for item in read if item.skill is not None]
        unmatched = [name for name, key in self._names.items() if key not in matched]
        unmatched += [path for path, places in self._places.items() if not places & matched]
        judged = (judge(_unmatched(entry, known), self._dialect) for entry in unmatched)
        return stays, [*diagnostics, *(item for item in judged if item is not None)]

    def _names_of(self, item: Reading) -> frozenset[str]:
        skill = item.skill
        if skill is None:
            return frozenset()
        own = (skill.name, skill.text("name"), f"{item.namespace}:{skill.name}" if item.namespace else "")
        return frozenset(self._key(name) for name in own if name)

    def _key(self, name: str) -> str:
        form = "NFC" if self._dialect.lookup == "exact" else "NFKC"
        return name_key(unicodedata.normalize(form, name), self._dialect)


def _unmatched(entry: str, known: Sequence[str]) -> Diagnostic:
    shown = one_line(entry)[:_SHOWN]
    near = near_names(entry, known)
    hint = f"Did you mean {', '.join(near)}?" if near else None
    if not os.path.isabs(entry) and ("/" in entry or os.sep in entry or entry.startswith((".", "~"))):
        message = f'"{shown}" is to be disabled, and is a relative path.'
        hint = "Give the absolute path of the skill's folder, or the skill's name."
    else:
        message = f'"{shown}" is to be disabled, and no skill is called or lies so.'
    return finding("disabled-unmatched", entry, message, hint=hint)


def _directories(path: str) -> frozenset[str]:
    """The directories that the path of a skill or its SKILL.md may mean: with its last link followed, and without."""
    plain = path.rstrip(os.sep) or path
    try:
        real = os.path.realpath(plain)
        kept = os.path.join(os.path.realpath(os.path.dirname(plain)), os.path.basename(plain))
    except ValueError:
        return frozenset({path})  # no directory can have that name
    return frozenset(os.path.dirname(name) if is_manifest(os.path.basename(name)) else name for name in (real, kept))
