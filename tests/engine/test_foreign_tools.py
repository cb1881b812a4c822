"""Tools of the client that are no plain functions, and what models say to them: all of it is the client's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from satchel.chat.codec import anthropic, openai_chat, openai_responses
from satchel.chat.messages import Json, Message, Opaque, ToolOutput
from satchel.chat.opaque import open_calls
from satchel.engine.events import CallDelta, Notice
from satchel.engine.request import TurnRequest
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.support import ask, collect, runtime_over, text_of, write_skill

READ_PDF = call("skills_read", '{"skill": "pdf", "path": "SKILL.md"}')


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path, "pdf", body="Secret word: OKAPI.\n")
    return tmp_path


def typed(*tools: Json) -> TurnRequest:
    """A turn with tools of Anthropic's own kinds."""
    messages: list[Json] = [{"role": "user", "content": "x"}]
    body: dict[str, Json] = {"max_tokens": 900, "messages": messages, "tools": list(tools)}
    return replace(ask(), chat=anthropic.decode_request(body))


def test_names_of_tools_of_every_kind() -> None:
    messages: list[Json] = [{"role": "user", "content": "x"}]
    plain: Json = {"type": "function", "function": {"name": "plain"}}
    custom: Json = {"type": "custom", "custom": {"name": "grep"}}
    chat = openai_chat.decode_request({"messages": messages, "tools": [custom, plain]})
    assert chat.tool_names == ("plain", "grep")
    space: Json = {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "find_one"}]}
    tools: list[Json] = [{"type": "custom", "name": "apply"}, {"type": "local_shell"}, space]
    assert openai_responses.decode_request({"input": "x", "tools": tools}).tool_names == ("apply", "crm", "find_one")


async def test_a_call_to_a_typed_tool_is_the_clients(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(READ_PDF,)), Reply(calls=(call("bash", '{"command": "ls"}'),))])
    events, done = await collect(runtime_over(model, skills), typed({"type": "bash_20250124", "name": "bash"}))
    assert [use.name for use in done.client_calls] == ["bash"]
    assert done.finish == "tool_calls"
    assert len(model.requests) == 2
    assert "".join(event.arguments for event in events if isinstance(event, CallDelta)) == '{"command": "ls"}'


async def test_a_typed_tool_under_a_name_of_ours_replaces_ours(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(READ_PDF,))])
    events, done = await collect(runtime_over(model, skills), typed({"type": "bash_20250124", "name": "skills_read"}))
    assert "tool-name-collision" in [event.code for event in events if isinstance(event, Notice)]
    assert [use.name for use in done.client_calls] == ["skills_read"]
    assert not any(tool.name == "skills_read" for tool in model.requests[0].tools)


CUSTOM = Opaque(
    format="openai-responses", raw={"type": "custom_tool_call", "call_id": "call_c", "name": "apply", "input": "+"}
)
SHELL = Opaque(format="openai-responses", raw={"type": "local_shell_call", "call_id": "call_l"})
CHAT_CUSTOM = Opaque(format="openai-chat", raw={"tool_calls": {"id": "call_g", "type": "custom"}})
SEARCH = Opaque(format="openai-responses", raw={"type": "web_search_call", "id": "ws_1"})
PAUSED = Opaque(format="anthropic", raw={"type": "server_tool_use", "id": "srv_1", "name": "web_search"})


@pytest.mark.parametrize("part", [CUSTOM, SHELL, CHAT_CUSTOM, PAUSED])
async def test_an_answer_of_an_unknown_part_is_not_empty(skills: Path, part: Opaque) -> None:
    model = ScriptedModel([Reply(calls=(READ_PDF,)), Reply(beside=(part,))])
    events, done = await collect(runtime_over(model, skills), ask())
    assert text_of(events) == ""
    assert done.transcript[-1].parts == (part,)
    assert done.finish == ("stop" if part is PAUSED else "tool_calls")


async def test_a_refusal_is_an_answer(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(READ_PDF,)), Reply(extra={"openai-chat": {"refusal": "No."}})])
    events, _ = await collect(runtime_over(model, skills), ask())
    assert text_of(events) == ""
    assert len(model.requests) == 2


@pytest.mark.parametrize("part", [CUSTOM, SHELL, CHAT_CUSTOM])
async def test_an_own_call_beside_an_unknown_call_ends_the_turn(skills: Path, part: Opaque) -> None:
    model = ScriptedModel([Reply(calls=(READ_PDF,), beside=(part,)), Reply(text=("Done.",))])
    runtime = runtime_over(model, skills)
    request = ask()
    _, done = await collect(runtime, request)
    assert len(model.requests) == 1
    assert done.finish == "tool_calls"
    assert done.client_calls == ()
    assert [item.role for item in done.transcript] == ["assistant", "tool"]

    seen = Message(role="assistant", parts=(part,))
    answer = Message(role="tool", parts=(ToolOutput(call_id=str(open_calls(seen)[0]), text="ok"),))
    chat = replace(request.chat, messages=(*request.chat.messages, seen, answer))
    await collect(runtime, replace(request, chat=chat, continuation=done.continuation))
    roles = [item.role for item in model.requests[1].messages]
    assert roles == ["system", "user", "assistant", "tool", "tool"]
    assert [use.name for use in model.requests[1].messages[2].tool_uses] == ["skills_read"]


async def test_an_own_call_beside_a_call_that_the_server_ran_goes_on(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(READ_PDF,), beside=(SEARCH,)), Reply(text=("Done.",))])
    _, done = await collect(runtime_over(model, skills), ask())
    assert len(model.requests) == 2
    assert done.finish == "stop"


def test_a_call_with_its_output_beside_it_is_answered() -> None:
    output = Opaque(format="openai-responses", raw={"type": "shell_call_output", "call_id": "call_s"})
    shell = Opaque(format="openai-responses", raw={"type": "shell_call", "call_id": "call_s"})
    assert open_calls(Message(role="assistant", parts=(shell, output, CUSTOM))) == ("call_c",)


@pytest.mark.parametrize("mode", ["auto", "required"])
async def test_allowed_tools_stay_and_hold_ours(skills: Path, mode: str) -> None:
    look: dict[str, Json] = {"type": "function", "function": {"name": "look"}}
    messages: list[Json] = [{"role": "user", "content": "x"}]
    allowed: Json = {"mode": mode, "tools": [look]}
    choice: Json = {"type": "allowed_tools", "allowed_tools": allowed}
    chat = openai_chat.decode_request({"messages": messages, "tools": [look], "tool_choice": choice})
    model = ScriptedModel([Reply(calls=(READ_PDF,)), Reply(text=("x",))])
    await collect(runtime_over(model, skills), replace(ask(), chat=chat))
    sent = [openai_chat.encode_request(request, stream=True)["tool_choice"] for request in model.requests]
    ours: list[Json] = [{"type": "function", "function": {"name": name}} for name in ("skills_list", "skills_read")]
    inner = [each["allowed_tools"] for each in sent if isinstance(each, dict)]
    assert inner == [{"mode": mode, "tools": [look, *ours]}, {"mode": "auto", "tools": [look, *ours]}]


async def test_allowed_tools_of_responses_stay_after_a_round(skills: Path) -> None:
    look: dict[str, Json] = {"type": "function", "name": "look"}
    choice: Json = {"type": "allowed_tools", "mode": "required", "tools": [look]}
    chat = openai_responses.decode_request({"input": "x", "tools": [look], "tool_choice": choice})
    model = ScriptedModel([Reply(calls=(READ_PDF,)), Reply(text=("x",))])
    await collect(runtime_over(model, skills), replace(ask(), chat=chat))
    sent = openai_responses.encode_request(model.requests[1], stream=True)["tool_choice"]
    ours: list[Json] = [{"type": "function", "name": name} for name in ("skills_list", "skills_read")]
    assert sent == {"type": "allowed_tools", "mode": "auto", "tools": [look, *ours]}
