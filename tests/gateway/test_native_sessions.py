"""Conversations that the server holds."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.events import ModelEvent, ModelText
from satchel.chat.messages import Reasoning
from satchel.chat.request import ChatRequest
from satchel.errors import UpstreamError
from satchel.ports.models import UpstreamOptions
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, says
from satchel.upstream.openai_chat import OpenAIChatClient
from tests.gateway.native import CHAT, frames_of, one, streaming, user, words
from tests.gateway.serving import Flow, runtime_over, serving, soon, text_done
from tests.gateway.shelf import shelf
from tests.gateway.test_requests import ask
from tests.support import runtime_over as runtime_over_directory
from tests.support import write_skill

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}


def turn(text: str, session: str = "new", **more: Any) -> dict[str, Any]:
    return {"messages": [user(text)], "session": session, **more}


async def begin(base: str, text: str = "One", **more: Any) -> str:
    return (await frames_of(base, turn(text, **more)))[0]["session"]


def read(path: str = "SKILL.md") -> ScriptedTurn:
    fragments = ('{"skill": "pdf", ', f'"path": "{path}"}}')
    return ScriptedTurn(
        text=("Let me look.",),
        reasoning=("I should read it.",),
        calls=(ScriptedCall(name="skills_read", fragments=fragments, call_id=f"call_{path}"),),
    )


def is_grown(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether ``after`` begins with every byte that ``before`` sent of tools and messages."""
    old, new = json.dumps(before["messages"]), json.dumps(after["messages"])
    return json.dumps(before["tools"]) == json.dumps(after["tools"]) and new.startswith(old[:-1])


async def test_a_new_session_is_named_in_the_first_frame_and_in_a_header() -> None:
    async with serving(runtime_over(ScriptedModel([Reply(text=("Hi",)), Reply(text=("Hi",))]))) as base:
        async with streaming(base, turn("One")) as stream:
            first = await stream.frame()
            await stream.rest()
        status, whole, headers = await ask(base, "POST", CHAT, json=turn("One", stream=False))
    assert first["session"].startswith("sess_")
    assert stream.answer.headers["x-satchel-session"] == first["session"]
    assert (status, whole["session"]) == (200, headers["x-satchel-session"])
    assert whole["session"] != first["session"]


async def test_every_turn_begins_with_the_bytes_that_the_one_before_sent_upstream(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf", body="Read references/forms.md.\n", files={"references/forms.md": "Blue."})
    write_skill(tmp_path, "csv")
    script = [read(), read("references/forms.md"), says("It is blue."), says("Still."), read(), says("Sure.")]
    async with ScriptedOpenAI(script) as upstream:
        models = OpenAIChatClient(UpstreamOptions(url=upstream.url))
        async with serving(runtime_over_directory(models, tmp_path)) as base:
            body = {"messages": [{"role": "system", "content": "Be brief."}, user("Which colour?")], "session": "new"}
            session = (await frames_of(base, {**body, "model": "scripted", "skills": ["pdf"]}))[0]["session"]
            await frames_of(base, turn("Sure?", session))
            frames = await frames_of(base, turn("Look again.", session, skills=["pdf"]))
        bodies: list[Any] = [seen.body for seen in upstream.requests]
    assert words(frames) == "Let me look.\n\nSure."
    assert len(bodies) == 6
    assert all(is_grown(*pair) for pair in itertools.pairwise(bodies))
    roles = [message["role"] for message in bodies[3]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant", "user"]
    assert bodies[3]["messages"][2]["reasoning_content"] == "I should read it."
    assert {body["model"] for body in bodies} == {"scripted"}, "a later turn need not name the model"


async def test_a_session_keeps_its_skills_whatever_becomes_of_them(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "pdf", body="Short.\n")
    write_skill(tmp_path, "csv")
    async with ScriptedOpenAI([says(f"Turn {number}.") for number in range(4)]) as upstream:
        models = OpenAIChatClient(UpstreamOptions(url=upstream.url))
        async with serving(runtime_over_directory(models, tmp_path)) as base:
            session = await begin(base, model="scripted", skills=["pdf"])
            (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: Another.\n---\n" + "Long. " * 900)
            write_skill(tmp_path, "added")
            shutil.rmtree(tmp_path / "csv")
            _, page, _ = await ask(base, "POST", "/api/skills/rescan")
            assert [skill["name"] for skill in page["skills"]] == ["added", "pdf"]
            await frames_of(base, turn("Two", session))
            shutil.rmtree(folder)
            await ask(base, "POST", "/api/skills/rescan")
            await frames_of(base, turn("Three", session))
            await begin(base, model="scripted")
        bodies: list[Any] = [seen.body for seen in upstream.requests]
    assert is_grown(bodies[0], bodies[1])
    assert is_grown(bodies[1], bodies[2])
    first, anew = (body["messages"][0]["content"] for body in (bodies[0], bodies[3]))
    assert "csv" in first
    assert "added" not in first
    assert "csv" not in anew
    assert "added" in anew


async def test_reasoning_goes_along_only_where_the_model_takes_it() -> None:
    takes = ModelCapabilities(reasoning_replay="text"), ModelCapabilities(reasoning_replay="drop")
    for capabilities, kept in zip(takes, ([True, True], [False, False]), strict=True):
        replies = [
            Reply(reasoning=("Hm.",), calls=(call("skills_read", '{"skill": "invoice"}'),)),
            Reply(reasoning=("Ah.",), text=("ZX-9",)),
            Reply(text=("Yes",)),
        ]
        model = ScriptedModel(replies, capabilities=capabilities)
        async with serving(runtime_over(model, shelf())) as base:
            session = await begin(base)
            await frames_of(base, turn("Two", session))
            _, shown, _ = await ask(base, "GET", f"/api/sessions/{session}")
        said = [item for item in model.requests[-1].messages if item.role == "assistant"]
        assert [any(isinstance(part, Reasoning) for part in item.parts) for item in said] == kept
        assert shown["messages"][1]["reasoning_content"] == "Hm.Ah.", "the client saw it"


async def test_a_session_shows_the_conversation_as_its_client_knows_it() -> None:
    replies = [
        Reply(text=("Let me look.",), calls=(call("skills_read", '{"skill": "invoice"}'),)),
        Reply(text=("ZX-9",)),
        Reply(text=("Yes",)),
    ]
    async with serving(runtime_over(ScriptedModel(replies), shelf())) as base:
        session = await begin(base, model="m", skills=["invoice"], skills_discovery=False)
        await frames_of(base, turn("Sure?", session))
        status, got, _ = await ask(base, "GET", f"/api/sessions/{session}")
    assert status == 200
    assert got == {
        "session": session,
        "created": got["created"],
        "turns": 2,
        "model": "m",
        "skills": ["invoice"],
        "skills_discovery": False,
        "messages": [
            user("One"),
            {"role": "assistant", "content": "Let me look.\n\nZX-9"},
            user("Sure?"),
            {"role": "assistant", "content": "Yes"},
        ],
    }
    assert got["created"] > 1_700_000_000


async def test_a_deleted_session_is_gone() -> None:
    async with serving(runtime_over(ScriptedModel([Reply(text=("Hi",))]))) as base:
        session = await begin(base)
        status, got, _ = await ask(base, "DELETE", f"/api/sessions/{session}")
        assert (status, got) == (200, {"deleted": True, "session": session})
        for method in ("GET", "DELETE"):
            status, got, _ = await ask(base, method, f"/api/sessions/{session}")
            assert status == 404
        status, got, _ = await ask(base, "POST", CHAT, json=turn("Two", session))
    assert status == 404
    assert '"session": "new"' in got["error"]


async def test_a_session_that_was_not_used_in_time_is_gone() -> None:
    model = ScriptedModel([Reply(text=("Hi",))])
    async with serving(runtime_over(model), session_idle_s=0) as base:
        session = await begin(base)
        status, _, _ = await ask(base, "POST", CHAT, json=turn("Two", session))
    assert status == 404
    assert len(model.requests) == 1


async def test_a_session_belongs_to_the_key_that_began_it() -> None:
    mine, theirs = ({"Authorization": f"Bearer {key}"} for key in ("key-a", "key-b"))
    model = ScriptedModel([Reply(text=("Hi",)), Reply(text=("Yes",))])
    async with serving(runtime_over(model), keys=("key-a", "key-b")) as base:
        session = (await frames_of(base, turn("One"), headers=mine))[0]["session"]
        for method in ("GET", "DELETE"):
            status, _, _ = await ask(base, method, f"/api/sessions/{session}", headers=theirs)
            assert status == 404
        status, _, _ = await ask(base, "POST", CHAT, json=turn("Two", session), headers=theirs)
        assert status == 404
        assert words(await frames_of(base, turn("Two", session), headers=mine)) == "Yes"


async def test_the_clients_tools_go_on_in_the_next_turn_beside_our_own_calls() -> None:
    both = (call("skills_read", '{"skill": "invoice"}', "s1"), call("weather", "{}", "w1"))
    model = ScriptedModel([Reply(calls=both), Reply(text=("Sunny",)), Reply(text=("Bye",))])
    answer = {"role": "tool", "tool_call_id": "w1", "content": "sun"}
    async with serving(runtime_over(model, shelf())) as base:
        session = await begin(base, tools=[WEATHER])
        status, got, _ = await ask(base, "POST", CHAT, json=turn("Two", session))
        assert (status, "w1" in got["error"]) == (400, True)
        status, _, _ = await ask(
            base, "POST", CHAT, json={"messages": [{**answer, "tool_call_id": "s1"}], "session": session}
        )
        assert status == 400, "our own calls are not the client's to answer"
        frames = await frames_of(base, {"messages": [answer, user("And?")], "session": session})
        assert words(frames) == "Sunny"
        await frames_of(base, turn("Three", session))
        _, shown, _ = await ask(base, "GET", f"/api/sessions/{session}")
    roles = [item.role for item in model.requests[1].messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [use.call_id for use in model.requests[1].messages[2].tool_uses] == ["s1", "w1"]
    assert [tool.name for tool in model.requests[2].tools] == [tool.name for tool in model.requests[0].tools]
    assert [item["role"] for item in shown["messages"]][:3] == ["user", "assistant", "tool"]
    assert [made["id"] for made in shown["messages"][1]["tool_calls"]] == ["w1"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"messages": [user("One"), {"role": "assistant", "content": "Hi"}, user("Two")]}, "messages[1].role"),
        ({"messages": [{"role": "system", "content": "Be rude."}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]}, "messages[0].tool_call_id"),
        ({"skills": ["invoice"]}, "skills:"),
        ({"skills_discovery": False}, "skills_discovery:"),
    ],
)
async def test_a_turn_that_does_not_go_on_with_its_session_is_refused(more: dict[str, Any], says: str) -> None:
    model = ScriptedModel([Reply(text=("Hi",)), Reply(text=("Still here",))])
    async with serving(runtime_over(model, shelf())) as base:
        session = await begin(base)
        status, got, _ = await ask(base, "POST", CHAT, json={**turn("Two", session), **more})
        assert status == 400
        assert says in got["error"]
        assert words(await frames_of(base, turn("Two", session))) == "Still here"


async def test_one_turn_at_a_time() -> None:
    go_on, asked = asyncio.Event(), asyncio.Event()

    async def slow(request: ChatRequest) -> AsyncGenerator[ModelEvent, None]:
        yield ModelText(text="Hi")
        if request.messages[-1].text == "slowly":
            asked.set()
            await go_on.wait()
        yield text_done("Hi")

    async with serving(runtime_over(Flow(slow))) as base:
        session = await begin(base)
        async with streaming(base, turn("slowly", session)) as stream:
            await soon(asked)
            status, got, headers = await ask(base, "POST", CHAT, json=turn("Two", session))
            assert (status, headers["retry-after"]) == (409, "1")
            assert "still running" in got["error"]
            go_on.set()
            while "done" not in await stream.frame():
                pass
            # The next turn may follow as soon as the client knows the end.
            assert (await frames_of(base, turn("Three", session)))[-1]["done"]
        _, shown, _ = await ask(base, "GET", f"/api/sessions/{session}")
    assert [item["content"] for item in shown["messages"]] == ["One", "Hi", "slowly", "Hi", "Three", "Hi"]


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_hanging_up_leaves_the_session_as_it_was(is_streamed: bool) -> None:
    waiting = asyncio.Event()
    seen: list[ChatRequest] = []

    async def play(request: ChatRequest) -> AsyncGenerator[ModelEvent, None]:
        seen.append(request)
        yield ModelText(text="Well")
        if request.messages[-1].text == "hang":
            waiting.set()
            await asyncio.Event().wait()
        yield text_done("Well")

    flow = Flow(play)
    async with serving(runtime_over(flow), heartbeat_s=0) as base:
        session = await begin(base)
        flow.left.clear()
        asking = asyncio.ensure_future(ask(base, "POST", CHAT, json=turn("hang", session, stream=is_streamed)))
        await soon(waiting)
        asking.cancel()
        await soon(flow.left)
        frames = None
        while frames is None:
            # The claim ends right after the model's, within the same request.
            status, frames, _ = await ask(base, "POST", CHAT, json=turn("Two", session, stream=False))
            frames = frames if status == 200 else None
        _, shown, _ = await ask(base, "GET", f"/api/sessions/{session}")
    assert [item["content"] for item in shown["messages"]] == ["One", "Well", "Two", "Well"]
    assert [item.text for item in seen[-1].messages] == ["One", "Well", "Two"]


async def test_a_turn_that_fails_leaves_the_session_as_it_was() -> None:
    lost = UpstreamError("upstream-cut-off", "The server went away.")
    model = ScriptedModel(
        [Reply(text=("Hi",)), Reply(text=("So",), error=lost), Reply(error=lost), Reply(text=("Ok",))]
    )
    async with serving(runtime_over(model)) as base:
        session = await begin(base)
        assert (await frames_of(base, turn("Two", session)))[-1]["code"] == "upstream-cut-off"
        status, _, _ = await ask(base, "POST", CHAT, json=turn("Three", session, stream=False))
        assert status == 502
        assert words(await frames_of(base, turn("Four", session))) == "Ok"
    assert [item.text for item in model.requests[-1].messages] == ["One", "Hi", "Four"]


async def test_a_session_whose_first_turn_failed_was_never_there() -> None:
    broken = Reply(text=("So",), error=UpstreamError("upstream-cut-off", "The server went away."))
    async with serving(runtime_over(ScriptedModel([broken]))) as base:
        session = await begin(base)
        status, _, _ = await ask(base, "GET", f"/api/sessions/{session}")
    assert status == 404


async def test_a_session_that_is_deleted_in_the_middle_of_a_turn_does_not_come_back() -> None:
    go_on = asyncio.Event()

    async def slow(request: ChatRequest) -> AsyncGenerator[ModelEvent, None]:
        yield ModelText(text="Hi")
        await go_on.wait()
        yield text_done("Hi")

    async with serving(runtime_over(Flow(slow))) as base:
        async with streaming(base, turn("One")) as stream:
            session = (await stream.frame())["session"]
            status, _, _ = await ask(base, "DELETE", f"/api/sessions/{session}")
            assert status == 200
            go_on.set()
            frames = await stream.rest()
        status, _, _ = await ask(base, "GET", f"/api/sessions/{session}")
    assert one(frames, "notice")["notice"]["code"] == "session-not-kept"
    assert frames[-1]["done"]
    assert status == 404


async def test_without_a_session_nothing_is_kept() -> None:
    model = ScriptedModel([Reply(text=("Hi",)), Reply(text=("Hi",))])
    async with serving(runtime_over(model)) as base:
        async with streaming(base, {"messages": [user("One")]}) as stream:
            assert (await stream.frame())["session"] is None
        assert "x-satchel-session" not in stream.answer.headers


async def test_another_model_and_other_tools_may_take_over() -> None:
    model = ScriptedModel([Reply(text=("Hi",)), Reply(text=("Hi",)), Reply(text=("Hi",))])
    async with serving(runtime_over(model)) as base:
        session = await begin(base, model="a", tools=[WEATHER])
        await frames_of(base, turn("Two", session, model="b", tools=[]))
        await frames_of(base, turn("Three", session))
    assert [(request.model, len(request.tools)) for request in model.requests] == [("a", 1), ("b", 0), ("b", 0)]
