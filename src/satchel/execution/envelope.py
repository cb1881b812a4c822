"""A patch over many files: which files, and what is to be done with each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from satchel.errors import FileError
from satchel.execution.diagnosis import quoted
from satchel.execution.patch import END_OF_FILE, FORMAT_HINT, split_lines

BEGIN = "*** Begin Patch"
END = "*** End Patch"
MAX_CHARS = 1024 * 1024
MAX_FILES = 100
_MAX_QUOTED_CHARS = 64 * 1024  # of a command that is split into words, which is slow
PATCH_NAMES = ("apply_patch", "apply-patch", "applypatch", "apply_patch_tool")

_HEADER = re.compile(r"\*\*\* (Add|Update|Delete) File:(.*)")
_MOVE = re.compile(r"\*\*\* Move to:(.*)")
_HEREDOC = re.compile(
    r"(?:cd[ \t]+(?P<folder>[^\s;&|<>'\"]+|'[^'\n]*'|\"[^\"\n]*\")[ \t]*(?:&&|;)[ \t]*)?"
    r"(?:" + "|".join(map(re.escape, PATCH_NAMES)) + r")[ \t]*(?:-[ \t]*)?"
    r"<<-?[ \t]*(?P<quote>['\"]?)(?P<word>\w+)(?P=quote)[ \t]*"
)
_KINDS: dict[str, Literal["add", "update", "delete"]] = {"Add": "add", "Update": "update", "Delete": "delete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """What a patch does with one file. ``lines`` is everything below its header, ``move_to`` "" when it stays."""

    kind: Literal["add", "update", "delete"]
    path: str
    move_to: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellPatch:
    """A patch that was given to a shell; ``folder`` is where the command line went first, "" for nowhere."""

    text: str
    folder: str = ""


def read_patch(text: str) -> tuple[FilePatch, ...]:
    """The files of a patch in their order, at least one.

    What stands around the envelope (code fences, a heredoc's words, prose) does not count, and neither marker must be
    there. Several envelopes behind each other are one patch.

    Raises:
        FileError: patch-invalid, file-too-large.
    """
    if len(text) > MAX_CHARS:
        raise FileError("file-too-large", f"The patch has more than {MAX_CHARS} characters; send it in parts.")
    patches: list[FilePatch] = []
    lines: list[str] = []
    is_open = False
    for line in split_lines(text):
        header = _HEADER.match(line)
        move = _MOVE.match(line)
        if header or line.rstrip() in {BEGIN, END}:
            _close(patches, lines, is_open=is_open)
            is_open = header is not None
            if header:
                patches.append(FilePatch(kind=_KINDS[header[1]], path=_path(header[2], line)))
        elif is_open and move and not lines and patches[-1].kind == "update" and not patches[-1].move_to:
            patches[-1] = replace(patches[-1], move_to=_path(move[1], line))
        elif is_open:
            lines.append(line)
        elif line.startswith("***") and line.rstrip() != END_OF_FILE:
            raise _invalid(f"{quoted(line)} is no marker of this format, or stands outside a file's part")
        elif line.startswith("@@"):
            raise _invalid(f'{quoted(line)} stands before any "*** Update File:" line')
    _close(patches, lines, is_open=is_open)
    if not patches:
        raise _invalid('It has no line "*** Update File:", "*** Add File:" or "*** Delete File:"')
    if len(patches) > MAX_FILES:
        raise FileError("file-too-large", f"The patch changes more than {MAX_FILES} files; send it in parts.")
    return tuple(patches)


def heredoc_patch(command: str) -> ShellPatch | None:
    """The patch in a command line that is nothing but ``apply_patch`` with a heredoc or one quoted argument.

    ``cd FOLDER &&`` may stand in front. None for every other command line.
    """
    if not any(name in command for name in PATCH_NAMES):
        return None
    first, *rest = command.strip().split("\n")
    heredoc = _HEREDOC.fullmatch(first.rstrip())
    if heredoc:
        ends = [index for index, line in enumerate(rest) if line.strip() == heredoc["word"]]
        if ends != [len(rest) - 1]:
            return None
        return ShellPatch(text="\n".join(rest[:-1]), folder=(heredoc["folder"] or "").strip("'\""))
    if BEGIN not in command or len(command) > _MAX_QUOTED_CHARS or not first.startswith(("cd ", *PATCH_NAMES)):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    folder = ""
    if len(words) > 3 and words[0] == "cd" and words[2] == "&&":  # noqa: PLR2004 - cd, the folder, &&
        folder, words = words[1], words[3:]
    if len(words) == 2 and words[0] in PATCH_NAMES and words[1].lstrip().startswith(BEGIN):  # noqa: PLR2004 - both words
        return ShellPatch(text=words[1], folder=folder)
    return None


def _close(patches: list[FilePatch], lines: list[str], *, is_open: bool) -> None:
    if not is_open:
        return
    patch = patches[-1]
    if patch.kind == "delete" and _has_text(lines):
        raise _invalid(f'"*** Delete File: {patch.path}" has lines below it; a deleted file needs none')
    if patch.kind == "update" and not patch.move_to and not _has_text(lines):
        raise _invalid(f'"*** Update File: {patch.path}" has no hunk below it')
    patches[-1] = replace(patch, lines=tuple(lines))
    lines.clear()


def _has_text(lines: Sequence[str]) -> bool:
    return any(line.strip() for line in lines)


def _path(given: str, line: str) -> str:
    path = given.strip()
    if not path:
        raise _invalid(f"{quoted(line)} names no file")
    return path


def _invalid(reason: str) -> FileError:
    return FileError("patch-invalid", f"The patch cannot be read. {reason}.", hint=FORMAT_HINT)
