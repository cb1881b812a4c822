"""Markdown in a terminal while it is still being written.

Nothing is drawn twice and the cursor never moves back, so the answer stays right in every width, in the scroll buffer
and when it is copied: all characters come out in their order, and only styles are put between them.
"""

from __future__ import annotations

import re

_RESET, _BOLD, _DIM, _CODE = "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[36m"

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6}[ \t]")
_UNDECIDED = re.compile(r" {0,3}(?:#{1,6}|`{1,2}|~{1,2})?")
_UNDECIDED_CODE = re.compile(r" {0,3}(?:`{1,2}|~{1,2})?")


class MarkdownStyles:
    """Headings and strong words bold, code coloured, marks dim. Feed it text in pieces of any size."""

    def __init__(self) -> None:
        self._head: str | None = ""
        self._fence = ""
        self._line_style = ""
        self._run = ""
        self._before = " "
        self._code = ""
        self._is_strong = False
        self._style = ""

    def feed(self, text: str) -> str:
        """The text with styles. A few characters may be held back until it is clear what they begin."""
        out: list[str] = []
        for char in text:
            self._take(char, out)
        return "".join(out)

    def close(self) -> str:
        """What was held back, and the end of every style; whatever comes next begins a line."""
        out: list[str] = []
        self._end_line(out)
        self._fence = ""
        return "".join(out)

    def _take(self, char: str, out: list[str]) -> None:
        if char == "\n":
            self._end_line(out)
            out.append(char)
        elif self._head is not None:
            self._head += char
            undecided = _UNDECIDED_CODE if self._fence else _UNDECIDED
            if not undecided.fullmatch(self._head):
                self._begin_line(out)
        else:
            self._inline(char, out)

    def _begin_line(self, out: list[str]) -> None:
        head, self._head = self._head or "", None
        mark = _FENCE.match(head)
        if mark and (not self._fence or mark[1].startswith(self._fence)):
            self._fence = "" if self._fence else mark[1][:3]
            self._line_style = _DIM
        elif self._fence:
            self._line_style = _CODE
        elif _HEADING.match(head):
            self._line_style = _BOLD
        for char in head:
            self._inline(char, out)

    def _end_line(self, out: list[str]) -> None:
        if self._head:
            self._begin_line(out)
        self._settle_run(" ", out)
        self._code, self._is_strong, self._line_style = "", False, ""
        self._wear("", out)
        self._head, self._before = "", " "

    def _inline(self, char: str, out: list[str]) -> None:
        if self._line_style:
            self._wear(self._line_style, out)
            out.append(char)
            return
        if self._run and char != self._run[0]:
            self._settle_run(char, out)
        if char == "`" or (char == "*" and not self._code):
            self._run += char
            return
        self._wear(_CODE if self._code else _BOLD if self._is_strong else "", out)
        out.append(char)
        self._before = char

    def _settle_run(self, after: str, out: list[str]) -> None:
        """What a run of backticks or stars means is known once the character after it is."""
        run, self._run = self._run, ""
        if not run:
            return
        is_mark = False
        if run[0] == "`":
            is_mark = not self._code or self._code == run
            if is_mark:
                self._code = "" if self._code else run
        elif len(run) >= 2:  # noqa: PLR2004 - one star may be a bullet or a product
            closes = self._is_strong and not self._before.isspace()
            opens = not self._is_strong and not after.isspace() and not self._before.isalnum()
            is_mark = closes or opens
            self._is_strong ^= is_mark
        self._wear(_DIM if is_mark else _CODE if self._code else _BOLD if self._is_strong else "", out)
        out.append(run)
        self._before = run[-1]

    def _wear(self, style: str, out: list[str]) -> None:
        if style != self._style:
            out.append((_RESET if self._style else "") + style)
            self._style = style
