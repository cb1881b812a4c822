"""Responses through the official client and on the wire, against a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from satchel.chat.events import ModelDone, ModelEvent, ModelReasoning, ModelText, Usage
from satchel.chat.messages import Message, Opaque, Reasoning, Text
from satchel.chat.request import ChatRequest
from satchel.errors import UpstreamError
from satchel.gateway.openai_responses.wire import ResponseBody
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.gateway.responses import Wire, events_of, in_thread, strict
from tests.gateway.serving import Flow, client_of, endless, runtime_over, serving, silent, soon
from tests.gateway.shelf import shelf

ASK = "Number this bill."
WEATHER: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": True}
EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def reads_then_answers() -> ScriptedModel:
    return ScriptedModel(
        [
            Reply(
                text=("Let me ", "look."),
                calls=(call("skills_read", '{"skill": "invoice"}'),),
                usage=Usage(prompt_tokens=100, completion_tokens=7, cached_tokens=20, cache_write_tokens=30),
            ),
            Reply(
                reasoning=("It is ", "ZX."),
                text=("The prefix", " is ZX-9 é😀."),
                usage=Usage(prompt_tokens=160, completion_tokens=9, cached_tokens=100, reasoning_tokens=3),
            ),
        ]
    )


def calls_the_client() -> Reply:
    return Reply(
        text=("One moment.",),
        calls=(
            call("skills_read", '{"skill": "invoice"}'),
            call("weather", '{"city": "Oslo"}', "call_a"),
            call("weather", "", "call_b"),
        ),
    )


async def test_the_events_come_in_the_vendors_order_and_say_everything() -> None:
    async with serving(runtime_over(reads_then_answers(), shelf())) as base:
        seen = await events_of(base, {"model": "m", "input": ASK, "stream": True})
    assert [event["type"].removeprefix("response.") for event in seen] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in seen] == list(range(len(seen)))
    for event in seen:
        strict(EVENTS, event)
    done = [event["item"] for event in seen if event["type"] == "response.output_item.done"]
    final = seen[-1]["response"]
    assert final["output"] == done
    assert [item["type"] for item in done] == ["message", "reasoning", "message"]
    assert [item.get("phase") for item in done] == ["commentary", None, None]
    assert [event["output_index"] for event in seen if "item" in event] == [0, 0, 1, 1, 2, 2]
    for event in seen:
        if "item_id" in event:
            assert event["item_id"] == done[event["output_index"]]["id"]
    assert len({item["id"] for item in done}) == 3
    assert {event["response"]["id"] for event in seen if "response" in event} == {final["id"]}
    assert "skills_read" not in json.dumps(seen)
    assert seen[0]["response"]["usage"] is None
    assert final["usage"] == {
        "input_tokens": 260,
        "input_tokens_details": {"cached_tokens": 120, "cache_write_tokens": 30},
        "output_tokens": 16,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 276,
    }


async def test_streamed_and_whole_answers_are_the_same_to_the_byte() -> None:
    async with serving(runtime_over(reads_then_answers(), shelf())) as base, client_of(base) as client:
        whole = await client.responses.create(model="m", input=ASK)
    async with serving(runtime_over(reads_then_answers(), shelf())) as base, client_of(base) as client:
        async with client.responses.stream(model="m", input=ASK) as stream:
            deltas = [event.delta async for event in stream if event.type == "response.output_text.delta"]
        streamed = await stream.get_final_response()
    assert whole.output_text == "Let me look.\n\nThe prefix is ZX-9 é😀."
    assert "".join(deltas) == streamed.output_text == whole.output_text
    own = {"id", "created_at", "completed_at", "continuation"}
    left, right = (json.loads(answer.to_json()) for answer in (whole, streamed))
    assert _without(left, own) == _without(right, own | {"parsed", "parsed_arguments"})


def _without(value: Any, keys: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, keys) for key, item in value.items() if key not in keys}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return [_without(item, keys) for item in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


async def test_the_synchronous_client_sees_the_same() -> None:
    def ask(base: str) -> tuple[str, str]:
        with openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0) as client:
            whole = client.responses.create(model="m", input=ASK)
            with client.responses.stream(model="m", input=ASK) as stream:
                return whole.output_text, stream.get_final_response().output_text

    script = ScriptedModel([])
    for source in (reads_then_answers(), reads_then_answers()):
        script._replies += source._replies  # pyright: ignore[reportPrivateUsage]
    async with serving(runtime_over(script, shelf())) as base:
        whole, streamed = await in_thread(ask, base)
    assert whole == streamed == "Let me look.\n\nThe prefix is ZX-9 é😀."


async def test_the_answer_repeats_the_request_and_parses_strictly() -> None:
    body: dict[str, Any] = {
        "model": "m",
        "input": [{"role": "user", "content": ASK}],
        "instructions": "Be brief.",
        "tools": [WEATHER, {"type": "function", "name": "bare"}],
        "tool_choice": {"type": "function", "name": "weather"},
        "metadata": {"run": "7"},
        "parallel_tool_calls": False,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 400,
        "max_tool_calls": 3,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}, "verbosity": "low"},
        "truncation": "auto",
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "user": "u",
        "service_tier": "flex",
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
    }
    model = ScriptedModel([Reply(text=("{}",))])
    async with serving(runtime_over(model, shelf())) as base:
        got = await Wire(base).post(body)
        plain_model_answer = await Wire(base).status("POST", {"input": ASK, "model": "m"})
    assert plain_model_answer == 502, "the script is over"
    assert ResponseBody.model_validate(got).model_dump(exclude_unset=True) == got
    strict(TypeAdapter(Response), got)
    same = {key: got[key] for key in body if key not in {"input", "tools", "include", "reasoning", "model"}}
    assert same == {key: body[key] for key in same}
    assert got["tools"] == [
        {**WEATHER, "description": None},
        {"type": "function", "name": "bare", "description": None, "parameters": None, "strict": True},
    ]
    assert got["reasoning"] == {"effort": "low", "summary": None}
    assert (got["status"], got["store"], got["background"], got["previous_response_id"]) == (
        "completed",
        True,
        False,
        None,
    )
    extra = model.requests[0].extra
    assert extra["openai-chat"] == {
        "reasoning_effort": "low",
        "logprobs": True,
        "top_logprobs": 2,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    }
    assert extra["ollama"] == {"format": {"type": "object"}}


async def test_defaults_are_the_vendors() -> None:
    async with serving(runtime_over(ScriptedModel([Reply(text=("ok",))]))) as base:
        got = await Wire(base).post({"model": "m", "input": ASK})
    strict(TypeAdapter(Response), got)
    assert [got[key] for key in ("instructions", "metadata", "tool_choice", "tools", "temperature", "truncation")] == [
        None,
        {},
        "auto",
        [],
        1.0,
        "disabled",
    ]
    assert got["text"] == {"format": {"type": "text"}}
    assert got["satchel"] == {"rounds": [got["usage"]], "skills": []}


@pytest.mark.parametrize("stream", [True, False])
async def test_only_the_clients_own_calls_come_back(stream: bool) -> None:
    async with serving(runtime_over(ScriptedModel([calls_the_client()]), shelf())) as base:
        body = {"model": "m", "input": ASK, "tools": [WEATHER], "stream": stream}
        if stream:
            seen = await events_of(base, body)
            got = seen[-1]["response"]
            args = [event for event in seen if "function_call_arguments" in event["type"]]
            assert [(event["type"].rpartition(".")[2], event["output_index"]) for event in args] == [
                ("delta", 1),
                ("delta", 1),
                ("done", 1),
                ("delta", 2),
                ("done", 2),
            ]
            assert "".join(event["delta"] for event in args[:2]) == args[2]["arguments"] == '{"city": "Oslo"}'
            assert args[-1]["arguments"] == "{}"
            for event in seen:
                strict(EVENTS, event)
        else:
            got = await Wire(base).post(body)
    strict(TypeAdapter(Response), got)
    message, first, second = got["output"]
    assert message["content"][0]["text"] == "One moment."
    assert "phase" not in message
    assert [(item["call_id"], item["name"], item["arguments"], item["status"]) for item in (first, second)] == [
        ("call_a", "weather", '{"city": "Oslo"}', "completed"),
        ("call_b", "weather", "{}", "completed"),
    ]
    assert got["status"] == "completed"


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
async def test_an_answer_that_was_cut_is_incomplete(finish: Any, reason: str) -> None:
    cut = Reply(text=("Half an ans",), finish=finish)
    async with serving(runtime_over(ScriptedModel([cut, cut]))) as base:
        whole = await Wire(base).post({"model": "m", "input": ASK})
        seen = await events_of(base, {"model": "m", "input": ASK, "stream": True})
    assert seen[-1]["type"] == "response.incomplete"
    for got in (whole, seen[-1]["response"]):
        strict(TypeAdapter(Response), got)
        assert (got["status"], got["incomplete_details"]) == ("incomplete", {"reason": reason})
        assert got["output"][0]["status"] == "incomplete"
        assert got["completed_at"] is None


async def test_a_structured_answer_is_parsed_also_after_a_round_of_skills() -> None:
    class Bill(BaseModel):
        number: str

    model = ScriptedModel(
        [
            Reply(text=("I look it up.",), calls=(call("skills_read", '{"skill": "invoice"}'),)),
            Reply(text=('{"number": ', '"ZX-9"}')),
        ]
    )
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        got = await client.responses.parse(model="m", input=ASK, text_format=Bill)
    assert got.output_parsed == Bill(number="ZX-9")


async def test_reasoning_and_foreign_items_of_the_same_format_pass_through_whole() -> None:
    whole: Any = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm"}, {"type": "summary_text", "text": "so"}],
        "encrypted_content": "gAAA",
    }
    search: Any = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q", "queries": ["q"]},
    }
    refusal: Any = {"type": "refusal", "refusal": "no"}
    source: Any = {"type": "url_citation", "url": "https://example.org", "title": "t", "start_index": 0, "end_index": 1}
    logprobs: Any = [{"token": "ok", "logprob": -0.1, "bytes": [111, 107], "top_logprobs": []}]

    async def play(request: ChatRequest) -> AsyncGenerator[ModelEvent, None]:
        def at(index: int) -> Any:
            return {"openai-responses": {"item_id": "rs_1", "summary_index": index}}

        yield ModelReasoning(text="h", extra=at(0))
        yield ModelReasoning(text="m", extra=at(0))
        yield ModelReasoning(text="\n\nso", extra=at(1))
        yield ModelReasoning(text="", opaque=whole)
        yield ModelText(text="ok", extra={"openai-responses": {"logprobs": logprobs}})
        yield ModelText(text="", extra={"openai-responses": {"annotations": [source]}})
        parts = (
            Reasoning(opaque=whole, format="openai-responses"),
            Text(text="ok"),
            Opaque(format="openai-responses", raw=search),
            Opaque(format="openai-responses", raw={"content": refusal}),
        )
        yield ModelDone(finish="stop", message=Message(role="assistant", parts=parts), usage=Usage())

    async with serving(runtime_over(Flow(play))) as base:
        seen = await events_of(base, {"model": "m", "input": ASK, "stream": True})
        got = await Wire(base).post({"model": "m", "input": ASK})
    for event in seen:
        strict(EVENTS, event)
    deltas = [event for event in seen if event["type"] == "response.reasoning_summary_text.delta"]
    assert [(event["item_id"], event["summary_index"], event["delta"]) for event in deltas] == [
        ("rs_1", 0, "h"),
        ("rs_1", 0, "m"),
        ("rs_1", 1, "so"),
    ]
    for answer in (seen[-1]["response"], got):
        strict(TypeAdapter(Response), answer)
        reasoning, message, searched, refused = answer["output"]
        assert (reasoning, searched, refused["content"]) == (whole, search, [refusal])
        assert message["content"] == [
            {"type": "output_text", "text": "ok", "annotations": [source], "logprobs": logprobs}
        ]


# -- refusals and failures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 3}, "input"),
        ({"input": ["hi"]}, "input[0]"),
        ({"input": [{"role": "boss", "content": "x"}]}, "input[0].role"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"conversation": {"id": "conv_1"}}, "conversation"),
        ({"stream": "true"}, "stream"),
        ({"store": "yes"}, "store"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"temperature": "hot"}, "temperature"),
        ({"skills": ["nope"]}, "skills"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": "x"}, "tools"),
        ({"previous_response_id": "resp_none"}, "previous_response_id"),
    ],
)
async def test_a_wrong_field_is_refused_by_name(change: dict[str, Any], param: str) -> None:
    model = ScriptedModel([])
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        for stream in (False, True):
            with pytest.raises(openai.BadRequestError) as caught:
                await client.responses.create(model="m", input=ASK, extra_body={"stream": stream, **change})
            assert caught.value.param == param
            assert caught.value.type == "invalid_request_error"
    assert model.requests == []


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("code", "data", "status"),
    [
        ("upstream-rate-limited", {"status": 429, "retry_after": "7"}, 429),
        ("upstream-rejected", {"status": 400}, 400),
        ("upstream-auth", {"status": 401}, 502),
        ("upstream-garbled", {}, 502),
        ("upstream-timeout", {}, 504),
        ("model-not-found", {}, 404),
    ],
)
async def test_a_refusal_before_the_first_byte_has_its_status(
    code: str, data: dict[str, object], status: int, stream: bool
) -> None:
    class Refusing(ScriptedModel):
        def stream(self, request: Any) -> Any:
            raise UpstreamError(code, "It failed.", hint="Try later.", data=data)

    async with serving(runtime_over(Refusing([]), shelf())) as base, client_of(base) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            await client.responses.create(model="m", input=ASK, stream=stream)
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert caught.value.response.headers.get("retry-after") == data.get("retry_after")


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("upstream-cut-off", "server_error"),
        ("upstream-garbled", "server_error"),
        ("upstream-rate-limited", "rate_limit_exceeded"),
        ("context-overflow", "invalid_prompt"),
    ],
)
async def test_a_failure_inside_a_stream_is_told_in_band(code: str, word: str) -> None:
    broken = Reply(
        text=("Half an ans",), calls=(call("weather", '{"city":', "call_a"),), error=UpstreamError(code, "It broke.")
    )
    model = ScriptedModel([broken, broken])
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        seen = await events_of(base, {"model": "m", "input": ASK, "tools": [WEATHER], "stream": True})
        stream = await client.responses.create(model="m", input=ASK, tools=[WEATHER], stream=True)
        last = [event async for event in stream][-1]
        gone = await Wire(base).status("GET", path=f"/{seen[-1]['response']['id']}")
    for event in seen:
        strict(EVENTS, event)
    assert [event["sequence_number"] for event in seen] == list(range(len(seen)))
    failed = seen[-1]["response"]
    assert seen[-1]["type"] == "response.failed"
    assert (failed["status"], failed["error"]) == ("failed", {"code": word, "message": "It broke.", "type": code})
    assert [(item["type"], item["status"]) for item in failed["output"]] == [
        ("message", "completed"),
        ("function_call", "incomplete"),
    ]
    assert failed["output"][0]["content"][0]["text"] == "Half an ans"
    assert last.type == "response.failed"
    assert gone == 404, "a failed answer is not kept"


async def test_what_was_open_when_it_failed_is_incomplete() -> None:
    broken = Reply(text=("Half",), reasoning=("hm",), error=UpstreamError("upstream-cut-off", "It broke."))
    thinking = Reply(reasoning=("hm",), error=UpstreamError("upstream-cut-off", "It broke."))
    async with serving(runtime_over(ScriptedModel([broken, thinking]))) as base:
        first = await events_of(base, {"model": "m", "input": ASK, "stream": True})
        second = await events_of(base, {"model": "m", "input": ASK, "stream": True})
    strict(EVENTS, first[-1])
    strict(EVENTS, second[-1])
    assert [item.get("status") for item in first[-1]["response"]["output"]] == [None, "incomplete"]
    (reasoning,) = second[-1]["response"]["output"]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "hm"}]


async def test_a_refusal_after_a_heartbeat_is_a_failed_response_with_a_beginning() -> None:

    beaten = asyncio.Event()

    class Slow(ScriptedModel):
        @asynccontextmanager
        async def stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent], None]:
            await beaten.wait()
            raise UpstreamError("upstream-auth", "The key is wrong.")
            yield

    async with serving(runtime_over(Slow([])), heartbeat_s=0.01) as base, aiohttp.ClientSession() as session:
        body = {"model": "m", "input": ASK, "stream": True}
        async with session.post(f"{base}/v1/responses", json=body) as answer:
            assert await answer.content.readuntil(b"\n\n") == b": ping\n\n"
            beaten.set()
            rest = (await answer.content.read()).decode()
    names = [line.removeprefix("event: ") for line in rest.splitlines() if line.startswith("event: ")]
    assert names == ["response.created", "response.in_progress", "response.failed"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("play", [silent, endless])
async def test_hanging_up_stops_the_model_whenever_it_happens(stream: bool, play: Any) -> None:
    flow = Flow(play)
    payload = json.dumps({"model": "m", "input": ASK, "stream": stream}).encode()
    head = f"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(payload)}\r\n\r\n"
    async with serving(runtime_over(flow), heartbeat_s=0) as base:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(base.rpartition(":")[2]))
        writer.write(head.encode() + payload)
        await soon(flow.entered)
        if stream and play is endless:
            await reader.readuntil(b"word")
        writer.close()
        await writer.wait_closed()
        await soon(flow.left)


async def test_a_turn_that_is_cut_leaves_nothing_to_go_on_from() -> None:
    flow = Flow(endless)
    async with serving(runtime_over(flow)) as base, aiohttp.ClientSession() as session:
        async with session.post(f"{base}/v1/responses", json={"model": "m", "input": ASK, "stream": True}) as answer:
            await answer.content.readline()
            created = json.loads((await answer.content.readline()).removeprefix(b"data: "))
        await soon(flow.left)
        assert await Wire(base).status("GET", path=f"/{created['response']['id']}") == 404
