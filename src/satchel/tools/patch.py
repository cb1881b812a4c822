"""``apply_patch``: changes of one file or many, all of them or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from satchel.chat.messages import Json
from satchel.chat.request import ToolSpec
from satchel.execution.envelope import BEGIN, END, PATCH_NAMES, heredoc_patch
from satchel.execution.file_session import FileSession
from satchel.execution.patch import FORMAT_HINT
from satchel.tools.access import text_argument
from satchel.tools.base import Progress, ToolCall, ToolContext, ToolResult, failure
from satchel.tools.files import PATHS, raw_text, reported

APPLY_PATCH = "apply_patch"
PATCH_ALIASES = tuple(name for name in PATCH_NAMES if name != APPLY_PATCH)

_TEXTS = ("patch", "input", "diff", "content", "text")
_DEPTH = 4
_KINDS = {"create_file": "Add", "add": "Add", "delete_file": "Delete", "delete": "Delete"}

SPEC = ToolSpec(
    name=APPLY_PATCH,
    description=(
        "Change files: the one way to modify a file that exists, for one line or for many files at once. Everything is "
        "applied or nothing.\n"
        f"{FORMAT_HINT}\n"
        "A part begins with *** Update File, *** Add File (every line begins with +) or *** Delete File; "
        "*** Move to: NEW stands right below *** Update File. Each further hunk of a file begins with @@. Copy "
        "unchanged lines exactly as the file has them, without line numbers, and just enough of them to find the "
        "place. What was patched need not be read back."
    ),
    parameters={
        "type": "object",
        "properties": {
            "patch": {"type": "string", "description": f"The whole patch, from {BEGIN} to {END}."},
        },
        "required": ["patch"],
    },
)


class ApplyPatch:
    """Applies patches in the session of one workspace."""

    def __init__(self, session: FileSession) -> None:
        self._session = session

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        text, folder = patch_argument(call.arguments)
        if not text.strip():
            return failure("invalid-arguments", f"{APPLY_PATCH} needs patch. {FORMAT_HINT}")
        context.report(Progress(phase="writing", detail=APPLY_PATCH))
        return await reported(self._session.patch(text, folder), "", context)


def patch_argument(arguments: Mapping[str, Json]) -> tuple[str, str]:
    """``(patch, the folder that it is meant in)`` however it was sent; ``("", "")`` when there is none.

    Under another name, as a command line with a heredoc, or as one file's hunks beside its path.
    """
    operation = arguments.get("operation")
    if isinstance(operation, dict):
        arguments = operation
    text = raw_text(arguments, *_TEXTS)
    if text is None or BEGIN not in text:
        text = next((value for value in _texts(arguments, _DEPTH) if BEGIN in value), text)
    path = text_argument(arguments, *PATHS)
    kind = _KINDS.get(text_argument(arguments, "type", "operation", "action"), "Update")
    if path and (text is not None or kind == "Delete") and not _has_header(text or ""):
        body = "" if kind == "Delete" else text or ""
        return f"*** {kind} File: {path}\n{body}", ""
    command = heredoc_patch(text or "")
    return (command.text, command.folder) if command else (text or "", "")


def _has_header(text: str) -> bool:
    return BEGIN in text or any(line.startswith("*** ") and " File:" in line for line in text.splitlines())


def _texts(value: Json | Mapping[str, Json], depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, list):
        for item in value:
            yield from _texts(item, depth - 1)
    elif depth and isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item, depth - 1)
