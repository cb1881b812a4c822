"""Model servers that do not follow their format to the letter, and whose answers are whole all the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from satchel.chat.messages import Json
from satchel.testing.scripted_openai import ScriptedCall, ScriptedTurn, Stage, says
from tests.program.standing import READ, Gateway
from tests.program.surfaces import SURFACES, TOOL, Heard, Surface

pytestmark = pytest.mark.asyncio(loop_scope="session")

Chunk = dict[str, Json]
ANSWER = says("It is ", "6 %.")
TEXT = "It is 6 %."
STOPPED = {"stop", "completed", "end_turn"}
CALLED = {"tool_calls", "completed", "tool_use", "stop"}
"""Ollama and Responses have no word of their own for calls."""


def chunk(delta: Json, finish: str | None = None, **beside: Json) -> Chunk:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **beside}


def calling(*calls: Json, finish: str = "tool_calls") -> ScriptedTurn:
    """A turn of one chunk for each call."""
    return ScriptedTurn(chunks=(*(chunk({"tool_calls": [call]}) for call in calls), chunk({}, finish)))


def usage(prompt: int, completion: int) -> Json:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _function(name: str, arguments: Json, **beside: Json) -> Json:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **beside}


async def _not_closed(stage: Stage) -> None:
    """Comments, fields of the event that nobody asked for, and an end without its mark."""
    await stage.write(b": hello\n\nretry: 5\n\n")
    for piece in (chunk({"content": "It is "}), chunk({"content": "6 %."}), chunk({}, "stop")):
        await stage.write(b"id: 1\r\nevent: message\r\ndata: " + json.dumps(piece).encode() + b"\r\n\r\n")


_OURS: Json = '{"skill": "canary"}'
_USED = {"index": 0, "id": "a"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """``turns`` lead to ``text``; ``results`` is how many calls of ours the last request answers."""

    turns: tuple[ScriptedTurn, ...]
    text: str = TEXT
    results: int = 0
    spent: tuple[int, int] | None = None


ODDITIES: Mapping[str, Odd] = {
    "says tool_calls without calls": Odd(turns=(replace(ANSWER, finish="tool_calls"),)),
    "says nothing of its end but the mark": Odd(turns=(ScriptedTurn(chunks=(chunk({"content": TEXT}),)),)),
    "ends without the mark": Odd(turns=(ScriptedTurn(play=_not_closed),)),
    "answers whole": Odd(turns=(replace(ANSWER, plain=True),)),
    "says stop with calls": Odd(turns=(ScriptedTurn(calls=(READ,), finish="stop"), ANSWER), results=1),
    "the same id twice": Odd(turns=(ScriptedTurn(calls=(READ, READ)), ANSWER), results=2),
    "the same id in two rounds": Odd(
        turns=(ScriptedTurn(calls=(READ,)), ScriptedTurn(calls=(READ,)), ANSWER), results=2
    ),
    "no ids": Odd(turns=(ScriptedTurn(calls=(replace(READ, call_id=""),) * 2), ANSWER), results=2),
    "no indexes": Odd(
        turns=(calling(_function("skills_read", _OURS, id="a"), _function("skills_read", _OURS, id="b")), ANSWER),
        results=2,
    ),
    "every call under index 0": Odd(
        turns=(
            calling(_function("skills_read", _OURS, index=0, id="a"), _function("skills_read", _OURS, index=0, id="b")),
            ANSWER,
        ),
        results=2,
    ),
    "arguments as an object": Odd(
        turns=(calling(_function("skills_read", {"skill": "canary"}, **_USED)), ANSWER), results=1
    ),
    "usage on every chunk": Odd(
        turns=(
            ScriptedTurn(
                chunks=(
                    chunk({"role": "assistant", "content": ""}, usage=usage(50, 0)),
                    chunk({"content": "It is "}, usage=usage(50, 2)),
                    chunk({"content": "6 %."}, usage=usage(50, 4)),
                    chunk({}, "stop", usage=usage(50, 5)),
                )
            ),
        ),
        spent=(50, 5),
    ),
    "usage in the middle, and on no choice": Odd(
        turns=(
            ScriptedTurn(calls=(READ,), usage={"prompt_tokens": 40, "completion_tokens": 3, "total_tokens": 43}),
            ScriptedTurn(
                chunks=(
                    chunk({"content": "It is "}),
                    {"choices": [], "usage": usage(50, 5)},
                    chunk({"content": "6 %."}, usage=None),
                    chunk({}, "stop"),
                )
            ),
        ),
        results=1,
        spent=(90, 8),
    ),
    "empty and absent choices": Odd(
        turns=(
            ScriptedTurn(
                chunks=(
                    {"choices": []},
                    {"choices": None},
                    {"prompt_filter_results": [], "choices": []},
                    chunk(None),
                    chunk({"role": "assistant", "content": None, "tool_calls": None}),
                    chunk({"role": "assistant", "content": "It is "}),
                    chunk({"role": "assistant", "content": "6 %.", "tool_calls": []}),
                    chunk({"content": ""}, "stop"),
                    {"choices": []},
                )
            ),
        )
    ),
}


def spent(heard: Heard) -> tuple[int, int]:
    """Prompt and completion tokens, as the answer's last message says them."""
    for message in reversed(heard.messages):
        if "eval_count" in message:
            return message["prompt_eval_count"], message["eval_count"]
        inner = message.get("response")
        found: Any = (inner if isinstance(inner, dict) else message).get("usage")
        if found:
            names = ("prompt_tokens", "completion_tokens") if "prompt_tokens" in found else _VENDORS
            return found[names[0]], found[names[1]]
    raise AssertionError(heard.raw)


_VENDORS = ("input_tokens", "output_tokens")


@pytest.mark.parametrize("surface", SURFACES, ids=str)
@pytest.mark.parametrize("name", ODDITIES)
async def test_odd_answers_are_answers(gateway: Gateway, surface: Surface, name: str) -> None:
    odd = ODDITIES[name]
    for stream in (True, False):
        gateway.next(*odd.turns)
        heard = await gateway.hear(surface, stream=stream)
        assert (heard.text, heard.calls, heard.error, heard.is_ended) == (odd.text, "", "", True), heard.raw
        assert heard.finish in STOPPED
        if odd.spent:
            assert spent(heard) == odd.spent
        messages = gateway.model.requests[-1].body["messages"]
        assert isinstance(messages, list)
        _answers_every_call(messages, odd.results)
        assert len(gateway.model.requests) == len(odd.turns)


def _answers_every_call(messages: list[Any], results: int) -> None:
    """Every call stands there once, under an id of its own, and is followed by its result."""
    called = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert called == answered
    assert len({*called} - {""}) == results
    assert all("The share is 6 %." in message["content"] for message in messages if message["role"] == "tool")


def _client_calls(heard: Heard) -> list[tuple[str, Any]]:
    """Ids and arguments of the calls that the client was handed, as a whole answer has them."""
    body = heard.messages[-1]
    if "choices" in body:
        calls = body["choices"][0]["message"]["tool_calls"]
        return [(call["id"], json.loads(call["function"]["arguments"])) for call in calls]
    if "output" in body:
        return [
            (item["call_id"], json.loads(item["arguments"]))
            for item in body["output"]
            if item["type"] == "function_call"
        ]
    if "content" in body:
        return [(block["id"], block["input"]) for block in body["content"] if block["type"] == "tool_use"]
    if "tool_calls" in body:
        return [(call["id"], json.loads(call["function"]["arguments"])) for call in body["tool_calls"]]
    return [(call["id"], call["function"]["arguments"]) for call in body["message"]["tool_calls"]]


_BERN = ScriptedCall(name=TOOL, fragments=('{"city": ', '"Bern"}'), call_id="same")
CLIENT_CALLS: Mapping[str, tuple[ScriptedTurn, int]] = {
    "says stop": (ScriptedTurn(calls=(_BERN,), finish="stop"), 1),
    "the same id twice": (ScriptedTurn(calls=(_BERN, _BERN)), 2),
    "no ids": (ScriptedTurn(calls=(replace(_BERN, call_id=""),) * 2), 2),
    "an object": (calling(_function(TOOL, {"city": "Bern"}, **_USED)), 1),
    "in one chunk without an index": (calling(_function(TOOL, '{"city": "Bern"}')), 1),
    "the end in the same chunk": (
        ScriptedTurn(chunks=(chunk({"tool_calls": [_function(TOOL, '{"city": "Bern"}', **_USED)]}, "tool_calls"),)),
        1,
    ),
    "another letter case": (ScriptedTurn(calls=(replace(_BERN, name=TOOL.upper()),)), 1),
}


@pytest.mark.parametrize("surface", [surface for surface in SURFACES if surface.takes_tools], ids=str)
@pytest.mark.parametrize("name", CLIENT_CALLS)
async def test_odd_calls_of_a_clients_tool_reach_it_whole(gateway: Gateway, surface: Surface, name: str) -> None:
    turn, count = CLIENT_CALLS[name]
    gateway.next(turn)
    streamed = await gateway.hear(surface, tools=True)
    gateway.next(turn)
    whole = await gateway.hear(surface, stream=False, tools=True)
    assert streamed.said == whole.said == ("", "", f'{TOOL}{{"city": "Bern"}}' * count), streamed.raw
    assert {streamed.finish, whole.finish} <= CALLED
    calls = _client_calls(whole)
    assert [arguments for _, arguments in calls] == [{"city": "Bern"}] * count
    assert len({call_id for call_id, _ in calls} - {""}) == count


async def test_nothing_is_left_of_them(gateway: Gateway) -> None:
    assert await gateway.settled() == gateway.idle
