"""What a probe makes of a model's answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.events import Usage
from satchel.chat.messages import ToolOutput
from satchel.chat.request import ChatRequest
from satchel.cli.probe import Probed, probe
from satchel.errors import UpstreamError
from satchel.testing.scripted_model import Reply, ScriptedModel, call

NONE = ModelCapabilities(tools="none", tool_role=False)
CALLS = Reply(calls=(call("note_word", '{"word": "marble"}'),), reasoning=("hm",))


def refusing(code: str = "upstream-rejected") -> Reply:
    return Reply(error=UpstreamError(code, "no"))


def tells_result(request: ChatRequest) -> Reply:
    (word,) = (part.text for item in request.messages for part in item.parts if isinstance(part, ToolOutput))
    return Reply(text=(f"It is {word.upper()}.",))


def tells_system(request: ChatRequest) -> Reply:
    return Reply(text=(request.messages[0].text,))


Answers = Sequence[Reply | Callable[[ChatRequest], Reply]]


async def seen(answers: Answers, capabilities: ModelCapabilities = ModelCapabilities()) -> dict[str, Probed]:
    client = ScriptedModel(answers, capabilities=capabilities)
    rows = await probe(client, "m", upstream="u")
    assert {(row.upstream, row.model) for row in rows} == {("u", "m")}
    return {row.capability: row for row in rows}


def verdicts(rows: dict[str, Probed]) -> dict[str, tuple[str, str]]:
    return {name: (row.observed, row.verdict) for name, row in rows.items()}


async def test_a_model_that_can_all_agrees():
    assert verdicts(await seen([CALLS, tells_result, tells_system])) == {
        "tools": ("native", "agrees"),
        "tool_role": ("yes", "agrees"),
        "system": ("yes", "agrees"),
        "usage": ("yes", "open"),
        "reasoning": ("text", "open"),
    }


async def test_a_model_that_writes_its_calls_as_text_contradicts():
    prose = Reply(text=('{"name": "note_word"}',), usage=Usage())
    rows = await seen([prose, prose, Reply(text=("I do not know.",), usage=None), Reply(text=("?",), usage=None)])
    assert verdicts(rows) == {
        "tools": ("none", "contradicts"),
        "tool_role": ("no", "contradicts"),
        "system": ("no", "contradicts"),
        "usage": ("no", "open"),
        "reasoning": ("none", "open"),
    }
    assert "--model-tools none" in rows["tools"].note
    assert "estimate" in rows["usage"].note


async def test_a_row_that_is_too_strict_contradicts_too():
    rows = await seen([CALLS, tells_result, tells_system], NONE)
    assert verdicts(rows)["tools"] == ("native", "contradicts")
    assert "--model-tools native" in rows["tools"].note
    prose = Reply(text=("no",))
    assert verdicts(await seen([prose, prose, prose, tells_system], NONE))["tools"] == ("none", "agrees")


async def test_a_refused_request_says_something_and_a_refused_key_ends_it():
    rows = await seen([refusing(), CALLS, refusing(), tells_system])
    assert verdicts(rows)["tools"] == ("native", "agrees")
    assert verdicts(rows)["tool_role"] == ("refused", "contradicts")
    again = Reply(calls=(call("look_up_word"),))
    assert verdicts(await seen([CALLS, again, tells_system]))["tool_role"] == ("unclear", "open")
    with pytest.raises(UpstreamError):
        await seen([refusing("upstream-auth")])


async def test_the_requests_are_few_and_small():
    client = ScriptedModel([CALLS, tells_result, tells_system])
    await probe(client, "m", upstream="u")
    forced, *others = client.requests
    assert forced.tool_choice is not None
    assert forced.tool_choice.name == "note_word"
    assert len(others) == 2
    assert all(request.max_tokens for request in client.requests)
