"""The tools of a workbench as a loop uses them: one at a time, under every name that models bring along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from satchel.chat.request import ToolSpec
from satchel.execution.artifacts import NotKept, printable
from satchel.execution.workbench import Workbench
from satchel.tools.base import Progress, Tool, ToolCall, ToolContext, ToolResult
from satchel.tools.files import (
    EDIT_ALIASES,
    EDIT_FILE,
    READ_ALIASES,
    WRITE_ALIASES,
    WRITE_FILE,
    EditFile,
    ReadFile,
    WriteFile,
)
from satchel.tools.patch import APPLY_PATCH, PATCH_ALIASES, ApplyPatch
from satchel.tools.script_advice import ScriptAdvice
from satchel.tools.shell import SHELL_ALIASES, SHELL_TOOL, ShellTool

RUN_ALIASES = ("run_skill_script", "run_script")
CODE_TOOLS = frozenset({SHELL_TOOL, WRITE_FILE, APPLY_PATCH})
"""With one of them declared, an answer may be code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchTools:
    """``declared`` in their order, and ``habits``: tools by a further name that nobody is told of."""

    declared: tuple[Tool, ...]
    habits: dict[str, Tool]


def bench_tools(bench: Workbench, scripts: Tool | None = None, advice: ScriptAdvice | None = None) -> BenchTools:
    """``scripts`` runs what skills ship, None when they ship nothing that runs. The others are for code and files.

    ``advice`` speaks of ``scripts`` where the shell was asked for them.
    """
    declared: list[Tool] = []
    habits: dict[str, Tool] = {}

    def add(tool: Tool, aliases: Sequence[str], *, is_declared: bool = True, writes: bool = False) -> None:
        placed = _OnBench(bench, tool, writes=writes)
        if is_declared:
            declared.append(placed)
        else:
            habits[tool.spec.name] = placed
        habits.update(dict.fromkeys(aliases, placed))

    if scripts is not None:
        add(scripts, RUN_ALIASES)
    if bench.code is not None:
        add(ShellTool(bench.code, advice), SHELL_ALIASES)
    if bench.files is not None:
        add(ReadFile(bench.files), READ_ALIASES)
        add(WriteFile(bench.files), WRITE_ALIASES, writes=True)
        add(ApplyPatch(bench.files), PATCH_ALIASES, writes=True)
        add(EditFile(bench.files), (EDIT_FILE, *EDIT_ALIASES), is_declared=False, writes=True)
    return BenchTools(declared=tuple(declared), habits=habits)


class _OnBench:
    """A tool that waits for its turn at the bench, and whose files are kept. A program that fails is no broken tool."""

    def __init__(self, bench: Workbench, tool: Tool, *, writes: bool = False) -> None:
        self._bench = bench
        self._tool = tool
        self._writes = writes

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        run_id = self._bench.shelf_id

        made: list[Progress] = []

        def report(progress: Progress) -> None:
            # Of files is told when it is known which can be had.
            (made.append if progress.files else context.report)(progress)

        async with self._bench.lock:
            self._bench.not_kept = ()
            result = await self._tool.run(call, replace(context, report=report))
            if self._writes and result.files:
                await self._bench.keep_written(result.files)
            not_kept = self._bench.not_kept
        files = _without(result.files, not_kept)
        for progress in made:
            left = _without(progress.files, not_kept)
            context.report(replace(progress, files=left, run=run_id if left else ""))
        run_id = run_id if files or not_kept else ""
        return replace(result, is_charged=False, files=files, not_kept=not_kept, run=run_id)


def _without(files: Sequence[str], not_kept: Sequence[NotKept]) -> tuple[str, ...]:
    gone = {item.path for item in not_kept}
    return tuple(path for path in files if printable(path) not in gone)
