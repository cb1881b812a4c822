"""The gateway's own surface: what its frames say, and when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from satchel.chat.events import ModelEvent, ModelText, Usage
from satchel.chat.request import ChatRequest
from satchel.engine.events import TextDelta, ToolFinished, ToolProgress, ToolStarted, TurnDone
from satchel.errors import UpstreamError
from satchel.gateway.native.translate import FrameEncoder
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.gateway.native import CHAT, frames_of, one, streaming, user, words
from tests.gateway.serving import Flow, endless, runtime_over, serving, soon, text_done
from tests.gateway.shelf import shelf
from tests.gateway.test_requests import ask
from tests.support import runtime_over as runtime_over_directory
from tests.support import write_skill

ASK = [user("Hello")]
READ = call("skills_read", '{"skill": "invoice"}')


def two_rounds() -> list[Reply]:
    return [
        Reply(text=("Let me ", "look.\n"), reasoning=("Hm", "m."), calls=(READ,)),
        Reply(text=("", "It is ", "ZX-9."), reasoning=("Ah.",), usage=Usage(prompt_tokens=30, completion_tokens=7)),
    ]


async def test_a_stream_says_who_answers_first_and_that_it_is_done_last() -> None:
    async with serving(runtime_over(ScriptedModel([Reply(text=("Hi", " there"))]))) as base:
        first, *middle, usage, last = await frames_of(base, {"messages": ASK, "model": "scripted"})
    assert first == {"session": None, "turn": first["turn"], "model": "scripted"}
    assert first["turn"].startswith("turn_")
    assert middle == [{"text": "Hi"}, {"text": " there"}]
    counted = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert usage == {"usage": {**counted, "rounds": [counted]}}
    assert last == {"done": True, "finish": "stop"}


async def test_a_frame_arrives_before_the_model_says_the_next_piece() -> None:
    heard = asyncio.Semaphore(0)
    pieces = [f"piece {number} " for number in range(20)]

    async def lockstep(request: ChatRequest) -> AsyncGenerator[ModelEvent, None]:
        for piece in pieces:
            yield ModelText(text=piece)
            await heard.acquire()
        yield text_done("".join(pieces))

    async with serving(runtime_over(Flow(lockstep)), heartbeat_s=0) as base:
        async with streaming(base, {"messages": ASK}) as stream:
            assert "turn" in await stream.frame()
            for piece in pieces:
                assert await stream.frame() == {"text": piece}
                heard.release()
            assert (await stream.rest())[-1] == {"done": True, "finish": "stop"}


async def test_a_lookup_is_told_as_a_step_and_its_markup_never_leaves() -> None:
    async with serving(runtime_over(ScriptedModel(two_rounds()), shelf())) as base:
        frames = await frames_of(base, {"messages": ASK, "skills": ["invoice"]})
    assert one(frames, "skill_step") == {
        "skill_step": "skills_read",
        "agent_id": "/root",
        "skill": "invoice",
        "detail": "",
        "ok": True,
        "round": 1,
    }
    assert one(frames, "skill_loaded") == {"skill_loaded": "invoice", "how": "read", "bytes": 120}
    assert words(frames) == "Let me look.\n\n\nIt is ZX-9."
    assert words(frames, "reasoning") == "Hmm.Ah."
    assert [usage["total_tokens"] for usage in one(frames, "usage")["usage"]["rounds"]] == [15, 37]
    assert one(frames, "usage")["usage"]["total_tokens"] == 52
    assert "tool_call" not in json.dumps(frames)


async def test_the_steps_of_real_tools_name_the_file_and_a_failed_one_too(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf", files={"references/forms.md": "Fields are blue."})
    calls = (
        call("skills_read", '{"skill": "pdf", "path": "references/forms.md"}', "a"),
        call("skills_read", '{"skill": "pdf", "path": "references/none.md"}', "b"),
        call("skills_read", '{"skill": "pdf", "path": "../other/SKILL.md"}', "c"),
    )
    model = ScriptedModel([Reply(calls=calls), Reply(text=("Blue.",))])
    async with serving(runtime_over_directory(model, tmp_path)) as base:
        frames = await frames_of(base, {"messages": ASK})
    steps = sorted((frame["detail"], frame["ok"]) for frame in frames if "skill_step" in frame)
    assert steps == [("../other/SKILL.md", False), ("references/forms.md", True), ("references/none.md", False)]
    assert {frame["skill"] for frame in frames if "skill_step" in frame} == {"pdf"}


async def test_the_whole_answer_is_what_the_stream_said() -> None:
    body = {"messages": ASK, "model": "m", "skills": ["invoice"]}
    async with serving(runtime_over(ScriptedModel([*two_rounds(), *two_rounds()]), shelf())) as base:
        frames = await frames_of(base, body)
        status, whole, headers = await ask(base, "POST", CHAT, json={**body, "stream": False})
    assert (status, headers["content-type"]) == (200, "application/json")
    assert "x-satchel-session" not in headers
    assert list(whole) == [
        "session", "turn", "model", "text", "reasoning", "steps", "loaded", "notices", "tool_calls", "usage", "finish",
        "continuation",
    ]  # fmt: skip
    assert whole["text"] == words(frames)
    assert whole["reasoning"] == words(frames, "reasoning")
    assert whole["steps"] == [one(frames, "skill_step")]
    assert whole["loaded"] == [one(frames, "skill_loaded")]
    assert whole["usage"] == one(frames, "usage")["usage"]
    assert (whole["session"], whole["model"], whole["tool_calls"], whole["finish"]) == (None, "m", [], "stop")


async def test_calls_of_the_clients_tools_come_piece_by_piece_and_then_whole() -> None:
    weather = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    said = Reply(text=("Let me see.",), calls=(READ, call("weather", '{"city": "Graz"}', "w1")))
    body = {"messages": ASK, "tools": [weather]}
    async with serving(runtime_over(ScriptedModel([said, said]), shelf())) as base:
        frames = await frames_of(base, body)
        _, whole, _ = await ask(base, "POST", CHAT, json={**body, "stream": False})
    pieces = [frame["tool_call"] for frame in frames if "tool_call" in frame]
    assert [(piece["index"], piece["id"], piece["name"]) for piece in pieces] == [(0, "w1", "weather")] * 2
    assert "".join(piece["arguments"] for piece in pieces) == '{"city": "Graz"}'
    (made,) = one(frames, "tool_calls")["tool_calls"]
    assert made == {"id": "w1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Graz"}'}}
    assert frames[-1].pop("continuation").startswith("cont_")
    assert frames[-1] == {"done": True, "finish": "tool_calls"}
    assert whole["tool_calls"] == [made]
    assert one(frames, "skill_step")["ok"], "our own call of the same round was answered"


async def test_a_tool_name_of_ours_that_the_client_takes_is_noticed() -> None:
    mine = {"type": "function", "function": {"name": "skills_read", "parameters": {"type": "object"}}}
    replies = [Reply(text=("Hi",)), Reply(text=("Hi",))]
    async with serving(runtime_over(ScriptedModel(replies), shelf())) as base:
        frames = await frames_of(base, {"messages": ASK, "tools": [mine]})
        _, whole, _ = await ask(base, "POST", CHAT, json={"messages": ASK, "tools": [mine], "stream": False})
    assert one(frames, "notice")["notice"]["code"] == "tool-name-collision"
    assert whole["notices"] == [one(frames, "notice")["notice"]]


async def test_a_failure_in_the_middle_is_told_in_the_stream_which_then_has_no_clean_end() -> None:
    broken = Reply(text=("So far",), error=UpstreamError("upstream-cut-off", "The server went away.", hint="Retry."))
    async with serving(runtime_over(ScriptedModel([broken, broken]))) as base:
        frames = await frames_of(base, {"messages": ASK})
        status, whole, _ = await ask(base, "POST", CHAT, json={"messages": ASK, "stream": False})
    assert frames[1:] == [{"text": "So far"}, {"error": "The server went away. Retry.", "code": "upstream-cut-off"}]
    assert (status, whole) == (502, {"error": "The server went away. Retry."})


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ASK, "stream": "yes"}, "stream"),
        ({"messages": ASK, "session": 7}, "session"),
        ({"messages": ASK, "session": ""}, "session"),
        ({"messages": ASK, "session": "sess_é"}, "session"),
        ({"messages": ASK, "session": "a\r\nSet-Cookie: b"}, "session"),
        ({"messages": ASK, "maxTokens": 0}, "maxTokens"),
        ({"messages": ASK, "maxTokens": 5, "max_tokens": 5}, "maxTokens"),
        ({"messages": ASK, "n": 2}, "n"),
        ({"messages": ASK, "session": "new", "skills_continuation": "cont_x"}, "skills_continuation"),
        ({"messages": ASK, "skills": ["invoces"]}, 'Did you mean "invoice"?'),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
    ],
)
async def test_a_request_that_cannot_be_served_is_refused_with_the_field(body: dict[str, Any], says: str) -> None:
    model = ScriptedModel([])
    async with serving(runtime_over(model, shelf())) as base:
        status, got, _ = await ask(base, "POST", CHAT, json=body)
    assert status == 400
    assert list(got) == ["error"]
    assert says in got["error"]
    assert model.requests == []


async def test_what_is_ours_ends_here_and_everything_else_goes_upstream() -> None:
    model = ScriptedModel([Reply(text=("Hi",))])
    body = {
        "messages": ASK, "maxTokens": 40, "temperature": 0.5, "top_k": 3, "stream": True, "skills": [],
        "skills_discovery": False, "multi_agent": False, "response_format": {"type": "json_object"},
    }  # fmt: skip
    async with serving(runtime_over(model, shelf())) as base:
        await frames_of(base, body)
    (request,) = model.requests
    assert (request.max_tokens, request.sampling.temperature) == (40, 0.5)
    assert request.extra == {"openai-chat": {"top_k": 3, "response_format": {"type": "json_object"}}}
    assert request.messages[0].role == "user", "no skills, no block"
    assert request.tools == ()


async def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    go_on = asyncio.Event()

    async def pausing(request: ChatRequest) -> AsyncGenerator[ModelEvent, None]:
        await go_on.wait()
        yield ModelText(text="at last")
        yield text_done("at last")

    async with serving(runtime_over(Flow(pausing)), heartbeat_s=0.01) as base:
        async with streaming(base, {"messages": ASK}) as stream:
            assert stream.answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert stream.answer.headers["x-accel-buffering"] == "no"
            assert await stream.answer.content.readuntil(b"\n\n")
            assert await stream.answer.content.readuntil(b"\n\n") == b": ping\n\n"
            go_on.set()
            assert words(await stream.rest()) == "at last"


async def test_hanging_up_stops_the_model() -> None:
    flow = Flow(endless)
    async with serving(runtime_over(flow), heartbeat_s=0) as base:
        async with streaming(base, {"messages": ASK}) as stream:
            await stream.frame()
            assert await stream.frame() == {"text": "word"}
            assert not flow.left.is_set()
            stream.answer.close()
            await soon(flow.left)


def test_work_of_every_agent_is_told_and_words_only_of_the_one_that_answers() -> None:
    encoder = FrameEncoder("/root", None)
    child = "/root/reader"
    assert encoder.feed(TextDelta(agent=child, round=1, text="inner")) == b""
    assert encoder.feed(ToolStarted(agent=child, round=2, call_id="c", name="shell", skill="", path="")) == b""
    progress = encoder.feed(
        ToolProgress(agent=child, round=2, call_id="c", phase="finished", detail="exit 0", files=("out.csv",))
    )
    assert json.loads(progress.removeprefix(b"data: ")) == {
        "tool_progress": "shell",
        "phase": "finished",
        "agent_id": child,
        "detail": "exit 0",
        "files": ["out.csv"],
        "round": 2,
    }
    step = encoder.feed(ToolFinished(agent=child, round=2, call_id="c", name="shell", ok=True))
    assert json.loads(step.removeprefix(b"data: "))["agent_id"] == child


def test_the_end_of_a_turn_carries_its_continuation() -> None:
    encoder = FrameEncoder("/root", None)
    done = TurnDone(finish="stop", usage=Usage(), usage_by_round=(), rounds=1, continuation="cont_1")
    assert encoder.feed(done) == b""
    assert encoder.finish().endswith(b'data: {"done":true,"finish":"stop","continuation":"cont_1"}\n\n')


@pytest.mark.parametrize("has_skills", [True, False])
async def test_models_are_listed_with_what_the_server_does_with_skills(has_skills: bool) -> None:
    async with serving(runtime_over(ScriptedModel([]), shelf() if has_skills else None)) as base:
        status, got, _ = await ask(base, "GET", "/api/models")
    assert status == 200
    assert got["models"] == [{"id": "scripted", "owned_by": "satchel", "created": 0, "context_tokens": None}]
    block = {"enabled": True, "installable": False, "allowScripts": False, "count": 2}
    assert got["skills"] == (block if has_skills else None)
