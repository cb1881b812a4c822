from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.chat.messages import Message, ToolOutput, message
from satchel.chat.request import ChatRequest, ToolSpec
from satchel.engine.events import (
    TextDelta,
    ToolFinished,
    ToolProgress,
    TurnStarted,
)
from satchel.engine.host import ToolBox
from satchel.engine.runtime import HostContext, Runtime
from satchel.errors import UpstreamError
from satchel.library import discover
from satchel.sources.directory import DirectorySource
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from satchel.tools.base import Progress, ToolCall, ToolContext, ToolResult
from satchel.wiring.sources import skill_hosts
from tests.support import ask, collect, runtime_over, text_of, write_skill


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path, "pdf", body="Secret word: OKAPI.\n")
    return tmp_path


def outputs(request: ChatRequest) -> list[ToolOutput]:
    return [part for item in request.messages for part in item.parts if isinstance(part, ToolOutput)]


class Sleeper:
    """A tool that takes as long as it is told, reports once, and may fail on purpose."""

    def __init__(self) -> None:
        self.cancelled = 0

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name="sleep", parameters={"type": "object", "properties": {}})

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        context.report(Progress(phase="running", detail=call.call_id))
        if call.arguments.get("crash"):
            raise RuntimeError("a defect in a tool")
        try:
            await asyncio.sleep(float(str(call.arguments.get("for", 0))))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return ToolResult(text=call.call_id)


def sleeping(model: ScriptedModel, root: Path, tool: Sleeper) -> Runtime:
    def hosts(context: HostContext) -> Sequence[ToolBox]:
        del context
        return (ToolBox((tool,)),)

    return Runtime(models=model, source=DirectorySource(discover([root])), hosts=hosts)


async def test_calls_run_together_and_results_keep_their_order(skills: Path) -> None:
    calls = (call("sleep", '{"for": 0.05}', "slow"), call("sleep", '{"for": 0}', "fast"))
    model = ScriptedModel([Reply(calls=calls), Reply(text=("ok",))])
    events, _ = await collect(sleeping(model, skills, Sleeper()), ask())
    assert [event.call_id for event in events if isinstance(event, ToolFinished)] == ["fast", "slow"]
    assert [event.detail for event in events if isinstance(event, ToolProgress)] == ["slow", "fast"]
    assert [part.call_id for part in outputs(model.requests[1])] == ["slow", "fast"]


async def test_a_defect_in_a_tool_ends_the_turn_and_hangs_nothing(skills: Path) -> None:
    calls = (call("sleep", '{"crash": true}', "a"), call("sleep", '{"for": 0}', "b"))
    model = ScriptedModel([Reply(calls=calls)])
    with pytest.raises(RuntimeError, match="a defect"):
        await collect(sleeping(model, skills, Sleeper()), ask())
    assert model.closed == 1


async def test_leaving_the_block_stops_the_model(skills: Path) -> None:
    model = ScriptedModel([Reply(text=("a", "b", "c"))])
    async with runtime_over(model, skills).turn(ask()) as turn:
        async for event in turn:
            if isinstance(event, TextDelta):
                break
        assert model.closed == 0
    assert model.closed == 1


async def test_leaving_the_block_stops_running_tools(skills: Path) -> None:
    tool = Sleeper()
    model = ScriptedModel([Reply(calls=(call("sleep", '{"for": 60}'),))])
    async with sleeping(model, skills, tool).turn(ask()) as turn:
        async for event in turn:
            if isinstance(event, ToolProgress):
                break
    assert tool.cancelled == 1


async def test_cancellation_before_the_first_byte_stops_the_model(skills: Path) -> None:
    model = ScriptedModel([Reply(wait=asyncio.Event())])
    task = asyncio.create_task(collect(runtime_over(model, skills), ask()))
    await model.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.closed == 1


class SlowToClose(ToolBox):
    """A host whose cleanup takes a while."""

    closed = False

    async def aclose(self) -> None:
        await asyncio.sleep(0.05)
        self.closed = True


async def test_cleanup_is_not_cut_short_by_a_second_cancellation(skills: Path) -> None:
    host = SlowToClose(())
    model = ScriptedModel([Reply(wait=asyncio.Event())])
    runtime = Runtime(models=model, source=DirectorySource(discover([skills])), hosts=lambda context: (host,))
    task = asyncio.create_task(collect(runtime, ask()))
    await model.asked.wait()
    task.cancel()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert host.closed


async def test_a_deadline_ends_the_turn(skills: Path) -> None:
    model = ScriptedModel([Reply(wait=asyncio.Event())])
    with pytest.raises(UpstreamError) as caught:
        await collect(runtime_over(model, skills), replace(ask(), deadline_s=0.05))
    assert caught.value.code == "upstream-timeout"
    assert model.closed == 1


async def test_an_upstream_failure_comes_out_as_it_is(skills: Path) -> None:
    broken = UpstreamError("upstream-cut-off", "gone")
    model = ScriptedModel([Reply(text=("half",), error=broken)])
    seen: list[str] = []
    with pytest.raises(UpstreamError) as caught:
        async with runtime_over(model, skills).turn(ask()) as turn:
            seen.extend([event.text async for event in turn if isinstance(event, TextDelta)])
    assert caught.value is broken
    assert model.closed == 1


class Withholding(ToolBox):
    """A host with one unread report: the answer must wait for it."""

    unread = True

    def holds_answer(self) -> bool:
        return self.unread

    async def before_answer(self, context: ToolContext) -> Sequence[Message]:
        if not self.unread:
            return ()
        self.unread = False
        return (message("user", "Report: the door is green."),)


async def test_an_answer_waits_for_what_a_host_still_has_to_say(skills: Path) -> None:
    model = ScriptedModel([Reply(text=("The door is red.",)), Reply(text=("The door is green.",))])
    host = Withholding(())
    runtime = Runtime(models=model, source=DirectorySource(discover([skills])), hosts=lambda context: (host,))
    events, done = await collect(runtime, ask())
    assert text_of(events) == "The door is green."
    assert model.requests[1].messages[-1].text == "Report: the door is green."
    assert done.rounds == 2


async def test_the_catalogue_is_pinned_for_the_turn(skills: Path) -> None:
    library = discover([skills])
    runtime_model = ScriptedModel([Reply(calls=(call("skills_list"),)), Reply(text=("ok",))])
    runtime = Runtime(
        models=runtime_model,
        source=DirectorySource(library),
        hosts=skill_hosts,
    )
    async with runtime.turn(ask()) as turn:
        async for event in turn:
            if isinstance(event, TurnStarted):
                write_skill(skills, "added")
                library.reload()
    assert "added" not in outputs(runtime_model.requests[1])[0].text
    assert "added" in [skill.name for skill in (await runtime.catalog()).skills]
