"""A shell command line taken apart into simple commands, well enough to see who is called with which words.

It decides nothing and changes nothing: quotes, escapes, redirections, comments and here-documents are told apart, and
what a shell would first expand is marked, not expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

LONGEST_LINE = 64 * 1024
"""Characters of a longer text are not looked at."""

_OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|[;|&()]")
_REDIRECTION = re.compile(r"(?:\d+|\{\w+\})?(?:<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\()|&>>|&>)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_BLANK = " \t"
_WORD_ENDS = " \t\n;|&()<>"
_VARIABLE = re.compile(r"\w+|[@*#?$!-]")
_LEADING = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "coproc"))
_HEADINGS = frozenset(("for", "case", "select", "function"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word without its quotes. ``start`` and ``end`` are its place in the line, quotes included.

    ``is_plain``: a shell would take exactly ``text``. ``inner`` are the command lines in its substitutions.
    """

    text: str
    start: int
    end: int
    is_plain: bool = True
    is_quoted: bool = False
    inner: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleCommand:
    """``words`` are the program and its arguments, without assignments in front and without redirections.

    ``ended_by`` is the operator behind it, a newline at the end of a line, "" at the end of the text.
    ``redirections`` are the operators, each with its target as one word.
    """

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    redirections: tuple[tuple[str, Word], ...] = ()
    ended_by: str = ""

    @property
    def substitutions(self) -> tuple[str, ...]:
        """The command lines inside ``$( )``, backticks and process substitutions, wherever they stand in it."""
        targets = tuple(target for _, target in self.redirections)
        return tuple(text for word in (*self.assignments, *self.words, *targets) for text in word.inner)


def simple_commands(line: str) -> tuple[SimpleCommand, ...]:
    """The simple commands of a line in order; () when it is too long or cannot be read to its end.

    Keywords like ``if``, ``then`` and ``{`` are left out; the heading of a ``for`` or ``case`` is no command.
    """
    if len(line) > LONGEST_LINE:
        return ()
    try:
        return tuple(_commands(line))
    except (_Unreadable, RecursionError):  # brackets in brackets, thousands deep
        return ()


class _Unreadable(Exception):  # noqa: N818 - never leaves this module
    """A quote or a bracket does not end."""


@dataclass(slots=True)
class _Open:
    words: list[Word] = field(default_factory=list[Word])
    assignments: list[Word] = field(default_factory=list[Word])
    redirections: list[tuple[str, Word]] = field(default_factory=list[tuple[str, Word]])
    is_heading: bool = False

    def add(self, word: Word) -> None:
        is_bare = word.is_plain and not word.is_quoted
        if self.is_heading:
            # The body of a function may follow its name at once.
            self.is_heading = not (is_bare and word.text == "{")
            return
        if not self.words:
            if is_bare and word.text in _LEADING:
                return
            if is_bare and word.text in _HEADINGS:
                self.is_heading = True
                return
            if _ASSIGNMENT.match(word.text) and not word.text.startswith(("'", '"')):
                self.assignments.append(word)
                return
        self.words.append(word)

    def closed(self, ended_by: str) -> Iterator[SimpleCommand]:
        if self.words or self.assignments or self.redirections:
            yield SimpleCommand(
                words=tuple(self.words),
                assignments=tuple(self.assignments),
                redirections=tuple(self.redirections),
                ended_by=ended_by,
            )


def _commands(line: str) -> Iterator[SimpleCommand]:
    at, current = 0, _Open()
    waiting: list[tuple[str, bool]] = []  # here-documents whose text begins on the next line
    while at < len(line):
        if line[at] in _BLANK:
            at += 1
        elif line.startswith("\\\n", at):
            at += 2
        elif line[at] == "\n":
            yield from current.closed("\n")
            at, current = _after_documents(line, at + 1, waiting), _Open()
            waiting = []
        elif line[at] == "#":
            at = _line_end(line, at)
        elif redirection := _REDIRECTION.match(line, at):
            operator = redirection[0].lstrip("0123456789")
            at = redirection.end()
            while at < len(line) and line[at] in _BLANK:
                at += 1
            target = _word(line, at)
            at = target.end
            current.redirections.append((operator, target))
            if operator in ("<<", "<<-"):
                waiting.append((target.text, operator == "<<-"))
        elif operator := _OPERATOR.match(line, at):
            yield from current.closed(operator[0])
            at, current = operator.end(), _Open()
        else:
            word = _word(line, at)
            at = word.end
            current.add(word)
    yield from current.closed("")


def _line_end(line: str, at: int) -> int:
    end = line.find("\n", at)
    return len(line) if end < 0 else end


def _after_documents(line: str, at: int, waiting: list[tuple[str, bool]]) -> int:
    for delimiter, has_tabs in waiting:
        while at < len(line):
            end = _line_end(line, at)
            row = line[at:end]
            at = min(end + 1, len(line))
            if (row.lstrip("\t") if has_tabs else row) == delimiter:
                break
    return at


def _word(line: str, start: int) -> Word:
    at = start
    pieces: list[str] = []
    inner: list[str] = []
    is_plain, is_quoted = True, False
    while at < len(line):
        char = line[at]
        if char in "<>" and line.startswith("(", at + 1):
            end = _bracket_end(line, at + 2, ")")
            inner.append(line[at + 2 : end - 1])
        elif char in _WORD_ENDS:
            break
        elif char == "\\":
            if not line.startswith("\\\n", at):
                pieces.append(line[at + 1 : at + 2])
                is_quoted = True
            at += 2
            continue
        elif char == "'":
            end = _find(line, "'", at + 1) + 1
            pieces.append(line[at + 1 : end - 1])
            at, is_quoted = end, True
            continue
        elif char == '"':
            end, text, found, has_expansion = _double_quoted(line, at + 1)
            pieces.append(text)
            inner += found
            at, is_quoted, is_plain = end, True, is_plain and not has_expansion
            continue
        elif char in "$`":
            end, found = _expansion(line, at)
            inner += found
        else:
            pieces.append(char)
            at += 1
            continue
        # What a shell would put here is not known.
        pieces.append(line[at:end])
        at, is_plain = end, False
    return Word(
        text="".join(pieces), start=start, end=min(at, len(line)), is_plain=is_plain, is_quoted=is_quoted,
        inner=tuple(inner),
    )  # fmt: skip


def _find(line: str, what: str, at: int) -> int:
    found = line.find(what, at)
    if found < 0:
        raise _Unreadable
    return found


def _double_quoted(line: str, at: int) -> tuple[int, str, list[str], bool]:
    """``(place behind the closing quote, text, command lines inside, whether something is expanded)``."""
    pieces: list[str] = []
    inner: list[str] = []
    has_expansion = False
    while at < len(line):
        char = line[at]
        if char == '"':
            return at + 1, "".join(pieces), inner, has_expansion
        if char == "\\" and at + 1 < len(line):
            following = line[at + 1]
            pieces.append("" if following == "\n" else following if following in '$`"\\' else char + following)
            at += 2
        elif char in "$`":
            end, found = _expansion(line, at)
            # A dollar in front of the closing quote is itself.
            has_expansion = has_expansion or end > at + 1
            pieces.append(line[at:end])
            inner += found
            at = end
        else:
            pieces.append(char)
            at += 1
    raise _Unreadable


def _expansion(line: str, at: int) -> tuple[int, list[str]]:
    """``(place behind it, command lines inside)`` of what begins with a dollar or a backtick."""
    if line[at] == "`":
        end = at + 1
        while end < len(line) and line[end] != "`":
            end += 2 if line[end] == "\\" else 1
        if end >= len(line):
            raise _Unreadable
        return end + 1, [line[at + 1 : end]]
    if line.startswith("$(", at):
        end = _bracket_end(line, at + 2, ")")
        return end, [line[at + 2 : end - 1]]
    if line.startswith("${", at):
        return _bracket_end(line, at + 2, "}"), []
    if line.startswith("$'", at):
        end = at + 2
        while end < len(line) and line[end] != "'":
            end += 2 if line[end] == "\\" else 1
        if end >= len(line):
            raise _Unreadable
        return end + 1, []
    name = _VARIABLE.match(line, at + 1)
    return (name.end() if name else at + 1), []


def _bracket_end(line: str, at: int, closing: str) -> int:
    """The place behind the bracket that closes what was opened before ``at``."""
    opening = {")": "(", "}": "{"}[closing]
    depth = 1
    while at < len(line):
        char = line[at]
        if char == "\\":
            at += 2
            continue
        if char == "'":
            at = _find(line, "'", at + 1) + 1
            continue
        if char == '"':
            at = _double_quoted(line, at + 1)[0]
            continue
        if char == "`":
            at = _expansion(line, at)[0]
            continue
        at += 1
        if char == opening:
            depth += 1
        elif char == closing:
            depth -= 1
            if not depth:
                return at
    raise _Unreadable
