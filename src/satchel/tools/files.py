"""``read_file``, ``write_file`` and the ``edit_file`` that is answered without being declared."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Mapping
from typing import cast

from satchel.chat.messages import Json
from satchel.chat.request import ToolSpec
from satchel.errors import FileError, PathError
from satchel.execution.file_session import PAGE_LINES, Done, FileSession
from satchel.tools.access import count_argument, text_argument
from satchel.tools.base import Progress, ToolCall, ToolContext, ToolResult, failure

READ_FILE = "read_file"
WRITE_FILE = "write_file"
EDIT_FILE = "edit_file"

READ_ALIASES = ("read", "Read", "readfile", "read_text_file", "view_file", "cat_file", "get_file")
WRITE_ALIASES = ("write", "Write", "writefile", "create_file", "new_file", "put_file")
EDIT_ALIASES = (
    "edit", "Edit", "editfile", "str_replace", "str_replace_editor", "str_replace_based_edit_tool", "replace_in_file",
    "apply_edit", "string_replace",
)  # fmt: skip

PATHS = ("path", "file_path", "filepath", "filename", "file_name", "file", "target_file", "absolute_path", "abs_path")
_STARTS = ("offset", "start_line", "line_start", "from_line", "start", "line")
_COUNTS = ("limit", "count", "num_lines", "max_lines", "lines")
_ENDS = ("end_line", "line_end", "to_line", "end")
_CONTENTS = ("content", "contents", "text", "file_text", "data", "body", "code")
_OLD = ("old_string", "old_str", "old_text", "old", "search", "find", "target")
_LONGEST_RANGE = 60
_NEW = ("new_string", "new_str", "new_text", "new", "replace", "replacement")

READ_SPEC = ToolSpec(
    name=READ_FILE,
    description=(
        "Show lines of a text file in the working directory, each with its number. The number and the bar behind it "
        "are not part of the file."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the working directory."},
            "offset": {"type": "integer", "description": "The line to start at, 1 for the first; 1 when left out."},
            "limit": {"type": "integer", "description": f"How many lines at most; {PAGE_LINES} when left out."},
        },
        "required": ["path"],
    },
)
WRITE_SPEC = ToolSpec(
    name=WRITE_FILE,
    description=(
        "Create a new text file, with the directories on the way. A file that exists is refused: change it with "
        "apply_patch. What is written need not be read back."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The new file, relative to the working directory."},
            "content": {"type": "string", "description": "Everything that the file is to hold."},
        },
        "required": ["path", "content"],
    },
)
EDIT_SPEC = ToolSpec(
    name=EDIT_FILE,
    description="Replace a text that is in a file exactly once.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "old_string": {"type": "string"},
            "new_string": {"type": "string"},
        },
        "required": ["path", "old_string", "new_string"],
    },
)


class ReadFile:
    """Reads within the working directory, by lines."""

    def __init__(self, session: FileSession) -> None:
        self._session = session

    @property
    def spec(self) -> ToolSpec:
        return READ_SPEC

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del context
        path = text_argument(call.arguments, *PATHS)
        if not path:
            return _no_path(READ_FILE)
        start, count = lines_argument(call.arguments)
        return await answered(self._session.read(path, start, count), path)


class WriteFile:
    """Makes new files. An ``overwrite`` that nobody declared is honoured, since models were taught it elsewhere."""

    def __init__(self, session: FileSession) -> None:
        self._session = session

    @property
    def spec(self) -> ToolSpec:
        return WRITE_SPEC

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        path = text_argument(call.arguments, *PATHS)
        if not path:
            return _no_path(WRITE_FILE)
        content = _content(call.arguments)
        if content is None:
            text = f'{WRITE_FILE} needs content: everything that {path} is to hold, "" for an empty file.'
            return failure("invalid-arguments", text, path=path)
        context.report(Progress(phase="writing", detail=path))
        overwrite = _flag(call.arguments, "overwrite", "force")
        return await reported(self._session.write(path, content, overwrite=overwrite), path, context)


class EditFile:
    """Answers what models call by habit: a replacement, and the views and new files of editors that do all three."""

    def __init__(self, session: FileSession) -> None:
        self._session = session

    @property
    def spec(self) -> ToolSpec:
        return EDIT_SPEC

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        arguments = call.arguments
        command = text_argument(arguments, "command").casefold()
        if command == "view":
            return await ReadFile(self._session).run(call, context)
        if command in {"create", "write"}:
            return await WriteFile(self._session).run(call, context)
        path = text_argument(arguments, *PATHS)
        if not path:
            return _no_path(EDIT_FILE)
        old, new = raw_text(arguments, *_OLD), raw_text(arguments, *_NEW)
        if command not in {"", "str_replace", "replace", "edit"} or old is None or new is None:
            text = f"{EDIT_FILE} needs path, old_string and new_string. For any other change use apply_patch."
            return failure("invalid-arguments", text, path=path)
        context.report(Progress(phase="writing", detail=path))
        everywhere = _flag(arguments, "replace_all", "all", "global")
        return await reported(self._session.replace(path, old, new, everywhere=everywhere), path, context)


async def answered(work: Awaitable[Done], path: str = "") -> ToolResult:
    """The result of a file's work, or its failure as a sentence for the model."""
    try:
        done = await work
    except (FileError, PathError) as error:
        gap = "\n" if "\n" in error.hint else " "
        return failure(error.code, gap.join(part for part in (error.message, error.hint) if part), path=path)
    return ToolResult(text=done.text, path=done.path or path, files=done.files)


async def reported(work: Awaitable[Done], path: str, context: ToolContext) -> ToolResult:
    """The same, with the files that were written as progress."""
    result = await answered(work, path)
    if result.files:
        context.report(Progress(phase="finished", detail=path or result.path, files=result.files))
    return result


def raw_text(arguments: Mapping[str, Json], *names: str) -> str | None:
    """The first of the named arguments that is a text, untouched; None when there is none."""
    return next((value for name in names if isinstance(value := arguments.get(name), str)), None)


def lines_argument(arguments: Mapping[str, Json]) -> tuple[int, int]:
    """``(first line, most lines)``, from an offset and a limit, a first and a last line, or a range of two."""
    view = _range(arguments.get("view_range", arguments.get("range")))
    start, end = view or (count_argument(arguments, *_STARTS), count_argument(arguments, *_ENDS))
    start = max(1, start)
    if end >= start:
        return start, end - start + 1
    return start, count_argument(arguments, *_COUNTS) or PAGE_LINES


def _range(value: Json) -> tuple[int, int] | None:
    """``[10, 20]``, also as text, ``10-20`` and ``10:20``; an end of -1 is the end of the file."""
    if isinstance(value, list):
        value = " ".join(str(item) for item in value[:2])
    if not isinstance(value, str) or len(value) > _LONGEST_RANGE:
        return None
    found = re.fullmatch(r"\D*(\d{1,9})(?:\.0)?(?:\s*[\s,:-]\s*(-?\d{1,9})(?:\.0)?)?\D*", value)
    return (int(found[1]), int(found[2] or 0)) if found else None


def _content(arguments: Mapping[str, Json]) -> str | None:
    """The content as a text; a JSON value that was sent as itself is written as JSON."""
    text = raw_text(arguments, *_CONTENTS)
    if text is not None:
        return text
    value = next((arguments[name] for name in _CONTENTS if isinstance(arguments.get(name), dict | list)), None)
    if value is None:
        return None
    return json.dumps(cast("object", value), ensure_ascii=False, indent=2) + "\n"


def _flag(arguments: Mapping[str, Json], *names: str) -> bool:
    value = next((arguments[name] for name in names if name in arguments), False)
    return value.strip().casefold() in {"true", "yes", "1"} if isinstance(value, str) else value is True or value == 1


def _no_path(tool: str) -> ToolResult:
    return failure("invalid-arguments", f"{tool} needs path: a file relative to the working directory.")
