"""The tools of one workbench: each waits for the one before it, and finds what that left."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from satchel.execution.options import ExecutionOptions
from satchel.execution.workbench import Execution
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.tools.base import Tool, ToolCall, ToolContext, ToolResult
from satchel.tools.bench import bench_tools

Tools = dict[str, Tool]


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[Tools]:
    options = ExecutionOptions(code=True, unconfined=True)
    bench = await Execution(UnconfinedExecutor(), options, base=str(tmp_path)).open("")
    placed = bench_tools(bench)
    yield placed.habits | {tool.spec.name: tool for tool in placed.declared}
    await bench.aclose()


async def use(tool: Tool, **arguments: str) -> ToolResult:
    return await tool.run(ToolCall(call_id="c", name=tool.spec.name, arguments=dict(arguments)), ToolContext())


@pytest.mark.parametrize("reader", ["read_file", "cat_file", "shell"])
async def test_a_call_finds_what_the_call_before_it_left(tools: Tools, reader: str) -> None:
    name, text = f"{secrets.token_hex(4)}.txt", secrets.token_hex(8)
    asks = {"command": f"cat {name}"} if reader == "shell" else {"path": name}
    ran, read = await asyncio.gather(
        use(tools["shell"], command=f"sleep 0.3; echo {text} > {name}"), use(tools[reader], **asks)
    )
    assert ran.ok
    assert (read.ok, text in read.text) == (True, True), read.text


async def test_a_file_that_fails_to_be_written_holds_up_nobody(tools: Tools) -> None:
    name = f"{secrets.token_hex(4)}.txt"
    wrong, right = await asyncio.gather(
        use(tools["write_file"], path=f"../{name}", content="x"), use(tools["write_file"], path=name, content="x")
    )
    assert (wrong.ok, right.ok, right.files) == (False, True, (name,))
    assert not wrong.is_charged
