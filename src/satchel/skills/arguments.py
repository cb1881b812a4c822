"""Arguments of a skill: what it declares, and how one text becomes several arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from satchel.skills.model import Skill

_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'|(\S+)")
_SHELL = re.compile(
    r"(?P<blank>\s+)"
    r"|'(?P<single>[^']*)(?:'|\Z)"
    r'|"(?P<double>(?:[^"\\]|\\.?)*)(?:"|\Z)'
    r"|\\(?P<escaped>.?)"
    r"|(?P<plain>[^\s'\"\\]+)",
    re.DOTALL,
)
_IN_DOUBLE_QUOTES = re.compile(r'\\(["\\])')


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What a skill says about its arguments.

    ``names`` in the author's order. ``by_name``: the field is a mapping, so its arguments are given by name and have no
    positions. ``has_hint``: there is an argument-hint.
    """

    names: tuple[str, ...] = ()
    by_name: bool = False
    has_hint: bool = False

    @property
    def takes_any(self) -> bool:
        """Whether the skill says at all that it takes arguments."""
        return bool(self.names) or self.has_hint


def declared_arguments(skill: Skill) -> Declared:
    """What the skill's ``arguments`` and ``argument-hint`` say, in short."""
    return Declared(
        names=tuple(argument.name for argument in skill.arguments),
        by_name=skill.arguments_by_name,
        has_hint=bool(skill.argument_hint),
    )


def split_arguments(text: str, tokens: Literal["blanks", "quotes", "posix"]) -> tuple[str, ...]:
    """``text`` as single arguments.

    ``blanks``: whitespace separates, quotes are text. ``quotes``: an argument that starts with a quote ends at the next
    one. ``posix``: the words that a shell reads, but nothing is expanded and an unclosed quote ends with the text.
    """
    if tokens == "blanks":
        return tuple(text.split())
    if tokens == "quotes":
        return tuple(match[match.lastindex or 0] for match in _QUOTED.finditer(text))
    words: list[str] = []
    pieces: list[str] = []
    for match in _SHELL.finditer(text):
        if match.lastgroup != "blank":
            piece = match[match.lastgroup or 0]
            pieces.append(_IN_DOUBLE_QUOTES.sub(r"\1", piece) if match.lastgroup == "double" else piece)
        elif pieces:
            words.append("".join(pieces))
            pieces = []
    return (*words, "".join(pieces)) if pieces else tuple(words)
