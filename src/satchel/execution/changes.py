"""What a model's change makes of the files: worked out whole before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from satchel.errors import FileError, PathError
from satchel.execution.diagnosis import where_it_could_be
from satchel.execution.envelope import FilePatch
from satchel.execution.files import WorkFiles
from satchel.execution.likeness import Likeness
from satchel.execution.matching import Haystack
from satchel.execution.numbered import line_count
from satchel.execution.patch import MOST_NOTES, apply_update, new_text
from satchel.execution.publish import MAX_FILE_BYTES, NEW_MODE, Change, FileContent
from satchel.skills.oneline import one_line

_MOST_LISTED = 8

MayChange = Callable[[str, bytes], None]
"""Raises when a file with that path and content must not be changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Changes to publish, a line for each file, and notes of the patch."""

    changes: tuple[Change, ...]
    lines: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def written(self) -> tuple[str, ...]:
        """The files that are there afterwards with another content than before."""
        return tuple(change.path for change in self.changes if change.data is not None)


@dataclass(slots=True)
class _File:
    """A file while a patch is worked out. ``text`` is None when there is none."""

    before: FileContent | None
    text: str | None
    mode: int = NEW_MODE


@dataclass(slots=True)
class _Overlay:
    files: WorkFiles
    may_change: MayChange
    entries: dict[str, _File] = field(default_factory=dict[str, _File])
    lines: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    likeness: Likeness = field(default_factory=Likeness)

    def at(self, path: str) -> _File:
        entry = self.entries.get(path)
        if entry is None:
            try:
                before = self.files.read_to_change(path)
            except PathError as error:
                if error.code != "path-not-found":
                    raise
                before = None
            if before is not None:
                self.may_change(path, before.data)
            entry = _File(before, None if before is None else before.text, NEW_MODE if before is None else before.mode)
            self.entries[path] = entry
        return entry

    def there(self, path: str, *, verb: str) -> tuple[_File, str]:
        entry = self.at(path)
        if entry.text is None:
            raise missing(self.files, path, verb=verb)
        return entry, entry.text

    def absent(self, path: str, hint: str) -> _File:
        # What is no text may stand there too.
        if path not in self.entries and self.files.exists(path):
            raise FileError("file-exists", f"{path} exists already, so nothing was changed.", hint=hint)
        entry = self.entries.setdefault(path, _File(None, None))
        if entry.text is not None:
            raise FileError("file-exists", f"{path} exists already, so nothing was changed.", hint=hint)
        return entry

    def add(self, path: str, patch: FilePatch) -> None:
        entry = self.absent(path, f'Change it with "*** Update File: {path}".')
        entry.text = new_text(patch.lines, path=path)
        added = line_count(entry.text.split("\n"))
        self.lines.append(f"A {path} (+{added})")

    def delete(self, path: str) -> None:
        entry, _ = self.there(path, verb="deleted")
        entry.text = None
        self.lines.append(f"D {path}")

    def update(self, path: str, patch: FilePatch, target: str) -> None:
        entry, text = self.there(path, verb="updated")
        counts = ""
        if any(line.strip() for line in patch.lines):
            patched = apply_update(text, patch.lines, path=path, likeness=self.likeness)
            counts = f" (+{patched.added} -{patched.removed})"
            self.notes += [note for note in patched.notes if note not in self.notes]
            text = patched.text
        if target in {"", path}:
            entry.text = text
            self.lines.append(f"M {path}{counts}")
            return
        moved = self.absent(target, "Move it to a name that is free, or delete that file first.")
        moved.text, moved.mode, entry.text = text, entry.mode, None
        self.lines.append(f"R {path} -> {target}{counts}")

    def changes(self) -> tuple[Change, ...]:
        made: list[Change] = []
        for path, entry in self.entries.items():
            data = None if entry.text is None else entry.text.encode("utf-8", "surrogateescape")
            if data != (None if entry.before is None else entry.before.data):
                made.append(Change(path=path, data=data, before=entry.before, mode=entry.mode))
        return tuple(made)


def plan_patch(files: WorkFiles, patches: tuple[FilePatch, ...], folder: str, may_change: MayChange) -> Planned:
    """The changes of a whole patch, one file after the other as it says. Nothing is written.

    Raises:
        FileError, PathError: the first thing that is wrong.
    """
    overlay = _Overlay(files, may_change)
    for patch in patches:
        path = files.relative(patch.path, folder)
        if patch.kind == "add":
            overlay.add(path, patch)
        elif patch.kind == "delete":
            overlay.delete(path)
        else:
            overlay.update(path, patch, files.relative(patch.move_to, folder) if patch.move_to else "")
    notes = overlay.notes[:MOST_NOTES]
    if len(overlay.notes) > MOST_NOTES:
        notes.append("More hunks of the patch were placed so; what is said of them is left out.")
    return Planned(changes=overlay.changes(), lines=tuple(overlay.lines), notes=tuple(notes))


def plan_edit(path: str, before: FileContent, old: str, new: str, *, everywhere: bool) -> Planned:
    """Replaces ``old``, which must be there exactly once, or everywhere. Line ends are those of the file.

    Raises:
        FileError: edit-mismatch.
    """
    text = before.text
    if old not in text and "\r\n" in text:
        old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
    if not old:
        raise FileError("edit-mismatch", "There is no text to replace.", hint="Give the exact text as old_string.")
    if old == new:
        raise FileError("edit-mismatch", "The old and the new text are the same, so nothing was changed.")
    starts = _starts(text, old)
    lines = [text.count("\n", 0, start) + 1 for start in starts[:_MOST_LISTED]]
    if not starts:
        content = text.replace("\r\n", "\n").split("\n")
        sought = old.replace("\r\n", "\n").split("\n")
        raise where_it_could_be(Haystack(content), sought, 0, path=path, likeness=Likeness(), is_edit=True)
    if len(starts) > 1 and not everywhere:
        listed = ", ".join(map(str, lines)) + (", ..." if len(starts) > len(lines) else "")
        raise FileError(
            "edit-mismatch",
            f"The text appears {len(starts)} times in {path} (line {listed}), so nothing was changed.",
            hint="Add lines around it until it is there once, or set replace_all to true.",
        )
    if len(text) + len(starts) * (len(new) - len(old)) > MAX_FILE_BYTES:
        raise FileError(
            "file-too-large", f"{path} would have more than {MAX_FILE_BYTES} bytes, so nothing was changed."
        )
    data = text.replace(old, new).encode("utf-8", "surrogateescape")
    times = "" if len(starts) == 1 else f", {len(starts)} times"
    return Planned(
        changes=(Change(path=path, data=data, before=before, mode=before.mode),),
        lines=(f"M {path} (line {lines[0]}{times})",),
    )


def missing(files: WorkFiles, path: str, *, verb: str = "") -> PathError:
    """The failure for a file that is not there, with the names that may have been meant. ``verb`` "" is to read it."""
    near = files.near(path)
    hint = (
        f"Did you mean {', '.join(map(one_line, near))}?" if near else "List the files with shell, for example with ls."
    )
    said = f"There is no file {path}" + (f" to be {verb}, so nothing was changed." if verb else ".")
    return PathError("path-not-found", said, hint=hint)


def _starts(text: str, old: str) -> list[int]:
    found: list[int] = []
    at = text.find(old)
    while at >= 0:
        found.append(at)
        at = text.find(old, at + len(old))
    return found
