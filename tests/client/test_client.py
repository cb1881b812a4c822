from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from satchel import MemorySkillRegistry, SkillsChatClient, SkillsChatRequest, discover, events, inline
from satchel.chat.messages import Message, ToolUse, message
from satchel.chat.request import ToolSpec
from satchel.client import SkillsChatResponse, SkillToolInvocation
from satchel.errors import RequestError, SatchelError, SetupError, UpstreamError
from satchel.testing.scripted_model import Reply, call
from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, refuses, says
from tests.client.endpoints import (
    ANSWER,
    LISTING,
    READ,
    STANDS_DOWN,
    VENDOR,
    WIRE_ANSWER,
    WIRE_READ,
    Probed,
    gateway,
    ours_in,
)
from tests.gateway.serving import soon
from tests.support import write_skill

ASK = SkillsChatRequest.user("Which prefix?", "invoice")
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path / "skills", "invoice", body="The prefix is ZX-9.\n", files={"references/a.md": "more"})
    write_skill(tmp_path / "skills", "deploy")
    return tmp_path / "skills"


def shape(reply: SkillsChatResponse) -> dict[str, Any]:
    return {
        "content": reply.content,
        "reasoning": reply.reasoning,
        "skills": reply.skills,
        "rounds": reply.rounds,
        "finish": reply.finish,
        "invocations": [(item.round, item.agent, item.tool, item.skill, item.ok) for item in reply.skill_invocations],
        "usage_by_round": len(reply.usage_by_round),
    }


READ_THEN_ANSWERED = {
    "content": "Let me look.\n\nThe prefix is ZX-9.",
    "reasoning": "hm",
    "skills": ("invoice",),
    "rounds": 2,
    "finish": "stop",
    "invocations": [(1, "/root", "skills_read", "invoice", True)],
    "usage_by_round": 2,
}


async def test_server_delivery_leaves_everything_to_the_gateway() -> None:
    async with gateway(READ, ANSWER) as (url, model), SkillsChatClient(url) as client:
        reply = await client.complete(ASK)
    assert (reply.delivery, shape(reply)) == ("server", READ_THEN_ANSWERED)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (20, 10)
    assert [said.role for said in reply.transcript] == ["assistant"]
    assert len(model.requests) == 2


async def test_local_delivery_runs_the_loop_here_over_any_endpoint(skills: Path) -> None:
    async with Probed(WIRE_READ, WIRE_ANSWER) as server:
        async with SkillsChatClient(server.url, skills=skills) as client:
            reply = await client.complete(ASK)
    assert (reply.delivery, shape(reply)) == ("local", READ_THEN_ANSWERED)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (30, 11)
    assert reply.skill_invocations == (
        SkillToolInvocation(round=1, agent="/root", tool="skills_read", skill="invoice", path="SKILL.md", ok=True),
    )
    assert [said.role for said in reply.transcript] == ["assistant", "tool", "assistant"]
    assert [ours_in(request.body) for request in server.requests] == [{}, {}]


async def test_the_events_are_the_same_whoever_runs_the_loop(skills: Path) -> None:
    seen: list[list[Any]] = []

    async def watch(client: SkillsChatClient) -> None:
        async with client.stream(ASK) as stream:
            told = [event async for event in stream]
            assert stream.response.content == READ_THEN_ANSWERED["content"]
        seen.append([(type(event).__name__, event.round, getattr(event, "text", None)) for event in told])

    async with gateway(READ, ANSWER) as (url, _), SkillsChatClient(url) as client:
        await watch(client)
    async with Probed(WIRE_READ, WIRE_ANSWER) as server:
        async with SkillsChatClient(server.url, skills=[skills]) as client:
            await watch(client)
    assert seen[0] == seen[1]
    assert [name for name, _, _ in seen[0]] == [
        "TurnStarted",
        "ReasoningDelta",
        "TextDelta",
        "TextDelta",
        "RoundFinished",
        "ToolStarted",
        "SkillLoaded",
        "ToolFinished",
        "TextDelta",
        "TextDelta",
        "RoundFinished",
        "TurnDone",
    ]


async def test_a_lookup_of_the_server_is_told_when_it_happens() -> None:
    gate = asyncio.Event()
    async with gateway(READ, Reply(text=("late",), wait=gate)) as (url, _), SkillsChatClient(url) as client:
        async with client.stream(ASK) as stream:
            async for event in stream:
                if isinstance(event, events.ToolFinished):
                    gate.set()  # The model's second round waits for this: a lookup told afterwards would hang here.
            assert stream.response.content.endswith("late")
            assert len(stream.response.skill_invocations) == 1


async def test_leaving_the_stream_stops_the_model() -> None:
    async with Probed(ScriptedTurn(text=("one", "two"), fault="stall"), strict=False) as server:
        async with SkillsChatClient(server.url, delivery="server") as client:
            async with client.stream(ASK) as stream:
                async for event in stream:
                    if isinstance(event, events.TextDelta):
                        break
                with pytest.raises(RuntimeError):
                    _ = stream.response
            await soon(server.requests[0].hung_up)


async def test_calls_to_ones_own_tools_come_back_and_the_conversation_goes_on(skills: Path) -> None:
    calls = ScriptedTurn(calls=(ScriptedCall(name="weather", fragments=('{"city": "Oslo"}',), call_id="call_w"),))
    request = SkillsChatRequest(messages=[{"role": "user", "content": "Weather?"}], tools=[WEATHER])
    async with Probed(WIRE_READ, calls, says("Sun.")) as server:
        async with SkillsChatClient(server.url, skills=skills) as client:
            reply = await client.complete(request)
            assert (reply.finish, reply.rounds, len(reply.skill_invocations)) == ("tool_calls", 2, 1)
            assert [(use.call_id, use.name, use.arguments) for use in reply.tool_calls] == [
                ("call_w", "weather", '{"city": "Oslo"}')
            ]
            request = request.then(reply, {"role": "tool", "tool_call_id": "call_w", "content": "sunny"})
            reply = await client.complete(request)
    assert reply.content == "Sun."
    sent = server.last["messages"]
    assert [item["role"] for item in sent] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert sent[-1] == {"role": "tool", "tool_call_id": "call_w", "content": "sunny"}
    assert "ZX-9" in sent[3]["content"]


async def test_calls_through_a_gateway_come_back_too() -> None:
    mixed = Reply(calls=(call("skills_read", '{"skill": "invoice"}'), call("weather", '{"city": "Oslo"}', "call_w")))
    spec = ToolSpec(name="weather", parameters={"type": "object", "properties": {}})
    request = SkillsChatRequest(messages=[message("user", "Weather?")], tools=[spec])
    async with gateway(mixed, ANSWER) as (url, _), SkillsChatClient(url) as client:
        reply = await client.complete(request)
        assert reply.tool_calls == (ToolUse(call_id="call_w", name="weather", arguments='{"city": "Oslo"}'),)
        assert [item.tool for item in reply.skill_invocations] == ["skills_read"]
        reply = await client.complete(
            request.then(reply, {"role": "tool", "tool_call_id": "call_w", "content": "sunny"})
        )
    assert reply.content == "The prefix is ZX-9."


# -- who runs the loop -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"error": "no"}, 404),
        ({"error": "no"}, 405),
        ({"error": "no"}, 501),
        ({"detail": "no"}, 400),
        ("<html>Welcome</html>", 200),
        (VENDOR, 200),
        ({**VENDOR, "data": []}, 200),
        ({"object": "list"}, 200),
        ([], 200),
    ],
)
async def test_an_endpoint_that_is_no_satchel_server_gets_local_delivery(
    skills: Path, answer: Any, status: int
) -> None:
    async with Probed(says("a"), says("b"), answer=answer, status=status) as server:
        async with SkillsChatClient(server.url, skills=skills) as client:
            replies = [await client.complete(ASK) for _ in range(2)]
        async with SkillsChatClient(server.url) as client:
            with pytest.raises(SetupError) as caught:
                await client.complete(ASK)
    assert [reply.delivery for reply in replies] == ["local", "local"]
    assert server.probes == 2, "once a client"
    assert (caught.value.code, "skills=" in caught.value.hint) == ("setting-invalid", True)


async def test_local_delivery_tells_a_satchel_server_to_stand_down(skills: Path) -> None:
    async with Probed(WIRE_READ, WIRE_ANSWER, answer=LISTING, status=200, strict=False) as server:
        async with SkillsChatClient(server.url, delivery="local", skills=discover(skills)) as client:
            reply = await client.complete(ASK)
    assert (reply.delivery, reply.rounds, server.probes) == ("local", 2, 1)
    assert [ours_in(request.body) for request in server.requests] == [STANDS_DOWN, STANDS_DOWN]


async def test_local_delivery_takes_registries_wherever_it_takes_directories(skills: Path) -> None:
    registry = MemorySkillRegistry([inline(name="invoice", description="x", instructions="The prefix is ZX-9.\n")])
    for given in (registry, [skills / "deploy", registry], [discover(skills), registry], [registry, skills]):
        async with Probed(WIRE_READ, WIRE_ANSWER) as server:
            async with SkillsChatClient(server.url, skills=given) as client:
                reply = await client.complete(ASK)
        assert shape(reply) == READ_THEN_ANSWERED
        assert "The prefix is ZX-9." in str(server.requests[-1].body["messages"])
    for wrong in (7, [7]):
        with pytest.raises(SetupError):
            SkillsChatClient("http://127.0.0.1:9", skills=cast("Any", wrong))


async def test_local_delivery_over_our_own_gateway_injects_once(skills: Path) -> None:
    async with gateway(READ, ANSWER) as (url, model):
        async with SkillsChatClient(url, delivery="local", skills=skills) as client:
            reply = await client.complete(ASK)
    assert shape(reply) == READ_THEN_ANSWERED
    for request in model.requests:
        assert sorted(tool.name for tool in request.tools) == ["skills_list", "skills_read"]
        assert "".join(said.text for said in request.messages).count("## Agent skills") == 1


async def test_requests_that_begin_together_probe_once(skills: Path) -> None:
    async with Probed(*[says("a") for _ in range(8)]) as server:
        async with SkillsChatClient(server.url, skills=skills) as client:
            first = asyncio.create_task(client.complete(ASK))
            rest = [asyncio.create_task(client.complete(ASK)) for _ in range(7)]
            await asyncio.sleep(0)
            first.cancel()  # One that gives up takes the probe from nobody.
            replies = await asyncio.gather(*rest)
    assert {reply.delivery for reply in replies} == {"local"}
    assert server.probes == 1


@pytest.mark.parametrize(
    ("status", "code"), [(401, "upstream-auth"), (503, "upstream-failed"), (429, "upstream-rate-limited")]
)
async def test_a_probe_that_cannot_tell_is_an_error_and_is_made_again(skills: Path, status: int, code: str) -> None:
    async with Probed(says("a"), answer={"error": {"message": "no"}}, status=status) as server:
        async with SkillsChatClient(server.url, skills=skills, api_key="key") as client:
            for _ in range(2):
                with pytest.raises(UpstreamError) as caught:
                    await client.complete(ASK)
                assert caught.value.code == code
            server.status = 404
            assert (await client.complete(ASK)).delivery == "local"
    assert server.probes == 3


async def test_a_key_that_may_chat_and_list_nothing_serves_local_delivery(skills: Path) -> None:
    async with Probed(says("a"), answer={"error": "no"}, status=403) as server:
        async with SkillsChatClient(server.url, delivery="local", skills=skills) as client:
            assert (await client.complete(ASK)).content == "a"


async def test_an_endpoint_that_is_down_is_an_error(skills: Path) -> None:
    async with SkillsChatClient("http://127.0.0.1:9", skills=skills) as client:
        with pytest.raises(UpstreamError) as caught:
            await client.complete(ASK)
    assert caught.value.code == "upstream-unreachable"


# -- what goes over the wire -------------------------------------------------------------------------------------------


async def test_what_server_delivery_asks_for() -> None:
    async with Probed(says("a"), says("b"), strict=False) as server:
        async with SkillsChatClient(
            f"{server.url}/v1", delivery="server", default_model="m", discovery=False, api_key="secret"
        ) as client:
            await client.complete(
                SkillsChatRequest(
                    messages=[{"role": "user", "content": "hi"}],
                    skills=["b", "a"],
                    max_tokens=7,
                    multi_agent=False,
                    continuation="turn_1",
                    extra={"temperature": 0.5, "seed": 3, "response_format": {"type": "text"}},
                )
            )
            sent = server.last
            reply = await client.complete(SkillsChatRequest.user("hi"))
    assert server.probes == 0
    assert sent["messages"] == [{"role": "user", "content": "hi"}]
    assert ours_in(sent) == {
        "skills": ["b", "a"],
        "skills_discovery": False,
        "skills_continuation": "turn_1",
        "multi_agent": False,
    }
    assert (sent["model"], sent["max_tokens"], sent["temperature"], sent["seed"]) == ("m", 7, 0.5, 3)
    assert sent["response_format"] == {"type": "text"}
    assert server.requests[0].headers["Authorization"] == "Bearer secret"
    # A server that says nothing of what it read: one round is all that is known.
    assert (reply.rounds, reply.skill_invocations, reply.content) == (1, (), "b")


async def test_what_a_hostile_server_says_of_its_lookups_breaks_nothing() -> None:
    def chunk(**fields: Any) -> dict[str, Any]:
        return {"object": "chat.completion.chunk", "choices": [], **fields}

    text: dict[str, Any] = {"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}
    nonsense: list[dict[str, Any]] = [
        chunk(satchel={"step": {"event": "round_finished", "round": -3, "finish": [], "usage": 7}}),
        chunk(satchel={"step": {"event": "tool_finished", "round": "x", "skill": {"a": 1}, "ok": "yes"}}),
        chunk(satchel={"step": {"event": "made-up"}}),
        chunk(satchel={"step": [1]}),
        chunk(satchel=5),
        {"object": "chat.completion.chunk", "choices": [text]},
        chunk(usage={}, satchel={"rounds": [1, {}], "invocations": "no", "skills": [1, "a"], "continuation": 4}),
    ]
    async with Probed(ScriptedTurn(chunks=tuple(nonsense)), strict=False) as server:
        async with SkillsChatClient(server.url, delivery="server") as client:
            reply = await client.complete(ASK)
    assert (reply.content, reply.finish, reply.skills, reply.continuation) == ("hi", "stop", ("a",), "")
    assert [item.ok for item in reply.skill_invocations] == [False]


async def test_a_continuation_is_sent_back_only_to_a_server(skills: Path) -> None:
    end: dict[str, Any] = {"object": "chat.completion.chunk", "choices": [], "satchel": {"continuation": "turn_9"}}
    text: dict[str, Any] = {"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}
    turn = ScriptedTurn(chunks=({"object": "chat.completion.chunk", "choices": [text]}, end))
    async with Probed(turn, says("b"), says("c"), strict=False) as server:
        async with SkillsChatClient(server.url, delivery="server") as client:
            reply = await client.complete(ASK)
            follow = ASK.then(reply, "And?")
            await client.complete(follow)
        assert server.last["skills_continuation"] == "turn_9"
        assert [said["content"] for said in server.last["messages"]] == ["Which prefix?", "hi", "And?"]
        async with SkillsChatClient(server.url, delivery="local", skills=skills) as client:
            assert (await client.complete(follow)).continuation == ""
        assert "skills_continuation" not in server.last


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
async def test_the_endpoint_with_and_without_its_version(tail: str) -> None:
    async with Probed(says("a"), strict=False) as server:
        async with SkillsChatClient(server.url + tail, delivery="server") as client:
            assert (await client.complete(ASK)).content == "a"


# -- what is refused ---------------------------------------------------------------------------------------------------


async def test_wrong_requests_and_settings_are_our_errors(skills: Path) -> None:
    with pytest.raises(SetupError):
        SkillsChatClient("http://127.0.0.1:9", delivery="local")
    with pytest.raises(SetupError):
        SkillsChatClient("localhost:9")
    async with Probed(says("a")) as server, SkillsChatClient(server.url, skills=skills) as client:
        for wrong in (
            SkillsChatRequest.user("hi", "invoic"),
            SkillsChatRequest(messages=[]),
            SkillsChatRequest(messages=[{"role": "nobody", "content": "hi"}]),
            SkillsChatRequest(messages=[{"role": "user", "content": "hi"}], extra={"stream": True}),
        ):
            with pytest.raises(RequestError) as caught:
                await client.complete(wrong)
            assert caught.value.code == "invalid-request"
    assert server.requests == []


async def test_a_gateway_that_refuses_is_quoted() -> None:
    async with gateway(ANSWER) as (url, _), SkillsChatClient(url) as client:
        with pytest.raises(UpstreamError) as caught:
            await client.complete(SkillsChatRequest.user("hi", "invoic"))
    assert caught.value.code == "upstream-rejected"
    assert 'No skill is called "invoic"' in caught.value.message


async def test_an_answer_that_takes_too_long_is_an_error(skills: Path) -> None:
    async with ScriptedOpenAI([ScriptedTurn(text=("half",), fault="stall")]) as server:
        async with SkillsChatClient(server.url, delivery="local", skills=skills, timeout_s=0.05) as client:
            with pytest.raises(UpstreamError) as caught:
                await client.complete(ASK)
        assert caught.value.code == "upstream-timeout"


async def test_a_failure_of_the_endpoint_comes_out_as_it_is(skills: Path) -> None:
    async with Probed(refuses(500, "no memory")) as server, SkillsChatClient(server.url, skills=skills) as client:
        with pytest.raises(SatchelError) as caught:
            await client.complete(ASK)
    assert "no memory" in caught.value.message


def test_without_the_extra_it_is_said_what_to_install() -> None:
    code = """
import json, sys
for name in ("aiohttp", "pydantic", "cyclopts", "fastapi", "prompt_toolkit"):
    sys.modules[name] = None
import satchel
request = satchel.SkillsChatRequest.user("hi", "pdf")
try:
    satchel.SkillsChatClient("http://localhost:1")
except satchel.SatchelError as error:
    print(json.dumps([error.code, error.hint]))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == ["extra-missing", "pip install 'satchel[models]'"]


def test_validation_and_the_command_line_are_not_needed(skills: Path) -> None:
    code = f"""
import sys
for name in ("pydantic", "cyclopts", "fastapi", "prompt_toolkit"):
    sys.modules[name] = None
import satchel
satchel.SkillsChatClient("http://localhost:1", skills={str(skills)!r})
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_messages_of_ours_and_objects_may_be_mixed() -> None:
    request = SkillsChatRequest(
        messages=[message("system", "Be brief."), {"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        tools=[ToolSpec(name="a"), WEATHER, {"type": "web_search"}],
        max_tokens=3,
    )
    chat = request.chat()
    assert [said.text for said in chat.messages] == ["Be brief.", "hi"]
    assert all(isinstance(said, Message) for said in chat.messages)
    assert sorted(tool.name for tool in chat.tools) == ["a", "weather"]
    assert chat.extra["openai-chat"]["tools"] == [[1, {"type": "web_search"}]]
