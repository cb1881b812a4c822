"""Lists that frontmatter writes as one text: tool patterns (``Read``, ``Bash(git log:*)``), globs (``*.{a,b}``)."""

from __future__ import annotations

_CLOSING = {"(": ")", "{": "}"}


def split_patterns(text: str, *, commas: bool = True, bracket: str = "(") -> tuple[str, ...]:
    """Patterns separated by blanks and, unless ``commas`` is False, commas; nothing inside ``bracket``s separates."""
    patterns: list[str] = []
    start, depth = 0, 0
    closing = _CLOSING[bracket]
    for index, char in enumerate(text):
        if char == bracket:
            depth += 1
        elif char == closing:
            depth = max(0, depth - 1)
        elif depth == 0 and ((commas and char == ",") or char.isspace()):
            patterns.append(text[start:index])
            start = index + 1
    patterns.append(text[start:])
    return tuple(pattern.strip() for pattern in patterns if pattern.strip())
