"""The words of a command line, when it is certain that a shell runs one program with exactly these words.

Everything else is refused: operators, redirections, expansions of any kind, assignments in front, comments, globs,
backslashes, control characters, and letters outside quotes that some locale might treat as blanks.
"""

from __future__ import annotations

import re

_PROGRAM = re.compile(r"[A-Za-z0-9_./+-]+")
_PIECE = re.compile(
    r"(?P<blank> +)|(?P<plain>[A-Za-z0-9_@%+=:,./-]+)"
    # Inside single quotes everything is itself; inside double quotes all but $ ` \ and, in some shells, !
    r"|'(?P<single>[^'\x00-\x1f\x7f]*)'|\"(?P<double>[^\"$`\\!\x00-\x1f\x7f]*)\""
)
_RESERVED = frozenset(
    "if then elif else fi for while until do done case esac select function time coproc in".split()  # noqa: SIM905
)
MAX_COMMAND = 16 * 1024
"""Characters of a longer command are not looked at."""


def simple_command(text: str) -> tuple[str, ...] | None:
    """The words of one simple command, None when it is anything else or cannot be told. Aliases are not known here."""
    if len(text) > MAX_COMMAND:
        return None
    words: list[str] = []
    pieces: list[str] = []
    at, first_is_plain = 0, True
    stripped = text.strip(" ")
    while at < len(stripped):
        match = _PIECE.match(stripped, at)
        if match is None:
            return None
        at = match.end()
        if match.lastgroup == "blank":
            words.append("".join(pieces))
            pieces = []
            continue
        is_plain = match.lastgroup == "plain"
        if not words:
            first_is_plain = first_is_plain and is_plain
        piece = match[match.lastgroup or 0]
        if is_plain and not pieces and piece.startswith("="):
            return None
        pieces.append(piece)
    if not pieces:
        return None
    words.append("".join(pieces))
    if not first_is_plain or words[0] in _RESERVED or not _PROGRAM.fullmatch(words[0]):
        return None
    return tuple(words)
