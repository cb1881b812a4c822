"""What a model is told of working with files, once, in front of the conversation."""

from __future__ import annotations

from collections.abc import Collection

from satchel.tools.files import READ_FILE, WRITE_FILE
from satchel.tools.patch import APPLY_PATCH

_PLACE = (
    "Files live in the working directory, and paths are relative to it. What a call leaves there is there for the next."
)
_READ = f"Look at a file with {READ_FILE} before you change it. The line numbers that it shows are not in the file."
_PATCH = (
    f"Change files that exist with {APPLY_PATCH} and nothing else, be it one line or many files: the smallest patch "
    "that does it, with lines copied from what you read. It also makes, moves and deletes files."
)
_WRITE = f"{WRITE_FILE} is for new files; it does not change one that exists."
_SHELL = "Run what you changed with shell. Do not edit files with shell commands."
_SURE = "A call that succeeds has done what it says, so do not read the file back. One that fails has changed nothing."


def files_block(declared: Collection[str]) -> str:
    """``## Working with files`` for those tools that are declared, "" when none of the file tools is.

    A fixed text: the same tools always give the same bytes.
    """
    lines = {READ_FILE: _READ, APPLY_PATCH: _PATCH, WRITE_FILE: _WRITE, "shell": _SHELL}
    if not {READ_FILE, APPLY_PATCH, WRITE_FILE} & set(declared):
        return ""
    told = [_PLACE, *(line for name, line in lines.items() if name in declared), _SURE]
    return "## Working with files\n" + "\n".join(f"- {line}" for line in told)
