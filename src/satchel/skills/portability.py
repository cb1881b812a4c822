"""What differs when another row reads the same skill. Every note follows from the fields of the two rows alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from satchel.skills.arguments import declared_arguments
from satchel.skills.dialect import Dialect
from satchel.skills.model import Skill
from satchel.skills.oneline import one_line
from satchel.skills.spelling import kebab_key
from satchel.skills.substitute import dollar_sample, substitute

_POSITION = re.compile(r"\$\d+")
_SHOWN = 4
_LONGEST = 80
_TRIED_ARGUMENTS = 10
_COMPARED = 1000
_NAMED_APART = frozenset({"disable-model-invocation", "user-invocable", "allowed-tools"})
_TELLS_ONLY = frozenset({"name", "description", "license", "version", "compatibility", "metadata"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The skill as the row reads it that others are compared with.

    ``dollars`` is what rows may replace in the body, each once, and ``has_more_dollars`` says that it was too much.
    ``placeholders`` is what this row replaces. ``nested`` are the paths of skills inside the skill.
    """

    row: Dialect
    skill: Skill
    nested: tuple[str, ...]
    dollars: str
    has_more_dollars: bool
    placeholders: tuple[str, ...]


def at_home(row: Dialect, skill: Skill, body: str, nested: Iterable[str]) -> Home:
    """What others are compared with; see ``Home``. ``body`` is as the author wrote it."""
    dollars, has_more = dollar_sample(body, _COMPARED)
    return Home(
        row=row,
        skill=skill,
        nested=tuple(nested),
        dollars=dollars,
        has_more_dollars=has_more,
        placeholders=_placeholders(dollars, row, skill),
    )


def differences(home: Home, away: Dialect, there: Skill) -> tuple[str, ...]:
    """What will differ in the row ``away``, which reads the skill as ``there``."""
    return (
        *_listing(home.skill, away, there),
        *_arguments(home, away, there),
        *_who_may(home.row, home.skill, away, there),
        *_ignored_keys(home, away, there),
        *_nested(away, home.nested),
    )


def _listing(here: Skill, away: Dialect, there: Skill) -> Iterator[str]:
    if there.name != here.name:
        yield f'called "{there.name}"'
    length = len(one_line(there.description))
    cuts = [cut for cut in (away.description_cut, away.listing_each) if cut is not None]
    if cuts and length > min(cuts):
        yield f"description cut at {min(cuts)} of {length} characters"


def _arguments(home: Home, away: Dialect, there: Skill) -> Iterator[str]:
    mine, theirs = home.placeholders, _placeholders(home.dollars, away, there)
    kept = [name for name in mine if name not in theirs]
    if kept:
        yield f"{_list(kept)} not substituted"
    bare = [name for name in theirs if name not in mine and _is_argument(name)]
    if bare:
        yield f"{_list(bare)} taken for an argument"
    braced = [name for name in theirs if name not in mine and not _is_argument(name)]
    if braced:
        yield f"{_list(braced)} substituted"
    shared = [name for name in mine if name in theirs and _POSITION.fullmatch(name)]
    if shared and away.positional != home.row.positional:
        yield f"arguments numbered from {away.positional} ({_list(shared)})"
    appends = home.row.append_unused and not away.append_unused
    if appends and declared_arguments(home.skill).takes_any and not any(_is_argument(name) for name in theirs):
        yield "arguments without a placeholder are lost"
    if home.has_more_dollars:
        yield f"only the first {_COMPARED} different placeholders were compared"


def _who_may(home: Dialect, here: Skill, away: Dialect, there: Skill) -> Iterator[str]:
    if there.flags.model_invocable and not here.flags.model_invocable:
        yield '"disable-model-invocation" ignored: a model may load it'
    if not here.flags.user_invocable:
        if there.flags.user_invocable:
            yield '"user-invocable" ignored: it stands in the user\'s menu'
        elif home.user_flag != away.user_flag:
            yield "not in the user's menu, " + (
                "but may be named" if away.user_flag == "hide" else "and may not be named"
            )
    if there.paths and home.on_path_match != away.on_path_match:
        meaning = "proposes" if away.on_path_match == "propose" else "activates"
        yield f'a file that matches "paths" {meaning} it'
    if here.allowed_tools and not there.allowed_tools:
        yield '"allowed-tools" dropped'
    elif here.allowed_tools != there.allowed_tools:
        yield f'"allowed-tools" read as {_quoted(there.allowed_tools)}'


def _ignored_keys(home: Home, away: Dialect, there: Skill) -> Iterator[str]:
    """Keys without a meaning there, also those that it reads in another spelling only."""
    spelled = {kebab_key(key): key for key in there.frontmatter if key not in away.understands}
    meant = home.row.understands - _NAMED_APART - _TELLS_ONLY
    lost = [spelled[key] for key in home.skill.frontmatter if key in meant and key in spelled]
    if lost:
        yield f"{_quoted(lost)} ignored"


def _nested(away: Dialect, nested: Sequence[str]) -> Iterator[str]:
    if nested:
        meaning = "is no skill of its own" if away.nested == "stop" else "is a skill of its own"
        yield f"{_list(nested)} {meaning}"


def _placeholders(dollars: str, row: Dialect, skill: Skill) -> tuple[str, ...]:
    """What the row replaces when it is given plenty of arguments, as written and in the order of the text."""
    if not dollars:
        return ()
    declared = declared_arguments(skill)
    count = max(_TRIED_ARGUMENTS, len(declared.names))
    values: Mapping[str, str] | Sequence[str] = ["value"] * count
    if declared.by_name:
        values = dict.fromkeys(declared.names, "value")
    known = dict.fromkeys(row.variables, "value")
    done = substitute(dollars, values, dialect=row, declared=declared, variables=known)
    emptied = (name for name in done.unfilled if (row.missing if _is_argument(name) else row.unknown) == "empty")
    return (*done.placed, *emptied)


def _is_argument(placeholder: str) -> bool:
    return not placeholder.startswith("${")


def _quoted(items: Iterable[str]) -> str:
    return _list(f'"{item}"' for item in items)


def _list(items: Iterable[str]) -> str:
    known = list(items)
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return ", ".join(item[:_LONGEST] for item in known[:_SHOWN]) + more
