"""Judging skills before they are published: what loads, what an author should change, and where it loads."""

# ruff: noqa: PTH112, PTH118, PTH119, PTH120 - see the walk.

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from satchel.context.budget import tokens
from satchel.errors import PathError, SkillError
from satchel.library.index import index_files
from satchel.library.open import read_manifest
from satchel.library.walk import Found, Place, find_skills
from satchel.pathguard import open_inside
from satchel.skills.collide import Candidate, settle
from satchel.skills.diagnostics import judge
from satchel.skills.dialect import Dialect
from satchel.skills.dialects import DIALECTS, PORTABLE, find_dialect
from satchel.skills.files import is_manifest
from satchel.skills.lint import Subject, lint, needs_first_line, secret_findings
from satchel.skills.manifest_text import ManifestTexts
from satchel.skills.model import Diagnostic, Skill, SkillFile
from satchel.skills.portability import Home, at_home, differences
from satchel.skills.tally import first_of_each

ALL_TARGETS = "all"

_SOURCE = "check"
_LINE_BYTES = 256
_SEARCHED_BYTES = 256 * 1024
_SEARCHED_FILES = 512
_MAX_NOTES = 12
_RESERVED = frozenset[str]().union(*(row.reserved for row in DIALECTS.values()))

StrPath = str | os.PathLike[str]
Status = Literal["loads", "loads-with-warnings", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetVerdict:
    """Whether a skill loads in one dialect. ``notes``: why it is refused, or its warnings and what differs there."""

    status: Status
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillCheck:
    """One skill directory. ``name`` is "" when it does not load; ``ok`` says that no finding is an error.

    ``diagnostics`` come from reading, from the files and from the lints, in the order of the file. ``targets`` holds a
    verdict for each dialect that was asked for, by its id.
    """

    path: str
    name: str
    ok: bool
    diagnostics: tuple[Diagnostic, ...] = ()
    targets: Mapping[str, TargetVerdict] = field(default_factory=dict[str, TargetVerdict])

    def passes(self, *, strict: bool = False) -> bool:
        """``ok``, and with ``strict`` no warning either."""
        return self.ok and not (strict and any(found.severity == "warning" for found in self.diagnostics))

    def to_dict(self, *, strict: bool = False) -> dict[str, object]:
        """JSON-safe, with the published keys."""
        return {
            "path": self.path,
            "name": self.name,
            "ok": self.passes(strict=strict),
            "diagnostics": [found.to_dict() for found in self.diagnostics],
            "targets": {
                row: {"status": verdict.status, "notes": list(verdict.notes)} for row, verdict in self.targets.items()
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """Every skill at or below the checked path, sorted by path. ``diagnostics`` belong to none of them."""

    skills: tuple[SkillCheck, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    def ok(self, strict: bool = False) -> bool:
        """Whether there is a skill, and no finding is an error; with ``strict`` no warning either."""
        fails = {"error", "warning"} if strict else {"error"}
        loose = any(found.severity in fails for found in self.diagnostics)
        return bool(self.skills) and not loose and all(skill.passes(strict=strict) for skill in self.skills)

    def to_dict(self, *, strict: bool = False) -> dict[str, object]:
        """JSON-safe, with the published keys; what ``satchel check --json`` prints."""
        return {
            "skills": [skill.to_dict(strict=strict) for skill in self.skills],
            "diagnostics": [found.to_dict() for found in self.diagnostics],
            "ok": self.ok(strict),
        }


def check(
    path: StrPath, *, dialect: str | Dialect = "portable", targets: str | Iterable[str | Dialect] = ()
) -> CheckReport:
    """Checks the skill at ``path`` (its directory or its SKILL.md), or every skill below it.

    ``dialect`` judges them. ``targets`` are further dialects to try, by id or as rows; "all" is every one.

    Raises:
        SkillError: "skill-not-found" when there is nothing to check.
        SetupError: "setting-invalid" for a dialect that is not known.
    """
    row = find_dialect(dialect)
    rows = find_targets(targets)
    found = skills_at(path, row)
    readings = [_Reading(place, row, ManifestTexts()) for place in found.places]
    _note_shadowed(readings, row)
    return CheckReport(
        skills=tuple(sorted((reading.result(rows) for reading in readings), key=lambda skill: skill.path)),
        diagnostics=tuple(found.diagnostics),
    )


def skills_at(path: StrPath, dialect: Dialect) -> Found:
    """The skill directories at or below ``path``, however deep, and what was wrong on the way.

    Raises:
        SkillError: "skill-not-found" when there is neither a skill nor a reason why not.
    """
    given = os.fspath(path)
    directory = os.path.realpath(given)
    if is_manifest(os.path.basename(given)) and not os.path.isdir(directory):
        directory = os.path.realpath(os.path.dirname(given) or ".")
    limits = replace(dialect.limits, skills=None)
    seeking = replace(dialect, min_depth=0, max_depth=None, skips=dialect.skips | PORTABLE.skips, limits=limits)
    found = find_skills([directory], seeking) if os.path.isdir(directory) else Found()
    if not found.places and not found.diagnostics:
        reason = "There is no skill in" if os.path.isdir(directory) else "There is no directory"
        hint = "A skill is a directory with a file called SKILL.md."
        raise SkillError("skill-not-found", f"{reason} {given}.", hint=hint)
    return found


def find_targets(targets: str | Iterable[str | Dialect]) -> tuple[Dialect, ...]:
    """Rows by id, each once; one text may hold several ids, separated by commas, or "all".

    Raises:
        SetupError: "setting-invalid".
    """
    given = [name.strip() for name in targets.split(",") if name.strip()] if isinstance(targets, str) else targets
    rows: dict[str, Dialect] = {}
    for target in given:
        for row in DIALECTS.values() if target == ALL_TARGETS else (find_dialect(target),):
            rows[row.id] = row
    return tuple(rows.values())


class _Reading:
    """One skill directory as one dialect reads it."""

    def __init__(self, place: Place, row: Dialect, texts: ManifestTexts) -> None:
        self.place = place
        self.row = row
        self.texts = texts
        self.path = os.path.join(place.directory, place.manifest)
        manifest, self.data, _ = read_manifest(place, row, _SOURCE, texts)
        self.skill: Skill | None = manifest.skill
        self.found: list[Diagnostic] = list(manifest.diagnostics)
        self.files, noticed = index_files(place.directory, row)
        self.found += [judged for item in noticed if (judged := judge(item, row)) is not None]
        self.found = first_of_each(self.found)

    def is_refused(self) -> bool:
        return self.skill is None or any(item.severity == "error" for item in self.found)

    def body(self) -> str:
        """The body as the author wrote it, whatever the row does to its ends."""
        raw = replace(self.row, body_newlines="keep", body_edges="keep")
        return read_manifest(self.place, raw, _SOURCE, self.texts)[0].body

    def result(self, targets: tuple[Dialect, ...]) -> SkillCheck:
        lenient = self if self.row.id == PORTABLE.id else _Reading(self.place, PORTABLE, self.texts)
        lints = tuple(_lints(lenient))
        known = {item.rule for item in self.found}
        judged = (judge(item, self.row) for item in lints if item.rule not in known)
        self.found += [item for item in judged if item is not None]
        found = tuple(sorted(self.found, key=lambda item: (item.path != self.path, item.path, item.line, item.column)))
        readable = self if self.skill is not None else lenient
        home: Home | None = None
        if targets and readable.skill is not None:
            home = at_home(readable.row, readable.skill, readable.body(), _nested(readable.files))
        return SkillCheck(
            path=self.place.directory,
            name=self.skill.name if self.skill else "",
            ok=not self.is_refused(),
            diagnostics=found,
            targets={row.id: _verdict(self, row, home, lints) for row in targets},
        )


def _note_shadowed(readings: Iterable[_Reading], row: Dialect) -> None:
    by_path = {reading.path: reading for reading in readings}
    usable = (
        Candidate(skill=item.skill, path=path)
        for path, item in by_path.items()
        if item.skill is not None and not item.is_refused()
    )
    for found in settle(usable, row)[1]:
        by_path[found.path].found.append(found)


def _verdict(here: _Reading, row: Dialect, home: Home | None, lints: Iterable[Diagnostic]) -> TargetVerdict:
    there = _elsewhere(here, row)
    if isinstance(there, tuple):
        return TargetVerdict(status="refused", notes=_bounded(_messages(there)))
    known = {item.rule for item in there.found}
    refused = (judge(item, row) for item in lints if item.rule in row.refuses - known)
    there.found += [item for item in refused if item is not None]
    if there.skill is None or there.is_refused():
        return TargetVerdict(status="refused", notes=_bounded(_messages(there.found, "error")))
    warnings = _messages(there.found, "warning")
    notes = warnings if home is None else (*warnings, *differences(home, row, there.skill))
    status: Status = "loads-with-warnings" if warnings else "loads"
    return TargetVerdict(status=status, notes=_bounded(dict.fromkeys(notes)))


def _bounded(notes: Iterable[str]) -> tuple[str, ...]:
    told = tuple(notes)
    more = len(told) - _MAX_NOTES
    return told if more <= 0 else (*told[:_MAX_NOTES], f"and {more} more")


def _elsewhere(here: _Reading, row: Dialect) -> _Reading | tuple[Diagnostic, ...]:
    """The directory as another row finds and reads it, or why it finds nothing there."""
    found = find_skills([here.place.directory], replace(row, min_depth=0, max_depth=0))
    return _Reading(found.places[0], row, here.texts) if found.places else tuple(found.diagnostics)


def _nested(files: Iterable[SkillFile]) -> tuple[str, ...]:
    return tuple(file.path for file in files if "/" in file.path and is_manifest(file.path.rpartition("/")[2]))


def _messages(found: Iterable[Diagnostic], severity: str = "") -> tuple[str, ...]:
    told = (f"{item.message} [{item.rule}]" for item in found if severity in {"", item.severity})
    return tuple(dict.fromkeys(told))


def _lints(reading: _Reading) -> Iterator[Diagnostic]:
    skill = reading.skill
    if skill is None:
        return
    directory = reading.place.directory
    text = reading.data.decode("utf-8").removeprefix("\ufeff")
    yield from lint(
        Subject(
            path=reading.path,
            text=text,
            skill=skill,
            files=reading.files,
            entry_tokens=tokens(f"- {skill.name}: {skill.summary}\n"),
            body_tokens=tokens(reading.body()),
            reserved=_RESERVED,
            first_lines={
                file.path: _start(directory, file.path, _LINE_BYTES).partition("\n")[0]
                for file in reading.files
                if needs_first_line(file)
            },
            exists=lambda path: _exists(directory, path),
        )
    )
    texts = [file for file in reading.files if file.is_text and file.kind != "manifest"]
    for file in texts[:_SEARCHED_FILES]:
        start = _start(directory, file.path, _SEARCHED_BYTES)
        yield from secret_findings(start, os.path.join(directory, file.path))


def _start(directory: str, path: str, size: int) -> str:
    """The first ``size`` bytes of a bundled file as text, "" when it cannot be read."""
    try:
        with os.fdopen(open_inside(directory, path), "rb") as file:
            return file.read(size).decode("utf-8", "replace")
    except (PathError, OSError):
        return ""


def _exists(directory: str, path: str) -> bool:
    try:
        os.close(open_inside(directory, path))
    except PathError as error:
        return error.code == "not-a-file"  # a directory is there too
    return True
