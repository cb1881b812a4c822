"""Tool patterns as frontmatter writes them: ``Read``, ``Bash(git log:*)``."""

from __future__ import annotations


def split_patterns(text: str) -> tuple[str, ...]:
    """Patterns separated by commas or blanks; nothing inside parentheses separates."""
    patterns: list[str] = []
    start, depth = 0, 0
    for index, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        elif depth == 0 and (char == "," or char.isspace()):
            patterns.append(text[start:index])
            start = index + 1
    patterns.append(text[start:])
    return tuple(pattern.strip() for pattern in patterns if pattern.strip())
