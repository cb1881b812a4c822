"""Programs start with every signal as the system has it, whatever this process was started with.

Who is started by nohup or in the background of a shell ignores some signals, and so would everything that it starts:
a program inside could not be told to end by its own children, and neither could they.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Mapping, Sequence

_ENV = "/usr/bin/env"
_TO_DEFAULT = "--default-signal"
# What the interpreter's own start puts into the environment does not belong to the program.
_RESTORE = """
import os, signal, sys
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())
environment = {name: value for name, value in os.environ.items() if name != sys.argv[1]}
os.execvpe(sys.argv[2], sys.argv[2:], environment)
"""
_ADDED = "LC_CTYPE"
_USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"

_understood: dict[str, bool] = {}


async def with_default_signals(command: Sequence[str], env: Mapping[str, str], cwd: str) -> Sequence[str]:
    """``command``, behind a program that restores all signals and then becomes it, where that is needed.

    A command that is not there stays as it is, so that starting it fails as ever.
    """
    if os.name == "nt" or not command:
        return command
    is_blocked = bool(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    if not is_blocked and not _ignored():
        return command
    if not await asyncio.to_thread(_is_there, command[0], env, cwd):
        return command
    if not is_blocked and "=" not in command[0] and await _understands():
        return (_ENV, _TO_DEFAULT, *command)
    added = "" if _ADDED in env else _ADDED
    return (sys.executable, "-I", "-S", "-c", _RESTORE, added, *command)


def _ignored() -> bool:
    """Whether a child would ignore anything: those that the interpreter itself ignores are restored for each child."""
    kept = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}
    return any(signal.getsignal(number) is signal.SIG_IGN for number in kept)


def _is_there(name: str, env: Mapping[str, str], cwd: str) -> bool:
    folders = [""] if "/" in name else env.get("PATH", _USUAL_PATH).split(":")
    try:
        return any(os.access(os.path.join(cwd, folder, name), os.X_OK) for folder in folders)  # noqa: PTH118
    except ValueError:  # a NUL character
        return False


async def _understands() -> bool:
    """Whether the small program of this system can do it: it takes a tenth of the time of an interpreter."""
    if _ENV not in _understood:
        try:
            trial = await asyncio.create_subprocess_exec(
                _ENV, _TO_DEFAULT, "true", stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
            )
            _understood[_ENV] = await trial.wait() == 0
        except OSError:
            _understood[_ENV] = False
    return _understood[_ENV]
