"""Tools of the client that are no plain functions, and what models say to them: all of it is the client's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from satchel.chat.codec import anthropic, openai_chat, openai_responses
from satchel.chat.messages import Json
from satchel.engine.events import CallDelta, Notice
from satchel.engine.request import TurnRequest
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.support import ask, collect, runtime_over, write_skill

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
