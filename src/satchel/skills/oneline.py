"""Text of unknown authors as one visible line, for listings that a model or a person reads."""

from __future__ import annotations

import re

# What has no glyph, or changes how other text is shown: direction marks and overrides, zero-width characters,
# annotation marks, the tag block with the variation supplement, lone surrogates. Joiners belong to emoji and to several
# scripts; between other characters they only hide something.
_HIDDEN = re.compile(
    "[\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
    "|(?<![^\x00-\x7f\u200c\u200d\\s])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u200c\u200d\\s])"
)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


def one_line(text: str) -> str:
    """``text`` with every run of whitespace as one blank and without control and invisible characters."""
    if not text.isascii():
        text = _HIDDEN.sub("", text)
    return " ".join(_CONTROL.sub("", text).split())


def hidden_characters(text: str, *, max_lines: int) -> dict[int, list[str]]:
    """``"U+XXXX"`` of the invisible characters on the first ``max_lines`` lines that have any, by line from 1."""
    found: dict[int, list[str]] = {}
    if text.isascii():
        return found
    line, seen = 1, 0
    for match in _HIDDEN.finditer(text):
        line += text.count("\n", seen, match.start())
        seen = match.start()
        if line not in found and len(found) == max_lines:
            break
        found.setdefault(line, []).append(f"U+{ord(match.group()):04X}")
    return found
