"""The frontmatter block: finding it, and reading its YAML with every scalar kept as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml
from yaml.events import (
    AliasEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

from satchel.skills.model import YamlValue
from satchel.skills.oneline import may_hide, one_line
from satchel.skills.scanner import MAX_PLAIN, Frontmatter, scan_block

MAX_BYTES = 64 * 1024
MAX_DEPTH = 24
MAX_NODES = 8192
_MAX_REPAIR_LINES = 1024
_FIRST_LINE = 2  # the block starts on the file's second line

_OPENING = re.compile(r"---[ \t]*(?:\r\n|\n|\r)")
_CLOSING = re.compile(r"(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)")
# A closing fence that the author did not end the line after; a longer row of dashes is none.
_GLUED = re.compile(r"^---[ \t]*(?=[^\s-])([^\r\n]*)", re.MULTILINE)
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_BREAK = re.compile(r"\r\n|\n|\r")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.-]+")
_INK = re.compile(rb"[!-~]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class FrontmatterError(ValueError):
    """The block cannot be read. ``line`` and ``column`` count in the file from 1, 0 when unknown.

    ``hint`` takes the place of the rule's own where it is not None.
    """

    def __init__(self, rule: str, message: str, *, line: int = 0, column: int = 0, hint: str | None = None) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint


class Fenced(NamedTuple):
    """A file cut at its fences: the YAML between them, and everything after the closing line, unchanged."""

    yaml: str
    body: str


def split_fences(text: str) -> Fenced:
    """Cuts ``text`` (without a byte order mark) at its fences.

    The first line is three dashes; the block ends at the next line at the left margin that is three dashes or three
    dots. Blanks may follow either.

    Raises:
        FrontmatterError: "frontmatter-missing", "frontmatter-unterminated" or "frontmatter-too-large".
    """
    opening = _OPENING.match(text)
    if opening is None:
        if text.rstrip(" \t") == "---":
            raise FrontmatterError("frontmatter-unterminated", "The file ends right after its opening fence.", line=1)
        message = "The file does not start with a line of three dashes." if text.strip() else "The file is empty."
        raise FrontmatterError("frontmatter-missing", message, line=1, column=1)
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        # What is not closed within the largest block is not looked for any further.
        raise _glued(text[opening.end() : opening.end() + MAX_BYTES]) or FrontmatterError(
            "frontmatter-unterminated", "The frontmatter is opened but never closed.", line=1
        )
    block = text[opening.end() : closing.start()]
    if len(block) > MAX_BYTES or len(block.encode()) > MAX_BYTES:
        message = f"The frontmatter is larger than {MAX_BYTES} bytes."
        raise _glued(block[:MAX_BYTES]) or FrontmatterError("frontmatter-too-large", message, line=1)
    return Fenced(yaml=block, body=text[closing.end() :])


def read_plain(data: bytes) -> Frontmatter | None:
    """The frontmatter of a whole SKILL.md of the plainest kind: simple fences, something after them, nothing hidden.

    None for every other file, which says nothing about it.
    """
    end = data.find(b"\n---\n", 3) + 1
    if not 0 < end <= MAX_PLAIN or not data.startswith(b"---\n") or not _INK.search(data, end + 4, end + 64):
        return None
    if not data.isascii() and (not _is_text(data) or may_hide(data)):
        return None
    # A fence of another spelling among these lines is of no shape that the scanner takes.
    return scan_block(data[4:end].decode())


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def parse_frontmatter(block: str) -> Frontmatter:
    """Reads the text between the fences. A block that is YAML is read as it stands.

    Only when it is not, the top-level one-line values that are not YAML on their own are taken as plain text.

    Raises:
        FrontmatterError: "yaml-invalid", "yaml-duplicate-key", "yaml-alias", "yaml-not-mapping", "yaml-too-complex";
            "frontmatter-unterminated" when the block holds a fence with text behind it.
    """
    scanned = scan_block(block)
    if scanned is not None:
        return scanned
    try:
        return _read_or_repair(block)
    except FrontmatterError as error:
        glued = _glued(block)
        if glued:
            raise glued from error
        raise


def _read_or_repair(block: str) -> Frontmatter:
    try:
        return _read(block, {})
    except FrontmatterError as error:
        if error.rule != "yaml-invalid":
            raise
        fixed, repaired = repair(block)
        if not repaired:
            raise
        try:
            return _read(fixed, repaired)
        except FrontmatterError as second:
            if second.rule != "yaml-invalid":
                raise
            raise error from None


def _glued(block: str) -> FrontmatterError | None:
    """What to say of a block that goes on past a fence with text behind it, None when there is no such line."""
    match = _GLUED.search(block)
    if match is None:
        return None
    line = len(_BREAK.findall(block, 0, match.start())) + _FIRST_LINE
    return FrontmatterError(
        "frontmatter-unterminated",
        f'Line {line} starts with the three dashes of a closing fence, but "{one_line(match[1])[:40]}" follows them.',
        line=line,
        column=match.start(1) - match.start() + 1,
        hint="Put the closing fence on a line of its own, and the text on the next one.",
    )


def repair(block: str) -> tuple[str, dict[int, str]]:
    """Quotes the top-level one-line values that are not YAML on their own.

    Returns the new text and, by line of the file, the key of each value that was quoted.
    """
    lines = [line for line in _LINES.findall(block) if line]
    if len(lines) > _MAX_REPAIR_LINES:
        return block, {}
    repaired: dict[int, str] = {}
    for index, line in enumerate(lines):
        text = line.rstrip("\r\n")
        colon = re.search(r":[ \t]", text)
        if colon is None or not _PLAIN_KEY.fullmatch(text[: colon.start()].rstrip(" \t")):
            continue
        value = text[colon.end() :].strip(" \t")
        if not value or _continues(lines, index + 1) or _is_yaml(f"k: {value}"):
            continue
        quoted = value.replace("'", "''")
        lines[index] = f"{text[: colon.start()]}: '{quoted}'{line[len(text) :]}"
        repaired[index + _FIRST_LINE] = text[: colon.start()].rstrip(" \t")
    return "".join(lines), repaired


def _continues(lines: list[str], index: int) -> bool:
    """Whether the value before ``lines[index]`` goes on there: the next line with text is indented."""
    for line in lines[index:]:
        if line.strip():
            return line[0] in " \t"
    return False


def _is_yaml(text: str) -> bool:
    try:
        _read(text, {})
    except FrontmatterError as error:
        return error.rule != "yaml-invalid"
    return True


def _read(text: str, repaired: Mapping[int, str]) -> Frontmatter:
    try:
        loader = _LOADER(text)
        try:
            return _Reader(loader, repaired).document()
        finally:
            loader.dispose()
    except ReaderError as error:
        bad = _UNPRINTABLE.search(text)
        position = bad.start() if bad else 0
        line = len(_BREAK.findall(text, 0, position)) + _FIRST_LINE
        raise FrontmatterError("yaml-invalid", "A control character is not allowed here.", line=line) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        line, column = (mark.line + _FIRST_LINE, mark.column + 1) if mark else (0, 0)
        message = f"The frontmatter is not valid YAML: {problem}."
        raise FrontmatterError("yaml-invalid", message, line=line, column=column) from error
    except yaml.YAMLError as error:
        raise FrontmatterError("yaml-invalid", "The frontmatter is not valid YAML.") from error


class _Reader:
    """Builds values from the event stream: it never expands an alias and never recurses past ``MAX_DEPTH``."""

    def __init__(self, loader: Any, repaired: Mapping[int, str]) -> None:
        self._next: Any = loader.get_event
        self._nodes = 0
        self._lines: dict[str, int] = {}
        self._repaired = repaired

    def document(self) -> Frontmatter:
        self._next()  # start of the stream
        values: YamlValue = {}
        if not isinstance(self._next(), StreamEndEvent):
            event = self._next()
            if not isinstance(event, MappingStartEvent):
                if not (isinstance(event, ScalarEvent) and not event.value and event.anchor is None):
                    raise _at(event, "yaml-not-mapping", "The frontmatter is not a mapping of keys to values.")
            else:
                values = self._value(event, 1)
            self._next()  # end of the document
            extra = self._next()
            if not isinstance(extra, StreamEndEvent):
                raise _at(extra, "yaml-invalid", "The frontmatter holds more than one YAML document.")
        assert isinstance(values, dict)
        return Frontmatter(values, lines=self._lines, repaired=self._repaired)

    def _value(self, event: Event, depth: int) -> YamlValue:
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise _at(event, "yaml-too-complex", "The frontmatter is nested too deeply or has too many values.")
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _at(event, "yaml-alias", "The frontmatter uses a YAML anchor or alias.")
        if isinstance(event, ScalarEvent):
            return str(event.value)
        if isinstance(event, SequenceStartEvent):
            items: list[YamlValue] = []
            while not isinstance(item := self._next(), SequenceEndEvent):
                items.append(self._value(item, depth + 1))
            return items
        return self._mapping(depth)

    def _mapping(self, depth: int) -> YamlValue:
        values: dict[str, YamlValue] = {}
        while not isinstance(event := self._next(), MappingEndEvent):
            key = self._value(event, depth + 1)
            if not isinstance(key, str):
                raise _at(event, "yaml-invalid", "A key of the frontmatter is not plain text.")
            if key in values:
                raise _at(event, "yaml-duplicate-key", f'The key "{key[:80]}" stands twice.')
            if depth == 1:
                self._lines[key] = event.start_mark.line + _FIRST_LINE
            values[key] = self._value(self._next(), depth + 1)
        return values


def _at(event: Any, rule: str, message: str) -> FrontmatterError:
    mark = event.start_mark
    return FrontmatterError(rule, message, line=mark.line + _FIRST_LINE, column=mark.column + 1)
