"""Chat Completions through the official client, against a real server."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import openai
import pytest

from satchel.chat.events import Usage
from satchel.chat.messages import Opaque, ToolUse
from satchel.errors import UpstreamError
from satchel.gateway.openai_chat.wire import CompletionBody
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.gateway.serving import client_of, runtime_over, serving
from tests.gateway.shelf import shelf

ASK: list[Any] = [{"role": "user", "content": "Number this bill."}]
WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def reads_then_answers() -> ScriptedModel:
    return ScriptedModel(
        [
            Reply(
                text=("Let me ", "look."),
                calls=(call("skills_read", '{"skill": "invoice"}'),),
                usage=Usage(prompt_tokens=100, completion_tokens=7, cached_tokens=20),
            ),
            Reply(
                reasoning=("It is ", "ZX."),
                text=("The prefix", " is ZX-9 é😀."),
                usage=Usage(prompt_tokens=160, completion_tokens=9, cached_tokens=100, reasoning_tokens=3),
            ),
        ]
    )


async def frames(base: str, body: dict[str, Any]) -> list[str]:
    async with aiohttp.ClientSession() as session, session.post(f"{base}/v1/chat/completions", json=body) as answer:
        assert answer.status == 200
        text = (await answer.read()).decode()
    assert text.endswith("\n\n")
    return text[:-2].split("\n\n")


def chunks(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in lines if line != "data: [DONE]"]


async def test_streamed_and_whole_answers_carry_the_same_text() -> None:
    async with serving(runtime_over(reads_then_answers(), shelf())) as base, client_of(base) as client:
        whole = await client.chat.completions.create(model="m", messages=ASK)
    async with serving(runtime_over(reads_then_answers(), shelf())) as base, client_of(base) as client:
        stream = await client.chat.completions.create(model="m", messages=ASK, stream=True)
        streamed = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert streamed == "Let me look.\n\nThe prefix is ZX-9 é😀."
    assert whole.choices[0].message.content == streamed


async def test_a_whole_answer_has_exactly_the_documented_shape() -> None:
    async with serving(runtime_over(reads_then_answers(), shelf())) as base, aiohttp.ClientSession() as session:
        body = {"model": "m", "messages": ASK}
        async with session.post(f"{base}/v1/chat/completions", json=body) as answer:
            assert answer.headers["content-type"] == "application/json"
            assert "content-length" in answer.headers
            got = await answer.json()
    assert CompletionBody.model_validate(got).model_dump(exclude_unset=True) == got
    assert got["model"] == "m"
    assert got["choices"][0]["finish_reason"] == "stop"
    assert got["choices"][0]["message"]["reasoning_content"] == "It is ZX."
    assert "tool_calls" not in got["choices"][0]["message"]
    assert got["usage"] == {
        "prompt_tokens": 260,
        "completion_tokens": 16,
        "total_tokens": 276,
        "prompt_tokens_details": {"cached_tokens": 120},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    assert [usage["prompt_tokens"] for usage in got["satchel"]["rounds"]] == [100, 160]
    assert got["satchel"]["skills"] == ["invoice"]


async def test_a_stream_has_one_role_one_finish_one_id_and_no_tools_of_ours() -> None:
    async with serving(runtime_over(reads_then_answers(), shelf())) as base:
        lines = await frames(base, {"model": "m", "messages": ASK, "stream": True})
    assert lines[-1] == "data: [DONE]"
    seen = chunks(lines)
    assert {(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in seen} == {
        (seen[0]["id"], seen[0]["created"], "m", "chat.completion.chunk")
    }
    deltas = [chunk["choices"][0]["delta"] for chunk in seen]
    assert [delta for delta in deltas if "role" in delta] == [{"role": "assistant", "content": ""}] == deltas[:1]
    assert [chunk["choices"][0]["finish_reason"] for chunk in seen if chunk["choices"][0]["finish_reason"]] == ["stop"]
    assert deltas[-1] == {}
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "It is ZX."
    assert "skills_read" not in "".join(lines)
    assert all("usage" not in chunk for chunk in seen)


async def test_usage_comes_last_and_only_when_asked_for() -> None:
    async with serving(runtime_over(reads_then_answers(), shelf())) as base:
        body = {"messages": ASK, "stream": True, "stream_options": {"include_usage": True}}
        seen = chunks(await frames(base, body))
    assert seen[-1]["choices"] == []
    assert seen[-1]["usage"]["total_tokens"] == 276
    assert seen[-1]["satchel"]["skills"] == ["invoice"]
    assert all(chunk["usage"] is None for chunk in seen[:-1])


async def test_only_the_clients_own_calls_come_back_numbered_from_zero() -> None:
    mixed = Reply(
        calls=(
            call("skills_read", '{"skill": "invoice"}'),
            call("weather", '{"city": "Oslo"}', "call_a"),
            call("weather", '{"city": "Bergen"}', "call_b"),
        )
    )
    expected = [("call_a", "weather", '{"city": "Oslo"}'), ("call_b", "weather", '{"city": "Bergen"}')]
    async with serving(runtime_over(ScriptedModel([mixed, mixed]), shelf())) as base, client_of(base) as client:
        whole = await client.chat.completions.create(model="m", messages=ASK, tools=[WEATHER])
        calls: dict[int, list[str]] = {}
        finish: list[str] = []
        stream = await client.chat.completions.create(model="m", messages=ASK, tools=[WEATHER], stream=True)
        async for chunk in stream:
            for delta in chunk.choices[0].delta.tool_calls or ():
                assert delta.function is not None
                if delta.id:
                    calls[delta.index] = [delta.id, delta.function.name or "", ""]
                calls[delta.index][2] += delta.function.arguments or ""
            finish += [chunk.choices[0].finish_reason] if chunk.choices[0].finish_reason else []
    message = whole.choices[0].message
    assert message.content is None
    assert [(use.id, use.function.name, use.function.arguments) for use in message.tool_calls or ()] == expected  # pyright: ignore[reportAttributeAccessIssue]
    assert whole.choices[0].finish_reason == "tool_calls"
    assert [tuple(calls[index]) for index in (0, 1)] == expected
    assert finish == ["tool_calls"]


async def test_fields_of_ours_end_here_and_others_go_on() -> None:
    model = ScriptedModel([Reply(text=("ok",))])
    async with serving(runtime_over(model, shelf())) as base:
        body = {
            "messages": ASK,
            "stream": True,
            "stream_options": {"include_usage": True},
            "skills": ["invoice"],
            "skills_discovery": False,
            "multi_agent": False,
            "top_k": 7,
        }
        await frames(base, body)
    extra = model.requests[0].extra.get("openai-chat", {})
    assert extra.get("top_k") == 7
    assert not {"skills", "skills_discovery", "multi_agent", "stream", "stream_options"} & set(extra)


async def test_no_skills_and_no_discovery_leave_the_conversation_untouched() -> None:
    model = ScriptedModel([Reply(text=("ok",)), Reply(text=("ok",))])
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        off = {"skills": [], "skills_discovery": False}
        await client.chat.completions.create(model="m", messages=ASK, extra_body=off)
        await client.chat.completions.create(model="m", messages=ASK)
    untouched, offered = model.requests
    assert [message.text for message in untouched.messages] == ["Number this bill."]
    assert untouched.tools == ()
    assert [tool.name for tool in offered.tools] == ["skills_read"]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"skills": ["nope"]}, "skills"),
        ({"skills": "invoice"}, "skills"),
        ({"skills": [1]}, "skills[0]"),
        ({"skills_discovery": "yes"}, "skills_discovery"),
        ({"multi_agent": 1}, "multi_agent"),
        ({"stream": "true"}, "stream"),
        ({"stream_options": {"include_usage": "yes"}}, "stream_options.include_usage"),
        ({"n": 2}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"model": 3}, "model"),
        ({"messages": [{"role": "boss", "content": "x"}]}, "messages[0].role"),
        ({"temperature": "hot"}, "temperature"),
    ],
)
async def test_a_wrong_field_is_refused_by_name(change: dict[str, Any], param: str) -> None:
    model = ScriptedModel([])
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        for stream in (False, True):
            with pytest.raises(openai.BadRequestError) as caught:
                await client.chat.completions.create(model="m", messages=ASK, extra_body={"stream": stream, **change})
            assert caught.value.code == "invalid-request"
            assert caught.value.param == param
            assert caught.value.type == "invalid_request_error"
    assert model.requests == []


async def test_an_unknown_skill_is_answered_with_suggestions() -> None:
    async with serving(runtime_over(ScriptedModel([]), shelf())) as base, client_of(base) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model="m", messages=ASK, extra_body={"skills": ["invoices"]})
    assert caught.value.body["unknown"] == ["invoices"]  # pyright: ignore[reportIndexIssue, reportOptionalSubscript]
    assert caught.value.body["suggestions"] == {"invoices": ["invoice"]}  # pyright: ignore[reportIndexIssue, reportOptionalSubscript]
    assert 'Did you mean "invoice"?' in caught.value.message


@pytest.mark.parametrize(
    ("code", "data", "status"),
    [
        ("upstream-rate-limited", {"status": 429, "retry_after": "7"}, 429),
        ("upstream-rejected", {"status": 400}, 400),
        ("upstream-rejected", {"status": 422}, 502),
        ("upstream-auth", {"status": 401}, 502),
        ("upstream-unreachable", {}, 502),
        ("upstream-cut-off", {}, 502),
        ("upstream-timeout", {}, 504),
        ("context-overflow", {"status": 400}, 400),
        ("model-not-found", {}, 404),
    ],
)
async def test_upstream_failures_have_their_status(code: str, data: dict[str, object], status: int) -> None:
    failing = Reply(error=UpstreamError(code, "It failed.", hint="Try later.", data=data))
    async with serving(runtime_over(ScriptedModel([failing]), shelf())) as base, client_of(base) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(model="m", messages=ASK)
    assert caught.value.status_code == status
    assert caught.value.response.headers.get("retry-after") == data.get("retry_after")
    assert caught.value.body["message"] == "It failed. Try later."  # pyright: ignore[reportIndexIssue, reportOptionalSubscript]
    assert caught.value.code == code


async def test_a_failure_inside_a_stream_is_told_and_never_looks_like_an_end() -> None:
    def failing() -> Reply:
        return Reply(text=("Half an ans",), error=UpstreamError("upstream-cut-off", "It broke."))

    model = ScriptedModel([failing(), failing()])
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        lines = await frames(base, {"messages": ASK, "stream": True})
        text: list[str] = []

        async def read() -> None:
            async for chunk in await client.chat.completions.create(model="m", messages=ASK, stream=True):
                text.extend(choice.delta.content or "" for choice in chunk.choices)

        with pytest.raises(openai.APIError, match="It broke"):
            await read()
    assert "data: [DONE]" not in lines
    error = json.loads(lines[-1].removeprefix("data: "))["error"]
    assert error == {"message": "It broke.", "type": "server_error", "code": "upstream-cut-off", "param": None}
    assert "".join(text) == "Half an ans"
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks(lines[:-1]))


async def test_models_are_listed_and_shown() -> None:
    async with serving(runtime_over(ScriptedModel([]))) as base, client_of(base) as client:
        listed = await client.models.list()
        shown = await client.models.retrieve("scripted")
        with pytest.raises(openai.NotFoundError) as caught:
            await client.models.retrieve("org/other")
    assert [(model.id, model.object, model.owned_by) for model in listed.data] == [("scripted", "model", "satchel")]
    assert shown == listed.data[0]
    assert caught.value.code == "model-not-found"


async def test_a_call_that_is_no_function_and_a_refusal_reach_the_client() -> None:
    custom: dict[str, Any] = {"id": "c9", "type": "custom", "custom": {"name": "grep", "input": "foo"}}
    beside = Opaque(format="openai-chat", raw={"tool_calls": custom})
    replies = [Reply(beside=(beside,)), Reply(extra={"openai-chat": {"refusal": "No."}})]
    body: dict[str, Any] = {"model": "m", "messages": ASK}
    async with serving(runtime_over(ScriptedModel([*replies, *replies]), shelf())) as base:
        async with aiohttp.ClientSession() as session:
            whole: list[Any] = []
            for _ in replies:
                async with session.post(f"{base}/v1/chat/completions", json=body) as answer:
                    whole.append(await answer.json())
        streamed = [chunks(await frames(base, {**body, "stream": True})) for _ in replies]
    assert [CompletionBody.model_validate(got).model_dump(exclude_unset=True) for got in whole] == whole
    called, refused = (got["choices"][0] for got in whole)
    assert called == {**called, "finish_reason": "tool_calls"}
    assert called["message"] == {"role": "assistant", "content": None, "tool_calls": [custom]}
    assert refused["message"] == {"role": "assistant", "content": None, "refusal": "No."}
    deltas = [[chunk["choices"][0]["delta"] for chunk in answer] for answer in streamed]
    assert {"tool_calls": [{"index": 0, **custom}]} in deltas[0]
    assert {"refusal": "No."} in deltas[1]


@pytest.mark.parametrize("calls", [(), (call("weather", "{}", "c1"),)])
async def test_a_call_that_the_limit_cut_off_is_the_same_in_both_forms(calls: tuple[ToolUse, ...]) -> None:
    cut = Reply(calls=calls, cut=call("weather", '{"town": 1}', "c2"), finish="length")
    body: dict[str, Any] = {"model": "m", "messages": ASK, "tools": [WEATHER]}
    async with serving(runtime_over(ScriptedModel([cut, cut]), shelf())) as base:
        async with aiohttp.ClientSession() as session, session.post(f"{base}/v1/chat/completions", json=body) as answer:
            whole = (await answer.json())["choices"][0]
        ends = [chunk["choices"][0] for chunk in chunks(await frames(base, {**body, "stream": True}))]
    shown: dict[int, str] = {}
    for delta in (end["delta"] for end in ends):
        for piece in delta.get("tool_calls", ()):
            shown[piece["index"]] = shown.get(piece["index"], "") + piece["function"]["arguments"]
    assert [use["function"]["arguments"] for use in whole["message"]["tool_calls"]] == list(shown.values())
    assert list(shown.values())[-1] == '{"tow'
    assert whole["finish_reason"] == ends[-1]["finish_reason"] == "length"
