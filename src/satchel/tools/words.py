"""The words of a command line that no shell reads."""

from __future__ import annotations

import re


def split_arguments(text: str) -> list[str]:
    """The words of a command line. Nothing is expanded, and a quote that never ends is taken to end with the text.

    Single quotes keep everything. In double quotes a backslash escapes a double quote and itself, outside of quotes
    any character.
    """
    words: list[str] = []
    for found in _WORD.finditer(text):
        pieces = _PIECE.finditer(found.group())
        words.append("".join(_unquoted(piece) for piece in pieces))
    return words


_SINGLE = r"'[^']*(?:'|\Z)"
_DOUBLE = r'"(?:[^"\\]|\\["\\]|\\)*(?:"|\Z)'
_WORD = re.compile(rf"(?:{_SINGLE}|{_DOUBLE}|\\.|\\\Z|[^\s'\"\\])+", re.DOTALL)
_PIECE = re.compile(rf"(?P<single>{_SINGLE})|(?P<double>{_DOUBLE})|\\(?P<escaped>.)|(?P<plain>[^'\"\\]+|\\)", re.DOTALL)


def _unquoted(piece: re.Match[str]) -> str:
    if piece["single"] is not None:
        return piece["single"].removeprefix("'").removesuffix("'")
    if piece["double"] is not None:
        ended = re.fullmatch(r'"((?:\\["\\]|[^"])*)"?', piece["double"], re.DOTALL)
        return re.sub(r'\\(["\\])', r"\1", ended[1] if ended else piece["double"][1:])
    return piece["escaped"] if piece["escaped"] is not None else piece["plain"]
