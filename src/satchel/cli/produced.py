"""Files that a model's programs made in a conversation: what is said of them, and copies where a person wants them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from satchel.cli.console import bytes_text, line, say
from satchel.engine.events import ToolFinished, TurnDone, TurnEvent
from satchel.engine.request import Principal
from satchel.errors import SetupError
from satchel.execution.artifacts import Artifacts, NotKept
from satchel.execution.saving import Saved, save_made

_MOST_SHOWN = 8


class Produced:
    """Collects what the events of a conversation tell."""

    def __init__(self) -> None:
        self._files: dict[str, dict[str, str]] = {}
        """By their run, and for each why it is not kept, "" when it is."""
        self._unsaved: dict[str, None] = {}

    def note(self, event: TurnEvent) -> None:
        """One event."""
        if isinstance(event, ToolFinished | TurnDone):
            self.add(event.run, event.files, event.not_kept)

    def add(self, run: str, files: Sequence[str], not_kept: Sequence[NotKept]) -> None:
        """Files that are kept under ``run``, "" for none that are, and those that cannot be."""
        if run and (files or not_kept):
            refused = {item.path: item.reason for item in not_kept}
            self._files.setdefault(run, {}).update({**dict.fromkeys(files, ""), **refused})
            self._unsaved.update(dict.fromkeys(files))
            for path in refused:
                self._unsaved.pop(path, None)

    def catch_up(self, shelf: Artifacts) -> None:
        """Adds what is kept and was not told, since the turn broke off before its end."""
        for run, files in self._files.items():
            new = [item.path for item in shelf.of(Principal().id, run) if item.path not in files]
            files.update(dict.fromkeys(new, ""))
            self._unsaved.update(dict.fromkeys(new))

    def clear(self) -> None:
        """Forgets all."""
        self._files.clear()
        self._unsaved.clear()

    @property
    def paths(self) -> tuple[str, ...]:
        """In the order in which they were made."""
        return tuple(path for files in self._files.values() for path in files)

    @property
    def unsaved(self) -> tuple[str, ...]:
        """Those of which nobody has a copy as they are now, and which can be copied."""
        return tuple(self._unsaved)

    def save(self, shelf: Artifacts | None, folder: str, *, overwrite: bool = False) -> tuple[Saved, ...]:
        """Copies all into ``folder``, and says of each what became of it."""
        saved = save_made(shelf, Principal().id, self._files, folder, overwrite=overwrite)
        for item in saved:
            if not item.problem:
                self._unsaved.pop(item.path, None)
        return saved


def prepare_folder(folder: str) -> str:
    """The directory, made when it is not there; it may begin with ``~``. Raises ``SetupError``."""
    folder = os.path.expanduser(folder)  # noqa: PTH111 - which raises where there is no home
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            "setting-invalid",
            f"{folder} cannot be made: {error.strerror}.",
            hint="Name a directory that exists or can be made.",
            data={"path": folder},
        ) from None
    return folder


def tell_saved(saved: Sequence[Saved], folder: str) -> None:
    """A line for each file: where it is now, or why it is not there."""
    for item in saved:
        if item.problem:
            say(f"not saved {line(item.path)}: {line(item.problem)}")
        else:
            say(f"saved    {line(os.path.join(folder, item.path))} ({bytes_text(item.bytes)})")  # noqa: PTH118


def saved_shape(saved: Sequence[Saved], folder: str) -> dict[str, object]:
    """The same as one event of ``--json``."""
    return {
        "event": "files_saved",
        "dir": folder,
        "files": [{"path": item.path, "bytes": item.bytes} for item in saved if not item.problem],
        "not_saved": [{"path": item.path, "reason": item.problem} for item in saved if item.problem],
    }


def listed(paths: Sequence[str]) -> str:
    """Some of the names, and how many more there are."""
    more = f" and {len(paths) - _MOST_SHOWN} more" if len(paths) > _MOST_SHOWN else ""
    return f"{', '.join(line(path) for path in paths[:_MOST_SHOWN])}{more}"
