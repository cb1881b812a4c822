"""What the file tools of one workspace share: its files, what was read of them, and what is said of a change."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from satchel.context.budget import format_bytes
from satchel.errors import FileError, PathError
from satchel.execution.changes import Planned, missing, plan_edit, plan_patch
from satchel.execution.envelope import heredoc_patch, read_patch
from satchel.execution.files import WorkFiles
from satchel.execution.ledger import ReadLedger
from satchel.execution.numbered import line_count, numbered
from satchel.execution.publish import Change
from satchel.execution.room import Room
from satchel.execution.syntax import MOST_FILES, SyntaxChecker
from satchel.execution.tracking import FileTracker
from satchel.execution.workspace import Workspace

PAGE_LINES = 400
_MOST_LINES = 4000
_PAGE_CHARS = 48 * 1024
_LINE_CHARS = 2000
_AS_PATCHED = "The files hold what the patch says; there is no need to read them back."
_NOT_AGAIN = "what you wrote; there is no need to read it back."


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a model is told, and the files that were written."""

    text: str
    path: str = ""
    files: tuple[str, ...] = ()


class FileSession:
    """The files of one workspace for one conversation. Without a ``checker``, nothing is parsed after a change.

    ``tracker`` is what all tools of the workspace share. While there is no ``room``, nothing is written.

    Every method raises ``FileError`` or ``PathError``, and then nothing was changed.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        ledger: ReadLedger,
        checker: SyntaxChecker | None = None,
        tracker: FileTracker | None = None,
        room: Room | None = None,
    ) -> None:
        self._files = WorkFiles(workspace)
        self._ledger = ledger
        self._checker = checker
        self._tracker = tracker
        self._room = room
        # Calls of one round run together: each is worked out on what the one before it left.
        self._one_at_a_time = asyncio.Lock()

    async def read(self, path: str, start: int = 1, count: int = PAGE_LINES) -> Done:
        """Numbered lines from ``start`` (counted from one) on, at most ``count`` and as many as fit a page."""
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._read, path, max(1, start), min(max(1, count), _MOST_LINES))

    async def write(self, path: str, content: str, *, overwrite: bool = False) -> Done:
        """Makes a new file. An existing one is replaced with ``overwrite`` alone."""
        path = self._files.relative(path)
        async with self._one_at_a_time:
            planned = await asyncio.to_thread(self._plan_write, path, _writable(content), overwrite=overwrite)
            if not planned.changes:
                return Done(text=f"{path} already holds exactly this; nothing was written.", path=path)
            return await self._done(planned, f"{planned.lines[0]}. It holds exactly {_NOT_AGAIN}")

    async def replace(self, path: str, old: str, new: str, *, everywhere: bool = False) -> Done:
        """Replaces a text that is there exactly once, or everywhere."""
        old, new = _writable(old), _writable(new)
        async with self._one_at_a_time:
            planned = await asyncio.to_thread(self._plan_replace, path, old, new, everywhere=everywhere)
            return await self._done(planned, f"{planned.lines[0]}. It holds {_NOT_AGAIN}")

    async def patch(self, text: str, folder: str = "") -> Done:
        """Applies a whole patch, or nothing of it. Paths are relative to ``folder``, "" for the working directory."""
        patches = read_patch(_writable(text))
        async with self._one_at_a_time:
            try:
                planned = await asyncio.to_thread(plan_patch, self._files, patches, folder, self._ledger.check)
            except (FileError, PathError) as error:
                raise _of_patch(error, len(patches)) from error
            if not planned.changes:
                return Done(text="\n".join(("The files hold this already; nothing was written.", *planned.notes)))
            head = f"Patched {len(patches)} file{'' if len(patches) == 1 else 's'}:"
            tail = _AS_PATCHED if planned.written else "What the patch removes is gone; there is no need to look."
            return await self._done(planned, "\n".join((head, *planned.lines, tail)))

    async def patch_command(self, command: str, cwd: str) -> Done | None:
        """``patch`` for a command line that hands a patch to ``apply_patch`` in ``cwd``; None for every other one."""
        given = heredoc_patch(command)
        if given is None:
            return None
        folder = given.folder if given.folder.startswith(("/", "~")) else f"{cwd}/{given.folder}"
        return await self.patch(given.text, folder)

    def _read(self, path: str, start: int, count: int) -> Done:
        path = self._files.relative(path)
        try:
            content = self._files.read(path)
        except PathError as error:
            if error.code == "not-a-file":
                raise PathError(
                    error.code, error.message, hint=f"List it with shell, for example ls -la {path}."
                ) from error
            if error.code == "path-not-found":
                raise missing(self._files, path) from error
            raise
        lines = content.text.removeprefix("\ufeff").split("\n")
        total = line_count(lines)
        if start > max(1, total):
            raise PathError("offset-past-end", f"{path} has {_counted(total)}, so line {start} is past its end.")
        if self._ledger.read(path, content.data, start, count):
            return Done(text=f"{path} is unchanged since you last read it, so it is not shown again.", path=path)
        return Done(text=_page(path, lines, total, start, count), path=path)

    def _plan_write(self, path: str, content: str, *, overwrite: bool) -> Planned:
        data = content.encode()
        size = f"{_lines(content)}, {format_bytes(len(data))}"
        if not self._files.exists(path):
            return Planned(changes=(Change(path=path, data=data),), lines=(f"Created {path} ({size})",))
        before = self._files.read_to_change(path)
        if before.data == data:
            self._ledger.wrote(path, data)
            return Planned(changes=(), lines=())
        if not overwrite:
            raise FileError(
                "file-exists",
                f"{path} exists already ({_lines(before.text)}), so nothing was written.",
                hint=f'write_file makes new files. Change this one with apply_patch ("*** Update File: {path}").',
            )
        self._ledger.check(path, before.data)
        return Planned(
            changes=(Change(path=path, data=data, before=before, mode=before.mode),),
            lines=(f"Replaced {path} ({size})",),
        )

    def _plan_replace(self, path: str, old: str, new: str, *, everywhere: bool) -> Planned:
        path = self._files.relative(path)
        try:
            before = self._files.read_to_change(path)
        except PathError as error:
            if error.code == "path-not-found":
                raise missing(self._files, path, verb="changed") from error
            raise
        self._ledger.check(path, before.data)
        return plan_edit(path, before, old, new, everywhere=everywhere)

    async def _done(self, planned: Planned, text: str) -> Done:
        await asyncio.to_thread(self._publish, planned)
        parts = [text, *(f"Note: {note}" for note in planned.notes)]
        if self._checker is not None:
            parts += await self._checker.check(_texts(planned))
        written = planned.written
        return Done(text="\n".join(parts), path=written[0] if len(written) == 1 else "", files=written)

    def _publish(self, planned: Planned) -> None:
        if self._room is not None and planned.written and self._room.is_full():
            raise FileError(
                "write-failed",
                "All conversations here have filled the disk space that they share; nothing was written.",
                hint="There is room again when some of these conversations have ended.",
            )
        self._files.publish(planned.changes)
        if self._tracker is not None:
            self._tracker.wrote(change.path for change in planned.changes)
        for change in planned.changes:
            if change.data is not None:
                self._ledger.wrote(change.path, change.data)


def _lines(text: str) -> str:
    return _counted(line_count(text.split("\n")))


def _counted(lines: int) -> str:
    return f"{lines} line{'' if lines == 1 else 's'}"


def _texts(planned: Planned) -> dict[str, str]:
    written = [change for change in planned.changes if change.data is not None][:MOST_FILES]
    return {change.path: (change.data or b"").decode("utf-8", "replace") for change in written}


def _writable(text: str) -> str:
    """Text that a model sent, without halves of broken characters: they cannot be written."""
    return text.encode("utf-8", "replace").decode()


def _of_patch(error: FileError | PathError, files: int) -> FileError | PathError:
    said = "No other file of the patch was changed either." if files > 1 else "Nothing was changed."
    if files == 1 and "nothing was changed" in error.message:
        return error
    return type(error)(error.code, f"{error.message} {said}", hint=error.hint)


def _page(path: str, lines: list[str], total: int, start: int, count: int) -> str:
    if not total:
        return f"{path} is empty."
    shown: list[str] = []
    left = _PAGE_CHARS
    for index in range(start - 1, min(start - 1 + count, total)):
        row = numbered(lines, index, index + 1, line_chars=_LINE_CHARS)
        left -= len(row)
        if shown and left < 0:
            break
        shown.append(row)
    last = start - 1 + len(shown)
    page = [f"{path}, line {start} to {last} of {total}", *shown]
    if last < total:
        page.append(f'[{total - last} more line(s) below; go on with read_file(path="{path}", offset={last + 1})]')
    return "\n".join(page)
