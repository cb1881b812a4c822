"""Host paths in what a program printed, as the paths that mean the same where it ran."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import replace

from satchel.execution.workspace import Workspace
from satchel.ports.execution import Captured

# A path goes on until something that tracebacks and compilers put behind one.
_REST = r"(?P<rest>(?:/[^\s\"'`:,;()<>|&=\[\]{}\\\0]*)?)"


def relative_paths(text: str, workspace: Workspace, cwd: str) -> str:
    """``text`` with every path below ``workspace`` relative to ``cwd``; the directory itself becomes ``.``.

    A path that merely begins alike, one that leaves the workspace again through ``..`` and one inside a longer path
    or an address stay as they are.
    """
    return _shortened(text, workspace.root, cwd)


def skill_paths(text: str, directory: str, name: str) -> str:
    """``text`` with every path below a skill's directory as the skill spells it; the directory itself is ``name``."""
    return _shortened(text, directory, directory, name)


def _shortened(text: str, root: str, cwd: str, name: str = ".") -> str:
    if root not in text:
        return text

    def shorter(match: re.Match[str]) -> str:
        rest = match["rest"]
        path = posixpath.normpath(root + rest)
        if not (path == root or path.startswith(root + "/")):
            return match[0]
        # What follows a ".." depends on links, and a dot at the end may belong to the sentence: both stay.
        named = re.match(r"(?:/(?!\.\.?(?:/|$))[^/]+)*", rest)
        kept = (named[0] if named else "").rstrip(".")
        shown, left = relative(root + kept, cwd), rest[len(kept) :]
        shown = name if shown == "." else shown
        return match[0] if shown.endswith(".") and left.startswith(".") else shown + left

    return re.sub(rf"(?<![\w./~-]){re.escape(root)}(?![\w.-]){_REST}", shorter, text)


def relative(path: str, start: str) -> str:
    """``path`` as it is written in the directory ``start``; both are absolute and normal. Nothing is looked up."""
    parts, base = path.strip("/").split("/"), start.strip("/").split("/")
    common = next((at for at, pair in enumerate(zip(parts, base, strict=False)) if pair[0] != pair[1]), None)
    same = min(len(parts), len(base)) if common is None else common
    return "/".join([".."] * (len(base) - same) + parts[same:]) or "."


def relative_capture(captured: Captured, workspace: Workspace, cwd: str) -> Captured:
    """What was kept of a stream, with such paths."""
    root = workspace.root.encode()
    if root not in captured.head and root not in captured.tail:
        return captured
    return with_text(captured, lambda text: relative_paths(text, workspace, cwd))


def with_text(captured: Captured, change: Callable[[str], str]) -> Captured:
    """What was kept of a stream, changed as text; ``dropped_bytes`` stays."""

    def changed(data: bytes) -> bytes:
        return change(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    return replace(captured, head=changed(captured.head), tail=changed(captured.tail))
