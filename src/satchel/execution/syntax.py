"""Whether a file that was just written parses: matching every hunk is not the same as being right.

What is read is a stranger's text, so even the parsers run confined, with the working directory read-only.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from satchel.errors import SandboxError
from satchel.execution.environment import host_path, readable_paths, session_environment
from satchel.execution.numbered import excerpt
from satchel.execution.workspace import Workspace, host_python
from satchel.ports.execution import Executor, Launch, Limits, Outcome
from satchel.skills.oneline import one_line

MOST_FILES = 8
_DEADLINE_S = 10.0
_OUTPUT_BYTES = 16 * 1024
_LONGEST_MESSAGE = 200
_LINES_AROUND = 1
_LIMITS = Limits(memory_bytes=512 * 1024**2, cpu_s=10, file_bytes=1024**2, written_bytes=1024**2)

_PARSED = (".py", ".pyi", ".json", ".toml", ".yaml", ".yml")
_SCRIPTS = (".js", ".mjs", ".cjs")
_SHELL = (".sh", ".bash")
# These are JSON with comments by custom.
_WITH_COMMENTS = re.compile(r"(?:^|/)(?:tsconfig[^/]*|jsconfig[^/]*|devcontainer|\.eslintrc)\.json$|(?:^|/)\.vscode/")
_OTHER_SHELL = re.compile(r"#![^\n]*\b(?:zsh|fish|ksh|csh|tcsh)\b")
# A module in a file that node takes for a script is no mistake of whoever wrote it.
_MODULE = re.compile(
    r"import statement outside a module|Unexpected token '(?:export|import)'|import\.meta|await is only"
)

_PARSERS = r"""
import json, re, sys

def check(path):
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith((".py", ".pyi")):
        try:
            compile(data, path, "exec", dont_inherit=True)
        except SyntaxError as error:
            return error.lineno, error.msg
    elif path.endswith(".json"):
        text = data.decode("utf-8-sig")
        if text.strip() and not re.search(r"^\s*(//|/\*)", text, re.MULTILINE):
            try:
                json.loads(text)
            except json.JSONDecodeError as error:
                return error.lineno, error.msg
    elif path.endswith(".toml"):
        import tomllib
        try:
            tomllib.loads(data.decode("utf-8"))
        except tomllib.TOMLDecodeError as error:
            line = re.search(r" \(at line (\d+)", str(error))
            return int(line[1]) if line else 0, re.sub(r" \(at .*", "", str(error))
    elif b"{{" not in data and b"{%" not in data:
        import yaml
        try:
            for event in yaml.parse(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
                pass
        except yaml.MarkedYAMLError as error:
            return error.problem_mark.line + 1 if error.problem_mark else 0, error.problem
    return None

for path in sys.argv[1:]:
    try:
        found = check(path)
    except (OSError, ValueError, ImportError, RecursionError, MemoryError, OverflowError):
        continue
    if found:
        print(json.dumps([path, *found]))
"""


class SyntaxChecker:
    """Checks the files of one workspace. ``host`` is the environment of this process."""

    def __init__(self, executor: Executor, workspace: Workspace, host: Mapping[str, str]) -> None:
        self._executor = executor
        self._workspace = workspace
        self._host = host

    async def check(self, texts: Mapping[str, str]) -> tuple[str, ...]:
        """A note for each file that does not parse, by its path; the texts are what was written.

        A file that cannot be checked has none: of a kind without a parser, too slow, or nothing can run here.
        """
        paths = list(texts)[:MOST_FILES]
        if not any(path.endswith((*_PARSED, *_SCRIPTS, *_SHELL)) for path in paths):
            return ()
        python, base = await asyncio.to_thread(self._base)
        found: dict[str, tuple[int, str]] = {}
        parsed = [path for path in paths if path.endswith(_PARSED) and not _WITH_COMMENTS.search(path)]
        if parsed:
            command = (python, "-I", "-B", "-W", "ignore", "-c", _PARSERS, *map(self._absolute, parsed))
            found |= self._by_parsers(await self._run(base, command), parsed)
        for path in paths:
            if path.endswith(_SCRIPTS):
                found |= _by_node(path, await self._run(base, ("node", "--check", self._absolute(path))))
            elif path.endswith(_SHELL) and not _OTHER_SHELL.match(texts[path]):
                found |= _by_bash(path, await self._run(base, ("bash", "-n", self._absolute(path))))
        return tuple(_note(path, *found[path], texts[path]) for path in paths if path in found)

    def _absolute(self, path: str) -> str:
        return f"{self._workspace.work}/{path}"

    def _by_parsers(self, outcome: Outcome | None, paths: list[str]) -> dict[str, tuple[int, str]]:
        known = {self._absolute(path): path for path in paths}
        found: dict[str, tuple[int, str]] = {}
        for line in outcome.stdout.text.splitlines() if outcome else ():
            try:
                path, number, message = cast("tuple[object, object, object]", json.loads(line))
            except (ValueError, TypeError):
                continue
            if isinstance(path, str) and path in known and isinstance(message, str):
                found[known[path]] = (number if isinstance(number, int) else 0, message)
        return found

    def _base(self) -> tuple[str, Launch]:
        """``(the Python that parses, a launch without its command)``. Blocks."""
        launch = Launch(
            command=(),
            purpose="check",
            cwd=self._workspace.tmp,
            # What is said of a file is the host's word, so no program that a model put there has a part in it.
            env={**session_environment(self._workspace, self._host), "PATH": os.pathsep.join(host_path(self._host))},
            readable=(self._workspace.work, self._workspace.shims, *readable_paths()),
            writable=(self._workspace.tmp,),
            deadline_s=_DEADLINE_S,
            limits=_LIMITS,
            max_output_bytes=_OUTPUT_BYTES,
        )
        return host_python(), launch

    async def _run(self, base: Launch, command: tuple[str, ...]) -> Outcome | None:
        try:
            return await self._executor.run(replace(base, command=command))
        except SandboxError:
            return None


def _by_node(path: str, outcome: Outcome | None) -> dict[str, tuple[int, str]]:
    said = outcome.stderr.text if outcome and outcome.exit_code == 1 else ""
    message = re.search(r"^SyntaxError: (.+)$", said, re.MULTILINE)
    if not message or _MODULE.search(message[1]):
        return {}
    line = re.match(r"[^\n]*:(\d+)\n", said)
    return {path: (int(line[1]) if line else 0, message[1])}


def _by_bash(path: str, outcome: Outcome | None) -> dict[str, tuple[int, str]]:
    said = outcome.stderr.text if outcome and outcome.exit_code else ""
    message = re.search(r": line (\d+): ((?:syntax error|unexpected EOF).*)", said)
    return {path: (int(message[1]), message[2])} if message else {}


def _note(path: str, line: int, message: str, text: str) -> str:
    where = f", line {line}" if line > 0 else ""
    note = f"Warning: {path} does not parse now{where}: {one_line(message)[:_LONGEST_MESSAGE]}"
    shown = excerpt(text.split("\n"), line - 1 - _LINES_AROUND, line + _LINES_AROUND) if line > 0 else ""
    return f"{note}\n{shown}" if shown else note
