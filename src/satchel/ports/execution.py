"""Starting programs, and what holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What a backend holds back. ``gaps`` are sentences for people and models, empty when nothing is open."""

    backend: str
    writes: bool = False
    network: bool = False
    home: bool = False
    process_tree: bool = False
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One program to run. No shell ever reads ``command``. ``env`` is the whole environment of the child."""

    command: tuple[str, ...]
    purpose: Literal["download", "shell"]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    deadline_s: float = 600.0
    max_output_bytes: int = 32 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a program ended. ``exit_code`` is None when it was killed at its deadline. Output is the tail."""

    exit_code: int | None
    output: str


class Executor(Protocol):
    """A way to run programs."""

    @property
    def confinement(self) -> Confinement: ...

    async def run(self, launch: Launch) -> Outcome:
        """Runs to the end. Cancelling kills the whole process group first. Raises ``SandboxError``."""
        ...
