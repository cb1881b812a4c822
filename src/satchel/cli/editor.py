"""The line that a person types: editing, completion, and a history that is theirs alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

Words = Callable[[str], Sequence[str]]
"""What may stand where the cursor is, by the text before it."""


class Editor:
    """Asks for one line after another. Pasted line breaks stay in the line; Alt-Enter makes one."""

    def __init__(self, history: History, words: Words) -> None:
        self._session = PromptSession[str](
            history=history,
            completer=_Words(words),
            complete_while_typing=False,
            key_bindings=_keys(),
            enable_suspend=True,
        )

    async def read(self) -> str:
        """The next line. Raises ``EOFError`` for Ctrl-D in an empty line, ``KeyboardInterrupt`` for Ctrl-C."""
        return await self._session.prompt_async("> ")


def open_history(folder: str) -> History:
    """The history kept in ``folder``, readable by its owner alone. Raises ``OSError`` when it cannot be kept."""
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    path = Path(folder) / "chat_history"
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)
    return FileHistory(str(path))


def no_history() -> History:
    """A history that ends with the program."""
    return InMemoryHistory()


class _Words(Completer):
    def __init__(self, words: Words) -> None:
        self._words = words

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        del complete_event
        typed = document.text_before_cursor
        last = typed.split(" ")[-1]
        for word in self._words(typed):
            if word.startswith(last):
                yield Completion(word, start_position=-len(last))


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
