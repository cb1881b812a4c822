"""The program at a real pseudo-terminal, typed at and read as a person would."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import struct
import termios
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.program.program import PATIENCE_S, PROGRAM, variables

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])")

_READY, _TAKEN = "\x1b[?2004h", "\x1b[?2004l"
_PATIENCE_S = 20.0


class Terminal:
    """``shown`` is all that came, ``text`` the same without escape sequences."""

    def __init__(self, master: int, process: asyncio.subprocess.Process) -> None:
        self._master = master
        self.process = process
        self.shown = ""
        self._mark = 0
        self._prompts = 0
        self._raw = b""
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(master, self._read)

    @property
    def text(self) -> str:
        return _plain(self.shown)

    def type(self, text: str) -> None:
        """Keys, as they are pressed; "\\r" is Enter, "\\x03" Ctrl-C, "\\x04" Ctrl-D."""
        os.write(self._master, text.encode())

    async def see(self, wanted: str) -> str:
        """Waits until ``wanted`` is shown after what was seen before; all from there up to its end."""
        await self._until(lambda: wanted in self.text[self._mark :], wanted)
        end = self.text.index(wanted, self._mark) + len(wanted)
        seen, self._mark = self.text[self._mark : end], end
        return seen

    async def prompt(self) -> None:
        """Waits until the next line may be typed: the editor asks the terminal to mark what is pasted."""
        self._prompts += 1
        await self._until(lambda: self.shown.count(_READY) >= self._prompts, "the prompt")
        self._mark = len(_plain(self.shown[: _nth(self.shown, _READY, self._prompts)]))

    async def ask(self, text: str) -> None:
        """Enters a line at the next prompt. What is shown after it is what is seen next."""
        await self.prompt()
        self.type(text + "\r")
        await self._until(lambda: self.shown.count(_TAKEN) >= self._prompts, "the end of the line")
        self._mark = len(_plain(self.shown[: _nth(self.shown, _TAKEN, self._prompts)]))

    async def end(self) -> int:
        """The exit code."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.process.wait()

    async def _until(self, is_so: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while not is_so():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{what!r} never came after {self.text[: self._mark]!r}: {self.shown!r}") from None

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # what a terminal says when the last program at it has gone
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
        self._raw += data
        self.shown = self._raw.decode("utf-8", "replace")
        self._news.set()


def _plain(shown: str) -> str:
    return _ESCAPES.sub("", shown).replace("\r", "")


def _nth(text: str, mark: str, number: int) -> int:
    """Where the mark ends that is this one from 1."""
    end = 0
    for _ in range(number):
        end = text.index(mark, end) + len(mark)
    return end


@asynccontextmanager
async def at_a_terminal(
    *arguments: str, cwd: Path | None = None, columns: int = 80, **more: str
) -> AsyncGenerator[Terminal]:
    """``satchel`` with the arguments, its three streams and its keyboard being one terminal."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *arguments,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=cwd,
        env=variables(**{"TERM": "xterm", "NO_COLOR": "", "PROMPT_TOOLKIT_NO_CPR": "1", **more}),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    terminal = Terminal(master, process)
    try:
        yield terminal
    finally:
        asyncio.get_running_loop().remove_reader(master)
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        os.close(master)
