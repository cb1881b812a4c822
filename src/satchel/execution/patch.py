"""Patches of one file in the V4A format: text in, text or a diagnosis out. Nothing here touches a disk.

A hunk is context lines (a blank in front), deleted lines (``-``) and inserted ones (``+``), under headers ``@@`` that
may name a line above it. What it keeps and deletes is looked for in the file as one block (see ``matching``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from satchel.errors import FileError
from satchel.execution.diagnosis import quoted, unknown_anchor, where_it_could_be
from satchel.execution.likeness import Likeness
from satchel.execution.matching import IGNORED_BLANKS, NOT_AT_END, Haystack, Place

END_OF_FILE = "*** End of File"
MOST_NOTES = 20
"""Of one patch that are shown: a patch may have more hunks than anybody reads about."""

_BARE = "***"
_BOM = "\ufeff"
FORMAT_HINT = (
    "A patch looks like this:\n"
    "*** Begin Patch\n*** Update File: src/app.py\n@@ def main():\n"
    " an unchanged line, with one blank in front\n-the old line\n+the new line\n*** End Patch"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    """A patched text. ``fuzz`` is 0 when every hunk matched exactly; ``notes`` say what a reader must know."""

    text: str
    added: int = 0
    removed: int = 0
    fuzz: int = 0
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Chunk:
    at: int
    deleted: int
    inserted: list[str]


@dataclass(slots=True)
class _Hunk:
    context: list[str] = field(default_factory=list[str])
    chunks: list[_Chunk] = field(default_factory=list[_Chunk])
    is_at_end: bool = False


def split_lines(diff: str) -> list[str]:
    """The lines of a patch; carriage returns at their ends do not count, nor does an empty last line."""
    lines = [line.rstrip("\r") for line in diff.split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    return lines


def new_text(diff: Sequence[str], *, path: str) -> str:
    """The text of a new file, from lines that each begin with ``+``; it ends with a newline when it has any line.

    Raises:
        FileError: patch-invalid.
    """
    lines = list(diff)
    while lines and not lines[-1]:
        lines.pop()
    for line in lines:
        if not line.startswith("+"):
            raise FileError(
                "patch-invalid",
                f"Every line of the new file {quoted(path)} must begin with +, and this one does not: {quoted(line)}.",
                hint="An empty line of a new file is a line with + alone.",
            )
    return "".join(line[1:] + "\n" for line in lines)


def apply_update(text: str, diff: Sequence[str], *, path: str, likeness: Likeness | None = None) -> Patched:
    """Applies the hunks in ``diff`` (the lines between two file headers) to the text of the file ``path``.

    Lines that are not changed stay byte for byte as the file has them, line ends included. Inserted lines are written
    as they stand in the patch, with the line ends that most lines of the file have. ``likeness`` is what files of one
    patch share: it bounds what is spent on telling where lines that are not there may have been meant.

    Raises:
        FileError: patch-invalid for what is no patch, patch-mismatch when a hunk is not in the file.
    """
    bom = _BOM if text.startswith(_BOM) else ""
    lines = text[len(bom) :].split("\n")
    reader = _Reader(diff, path)
    plain = [line.removesuffix("\r") for line in lines[:-1]] + lines[-1:]
    placer = _Placer(plain, path, likeness or Likeness())
    while not reader.is_done():
        placer.place(*reader.hunk(is_headless_allowed=placer.cursor == 0))
    chunks = placer.chunks
    if not chunks:
        raise FileError(
            "patch-invalid",
            f"The patch of {quoted(path)} changes nothing: it has no line with - or +.",
            hint=FORMAT_HINT,
        )
    return Patched(
        text=bom + _written(lines, chunks),
        added=sum(len(chunk.inserted) for chunk in chunks),
        removed=sum(chunk.deleted for chunk in chunks),
        fuzz=placer.fuzz,
        notes=tuple(placer.notes),
    )


class _Reader:
    """Reads hunks off the lines of one file's patch."""

    def __init__(self, lines: Sequence[str], path: str) -> None:
        self._lines = lines
        self._index = 0
        self._path = path

    def is_done(self) -> bool:
        return self._index >= len(self._lines)

    def hunk(self, *, is_headless_allowed: bool) -> tuple[list[str], _Hunk]:
        """``(anchors, hunk)``. Only the first hunk may stand without a header."""
        anchors, has_header = self._anchors()
        if not has_header and not is_headless_allowed:
            raise self._invalid(
                f"The line {quoted(self._lines[self._index])} is not part of a hunk: a line @@ begins one"
            )
        return anchors, self._body()

    def _anchors(self) -> tuple[list[str], bool]:
        anchors: list[str] = []
        start = self._index
        while self._index < len(self._lines):
            line = self._lines[self._index]
            if line.startswith("@@ "):
                if line[3:].strip():
                    anchors.append(line[3:])
            elif line != "@@":
                break
            self._index += 1
        return anchors, self._index > start

    def _body(self) -> _Hunk:
        hunk = _Hunk()
        current: _Chunk | None = None
        start = self._index
        while self._index < len(self._lines):
            # Models leave out the blank in front of an empty line.
            line = self._lines[self._index] or " "
            if line.startswith("@@") or line.rstrip() in {END_OF_FILE, _BARE}:
                break
            if line[0] not in " +-":
                raise self._no_hunk_line(line)
            self._index += 1
            if line[0] == " ":
                current = None
                hunk.context.append(line[1:])
                continue
            if current is None:
                current = _Chunk(len(hunk.context), 0, [])
                hunk.chunks.append(current)
            if line[0] == "+":
                current.inserted.append(line[1:])
            else:
                current.deleted += 1
                hunk.context.append(line[1:])
        if self._index == start:
            raise self._empty()
        if self._index < len(self._lines) and self._lines[self._index].rstrip() == END_OF_FILE:
            self._index += 1
            hunk.is_at_end = True
            while self._index < len(self._lines) and not self._lines[self._index].strip():
                self._index += 1
        return hunk

    def _empty(self) -> FileError:
        if self._index < len(self._lines) and self._lines[self._index].startswith("@@"):
            line = self._lines[self._index]
            return self._invalid(f"In {quoted(line)} a blank must stand between @@ and the line that it names")
        return self._invalid("A hunk has no lines: what it keeps and changes stands below its line @@")

    def _no_hunk_line(self, line: str) -> FileError:
        if line.startswith("*** Move to:"):
            return self._invalid('"*** Move to:" must stand right below "*** Update File:", before the first hunk')
        if line.startswith(_BARE):
            return self._invalid(f"{quoted(line)} is no marker of this format")
        return self._invalid(
            f"Every line of a hunk begins with a blank, + or -, and this one does not: {quoted(line)}. "
            "A line that stays as it is needs one more blank in front"
        )

    def _invalid(self, reason: str) -> FileError:
        return FileError(
            "patch-invalid", f"The patch of {quoted(self._path)} cannot be read. {reason}.", hint=FORMAT_HINT
        )


class _Placer:
    """Finds a place for each hunk, one below the other."""

    def __init__(self, lines: Sequence[str], path: str, likeness: Likeness) -> None:
        self._file = Haystack(lines)
        self._path = path
        self._likeness = likeness
        self.cursor = 0
        self.fuzz = 0
        self.chunks: list[_Chunk] = []
        self.notes: list[str] = []

    def place(self, anchors: Sequence[str], hunk: _Hunk) -> None:
        is_settled, landed, unknown = self._follow(anchors)
        place = self._find(hunk, self.cursor)
        if landed >= 0 and hunk.context and hunk.context[0].strip() == anchors[-1].strip():
            place = self._at_anchor(hunk, landed, place)
        if place.at < 0:
            raise where_it_could_be(
                self._file,
                hunk.context,
                self.cursor,
                path=self._path,
                likeness=self._likeness,
                is_at_end=hunk.is_at_end,
                unknown=unknown,
            )
        for anchor in unknown:
            missed = unknown_anchor(self._file, anchor, self.cursor, path=self._path, likeness=self._likeness)
            self._say(f"{missed} The hunk below it was placed by its own lines, at line {place.at + 1}.")
        if place.others and not is_settled and not hunk.is_at_end:
            self._say(
                f"A hunk fits in several places of {self._path}. It was applied to the first, line {place.at + 1}; it "
                f"also fits at line {_listed(place.others)}. If one of those was meant, patch again with a line "
                '"@@ " and the enclosing function or class above the hunk, or with more unchanged lines around it.'
            )
        self._say_how(place)
        self.cursor = place.at + len(hunk.context)
        self.fuzz += place.fuzz
        self.chunks += [_Chunk(place.at + chunk.at, chunk.deleted, chunk.inserted) for chunk in hunk.chunks]

    def _follow(self, anchors: Sequence[str]) -> tuple[bool, int, list[str]]:
        """``(whether the anchors settle which of several places is meant, the line of the last one or -1, unknown)``.

        The last are those that name no line.
        """
        is_settled, landed = False, -1
        unknown: list[str] = []
        for index, anchor in enumerate(anchors):
            found = self._file.anchor(anchor, self.cursor, forward_only=index > 0)
            if not found.is_found:
                unknown.append(anchor)
                landed = -1
                continue
            self.cursor, landed = found.cursor, found.landed
            self.fuzz += found.fuzz
            is_settled = landed >= 0 and (len(anchors) > 1 or not found.is_repeated)
        return is_settled, landed, unknown

    def _find(self, hunk: _Hunk, start: int) -> Place:
        if hunk.is_at_end:
            return self._file.find_at_end(hunk.context, start)
        return self._file.find(hunk.context, start)

    def _at_anchor(self, hunk: _Hunk, landed: int, found: Place) -> Place:
        """The hunk at the anchor itself, when it names its own first line as its anchor and fits there."""
        if found.at >= 0 and hunk.is_at_end:
            return found
        for stop in (None, landed + len(hunk.context)):
            retried = self._file.find(hunk.context, landed, stop)
            if retried.at == landed:
                return retried
        return found

    def _say_how(self, place: Place) -> None:
        if place.fuzz >= NOT_AT_END:
            self._say(
                f'A hunk that is marked "{END_OF_FILE}" is not at the end of {self._path}; it was applied where its '
                f"lines are, at line {place.at + 1}."
            )
        if place.fuzz % NOT_AT_END >= IGNORED_BLANKS:
            self._say(
                f"A hunk fits {self._path} at line {place.at + 1} only when indentation is ignored. Lines of the file "
                "kept theirs; the added lines have the indentation of the patch, so check it."
            )

    def _say(self, note: str) -> None:
        # One more than is shown, so that whoever shows them can say that there are others.
        if len(self.notes) <= MOST_NOTES and note not in self.notes:
            self.notes.append(note)


def _written(lines: Sequence[str], chunks: Iterable[_Chunk]) -> str:
    """The new text. ``lines`` are the file's without their newlines, carriage returns included."""
    returns = sum(line.endswith("\r") for line in lines[:-1])
    end = "\r" if returns * 2 > len(lines) - 1 else ""
    written: list[str] = []
    cursor = 0
    for chunk in chunks:
        if chunk.at + chunk.deleted > len(lines):
            raise FileError("patch-mismatch", "A hunk of the patch goes past the end of the file.")
        if chunk.at < cursor:
            raise FileError("patch-mismatch", f"Two hunks of the patch overlap at line {chunk.at + 1} of the file.")
        written += lines[cursor : chunk.at]
        if cursor < chunk.at == len(lines):
            # The file's last line had no newline and gets one now.
            written[-1] += end
        written += [line + end for line in chunk.inserted]
        cursor = chunk.at + chunk.deleted
    written += lines[cursor:]
    if cursor == len(lines) and written:
        written[-1] = written[-1].removesuffix("\r")
    return "\n".join(written)


def _listed(places: Sequence[int]) -> str:
    numbers = [str(place + 1) for place in places]
    return " and line ".join(filter(None, (", line ".join(numbers[:-1]), numbers[-1])))
