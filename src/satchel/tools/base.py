"""What a tool is, and how its arguments are read. One module per tool beside this one; none knows the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from satchel.chat.messages import Json
from satchel.chat.request import ToolSpec
from satchel.execution.artifacts import NotKept
from satchel.skills.model import SkillRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's call with its arguments read into a mapping (see ``satchel.chat.arguments``)."""

    call_id: str
    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What the model is told. A failure is text too: it starts with "Error: " and names the next action.

    ``files`` were made or changed; ``run`` is where they can be fetched under, "" when nothing is kept. ``not_kept``
    were made, too, and cannot be fetched.
    ``command`` is what was run for it, in one line for people; ``exit_code`` how that ended, None when nothing was run
    to its end; ``reason`` why it failed in one line, where ``text`` begins with more than that.
    ``is_charged`` False: failing is part of the tool's work, so it is never withdrawn for it.
    ``loaded`` is set when the call put a skill's instructions in front of the model, ``how`` says by what kind of
    call; ``loaded_bytes`` is their size.
    """

    text: str
    ok: bool = True
    code: str = ""
    skill: str = ""
    path: str = ""
    loaded: SkillRef | None = None
    how: Literal["read", "activated"] = "read"
    loaded_bytes: int = 0
    files: tuple[str, ...] = ()
    run: str = ""
    not_kept: tuple[NotKept, ...] = ()
    command: str = ""
    exit_code: int | None = None
    reason: str = ""
    is_charged: bool = True


def failure(code: str, text: str, *, skill: str = "", path: str = "") -> ToolResult:
    """A failed call as a sentence that the model can act on."""
    return ToolResult(text=f"Error: {text}", ok=False, code=code, skill=skill, path=path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a running tool is."""

    phase: Literal["writing", "running", "waiting", "finished"]
    detail: str = ""
    files: tuple[str, ...] = ()
    run: str = ""


def _ignore(progress: Progress) -> None:
    del progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The turn around a call. ``report`` may be called from the tool's own task at any time before it returns."""

    agent: str = "/root"
    round: int = 1
    report: Callable[[Progress], None] = _ignore


class Tool(Protocol):
    """One tool of ours. ``run`` never raises for what a model got wrong."""

    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult: ...
