"""What is left of an answer: follow-ups by its id, and the answer itself."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import openai
import pytest
from openai.types.responses import ResponseItem
from pydantic import TypeAdapter

from satchel.chat.events import ModelDone, ModelEvent, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Message, Reasoning, Text, ToolOutput, ToolUse
from satchel.chat.request import Caller, ChatRequest
from satchel.engine.events import TurnDone
from satchel.gateway.kept import KeptResponse, KeptResponses
from satchel.gateway.openai_responses.request import read_call
from satchel.gateway.openai_responses.translate import ResponseEncoder
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.gateway.responses import Wire, events_of, strict
from tests.gateway.serving import Flow, client_of, runtime_over, serving
from tests.gateway.shelf import shelf

WEATHER: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": True}


def read_and_call() -> Reply:
    return Reply(
        reasoning=("I need the prefix.",),
        calls=(call("skills_read", '{"skill": "invoice"}'), call("weather", '{"city": "Oslo"}', "call_a")),
    )


@pytest.mark.parametrize("stream", [True, False])
async def test_a_follow_up_gets_our_own_tool_turns_and_the_reasoning_back(stream: bool) -> None:
    model = ScriptedModel([read_and_call(), Reply(text=("Cold.",)), Reply(text=("Yes.",))])
    async with serving(runtime_over(model, shelf())) as base:
        wire = Wire(base)
        body = {"model": "m", "input": "Weather?", "instructions": "Be brief.", "tools": [WEATHER], "stream": stream}
        first = (await events_of(base, body))[-1]["response"] if stream else await wire.post(body)
        second = await wire.post(
            {
                "model": "m",
                "previous_response_id": first["id"],
                "input": [{"type": "function_call_output", "call_id": "call_a", "output": "-3"}],
                "tools": [WEATHER],
            }
        )
        third = await wire.post({"model": "m", "previous_response_id": second["id"], "input": "Really?"})
    assert (second["previous_response_id"], third["previous_response_id"]) == (first["id"], second["id"])
    asked = model.requests[1].messages
    assert [message.role for message in asked] == ["system", "user", "assistant", "tool", "tool"]
    assert "Be brief." not in asked[0].text, "instructions hold for one request"
    assert [type(part) for part in asked[2].parts] == [Reasoning, ToolUse, ToolUse]
    results = [part for message in asked[3:] for part in message.parts if isinstance(part, ToolOutput)]
    assert [(part.call_id, part.text) for part in results] == [
        ("call_skills_read", "# Invoices\nThe secret prefix is ZX-9.\n"),
        ("call_a", "-3"),
    ]
    assert [message.text for message in model.requests[2].messages[-2:]] == ["Cold.", "Really?"]
    assert model.requests[2].messages[: len(asked)] == asked


async def test_the_official_client_goes_on_shows_lists_and_deletes() -> None:
    model = ScriptedModel([Reply(text=("One.",)), Reply(text=("Two.",))])
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        first = await client.responses.create(model="m", input="a")
        second = await client.responses.create(
            model="m",
            previous_response_id=first.id,
            input=[{"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}],
        )
        assert (await client.responses.retrieve(second.id)).output_text == "Two."
        listed = [item async for item in client.responses.input_items.list(second.id, limit=1, order="asc")]
        newest = [item async for item in client.responses.input_items.list(second.id)]
        await client.responses.delete(first.id)
        with pytest.raises(openai.NotFoundError) as missing:
            await client.responses.retrieve(first.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.delete(first.id)
        with pytest.raises(openai.BadRequestError) as gone:
            await client.responses.create(model="m", input="x", previous_response_id=first.id)
        assert (await client.responses.retrieve(second.id)).output_text == "Two.", "what went on from it stays"
    assert [item.type for item in listed] == ["message", "message"]
    assert [item.id for item in newest] == [item.id for item in reversed(listed)]
    for item in listed:
        strict(TypeAdapter(ResponseItem), item.model_dump(exclude_unset=True))
    assert missing.value.code == "not-found"
    assert (gone.value.code, gone.value.param) == ("previous_response_not_found", "previous_response_id")


async def test_store_false_keeps_nothing() -> None:
    model = ScriptedModel([Reply(text=("One.",))])
    async with serving(runtime_over(model, shelf())) as base:
        wire = Wire(base)
        got = await wire.post({"model": "m", "input": "a", "store": False})
        status, error = await wire.ask("POST", {"model": "m", "input": "b", "previous_response_id": got["id"]})
        assert await wire.status("GET", path=f"/{got['id']}") == 404
    assert got["store"] is False
    assert (status, error["error"]["code"]) == (400, "previous_response_not_found")
    assert model.requests[0].extra["openai-responses"] == {"store": False}, "a server of the format is told too"


async def test_another_key_finds_nothing() -> None:
    model = ScriptedModel([Reply(text=("One.",)), Reply(text=("Two.",))])
    async with serving(runtime_over(model, shelf()), keys=("k1", "k2")) as base:
        mine, other = Wire(base, "k1"), Wire(base, "k2")
        got = await mine.post({"model": "m", "input": "a"})
        body = {"model": "m", "input": "b", "previous_response_id": got["id"]}
        assert await other.status("POST", body) == 400
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/input_items")):
            assert await other.status(method, path=f"/{got['id']}{path}") == 404
        assert await mine.status("POST", body) == 200
        assert await Wire(base).status("GET", path=f"/{got['id']}") == 401


async def test_ids_of_output_items_lead_back_to_the_items() -> None:
    whole: Any = {"type": "reasoning", "id": "rs_up", "summary": [], "encrypted_content": "gAAA"}
    asked: list[ChatRequest] = []

    async def play(request: ChatRequest) -> AsyncGenerator[ModelEvent, None]:
        asked.append(request)
        yield ModelReasoning(text="", opaque=whole)
        yield ModelText(text="One.")
        parts = (Reasoning(opaque=whole, format="openai-responses"), Text(text="One."))
        yield ModelDone(finish="stop", message=Message(role="assistant", parts=parts), usage=Usage())

    async with serving(runtime_over(Flow(play))) as base:
        wire = Wire(base)
        first = await wire.post({"model": "m", "input": "a"})
        references = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
        user = {"role": "user", "content": "b"}
        await wire.post({"model": "m", "input": [{"role": "user", "content": "a"}, *references, user]})
        status, error = await wire.ask("POST", {"model": "m", "input": [{"type": "item_reference", "id": "x"}, user]})
    assert [message.role for message in asked[1].messages] == ["user", "assistant", "user"]
    reasoning, text = asked[1].messages[1].parts
    assert isinstance(reasoning, Reasoning)
    assert isinstance(text, Text)
    assert (reasoning.opaque, text.text) == (whole, "One.")
    assert (status, error["error"]["message"].split(".")[0]) == (404, "Item with id 'x' not found")


def test_an_answer_that_is_too_large_to_keep_says_so() -> None:
    store = KeptResponses(max_bytes=1000)
    response = KeptResponse(body={"output": "x" * 2000}, inputs=(), messages=())
    assert not store.keep("local", "resp_1", response)
    encoder = ResponseEncoder(
        read_call({"model": "m", "input": "a"}, Caller()), agent="/root", keep=lambda body, added: False
    )
    done = TurnDone(finish="stop", usage=Usage(), usage_by_round=(), rounds=1)
    got = json.loads(encoder.feed(done))
    assert got["store"] is False
    assert [notice["code"] for notice in got["satchel"]["notices"]] == ["response-not-kept"]


@pytest.mark.parametrize(
    ("path", "status"), [("?stream=true", 400), ("/input_items?after=x", 400), ("/input_items?limit=0", 422)]
)
async def test_what_cannot_be_asked_of_a_kept_answer_is_refused(path: str, status: int) -> None:
    async with serving(runtime_over(ScriptedModel([Reply(text=("One.",))]))) as base:
        wire = Wire(base)
        got = await wire.post({"model": "m", "input": "a"})
        assert await wire.status("GET", path=f"/{got['id']}{path}") == status
