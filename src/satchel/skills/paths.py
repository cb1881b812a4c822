"""Skills that say which files they are for, and the files at hand (seed 003, the field ``paths``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from satchel.skills.dialect import Dialect
from satchel.skills.globs import matches_glob
from satchel.skills.model import Skill


@dataclass(frozen=True, slots=True, kw_only=True)
class PathMatches:
    """Of the skills that match, those to propose to the model and those to activate, each in the order given."""

    proposed: tuple[Skill, ...] = ()
    activated: tuple[Skill, ...] = ()


def match_paths(skills: Iterable[Skill], files: Iterable[str], dialect: Dialect) -> PathMatches:
    """The skills one of whose ``paths`` is a glob for one of ``files``, and what the row makes of a match.

    ``files`` are relative to where the globs are, with either kind of slash. A path that is absolute, or leads
    upwards out of there, matches nothing: no glob is about it.
    """
    known = [path for file in files if (path := _relative(file))]
    matching = tuple(skill for skill in skills if _matches(skill.paths, known))
    return PathMatches(activated=matching) if dialect.on_path_match == "activate" else PathMatches(proposed=matching)


def _matches(globs: Sequence[str], files: Sequence[str]) -> bool:
    return any(matches_glob(file, glob.removeprefix("./")) for glob in globs for file in files)


def _relative(file: str) -> str:
    """The path without detours; "" for one that lies elsewhere."""
    path = file.replace("\\", "/")
    if path.startswith("/") or path[1:2] == ":":
        return ""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == ".." and not segments:
            return ""
        if segment == "..":
            segments.pop()
        elif segment not in {"", "."}:
            segments.append(segment)
    return "/".join(segments)
