"""Host paths in what a program printed, as the paths that mean the same where it ran."""

from __future__ import annotations

import posixpath
import re
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
    root = workspace.root
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
        return match[0] if shown.endswith(".") and left.startswith(".") else shown + left

    return re.sub(rf"(?<![\w./~-]){re.escape(root)}(?![\w.-]){_REST}", shorter, text)


def relative(path: str, start: str) -> str:
    """``path`` as it is written in the directory ``start``; both are absolute and normal. Nothing is looked up."""
    parts, base = path.strip("/").split("/"), start.strip("/").split("/")
    common = next((at for at, pair in enumerate(zip(parts, base, strict=False)) if pair[0] != pair[1]), None)
    same = min(len(parts), len(base)) if common is None else common
    return "/".join([".."] * (len(base) - same) + parts[same:]) or "."


def relative_capture(captured: Captured, workspace: Workspace, cwd: str) -> Captured:
    """What was kept of a stream, with such paths. Only text is changed; ``dropped_bytes`` stays."""
    root = workspace.root.encode()
    if root not in captured.head and root not in captured.tail:
        return captured
    return replace(
        captured, head=_relative(captured.head, workspace, cwd), tail=_relative(captured.tail, workspace, cwd)
    )


def _relative(data: bytes, workspace: Workspace, cwd: str) -> bytes:
    return relative_paths(data.decode("utf-8", "surrogateescape"), workspace, cwd).encode("utf-8", "surrogateescape")
