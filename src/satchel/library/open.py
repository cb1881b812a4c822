"""Reading one skill from disk: its SKILL.md, its body with its files, and pages of any bundled text file."""

# ruff: noqa: PTH112, PTH119, PTH120 - files are opened by the path guard and read through their descriptors.

from __future__ import annotations

import hashlib
import os
from dataclasses import replace

from satchel.errors import PathError, SkillError
from satchel.library.index import index_files
from satchel.library.walk import Place, find_skills
from satchel.pathguard import open_inside, split_path
from satchel.skills.diagnostics import finding, judge
from satchel.skills.dialect import Dialect, Limits
from satchel.skills.dialects import find_dialect
from satchel.skills.files import SNIFF_BYTES, is_manifest, looks_like_text, text_by_name
from satchel.skills.manifest import Manifest, parse_manifest
from satchel.skills.manifest_text import ManifestTexts, open_manifest
from satchel.skills.model import MANIFEST, Diagnostic, LoadedSkill, Page, Skill
from satchel.skills.oneline import one_line

_LONGEST_CHARACTER = 4
_EMPTY = Page(text="", start=0, end=0, total=0)
_CHUNK = 1024 * 1024
_TOLD = ("name", "description")


def read_manifest(
    place: Place, dialect: Dialect, source: str, texts: ManifestTexts | None = None
) -> tuple[Manifest, bytes, float]:
    """``(manifest, its bytes, when they last changed)``; a file that cannot be read is an error among the findings.

    ``texts`` is for callers that read the same file in several dialects.
    """
    if any(found.severity == "error" or found.rule == "symlink-dangling" for found in place.findings):
        return Manifest(skill=None, body="", diagnostics=place.findings), b"", 0.0
    limit = dialect.limits.manifest_bytes
    try:
        descriptor = open_inside(place.directory, place.manifest)
        try:
            status = os.fstat(descriptor)
            data = _read(descriptor, min(status.st_size, limit) + 1)
        finally:
            os.close(descriptor)
    except (PathError, OSError) as error:
        reason = error.message if isinstance(error, PathError) else str(error.strerror)
        found = finding("manifest-unreadable", place.path, f"SKILL.md cannot be read: {reason}")
        return Manifest(skill=None, body="", diagnostics=(found,)), b"", 0.0
    manifest = parse_manifest(
        data,
        directory=place.directory.rpartition(os.sep)[2],
        dialect=dialect,
        path=place.path,
        location=place.directory,
        source=source,
        opened=texts.open if texts else open_manifest,
    )
    if place.findings:
        skill = manifest.skill and replace(manifest.skill, diagnostics=(*place.findings, *manifest.skill.diagnostics))
        manifest = Manifest(skill, manifest.body, (*place.findings, *manifest.diagnostics))
    return manifest, data, status.st_mtime


def load(place: Place, dialect: Dialect, source: str, *, known: Skill | None = None) -> LoadedSkill:
    """Body and file index as they are on disk now.

    With ``known`` a new name or description counts from the next reload on; all else counts as it is now, above all
    what the skill and its users are limited to.

    Raises:
        SkillError: "skill-not-found" when the skill is gone; "skill-invalid", with the findings in
            ``data["diagnostics"]``.
    """
    manifest, data, modified = read_manifest(place, dialect, source)
    if manifest.skill is None:
        _require_present(place)
    files, noticed = index_files(place.directory, dialect)
    late = [judged for found in noticed if (judged := judge(found, dialect)) is not None]
    if manifest.skill is None or any(found.severity == "error" for found in late):
        raise _invalid(place.directory, (*manifest.diagnostics, *late))
    skill = _as_known(manifest.skill, known) if known else manifest.skill
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return LoadedSkill(
        skill=replace(skill, ref=replace(skill.ref, digest=digest), diagnostics=(*skill.diagnostics, *late)),
        body=manifest.body,
        manifest_bytes=len(data),
        files=files,
        modified=modified,
    )


def _as_known(fresh: Skill, known: Skill) -> Skill:
    """The skill as it is now, under the name and description that people and models were told."""
    told = {key: value for key, value in known.frontmatter.items() if key in _TOLD}
    rest = {key: value for key, value in fresh.frontmatter.items() if key not in _TOLD}
    return replace(
        fresh,
        ref=known.ref,
        description=known.description,
        summary=known.summary,
        frontmatter={**told, **rest},
        trusted=known.trusted,
        shadowed=known.shadowed,
    )


def load_skill(
    path: str | os.PathLike[str], dialect: str | Dialect = "portable", *, limits: Limits | None = None
) -> LoadedSkill:
    """Reads the skill in the directory ``path`` (or whose SKILL.md is ``path``), wherever the dialect looks for skills.

    ``limits`` take the place of the dialect's.

    Raises:
        SkillError: "skill-not-found" when there is no SKILL.md, "skill-invalid" when it cannot be used.
    """
    row = find_dialect(dialect)
    row = replace(row, min_depth=0, max_depth=0, limits=limits or row.limits)
    directory = os.path.realpath(path)
    if is_manifest(os.path.basename(directory)) and not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    found = find_skills([directory], row)
    if not found.places:
        reasons = tuple(item for item in found.diagnostics if item.severity != "note")
        if reasons:
            raise _invalid(directory, reasons)
        raise SkillError("skill-not-found", f"There is no SKILL.md in {directory}.", hint="Name a skill's directory.")
    return load(found.places[0], row, "directory")


def read_page(place: Place, path: str, *, offset: int, max_bytes: int) -> Page:
    """At most ``max_bytes`` of a text file from byte ``offset`` on; neither end splits a UTF-8 character.

    Raises:
        PathError: what the guard refuses, "binary-file", "offset-past-end".
        SkillError: "skill-not-found" when the skill is gone.
    """
    segments = split_path(path)
    name = "/".join(segments)
    if not name or is_manifest(name):
        name = place.manifest
    elif any(segment.startswith(".") for segment in segments):
        # What the index of files hides is not for models: a clone's .git and .env may hold its owner's secrets.
        raise PathError("path-refused", f'The path "{name}" is a hidden file, and those are not read.')
    try:
        descriptor = open_inside(place.directory, name)
    except PathError as error:
        if error.code == "path-not-found":
            _require_present(place)
        raise
    try:
        return _page(descriptor, name, max(0, offset), max(_LONGEST_CHARACTER, max_bytes))
    except OSError as error:
        raise PathError("path-refused", f'The file "{name}" cannot be read ({error.strerror}).') from error
    finally:
        os.close(descriptor)


def body_page(loaded: LoadedSkill, path: str, *, offset: int, max_bytes: int) -> Page:
    """The same of a skill without a file, whose SKILL.md is its body.

    Raises:
        PathError: what the guard refuses, "path-not-found" for any other file, "offset-past-end".
    """
    name = "/".join(split_path(path))
    if name and not is_manifest(name):
        raise PathError(
            "path-not-found",
            f'The skill "{one_line(loaded.name)}" was made in a program and has no files.',
            hint=f"Read {MANIFEST}: it is all there is.",
        )
    return page_of(loaded.body.encode("utf-8", "replace"), MANIFEST, offset=offset, max_bytes=max_bytes)


def page_of(data: bytes, name: str, *, offset: int, max_bytes: int) -> Page:
    """The same of a text file that is in memory. Raises ``PathError`` "offset-past-end"."""
    offset = max(0, offset)
    if not data:
        return _EMPTY
    _require_within(name, offset, len(data))
    return _cut(data, 0, offset, max(_LONGEST_CHARACTER, max_bytes), len(data))


def binary_file(name: str, total: int) -> PathError:
    """The refusal to show a file that is not text."""
    return PathError(
        "binary-file",
        f'The file "{name}" is a binary file ({total} bytes) and cannot be read as text.',
        hint="Read another file.",
        data={"bytes": total},
    )


def _require_present(place: Place) -> None:
    """Tells a skill that has been deleted since it was found from one that has become unusable."""
    if not os.path.lexists(place.path):
        raise SkillError(
            "skill-not-found",
            f'The skill "{one_line(os.path.basename(place.directory))}" does not exist any more.',
            hint="List the skills to see their names.",
        )


def _page(descriptor: int, name: str, offset: int, max_bytes: int) -> Page:
    total = os.fstat(descriptor).st_size
    if text_by_name(name) is False or not looks_like_text(os.read(descriptor, SNIFF_BYTES)):
        raise binary_file(name, total)
    if not total:
        return _EMPTY
    _require_within(name, offset, total)
    before = max(0, offset - _LONGEST_CHARACTER + 1)
    os.lseek(descriptor, before, os.SEEK_SET)
    return _cut(_read(descriptor, offset - before + max_bytes + _LONGEST_CHARACTER), before, offset, max_bytes, total)


def _require_within(name: str, offset: int, total: int) -> None:
    if offset >= total:
        raise PathError(
            "offset-past-end",
            f'The file "{name}" has {total} bytes; offset {offset} lies past its end.',
            hint=f"Use an offset below {total}.",
            data={"bytes": total, "offset": offset},
        )


def _cut(data: bytes, before: int, offset: int, max_bytes: int, total: int) -> Page:
    """The page that starts at ``offset`` of a file of ``total`` bytes; ``data`` are those from ``before`` on."""
    start = _boundary(data, offset - before)
    stop = _boundary(data, min(len(data), start + max_bytes))
    end = before + stop
    return Page(text=data[start:stop].decode("utf-8", "replace"), start=before + start, end=end, total=max(total, end))


def _boundary(data: bytes, index: int) -> int:
    """``index``, or the start of the character that it would split. Bytes that are not UTF-8 are split anywhere."""
    for back in range(_LONGEST_CHARACTER):
        at = index - back
        if at < 0 or at >= len(data):
            return index
        if data[at] & 0xC0 != 0x80:  # noqa: PLR2004 - 10xxxxxx continues a character
            return at if back < _length(data[at]) else index
    return index


def _length(lead: int) -> int:
    """How many bytes the character that starts with ``lead`` has."""
    return next((size for size, mark in ((4, 0xF0), (3, 0xE0), (2, 0xC0)) if lead >= mark), 1)


def _read(descriptor: int, size: int) -> bytes:
    """Up to ``size`` bytes; a single read may bring fewer than there are."""
    chunks: list[bytes] = []
    while size > 0 and (chunk := os.read(descriptor, min(size, _CHUNK))):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _invalid(directory: str, diagnostics: tuple[Diagnostic, ...]) -> SkillError:
    """The message names no directory of this machine: it may reach a model."""
    first = next((found for found in diagnostics if found.severity == "error"), diagnostics[0])
    where = f" (line {first.line})" if first.line else ""
    return SkillError(
        "skill-invalid",
        f'The skill "{one_line(os.path.basename(directory))}" cannot be used: {first.message}{where}',
        hint=first.hint,
        data={"path": directory, "diagnostics": [found.to_dict() for found in diagnostics]},
    )
