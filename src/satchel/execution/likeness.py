"""Lines of a file that resemble others, so that they can be shown: no change is ever placed by them.

Texts and files are strangers', so what is compared is bounded, whatever they hold.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

LEAST = 0.7
"""How like two lines must be, from 0 to 1, as ``difflib`` counts it."""
MOST_CHARS = 120
"""Of a line that are compared, without the blanks around."""
MOST_LETTERS = 1_000_000
"""Characters of a file that are counted for all questions to one ``Likeness``."""
MOST_COMPARED = 60
"""Pairs of lines that are compared in full, likewise."""

_LINES_CONSIDERED = 10_000
_LINES_SOUGHT = 6
_COMPARED_EACH = 6
_FEWEST_CHARS = 4
_LOOKED_AT = 4 * MOST_CHARS


@dataclass(frozen=True, slots=True)
class Alike:
    """Line ``at`` of the file resembles line ``sought`` of what was looked for, as much as ``ratio`` says."""

    sought: int
    at: int
    ratio: float


class Likeness:
    """What is spent on one patch or one edit: when it has been used up, nothing resembles anything any more."""

    def __init__(self) -> None:
        self._letters = MOST_LETTERS
        self._pairs = MOST_COMPARED

    def find(self, lines: Sequence[str], sought: Mapping[int, str], near: int) -> list[Alike]:
        """The lines among ``lines`` that are most like some of ``sought``; in a long file those around ``near``."""
        telling = [(place, text) for place, line in sought.items() if len(text := _bare(line)) >= _FEWEST_CHARS]
        chosen = heapq.nlargest(_LINES_SOUGHT, telling, key=lambda item: len(item[1]))
        if not chosen or self._letters <= 0 or self._pairs <= 0:
            return []
        first = max(0, min(near - _LINES_CONSIDERED // 2, len(lines) - _LINES_CONSIDERED))
        window = [_bare(line) for line in lines[first : first + _LINES_CONSIDERED]]
        self._letters -= len(window)
        return [alike for place, text in chosen for alike in self._like(place, text, window, first)]

    def _like(self, place: int, text: str, window: Sequence[str], first: int) -> list[Alike]:
        # It remembers what it counted of its second text.
        matcher = SequenceMatcher(None, "", text, autojunk=False)
        possible: list[tuple[float, int]] = []
        for index, line in enumerate(window):
            if 2 * min(len(line), len(text)) < LEAST * (len(line) + len(text)):
                continue
            self._letters -= len(line)
            if self._letters < 0:
                break
            matcher.set_seq1(line)
            if (at_best := matcher.quick_ratio()) >= LEAST:
                possible.append((-at_best, index))
        found: list[Alike] = []
        for _, index in heapq.nsmallest(_COMPARED_EACH, possible):
            if self._pairs <= 0:
                break
            self._pairs -= 1
            matcher.set_seq1(window[index])
            if (ratio := matcher.ratio()) >= LEAST:
                found.append(Alike(place, first + index, ratio))
        return found


def _bare(line: str) -> str:
    return line[:_LOOKED_AT].strip()[:MOST_CHARS]
