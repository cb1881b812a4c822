"""Starting programs, and what holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

GAP_WRITES = "the script may write anywhere the host process can"
GAP_NETWORK = "the script may reach the network"
GAP_HOME = "the script may read the user's home directory"
GAP_PROCESSES = "a child process may outlive the request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What a program may reach. ``hosts``: only these names, through the host's own proxy. ``open``: everything.

    ``is_public``: a name of ``hosts`` that leads to an address of a private network is refused.
    """

    mode: Literal["none", "hosts", "open"] = "none"
    hosts: tuple[str, ...] = ()
    is_public: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one launch: ``written_bytes`` of growth in all that is writable, ``memory_bytes`` of all processes.

    What is writable holds at most ``held_bytes``, whoever wrote it: where more is, hardly any can be added.
    """

    memory_bytes: int = 1024**3
    processes: int = 128
    cpu_s: int = 600
    file_bytes: int = 256 * 1024**2
    written_bytes: int = 512 * 1024**2
    held_bytes: int = 2 * 1024**3
    tmp_bytes: int = 256 * 1024**2
    open_files: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What a backend holds back on this host: the one record that prompts, results and reports read.

    ``gaps`` are sentences for people and models, empty when nothing is open. ``hosts``: whether the network can be
    narrowed to named hosts. ``is_full``: whether files, network and home are all confined, which is what ``required``
    asks for. A system that cannot end a child which detaches itself, as macOS cannot, tells that as a gap.
    """

    backend: str
    version: str = ""
    writes: bool = False
    network: bool = False
    home: bool = False
    process_tree: bool = False
    hosts: bool = False
    gaps: tuple[str, ...] = ()
    # A field, so that every form of the record tells it, but nobody's claim.
    is_full: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_full", self.writes and self.network and self.home)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The shell that a backend offers. ``program`` is "" for one that runs inside the host's own process."""

    dialect: str = "bash"
    program: str = "/bin/bash"

    @property
    def is_in_process(self) -> bool:
        """Whether its backend starts no programs, so that what lies on the host's disk says nothing of what it runs."""
        return not self.program


class ShellState(Protocol):
    """Where a shell session's directory and exports are kept between calls, for backends without a process."""

    def load(self) -> tuple[str, dict[str, str]]:
        """``(working directory, exported variables)`` as the last call left them."""
        ...

    def save(self, cwd: str, env: Mapping[str, str]) -> None:
        """Keeps both, through the filter of the session."""
        ...

    def mark_reset(self) -> None:
        """Makes the result say that the environment could not be restored and starts afresh."""
        ...


Purpose = Literal["download", "script", "shell", "install", "check", "probe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One program to run. No shell ever reads an argument vector.

    A text is a shell command line, only for a backend whose ``Shell.program`` is "", with the ``state`` it restores and
    saves. ``env`` is the whole environment of the child. ``readable`` and ``writable`` are absolute host paths that
    the program sees at the same place; ``cwd`` is one of the writable ones or below one. ``max_output_bytes`` holds for
    each of stdout and stderr. With ``log_path`` both go into that new file instead and ``Outcome`` has none.
    """

    command: tuple[str, ...] | str
    purpose: Purpose
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    network: Network = Network()
    deadline_s: float = 600.0
    limits: Limits = Limits()
    max_output_bytes: int = 32 * 1024
    log_path: str = ""
    state: ShellState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What was printed: all of it in ``head``, or its beginning and its end with ``dropped_bytes`` between them."""

    head: bytes = b""
    tail: bytes = b""
    dropped_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Everything that was printed, kept or not."""
        return len(self.head) + self.dropped_bytes + len(self.tail)

    @property
    def text(self) -> str:
        """As text; bytes that are none are replaced, and a gap is named with its size."""
        if not self.dropped_bytes:
            return (self.head + self.tail).decode("utf-8", "replace")
        head, tail = self.head.decode("utf-8", "replace"), self.tail.decode("utf-8", "replace")
        return f"{head}\n[... {self.dropped_bytes} bytes left out ...]\n{tail}"


Stopped = Literal["", "deadline", "written", "memory", "killed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a program ended. ``exit_code`` is None when the host stopped it, then ``stopped`` says why.

    A program that a signal ended has 128 and the signal's number, as a shell would say.
    """

    exit_code: int | None
    stdout: Captured = Captured()
    stderr: Captured = Captured()
    stopped: Stopped = ""
    duration_s: float = 0.0

    @property
    def output(self) -> str:
        """Both streams as text, stdout first."""
        return self.stdout.text + self.stderr.text


class Job(Protocol):
    """A program that was started."""

    @property
    def pid(self) -> int: ...

    async def wait(self) -> Outcome:
        """Waits for the end. Cancelling kills the whole tree first. May be called again."""
        ...

    async def kill(self) -> None:
        """Kills the whole tree; returns when nothing of it is left. Does nothing when it has ended."""
        ...


class Executor(Protocol):
    """A way to run programs. Everything above the launch is the host's and the same for each backend.

    One that names this class as its base has ``can_run`` from here.
    """

    @property
    def confinement(self) -> Confinement: ...

    @property
    def shell(self) -> Shell | None:
        """The shell for command lines, None when there is none."""
        ...

    @property
    def can_run(self) -> bool:
        """Whether anything can run here."""
        return not self.unavailable_reason

    @property
    def unavailable_reason(self) -> str:
        """Why nothing can run here, "" when it can."""
        ...

    async def start(self, launch: Launch) -> Job:
        """Starts it. Raises ``SandboxError``: sandbox-unavailable, launch-failed."""
        ...

    async def run(self, launch: Launch) -> Outcome:
        """``start`` and ``wait``. Raises ``SandboxError``."""
        ...
