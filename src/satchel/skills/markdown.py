"""Just enough Markdown to know where a link, a comment and code stand.

Linear in the text, whatever it holds: fences are found in one pass, and spans only on the lines that are asked about.
"""

from __future__ import annotations

import heapq
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

# A carriage return ends a line by itself too; only texts that hold one pay for looking.
_FENCED = r"[ \t>]{0,64}(?:(?:[-*+]|\d{1,9}[.)])[ \t]{1,8})?(`{3,}|~{3,})([^\r\n]*)"
_DEFINED = r" {0,3}\[[^\]\r\n]{1,200}\]:[ \t]*<?([^\s<>]+)"
_FENCE = re.compile(rf"^{_FENCED}", re.MULTILINE)
_FENCE_CR = re.compile(rf"(?:^|(?<=\r)){_FENCED}", re.MULTILINE)
_DEFINITION = re.compile(rf"^{_DEFINED}", re.MULTILINE)
_DEFINITION_CR = re.compile(rf"(?:^|(?<=\r)){_DEFINED}", re.MULTILINE)
_TICKS = re.compile(r"`+")
_INLINE = re.compile(r"\]\([ \t]*<?([^()\s<>]*(?:\([^()\s<>]*\)[^()\s<>]*)*)")


class Piece(NamedTuple):
    """A part of a text, and the offset at which it starts."""

    offset: int
    text: str


class Code(NamedTuple):
    """Code in a text: ``start`` to ``end`` without its marks, and ``opens`` to ``closes`` with them."""

    opens: int
    start: int
    end: int
    closes: int
    fenced: bool = False


class Lines:
    """Where offsets of a text lie. Quick when they are asked for in rising order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._has_returns = "\r" in text
        self._seen, self._line = 0, 1

    def place(self, offset: int) -> tuple[int, int]:
        """``(line, column)`` of an offset, both from 1."""
        if offset < self._seen:
            self._seen, self._line = 0, 1
        self._line += self._breaks(self._seen, offset)
        self._seen = offset
        return self._line, offset - self._start(offset) + 1

    def count(self) -> int:
        """How many lines there are; one that only ends the line before it is none."""
        text = self._text
        return self._breaks(0, len(text)) + bool(text and text[-1] not in "\r\n")

    def _breaks(self, start: int, end: int) -> int:
        """Line ends from ``start`` to ``end``; one of two characters lies where its second does."""
        text = self._text
        count = text.count("\n", start, end)
        if self._has_returns:
            count += text.count("\r", start, end) - text.count("\r\n", start, end + 1)
        return count

    def _start(self, offset: int) -> int:
        if self._text[offset - 1 : offset + 1] == "\r\n":
            offset -= 1
        return line_start(self._text, offset)


def line_start(text: str, offset: int) -> int:
    """Where the line of an offset starts."""
    start = text.rfind("\n", 0, offset) + 1
    return max(start, text.rfind("\r", start, offset) + 1)


class Markdown:
    """Where code stands in ``text``: fenced blocks, and inline spans, which end on their own line."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._has_returns = "\r" in text
        self._blocks = list(self._fenced_blocks())
        self._opens = [block[0] for block in self._blocks]
        self._has_spans = "`" in text
        # The spans of the one line that was asked about last.
        self._line = (0, 0)
        self._spans: list[tuple[int, int, int, int]] = []
        self._span_opens: list[int] = []

    def code_at(self, offset: int) -> Code | None:
        """The code, with its marks, that an offset lies in."""
        at = bisect_right(self._opens, offset) - 1
        if at >= 0 and offset < self._blocks[at][3]:
            return Code(*self._blocks[at], fenced=True)
        if not self._has_spans:
            return None
        start, end = self._line
        if not start <= offset < end:
            self._read_line(offset)
        at = bisect_right(self._span_opens, offset) - 1
        return Code(*self._spans[at]) if at >= 0 and offset < self._spans[at][3] else None

    def links(self) -> Iterator[tuple[int, str]]:
        """Offset and text of the targets of inline links, images and link definitions, as written."""
        return heapq.merge(
            self._outside_code(_INLINE, "]("),
            self._outside_code(_DEFINITION_CR if self._has_returns else _DEFINITION, "]:"),
        )

    def comments(self) -> Iterator[Piece]:
        """HTML comments, without their marks; one that is never closed reaches to the end."""
        start = self._find("<!--", 0)
        while start >= 0:
            end = self._find("-->", start + 4)
            stop = len(self.text) if end < 0 else end
            yield Piece(start, self.text[start + 4 : stop])
            start = self._find("<!--", stop)

    def _find(self, mark: str, start: int) -> int:
        """The first ``mark`` outside of code, -1 when there is none."""
        at = self.text.find(mark, start)
        while at >= 0 and (code := self.code_at(at)):
            at = self.text.find(mark, code.closes)
        return at

    def _outside_code(self, pattern: re.Pattern[str], mark: str) -> Iterator[tuple[int, str]]:
        match = pattern.search(self.text) if mark in self.text else None
        while match:
            code = self.code_at(match.start())
            if code is None and match[1]:
                yield match.start(1), match[1]
            match = pattern.search(self.text, code.closes if code else match.end())

    def _fenced_blocks(self) -> Iterator[tuple[int, int, int, int]]:
        if "```" not in self.text and "~~~" not in self.text:
            return
        fence, opens, start = "", 0, 0
        for match in (_FENCE_CR if self._has_returns else _FENCE).finditer(self.text):
            if not fence:
                if "`" not in match[2]:
                    fence, opens, start = match[1], match.start(), match.end()
            elif match[1].startswith(fence) and not match[2].strip():
                yield opens, start, match.start(), match.end()
                fence = ""
        if fence:
            yield opens, start, len(self.text), len(self.text)

    def _read_line(self, offset: int) -> None:
        text = self.text
        start = line_start(text, offset)
        end = text.find("\n", offset)
        end = len(text) if end < 0 else end + 1
        if self._has_returns and (cr := text.find("\r", offset, end)) >= 0:
            end = cr + 1
        self._line = start, end
        self._spans = list(_spans(text, start, end)) if text.find("`", start, end) >= 0 else []
        self._span_opens = [span[0] for span in self._spans]


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The spans of one line, as fields of ``Code``: from a run of backticks to the next run of the same length."""
    runs = [match.span() for match in _TICKS.finditer(text, start, end)]
    ahead: dict[int, list[int]] = {}
    for at in range(len(runs) - 1, -1, -1):
        ahead.setdefault(runs[at][1] - runs[at][0], []).append(at)
    at = 0
    while at < len(runs):
        first, after = runs[at]
        same = ahead[after - first]
        while same and same[-1] <= at:
            same.pop()
        if same:
            at = same[-1]
            yield first, after, *runs[at]
        at += 1
