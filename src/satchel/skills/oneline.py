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
_SUSPECT = re.compile(
    "[\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
)
_CODES_READ = 64
_ASCII = bytes(range(0x80))
_VISIBLE = bytes(range(0x20, 0x7F))
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


def one_line(text: str) -> str:
    """``text`` with every run of whitespace as one blank and without control and invisible characters."""
    text = text.strip()
    if text.isascii():
        if "  " not in text and not text.encode().translate(None, _VISIBLE):
            return text
    elif _SUSPECT.search(text):
        text = _HIDDEN.sub("", text)
    elif "  " not in text and text.isprintable():
        return text
    return " ".join(_CONTROL.sub("", text).split())


def may_hide(data: bytes) -> bool:
    """Whether UTF-8 ``data`` needs a closer look by ``hidden_characters``: False for nearly every text, and cheap."""
    return not data.isascii() and _SUSPECT.search(data.translate(None, _ASCII).decode()) is not None


def hidden_characters(text: str, *, max_lines: int) -> dict[int, tuple[int, list[str]]]:
    """Invisible characters of the first ``max_lines`` lines that have any, by line from 1.

    For each line how many there are, and which: ``"U+XXXX"``, each once, of the first few of them.
    """
    found: dict[int, tuple[int, list[str]]] = {}
    match = None if text.isascii() or not _SUSPECT.search(text) else _HIDDEN.search(text)
    line, seen = 1, 0
    while match and len(found) < max_lines:
        line += text.count("\n", seen, match.start())
        seen = match.start()
        end = text.find("\n", seen)
        hidden = _HIDDEN.findall(text, seen, len(text) if end < 0 else end)
        found[line] = len(hidden), [f"U+{ord(char):04X}" for char in dict.fromkeys(hidden[:_CODES_READ])]
        match = _HIDDEN.search(text, end) if end >= 0 else None
    return found
