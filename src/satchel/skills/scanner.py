"""Reading the plain kind of frontmatter in one pass, in front of the YAML parser and several times as fast.

Most blocks are ``key: value`` lines with a list or a small mapping here and there. Those are read here; whatever is not
surely of the shapes below is left to YAML, which alone decides what is valid. Where both read a block, they give the
same values and lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from satchel.skills.model import YamlValue

MAX_PLAIN = 12 * 1024  # so that no block of this size can hold more values than YAML is allowed to
_MAX_DEPTH = 6
_FIRST_LINE = 2  # the block starts on the file's second line
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\n"
_MARKS = frozenset("\"'[|>")

# One match is one entry with every line of its value: (indentation, dash, key, value, a line of no such shape). Lines
# that continue a value are indented by more than its entry (\1). Plain text starts with none of YAML's indicators; what
# must not stand in it is looked for afterwards, which is faster. Possessive repeats keep the cost linear.
_ENTRY = re.compile(
    r"""^(\ *+)(?:(-)\ ++)?
    (?:([A-Za-z_][A-Za-z0-9_.-]{0,63}):(?:\ ++|(?=\n)))?
    (
        [A-Za-z0-9_(/.$~^+\\=;<\x80-\U0010ffff][^\n]*+
      | "[^"\\\n]*+(?:\n++\1\ ++(?=[^\ \n])[^"\\\n]*+)*+"
      | '[^'\n]*+(?:(?:''|\n++\1\ ++(?=[^\ \n]))[^'\n]*+)*+'
      | \[[A-Za-z0-9_./()*,"'\ -]*+\]
      | [|>]-?(?:\n\1\ ++[^\ \n][^\n]*+)++
    )?+\ *+\n
    |^([^\n]*+\n)
    """,
    re.MULTILINE | re.VERBOSE,
)
_WORDS = re.compile(r"[A-Za-z0-9_./(][A-Za-z0-9_./()* -]*")

Entry = tuple[str, str, str, str, str]
_NOTHING: Mapping[int, str] = {}


class _Unsure(Exception):  # noqa: N818 - a way out, not an error
    """The block is not surely of a shape that is read here."""


class Frontmatter:  # noqa: PLW1641 - it holds a dictionary
    """Top-level values in the author's order, and by line of the file the keys whose values were repaired."""

    __slots__ = ("_entries", "_lines", "repaired", "values")

    def __init__(
        self,
        values: dict[str, YamlValue],
        entries: Sequence[Entry] = (),
        lines: Mapping[str, int] | None = None,
        repaired: Mapping[int, str] = _NOTHING,
    ) -> None:
        self.values = values
        self.repaired = repaired
        self._entries = entries
        self._lines = lines

    @property
    def lines(self) -> Mapping[str, int]:
        """The line of each key in the file; 0 for values that come from no file."""
        if self._lines is None:
            lines = dict.fromkeys(self.values, 0)
            number = _FIRST_LINE
            for pad, _, key, value, _ in self._entries:
                if key and not pad:
                    lines[key] = number
                number += 1 + value.count("\n")
            self._lines = lines
        return self._lines

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frontmatter):
            return NotImplemented
        return (self.values, self.lines, self.repaired) == (other.values, other.lines, other.repaired)


def scan_block(block: str) -> Frontmatter | None:
    """Reads the text between the fences; None when YAML has to decide what it says."""
    if len(block) > MAX_PLAIN or block[-1:] != "\n":
        return None
    if "\r" in block:
        if block.count("\r\n") != block.count("\r"):
            return None
        block = block.replace("\r\n", "\n")
    if block.isascii():
        if block.encode().translate(None, _PRINTABLE):
            return None
    elif not block.replace("\n", "").isprintable():
        return None
    entries: list[Entry] = _ENTRY.findall(block)
    try:
        values, _ = _mapping(entries, 0, "", _MAX_DEPTH)
    except _Unsure:
        return None
    return Frontmatter(values, entries)


def _mapping(entries: list[Entry], index: int, indent: str, depth: int) -> tuple[dict[str, YamlValue], int]:
    """The mapping whose keys stand at ``indent``, and the index of the entry after it."""
    values: dict[str, YamlValue] = {}
    count = len(entries)
    while index < count:
        pad, dash, key, text, other = entries[index]
        if pad != indent or dash or not key or key in values:
            if other:
                raise _Unsure
            if not (pad or dash or key or text):
                index += 1
                continue
            if len(pad) < len(indent):
                break
            raise _Unsure
        index += 1
        value: YamlValue = text
        if not text:
            value, index = _nested(entries, index, indent, depth)
        elif text[0] in _MARKS:
            value = _marked(text)
        else:
            if ":" in text or "#" in text or text[-1] == " ":
                value = _plain(text)
            if index < count and len(entries[index][0]) > len(indent):
                value, index = _continued(text, entries, index, indent)
        values[key] = value
    return values, index


def _nested(entries: list[Entry], index: int, indent: str, depth: int) -> tuple[YamlValue, int]:
    """What stands below a key without a value of its own: a list, a mapping, or nothing."""
    if index == len(entries):
        return "", index
    pad, dash, key, text, other = entries[index]
    if dash and len(pad) >= len(indent):
        return _list(entries, index, pad)
    if len(pad) > len(indent) and key and depth:
        return _mapping(entries, index, pad, depth - 1)
    if not (pad or dash or key or text or other):
        raise _Unsure
    return "", index


def _list(entries: list[Entry], index: int, indent: str) -> tuple[YamlValue, int]:
    items: list[YamlValue] = []
    while index < len(entries):
        pad, dash, key, text, _ = entries[index]
        if pad != indent or not dash:
            break
        if key or not text or text[0] in "|>":
            raise _Unsure
        items.append(_marked(text) if text[0] in _MARKS else _plain(text))
        index += 1
    return items, index


def _continued(text: str, entries: list[Entry], index: int, indent: str) -> tuple[YamlValue, int]:
    """Plain text that goes on, on lines that are indented further."""
    parts = [_plain(text)]
    while index < len(entries):
        pad, dash, key, more, _ = entries[index]
        if len(pad) <= len(indent):
            break
        if dash or key or not more or more[0] in _MARKS:
            raise _Unsure
        parts.append(_plain(more))
        index += 1
    return " ".join(parts), index


def _plain(text: str) -> str:
    """Plain text without the blanks after it."""
    text = text.rstrip(" ")
    if ": " in text or " #" in text or text[-1] == ":":
        raise _Unsure
    return text


def _marked(text: str) -> YamlValue:
    """A value that starts with one of ``_MARKS``."""
    mark = text[0]
    if mark == "[":
        inner = text[1:-1].strip(" ")
        return [_word(item.strip(" ")) for item in inner.split(",")] if inner else []
    if mark in "|>":
        head, *rows = text.split("\n")
        indent = len(rows[0]) - len(rows[0].lstrip(" "))
        start = rows[0][:indent]
        if any(not row.startswith(start) or row[indent] == " " for row in rows):
            raise _Unsure
        joined = ("\n" if mark == "|" else " ").join(row[indent:] for row in rows)
        return joined if head.endswith("-") else joined + "\n"
    inner = text[1:-1]
    if "\n" in inner:
        inner = _folded(inner.split("\n"))
    return inner.replace("''", "'") if mark == "'" else inner


def _folded(rows: list[str]) -> str:
    """Quoted text of several lines: a line end is a blank, and each empty line a line feed instead."""
    text = rows[0].rstrip(" ")
    empty = 0
    for row in rows[1:-1]:
        if row:
            text += ("\n" * empty or " ") + row.strip(" ")
            empty = 0
        else:
            empty += 1
    return text + ("\n" * empty or " ") + rows[-1].lstrip(" ")


def _word(item: str) -> str:
    if item[:1] in {'"', "'"}:
        inner = item[1:-1]
        if len(item) > 1 and item[-1] == item[0] and item[0] not in inner:
            return inner
    elif _WORDS.fullmatch(item):
        return item
    raise _Unsure
