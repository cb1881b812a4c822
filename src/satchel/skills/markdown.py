"""Just enough Markdown to know where a link, a comment and code stand. Linear in the text, whatever it holds."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_BREAK = re.compile(r"\r\n|\n|\r")
_FENCE = re.compile(r"[ \t>]{0,64}(?:(?:[-*+]|\d{1,9}[.)])[ \t]{1,8})?(`{3,}|~{3,})([^\r\n]*)")
_TICKS = re.compile(r"`+")
_INLINE = re.compile(r"\]\([ \t]*<?([^()\s<>]*(?:\([^()\s<>]*\)[^()\s<>]*)*)")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\r\n]{1,200}\]:[ \t]*<?([^\s<>]+)", re.MULTILINE)


class Piece(NamedTuple):
    """A part of a text, the offset at which it starts, and whether it is a line of a fenced block."""

    offset: int
    text: str
    fenced: bool = False


class Lines:
    """Where the lines of a text start."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in _BREAK.finditer(text))]

    def place(self, offset: int) -> tuple[int, int]:
        """``(line, column)`` of an offset, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


class Markdown:
    """``prose`` is the text with blanks in place of code, at the same offsets; ``code`` is what they stand for.

    ``code`` holds fenced lines and inline spans. A span ends on its own line.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.code: list[Piece] = []
        self.prose = "".join(self._without_code())

    def links(self) -> Iterator[Piece]:
        """The targets of inline links, images and link definitions, as written."""
        for pattern in (_INLINE, _DEFINITION):
            for match in pattern.finditer(self.prose):
                if match.group(1):
                    yield Piece(match.start(1), match.group(1))

    def comments(self) -> Iterator[Piece]:
        """HTML comments, without their marks; one that is never closed reaches to the end."""
        start = self.prose.find("<!--")
        while start >= 0:
            end = self.prose.find("-->", start + 4)
            stop = len(self.prose) if end < 0 else end
            yield Piece(start, self.text[start + 4 : stop])
            start = self.prose.find("<!--", stop)

    def _without_code(self) -> Iterator[str]:
        fence = ""
        for match in _LINE.finditer(self.text):
            line = match.group()
            mark = _FENCE.match(line)
            if fence:
                closes = mark and mark.group(1).startswith(fence) and not mark.group(2).strip()
                if closes:
                    fence = ""
                else:
                    self.code.append(Piece(match.start(), line.rstrip("\r\n"), fenced=True))
                yield _blank(line)
            elif mark and "`" not in mark.group(2):
                fence = mark.group(1)
                yield _blank(line)
            else:
                yield self._without_spans(match.start(), line)

    def _without_spans(self, offset: int, line: str) -> str:
        runs = list(_TICKS.finditer(line))
        last = {len(run.group()): index for index, run in enumerate(runs)}
        parts: list[str] = []
        done = index = 0
        while index < len(runs):
            size = len(runs[index].group())
            if last[size] > index:
                other = next(at for at in range(index + 1, len(runs)) if len(runs[at].group()) == size)
                start, end = runs[index].end(), runs[other].start()
                self.code.append(Piece(offset + start, line[start:end]))
                parts += [line[done:start], " " * (end - start)]
                done, index = end, other
            index += 1
        return "".join([*parts, line[done:]])


def _blank(line: str) -> str:
    text = line.rstrip("\r\n")
    return " " * len(text) + line[len(text) :]
