"""What a SKILL.md holds before any row judges it: its text, cut at the fences, and its frontmatter as values."""

from __future__ import annotations

from typing import NamedTuple

from satchel.skills.diagnostics import finding
from satchel.skills.frontmatter import Frontmatter, FrontmatterError, parse_frontmatter, split_fences
from satchel.skills.model import Diagnostic
from satchel.skills.oneline import hidden_characters, may_hide

_BOM = b"\xef\xbb\xbf"
_MAX_HIDDEN_FINDINGS = 8


class ManifestText(NamedTuple):
    """``front`` is None when there is nothing that a row could judge, and then ``found`` says why.

    Else ``found`` holds what every row is told of. ``body`` is as the author wrote it.
    """

    front: Frontmatter | None
    body: str
    found: tuple[Diagnostic, ...]


class ManifestTexts:
    """Opens each file once, however many rows judge it. To be kept no longer than one skill is looked at."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], ManifestText] = {}

    def open(self, data: bytes, path: str) -> ManifestText:
        """The same as ``open_manifest``."""
        text = self._known.get((path, data))
        if text is None:
            text = self._known[path, data] = open_manifest(data, path)
        return text


def open_manifest(data: bytes, path: str) -> ManifestText:
    """Decodes the bytes of a whole SKILL.md and reads its frontmatter. ``path`` stands in the findings."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _unreadable(finding("encoding-invalid", path, "The file is UTF-16 text, not UTF-8 (byte offset 0)."))
    skipped = len(_BOM) if data.startswith(_BOM) else 0
    try:
        text = data[skipped:].decode("utf-8")
    except UnicodeDecodeError as error:
        offset = error.start + skipped
        line = data.count(b"\n", 0, offset) + 1
        message = f"The file is not valid UTF-8: byte 0x{data[offset]:02x} at byte offset {offset}."
        return _unreadable(finding("encoding-invalid", path, message, line=line))
    try:
        fenced = split_fences(text)
        front = parse_frontmatter(fenced.yaml)
    except FrontmatterError as error:
        return _unreadable(
            finding(error.rule, path, error.message, line=error.line, column=error.column, hint=error.hint)
        )
    found: list[Diagnostic] = []
    if may_hide(data):
        for line, (count, codes) in hidden_characters(text, max_lines=_MAX_HIDDEN_FINDINGS).items():
            message = f"{count} invisible character(s): {', '.join(codes)[:160]}."
            found.append(finding("hidden-characters", path, message, line=line))
    return ManifestText(front, fenced.body, tuple(found))


def _unreadable(found: Diagnostic) -> ManifestText:
    return ManifestText(None, "", (found,))
