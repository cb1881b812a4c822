"""``shell``: runs a command line in the workspace. What is told of it is the session's; here arguments are read."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from satchel.chat.messages import Json
from satchel.chat.request import ToolSpec
from satchel.errors import SandboxError
from satchel.execution.shell import CodeSession
from satchel.execution.shell_call import ShellRequest, ShellRun
from satchel.skills.oneline import one_line
from satchel.tools.access import text_argument
from satchel.tools.base import Progress, ToolCall, ToolContext, ToolResult, failure
from satchel.tools.script_advice import ScriptAdvice

SHELL_TOOL = "shell"
SHELL_ALIASES = (
    "bash", "Bash", "sh", "exec", "run_shell", "run_shell_command", "shell_command", "run_command", "execute_command",
    "exec_command", "local_shell", "terminal",
)  # fmt: skip

_COMMAND = ("command", "cmd", "script", "shell", "input")
_WORKDIR = ("workdir", "work_dir", "cwd", "directory")
_BACKGROUND = ("run_in_background", "background", "detach")
_MILLISECONDS_FROM = 1000
_SHOWN = 120
_MOST_SHOWN = 500

SPEC = ToolSpec(
    name=SHELL_TOOL,
    description="Run a command line in the working directory.",
    parameters={
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command line."},
            "workdir": {
                "type": "string",
                "description": (
                    "Where to run this one call, inside the working directory; left out: where the last command ended."
                ),
            },
            "timeout_ms": {"type": "integer", "description": "Its time limit in milliseconds."},
            "run_in_background": {
                "type": "string",
                "enum": ["true", "false"],
                "description": "true returns at once; the output goes to a log file.",
            },
        },
        "required": ["command"],
    },
)


class ShellTool:
    """Runs commands through the session of one workspace. ``advice`` knows the scripts that another tool runs."""

    def __init__(self, session: CodeSession, advice: ScriptAdvice | None = None) -> None:
        self._session = session
        self._advice = advice
        self._spec = replace(SPEC, description=f"{SPEC.description} {_terms(session)}")

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        command = command_argument(call.arguments)
        request = ShellRequest(
            command=command,
            workdir=text_argument(call.arguments, *_WORKDIR),
            timeout_s=timeout_argument(call.arguments),
            background=flag_argument(call.arguments, *_BACKGROUND),
        )
        line = one_line(command)[:_MOST_SHOWN]
        shown = line[:_SHOWN]
        context.report(Progress(phase="running", detail=shown))
        try:
            done = await self._session.run(request)
        except SandboxError as error:
            return replace(failure(error.code, f"{error.message} {error.hint}".rstrip()), command=line)
        if done.outcome is None and not done.ok:
            return replace(failure(done.code, done.text), command=line)
        context.report(Progress(phase="finished", detail=shown, files=done.files))
        advice = await self._advice.of(command, _printed(done)) if self._advice else ""
        text = f"{done.text}\n{advice}" if advice else done.text
        return ToolResult(
            text=text,
            ok=done.ok,
            code=done.code,
            files=done.files,
            command=line,
            exit_code=done.outcome.exit_code if done.outcome else None,
            reason=done.reason,
        )


def _printed(done: ShellRun) -> str:
    return f"{done.outcome.stderr.text}\n{done.outcome.stdout.text}" if done.outcome else ""


def _terms(session: CodeSession) -> str:
    network = "the network is open to it" if session.has_network else "it has no network"
    return (
        f"It is read by {session.dialect or 'a shell'}; {network}. The directory it ends in and its exports carry over "
        "to the next command. Its standard input is closed."
    )


def command_argument(arguments: Mapping[str, Json]) -> str:
    """The command line: a text as it is, an argument vector quoted, ``bash -lc TEXT`` as its text; "" for none."""
    for name in _COMMAND:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            listed = _list_in(value)
            return _joined(listed) if listed else value
        if isinstance(value, list) and value:
            return _joined([item if isinstance(item, str) else json.dumps(item) for item in value])
    return ""


def _list_in(text: str) -> list[str]:
    """The texts of a JSON list that came as a text, [] for anything else: ``[ -f x ]`` is a command."""
    if not text.lstrip().startswith("["):
        return []
    try:
        read: object = json.loads(text)
    except (ValueError, RecursionError):
        return []
    items = cast("list[object]", read) if isinstance(read, list) else []
    texts = [item for item in items if isinstance(item, str)]
    return texts if len(texts) == len(items) else []


def _joined(words: list[str]) -> str:
    is_shell = len(words) == 3 and words[0].rpartition("/")[2] in {"bash", "sh", "zsh"}  # noqa: PLR2004 - bash -lc TEXT
    if is_shell and words[1] in {"-c", "-lc"}:
        return words[2]
    if len(words) == 1:
        return words[0]
    return shlex.join(words)


def timeout_argument(arguments: Mapping[str, Json]) -> float | None:
    """The time limit in seconds, None for none that can be read.

    ``timeout_ms`` counts milliseconds, always. A bare ``timeout`` counts seconds below 1000, else milliseconds.
    """
    exact = _number(arguments.get("timeout_ms"))
    if exact is not None:
        return exact / 1000
    for name in ("timeout", "timeout_s", "timeout_seconds"):
        bare = _number(arguments.get(name))
        if bare is not None:
            return bare if bare < _MILLISECONDS_FROM else bare / 1000
    return None


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number > 0 else None


def flag_argument(arguments: Mapping[str, Json], *names: str) -> bool:
    """Whether the first of ``names`` that is given says yes."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip().casefold() in {"true", "yes", "1", "on"}
        if isinstance(value, bool | int):
            return bool(value)
    return False
