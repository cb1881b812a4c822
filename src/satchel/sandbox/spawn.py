"""Starting a child without holding up the process: in a thread, and without this process's memory being copied.

An event loop forks in its own thread and waits there, with the interpreter locked, until the child has become its
program; on a busy machine all that it serves stands still for that long.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import os
import signal
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

_Result = TypeVar("_Result")
_SETSIGDEF, _SETSIGMASK, _SETSID = 0x04, 0x08, 0x80
_RECORD_BYTES = 1024  # of a record of the C library whose size differs; none is that large
_LOST = 255  # the exit code of a child that somebody else waited for
_STARTERS = 4

# Its threads live as long as the process: the kernel ends a child that asked for it when the thread that started it
# ends. And so few because that many at once are set up the fastest, with no more descriptors open than they need.
_starters = ThreadPoolExecutor(_STARTERS, thread_name_prefix="satchel-start")


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def turn() -> asyncio.Semaphore:
    """Held from the preparation of a launch to its start, so that not all that wait are prepared with open files."""
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_STARTERS))


async def in_starter(function: Callable[[], _Result], undo: Callable[[_Result], object]) -> _Result:
    """Calls it in one of few threads that do nothing but start programs.

    A cancellation takes effect at once; what is made all the same is handed to ``undo``.
    """
    making = _starters.submit(function)
    try:
        return await asyncio.wrap_future(making)
    except asyncio.CancelledError:
        making.add_done_callback(lambda made: None if made.cancelled() or made.exception() else undo(made.result()))
        raise


class Child(Protocol):
    """A started process. ``returncode`` is negative for a signal, None while it runs."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    async def wait(self) -> int: ...


async def spawn(
    command: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdout: int,
    stderr: int,
    pass_fds: Sequence[int] = (),
) -> Child:
    """Starts a program in a session of its own with nothing on standard input and every signal as the system has it.

    On other systems than Linux, signals that this process was started to ignore stay ignored.

    Raises:
        OSError, ValueError, TypeError, IndexError: it cannot be started.
    """
    library = _library()
    if library is None:
        for inherited in _inheritable():  # not every event loop closes them
            if inherited not in pass_fds:
                os.set_inheritable(inherited, False)  # noqa: FBT003
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
    starting = _starters.submit(_spawned, library, command, cwd, env, (stdout, stderr), pass_fds)
    try:
        pid, handle = await asyncio.shield(asyncio.wrap_future(starting))
    except asyncio.CancelledError:
        if not starting.cancel():
            # The caller closes the descriptors next. Under their numbers are other people's then, and those must not
            # be handed to a program that is still being started.
            await _over(starting)
            if starting.exception() is None:
                _starters.submit(_unwanted, starting.result())
        raise
    return _Spawned(pid, handle)


async def _over(starting: Future[tuple[int, int]]) -> None:
    """Waits until it has ended, however often the caller is cancelled."""
    ended = asyncio.wrap_future(starting)
    while not ended.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({ended})
    ended.exception()  # or it would be logged as one that nobody asked for


class _Spawned:
    """A child of our own, whose end a handle on it tells."""

    def __init__(self, pid: int, handle: int) -> None:
        self._pid = pid
        self._handle = handle
        self._code: int | None = None
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(handle, self._end)

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def returncode(self) -> int | None:
        return self._code

    async def wait(self) -> int:
        await self._ended.wait()
        return _LOST if self._code is None else self._code

    def _end(self) -> None:
        try:
            ended = os.waitid(os.P_PIDFD, self._handle, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            self._code = _LOST
        else:
            if ended is None:
                return
            self._code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        self._ended.set()


@cache
def _library() -> ctypes.CDLL | None:
    """The C library, where its ``posix_spawn`` does all that is needed and the kernel tells of a child by a handle."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    try:
        library.posix_spawn_file_actions_addchdir_np  # noqa: B018 - is it there? It came with what is needed besides.
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return None
    return library


def _spawned(  # noqa: PLR0917 - as it is given
    library: ctypes.CDLL,
    command: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    outputs: tuple[int, int],
    pass_fds: Sequence[int],
) -> tuple[int, int]:
    """Its number and a handle on it. A call of the C library lets other threads go on meanwhile."""
    words = [os.fsencode(word) for word in command]
    variables = [_variable(name, value) for name, value in env.items()]
    if any(b"\0" in word for word in (*words, os.fsencode(cwd), *variables)):
        raise ValueError("embedded null byte")
    program = os.fsencode(_found(command[0], env))
    number = ctypes.c_int()
    actions, attributes, signals = (ctypes.create_string_buffer(_RECORD_BYTES) for _ in range(3))
    with contextlib.ExitStack() as held:
        _done(library.posix_spawn_file_actions_init(actions))
        held.callback(library.posix_spawn_file_actions_destroy, actions)
        _done(library.posix_spawnattr_init(attributes))
        held.callback(library.posix_spawnattr_destroy, attributes)
        _done(library.posix_spawnattr_setflags(attributes, ctypes.c_short(_SETSIGDEF | _SETSIGMASK | _SETSID)))
        _done(library.sigemptyset(signals))
        _done(library.posix_spawnattr_setsigmask(attributes, signals))
        # The interpreter ignores some itself, and who is started by nohup or in the background ignores more: a program
        # could not be told to end by its own children then, and neither could they.
        for number_of_signal in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            _done(library.sigaddset(signals, int(number_of_signal)))
        _done(library.posix_spawnattr_setsigdefault(attributes, signals))
        for number_inside, output in enumerate(outputs, start=1):
            # One that is a standard stream itself, in a process that was started without them, would be overwritten.
            above = fcntl.fcntl(output, fcntl.F_DUPFD_CLOEXEC, 3)
            held.callback(os.close, above)
            _done(library.posix_spawn_file_actions_adddup2(actions, above, number_inside))
        _done(library.posix_spawn_file_actions_addopen(actions, 0, b"/dev/null", os.O_RDONLY, 0))
        for inherited in _inheritable():
            if inherited not in pass_fds:
                _done(library.posix_spawn_file_actions_addclose(actions, inherited))
        for passed in pass_fds:  # upon itself: it stays open
            _done(library.posix_spawn_file_actions_adddup2(actions, passed, passed))
        _done(library.posix_spawn_file_actions_addchdir_np(actions, os.fsencode(cwd)))
        arguments = (ctypes.c_char_p * (len(words) + 1))(*words, None)
        environment = (ctypes.c_char_p * (len(variables) + 1))(*variables, None)
        _done(library.posix_spawn(ctypes.byref(number), program, actions, attributes, arguments, environment))
    try:
        return number.value, os.pidfd_open(number.value)
    except OSError:  # no descriptor is left
        os.kill(number.value, signal.SIGKILL)
        os.waitpid(number.value, 0)
        raise


def _unwanted(spawned: tuple[int, int]) -> None:
    """Ends what nobody waits for any more."""
    pid, handle = spawned
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.killpg(pid, signal.SIGKILL)
        os.waitid(os.P_PIDFD, handle, os.WEXITED)
    os.close(handle)


def _inheritable() -> list[int]:
    """What whoever started us left open, or a library; nothing that Python opens is among it."""
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - numbers
    except FileNotFoundError:
        return []
    found: list[int] = []
    for number in numbers:
        with contextlib.suppress(OSError):  # the listing's own
            if number > 2 and os.get_inheritable(number):  # noqa: PLR2004
                found.append(number)
    return found


def _variable(name: str, value: str) -> bytes:
    if not name or "=" in name:
        raise ValueError("illegal environment variable name")
    return os.fsencode(f"{name}={value}")


def _found(name: str, env: Mapping[str, str]) -> str:
    if "/" in name:
        return name
    for folder in os.get_exec_path(env):
        path = os.path.join(folder, name)  # noqa: PTH118 - a string is what is started
        if os.access(path, os.X_OK) and os.path.isfile(path):  # noqa: PTH113
            return path
    raise FileNotFoundError(2, os.strerror(2), name)


def _done(result: int) -> None:
    if result:
        raise OSError(result, os.strerror(result))
