"""Where the lines of a hunk stand in a file: exactly, without trailing blanks, without blanks around. Nothing looser.

The lines of a file become one character each, so that a search is as fast as one for a word, whatever the lines are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from satchel.errors import FileError

MAX_LINES = 1_000_000
MOST_PLACES = 3

NOT_AT_END = 10_000
IGNORED_BLANKS = 100

_READINGS: dict[int, Callable[[str], str]] = {0: str, 1: str.rstrip, IGNORED_BLANKS: str.strip}
_ANCHOR_READINGS = (0, IGNORED_BLANKS)


@dataclass(frozen=True, slots=True)
class Place:
    """``at`` is the index of the first line, -1 for none; ``others`` are later places that fit as well."""

    at: int
    fuzz: int = 0
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AnchorPlace:
    """What an anchor did: whether it is in the file, the line it led to (-1: none), the cursor behind it."""

    is_found: bool
    landed: int
    cursor: int
    fuzz: int = 0
    is_repeated: bool = False


class Haystack:
    """The lines of one file under every reading."""

    def __init__(self, lines: Sequence[str]) -> None:
        if len(lines) > MAX_LINES:
            raise FileError("file-too-large", f"The file has more than {MAX_LINES} lines, so it cannot be patched.")
        self.lines = lines
        self._read: dict[int, tuple[dict[str, str], str]] = {}

    def find(self, context: Sequence[str], start: int, stop: int | None = None) -> Place:
        """The first place from ``start`` on, on the first rung of the ladder that has one."""
        if not context:
            return Place(start)
        for fuzz in _READINGS:
            needle = self._needle(context, fuzz)
            at = self._find(needle, fuzz, start, stop)
            if at >= 0:
                return Place(at, fuzz, self._later(needle, fuzz, at, stop))
        return Place(-1)

    def find_at_end(self, context: Sequence[str], start: int) -> Place:
        """The place at the end of the file, else the first one from ``start`` on, with ``NOT_AT_END`` more fuzz."""
        # What follows the last newline of a file is no line.
        stop = len(self.lines) - 1 if self.lines and not self.lines[-1] else len(self.lines)
        place = self.find(context, max(0, stop - len(context)), stop)
        if place.at < 0:
            place = self.find(context, min(start, stop), stop)
            return Place(place.at, place.fuzz + NOT_AT_END, place.others)
        return Place(place.at, place.fuzz)

    def anchor(self, anchor: str, cursor: int, *, forward_only: bool) -> AnchorPlace:
        """Where an anchor moves the cursor. One that stands before it leaves it where it is."""
        for fuzz in _ANCHOR_READINGS:
            needle = self._needle((anchor,), fuzz)
            if not forward_only and self._find(needle, fuzz, 0, cursor) >= 0:
                return AnchorPlace(is_found=True, landed=-1, cursor=cursor)
            at = self._find(needle, fuzz, cursor, None)
            if at >= 0:
                again = self._find(needle, fuzz, at + 1, None) >= 0
                return AnchorPlace(is_found=True, landed=at, cursor=at + 1, fuzz=min(fuzz, 1), is_repeated=again)
        return AnchorPlace(is_found=False, landed=-1, cursor=cursor)

    def same_lines(self, line: str) -> Iterable[int]:
        """The indexes of the lines that are ``line`` but for the blanks around."""
        needle = self._needle((line,), IGNORED_BLANKS)
        at = self._find(needle, IGNORED_BLANKS, 0, None)
        while at >= 0:
            yield at
            at = self._find(needle, IGNORED_BLANKS, at + 1, None)

    def _find(self, needle: str | None, fuzz: int, start: int, stop: int | None) -> int:
        return -1 if needle is None else self._made(fuzz)[1].find(needle, start, stop)

    def _later(self, needle: str | None, fuzz: int, at: int, stop: int | None) -> tuple[int, ...]:
        found: list[int] = []
        while len(found) < MOST_PLACES and (at := self._find(needle, fuzz, at + 1, stop)) >= 0:
            found.append(at)
        return tuple(found)

    def _needle(self, context: Sequence[str], fuzz: int) -> str | None:
        codes, _ = self._made(fuzz)
        read = _READINGS[fuzz]
        found = [codes.get(read(line)) for line in context]
        return None if None in found else "".join(code for code in found if code)

    def _made(self, fuzz: int) -> tuple[dict[str, str], str]:
        made = self._read.get(fuzz)
        if made is None:
            read, codes = _READINGS[fuzz], dict[str, str]()
            text = "".join([codes.setdefault(read(line), chr(len(codes))) for line in self.lines])
            made = self._read[fuzz] = (codes, text)
        return made
