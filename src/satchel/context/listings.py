"""Listings of skills for prompts and menus of other makes than the block, each with a report of what was cut.

Every text of a skill enters on one line, without control and invisible characters, and escaped for the format around
it: a description that closes a tag or fakes a heading stays inside its entry. Entries stand in the caller's order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

from satchel.context.budget import DESCRIPTION_CAP, truncate
from satchel.context.marks import unmarked_line
from satchel.errors import SetupError
from satchel.skills.dialect import Dialect
from satchel.skills.dialects import find_dialect
from satchel.skills.model import MANIFEST, LoadedSkill, Skill
from satchel.skills.oneline import one_line

_FORMATS = ("plain", "xml")
_ELLIPSIS = "..."
_LEAST = 20
"""A text that would keep fewer characters than this is left out instead."""

_SENTENCE_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f]\Z")
_WHEN = re.compile(r"(?:use )?when ", re.IGNORECASE)
_NOT_XML = re.compile("[\ufffe\uffff]")

_SECTION = (
    "## Skills\n"
    "Skills relevant to this turn. To use one, search with skill_search and load its full instructions with skill_read."
    " The user can also activate a skill by mentioning $name.\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The ``text``, the names of the skills whose texts were ``shortened`` in it, and those that are not in it.

    A skill that its flags hide from the reader of a listing stands in none of the three.
    """

    text: str
    shortened: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()


def render_section(skills: Iterable[Skill | LoadedSkill], *, dialect: str | Dialect | None = None) -> Listing:
    """The section of seed 002 for one turn, with the path of each SKILL.md; "" without skills.

    Descriptions are cut at 1,024 characters, without a mark. The tools that it names are the application's.
    """
    entries: list[_Entry] = []
    for skill in _for_models(skills):
        told = unmarked_line(skill.summary)
        line = _line(skill, f"- {unmarked_line(skill.name)}", ": ", told[:DESCRIPTION_CAP], _file(skill))
        entries.append(replace(line, size=len(told)))
    return _fit(entries, dialect, _Frame(head=_SECTION), cap=DESCRIPTION_CAP).listing()


def format_skill_listing(
    skills: Iterable[Skill | LoadedSkill],
    *,
    max_chars: int | None = None,
    format: Literal["plain", "xml"] = "plain",  # noqa: A002 - the name that the seed gives it
    include_when_to_use: bool = True,
    dialect: str | Dialect | None = None,
) -> Listing:
    """The listing of seed 004: ``- name: description. Use when ...`` lines, or ``<skill>`` elements in ``<skills>``.

    A text longer than ``max_chars`` is cut to exactly that many characters, the last three of them dots when there is
    room for more; 0 and less give "". A ``dialect`` with bounds of its own shortens descriptions before that.

    Raises:
        SetupError: "setting-invalid" for another ``format``, or a dialect that is not known.
    """
    if format not in _FORMATS:
        hint = f"Known are {', '.join(_FORMATS)}."
        raise SetupError("setting-invalid", f'There is no listing of the format "{format}".', hint=hint)
    shown = [(skill, _when(skill) if include_when_to_use else "") for skill in _for_models(skills)]
    if format == "xml":
        frame = _Frame(head="<skills>\n", tail="\n</skills>", note="<!-- {} -->", empty="<skills></skills>")
        draft = _fit([_element(skill, when=when) for skill, when in shown], dialect, frame)
    else:
        lines = [_line(skill, f"- {unmarked_line(skill.name)}", ": ", _sentences(skill, when)) for skill, when in shown]
        draft = _fit(lines, dialect, _Frame())
    return draft.listing(max_chars)


def available_skills(
    skills: Iterable[Skill | LoadedSkill], *, location: bool = True, dialect: str | Dialect | None = None
) -> Listing:
    """The ``<available_skills>`` block of the guide for clients; "" without skills.

    ``location`` adds the path of each SKILL.md, for models that read files themselves.
    """
    entries = [_element(skill, location=_manifest(skill) if location else "") for skill in _for_models(skills)]
    frame = _Frame(head="<available_skills>\n", tail="\n</available_skills>", note="<!-- {} -->")
    return _fit(entries, dialect, frame).listing()


def slash_menu(skills: Iterable[Skill | LoadedSkill], *, dialect: str | Dialect | None = None) -> Listing:
    """One line for each skill that a user may invoke: ``/name argument-hint - description``."""
    entries: list[_Entry] = []
    for skill in _records(skills):
        if skill.flags.user_invocable:
            label = f"/{unmarked_line(skill.name)} {unmarked_line(skill.argument_hint)}".rstrip()
            entries.append(_line(skill, label, " - ", unmarked_line(skill.summary)))
    return _fit(entries, dialect, _Frame()).listing()


def _for_models(skills: Iterable[Skill | LoadedSkill]) -> list[Skill]:
    return [skill for skill in _records(skills) if skill.flags.model_invocable]


def _records(skills: Iterable[Skill | LoadedSkill]) -> list[Skill]:
    return [skill.skill if isinstance(skill, LoadedSkill) else skill for skill in skills]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """``write`` gives the entry with at most so many of the ``size`` characters that may be cut.

    The skill's name ends at ``name_end`` of what is written.
    """

    name: str
    size: int
    name_end: int
    write: Callable[[int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """What stands around the entries, how a note about cuts is written, and the text of a listing without any."""

    head: str = ""
    tail: str = ""
    note: str = "({})"
    empty: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """``entries`` with at most ``limit`` characters each."""

    frame: _Frame
    entries: Sequence[_Entry]
    limit: int
    omitted: tuple[str, ...] = ()
    note: str = ""

    def text(self) -> str:
        if not self.entries:
            return self.frame.empty
        note = f"\n{self.note}" if self.note else ""
        return self.frame.head + "\n".join(entry.write(self.limit) for entry in self.entries) + note + self.frame.tail

    def listing(self, max_chars: int | None = None) -> Listing:
        text = self.text()
        kept = len(text)
        if max_chars is not None and kept > max_chars:
            dots = _ELLIPSIS if max_chars > len(_ELLIPSIS) else ""
            kept = max(0, max_chars - len(dots))
            text = text[:kept] + dots
        shortened: list[str] = []
        omitted = list(self.omitted)
        begin = len(self.frame.head)
        for entry in self.entries:
            end = begin + len(entry.write(self.limit))
            if begin + entry.name_end > kept:
                omitted.append(entry.name)
            elif end > kept or entry.size > self.limit:
                shortened.append(entry.name)
            begin = end + 1
        return Listing(text=text, shortened=tuple(shortened), omitted=tuple(omitted))


def _fit(entries: Sequence[_Entry], dialect: str | Dialect | None, frame: _Frame, *, cap: int | None = None) -> _Draft:
    """The entries within the bounds of the row: all are shortened before one is left out."""
    longest = max((entry.size for entry in entries), default=0)
    row = None if dialect is None else find_dialect(dialect)
    bounds = (cap, row.listing_each if row else None)
    each = min([longest, *(bound for bound in bounds if bound is not None)])
    total = row.listing_total if row else None
    whole = _Draft(frame=frame, entries=entries, limit=each)
    if total is None or not entries or len(whole.text()) <= total:
        return whole
    room = total - len(frame.note.format(_told(len(entries), len(entries)))) - 1
    limit = _largest(lambda chars: len(replace(whole, limit=chars).text()) <= room, each)
    kept: list[_Entry] = []
    omitted: list[str] = []
    size = len(frame.head) + len(frame.tail)
    for entry in entries:
        needed = len(entry.write(limit)) + bool(kept)
        if size + needed <= room:
            kept.append(entry)
            size += needed
        else:
            omitted.append(entry.name)
    note = frame.note.format(_told(sum(entry.size > limit for entry in kept), len(omitted)))
    return _Draft(frame=frame if kept else _Frame(), entries=kept, limit=limit, omitted=tuple(omitted), note=note)


def _largest(fits: Callable[[int], bool], highest: int) -> int:
    """The largest number of characters that fits, by halving; 0 when only a useless few would."""
    low, high = 0, highest
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low if low >= _LEAST else 0


def _told(shortened: int, omitted: int) -> str:
    parts = [f"{shortened} of these entries are shortened"] if shortened else []
    if omitted:
        parts.append(f"{omitted} further skills are not listed")
    return f"{', '.join(parts)}."


def _line(skill: Skill, label: str, between: str, told: str, after: str = "") -> _Entry:
    def write(limit: int) -> str:
        text = truncate(told, limit)
        return f"{label}{between if text else ''}{text}{after}"

    return _Entry(name=skill.name, size=len(told), name_end=len(label), write=write)


def _element(skill: Skill, *, when: str = "", location: str = "") -> _Entry:
    description = one_line(skill.summary)
    opening = f"  <skill>\n    <name>{_xml(skill.name)}"

    def write(limit: int) -> str:
        told = truncate(description, limit)
        rest = limit - len(told)
        also = truncate(when, rest) if rest >= min(len(when), _LEAST) else ""
        fields = {"description": told, "when_to_use": also, "location": location}
        lines = [f"    <{name}>{_xml(text)}</{name}>" for name, text in fields.items() if text]
        return "\n".join((f"{opening}</name>", *lines, "  </skill>"))

    return _Entry(name=skill.name, size=len(description) + len(when), name_end=len(opening), write=write)


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("", one_line(text)))


def _file(skill: Skill) -> str:
    return f" (file: {_manifest(skill)})" if skill.location else ""


def _manifest(skill: Skill) -> str:
    """The path of the skill's file, "" for a skill that has none."""
    if not skill.location:
        return ""
    separator = "\\" if "\\" in skill.location and "/" not in skill.location else "/"
    return one_line(f"{skill.location}{separator}{MANIFEST}")


def _when(skill: Skill) -> str:
    return one_line(skill.when_to_use)


def _sentences(skill: Skill, when: str) -> str:
    """The description, and when to use the skill as a sentence of its own."""
    description = unmarked_line(skill.summary)
    if not when:
        return description
    stop = "" if _SENTENCE_END.search(description) else "."
    told = unmarked_line(_WHEN.sub("", when, count=1) if _WHEN.match(when) else when)
    return f"{description}{stop} Use when {told}{'' if _SENTENCE_END.search(told) else '.'}"
