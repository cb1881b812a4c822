"""Anthropic Messages through the official client, against a real server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import anthropic
import pytest

from satchel.chat.events import Usage
from satchel.errors import UpstreamError
from satchel.gateway.anthropic.wire import MessageBody
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.gateway.anthropic_client import ASK, PLAIN, WEATHER, check_blocks, client_of, events
from tests.gateway.serving import Flow, runtime_over, serving, silent, soon
from tests.gateway.shelf import shelf

TEXT = "Let me look.\n\nThe prefix\u2028 is ZX-9 é😀."
THINK: Any = {"type": "adaptive"}


def reads_then_answers(times: int = 1) -> ScriptedModel:
    rounds = [
        Reply(
            text=("Let me ", "look."),
            calls=(call("skills_read", '{"skill": "invoice"}'),),
            usage=Usage(prompt_tokens=100, completion_tokens=7, cached_tokens=20),
        ),
        Reply(
            reasoning=("It is ", "ZX."),
            text=("The prefix\u2028", " is ZX-9 é😀."),
            usage=Usage(prompt_tokens=160, completion_tokens=9, cached_tokens=100),
        ),
    ]
    return ScriptedModel(rounds * times)


def blocking(base: str) -> tuple[anthropic.types.Message, anthropic.types.Message, str]:
    with anthropic.Anthropic(base_url=base, api_key="none", max_retries=0) as client:
        whole = client.messages.create(**PLAIN)
        with client.messages.stream(**PLAIN) as stream:
            text = "".join(stream.text_stream)
            return whole, stream.get_final_message(), text


async def test_streamed_and_whole_answers_are_the_same_message_for_every_kind_of_client() -> None:
    async with serving(runtime_over(reads_then_answers(4), shelf())) as base, client_of(base) as client:
        whole = await client.messages.create(**PLAIN)
        async with client.messages.stream(**PLAIN) as stream:
            text = "".join([piece async for piece in stream.text_stream])
            final = await stream.get_final_message()
        whole_2, final_2, text_2 = await asyncio.to_thread(blocking, base)
    assert text == text_2 == TEXT
    for message in (whole, final, whole_2, final_2):
        assert [block.to_dict() for block in message.content] == [{"type": "text", "text": TEXT}]
        assert (message.stop_reason, message.stop_sequence, message.model) == ("end_turn", None, "m")
        usage = message.usage
        assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (140, 120, 16)
    assert whole.id.startswith("msg_")
    assert (whole._request_id or "").startswith("req_")


async def test_a_whole_answer_has_exactly_the_documented_shape() -> None:
    async with serving(runtime_over(reads_then_answers(), shelf())) as base, aiohttp.ClientSession() as session:
        async with session.post(f"{base}/v1/messages", json={**PLAIN, "thinking": THINK}) as answer:
            assert answer.headers["content-type"] == "application/json"
            got = await answer.json()
    assert MessageBody.model_validate(got).model_dump(exclude_unset=True) == got
    assert got["satchel"]["skills"] == ["invoice"]
    assert [usage["output_tokens"] for usage in got["satchel"]["rounds"]] == [7, 9]


async def test_a_stream_has_the_order_of_the_api_and_no_tools_of_ours() -> None:
    async with serving(runtime_over(reads_then_answers(), shelf())) as base:
        said = await events(base, {"thinking": THINK})
    check_blocks(said)
    kinds = [event["type"] for event in said]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert kinds.count("message_start") == kinds.count("message_delta") == kinds.count("message_stop") == 1
    started = said[0]["message"]
    assert (started["content"], started["stop_reason"]) == ([], None)
    assert started["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert said[-2]["usage"] == {"input_tokens": 140, "output_tokens": 16, "cache_read_input_tokens": 120}
    assert said[-2]["satchel"]["skills"] == ["invoice"]
    starts = [event["content_block"]["type"] for event in said if event["type"] == "content_block_start"]
    assert starts == ["text", "thinking", "text"]
    assert "skills_read" not in json.dumps(said)


async def test_unknown_fields_reach_a_user_of_the_official_client() -> None:
    async with serving(runtime_over(reads_then_answers(2), shelf())) as base, client_of(base) as client:
        whole = await client.messages.create(**PLAIN)
        beta = await client.beta.messages.create(**PLAIN, betas=["context-1m-2025-08-07"])
    assert whole.satchel["skills"] == ["invoice"]  # pyright: ignore[reportAttributeAccessIssue]
    assert beta.content[0].text == TEXT  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("tools_of", ["messages", "beta"])
async def test_only_the_clients_own_calls_come_back_numbered_from_zero(tools_of: str) -> None:
    mixed = Reply(
        calls=(
            call("skills_read", '{"skill": "invoice"}'),
            call("weather", '{"city": "Oslo"}', "call_a"),
            call("weather", "", "call_b"),
        )
    )
    async with serving(runtime_over(ScriptedModel([mixed] * 3), shelf())) as base, client_of(base) as client:
        messages: Any = client.messages if tools_of == "messages" else client.beta.messages
        whole = await messages.create(**PLAIN, tools=[WEATHER])
        async with messages.stream(**PLAIN, tools=[WEATHER]) as stream:
            final = await stream.get_final_message()
        said = await events(base, {"tools": [WEATHER]})
    for message in (whole, final):
        assert [(use.id, use.name, use.input) for use in message.content] == [
            ("call_a", "weather", {"city": "Oslo"}),
            ("call_b", "weather", {}),
        ]
        assert message.stop_reason == "tool_use"
    check_blocks(said)
    assert [event["index"] for event in said if event["type"] == "content_block_start"] == [0, 1]


async def test_the_answer_to_a_call_and_signed_thinking_come_back_as_they_were() -> None:
    model = ScriptedModel([Reply(calls=(call("weather", '{"city": "Oslo"}'),)), Reply(text=("Rain.",))])
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        first = await client.messages.create(**PLAIN, tools=[WEATHER])
        use = first.content[0]
        told: list[Any] = [
            *ASK,
            {"role": "assistant", "content": [thought, use.to_dict()]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "wet"}]},  # pyright: ignore[reportAttributeAccessIssue]
        ]
        fields: Any = {**PLAIN, "messages": told, "tools": [WEATHER]}
        second = await client.messages.create(**fields)
    assert second.content[0].text == "Rain."  # pyright: ignore[reportAttributeAccessIssue]
    reasoning, used = model.requests[1].messages[2].parts
    assert reasoning.opaque == thought  # pyright: ignore[reportAttributeAccessIssue]
    assert used.call_id == use.id  # pyright: ignore[reportAttributeAccessIssue]


async def test_unsigned_thinking_is_sent_only_to_those_who_ask_for_it() -> None:
    asked: list[tuple[Any, bool]] = [
        (None, False),
        ({"type": "disabled"}, False),
        ({"type": "adaptive", "display": "omitted"}, False),
        ({"type": "enabled", "budget_tokens": 1024}, True),
        (THINK, True),
    ]
    async with serving(runtime_over(reads_then_answers(len(asked)), shelf())) as base, client_of(base) as client:
        for thinking, is_told in asked:
            body: Any = {**PLAIN, "thinking": thinking} if thinking else PLAIN
            answer = await client.messages.create(**body)
            blocks = [block.to_dict() for block in answer.content]
            thoughts = [block for block in blocks if block["type"] == "thinking"]
            assert thoughts == ([{"type": "thinking", "thinking": "It is ZX.", "signature": ""}] if is_told else [])
            assert "".join(str(block.get("text", "")) for block in blocks) == TEXT


async def test_a_limit_and_a_refusal_are_told_as_the_reason() -> None:
    replies = [Reply(text=("Half",), finish="length")] * 2 + [Reply(text=("No.",), finish="content_filter")]
    async with serving(runtime_over(ScriptedModel(replies))) as base, client_of(base) as client:
        whole = await client.messages.create(**PLAIN)
        said = await events(base, {})
        refused = await client.messages.create(**PLAIN)
    assert whole.stop_reason == said[-2]["delta"]["stop_reason"] == "max_tokens"
    assert refused.stop_reason == "refusal"


async def test_fields_of_ours_end_here_and_others_go_on() -> None:
    model = ScriptedModel([Reply(text=("ok",))])
    ours = {"skills": ["invoice"], "skills_discovery": False, "multi_agent": False}
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        fields: Any = {**PLAIN, "metadata": {"user_id": "u"}, "betas": ["one", "two"]}
        await client.beta.messages.create(**fields, extra_body=ours | {"top_k": 7})
    asked = model.requests[0]
    assert dict(asked.extra["anthropic"]) == {"top_k": 7, "metadata": {"user_id": "u"}}
    assert asked.caller.betas == ("one", "two")
    assert asked.caller.key == "none"
    assert [tool.name for tool in asked.tools] == ["skills_read"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"skills": ["invoices"]}, 'Did you mean "invoice"?'),
        ({"skills": [1]}, "skills[0]"),
        ({"skills_discovery": "yes"}, "skills_discovery"),
        ({"stream": "true"}, "stream"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "boss", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "messages[0].content[0].type"),
        ({"system": 3}, "system"),
        ({"temperature": "hot"}, "temperature"),
        ({"tools": [{"name": "x"}]}, "tools[0].input_schema"),
        ({"thinking": "yes"}, "thinking"),
        ({"container": 3}, "container"),
        ({"container": {"skills": "invoice"}}, "container.skills"),
        ({"container": {"skills": [{"type": "custom"}]}}, "container.skills[0].skill_id"),
        ({"container": {"skills": [{"type": "own", "skill_id": "invoice"}]}}, "container.skills[0].type"),
    ],
)
async def test_a_wrong_field_is_refused_by_name(change: dict[str, Any], field: str) -> None:
    model = ScriptedModel([])
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        for stream in (False, True):
            with pytest.raises(anthropic.BadRequestError) as caught:
                await client.messages.create(**PLAIN, extra_body={"stream": stream, **change})
            assert caught.value.type == "invalid_request_error"
            assert field in (caught.value.api_message or "")
            assert (caught.value.request_id or "").startswith("req_")
    assert model.requests == []


@pytest.mark.parametrize(
    ("code", "data", "status", "kind"),
    [
        ("upstream-rate-limited", {"status": 429, "retry_after": "7"}, 429, "rate_limit_error"),
        ("upstream-rejected", {"status": 400}, 400, "invalid_request_error"),
        ("upstream-auth", {"status": 401}, 502, "api_error"),
        ("upstream-garbled", {}, 502, "api_error"),
        ("upstream-timeout", {}, 504, "timeout_error"),
        ("model-not-found", {}, 404, "not_found_error"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_upstream_failures_have_their_status(
    code: str, data: dict[str, object], status: int, kind: str, stream: bool
) -> None:
    def refuses(request: object) -> Reply:
        raise UpstreamError(code, "It failed.", hint="Try later.", data=data)

    async with serving(runtime_over(ScriptedModel([refuses]), shelf())) as base, client_of(base) as client:
        with pytest.raises(anthropic.APIStatusError) as caught:
            await client.messages.create(**PLAIN, stream=stream)
    assert (caught.value.status_code, caught.value.type) == (status, kind)
    assert caught.value.api_message == "It failed. Try later."
    assert caught.value.response.headers.get("retry-after") == data.get("retry_after")


async def test_a_failure_inside_a_stream_is_an_event_and_never_looks_like_an_end() -> None:
    failing = Reply(text=("Half an ans",), error=UpstreamError("upstream-cut-off", "It broke."))
    async with serving(runtime_over(ScriptedModel([failing] * 2), shelf())) as base, client_of(base) as client:
        said = await events(base, {})
        text: list[str] = []

        async def read() -> None:
            async with client.messages.stream(**PLAIN) as stream:
                async for piece in stream.text_stream:
                    text.extend([piece])

        with pytest.raises(anthropic.APIStatusError, match="It broke"):
            await read()
    assert text == ["Half an ans"]
    assert said[-1] == {"type": "error", "error": {"type": "api_error", "message": "It broke."}}
    assert not {"message_delta", "message_stop"} & {event["type"] for event in said}


async def test_a_silent_stream_is_kept_alive_by_pings() -> None:
    go_on = asyncio.Event()
    model = ScriptedModel([Reply(text=("at ", "last"), wait=go_on)])
    async with serving(runtime_over(model), heartbeat_s=0.01) as base, aiohttp.ClientSession() as session:
        async with session.post(f"{base}/v1/messages", json={**PLAIN, "stream": True}) as answer:
            await answer.content.readuntil(b'event: ping\ndata: {"type":"ping"}\n\n')
            go_on.set()
            assert (await answer.read()).endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')


@pytest.mark.parametrize("stream", [False, True])
async def test_hanging_up_stops_the_model(stream: bool) -> None:
    flow = Flow(silent)
    async with serving(runtime_over(flow)) as base, aiohttp.ClientSession() as session:
        body = {**PLAIN, "stream": stream}
        asking = asyncio.create_task(session.post(f"{base}/v1/messages", json=body).__aenter__())
        await soon(flow.entered)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await soon(flow.left)


async def test_a_key_is_taken_from_either_header() -> None:
    async with serving(runtime_over(reads_then_answers(2), shelf()), keys=("secret",)) as base:
        for options in ({"api_key": "secret"}, {"api_key": None, "auth_token": "secret"}):
            async with client_of(base, **options) as client:
                assert (await client.messages.create(**PLAIN)).stop_reason == "end_turn"
        async with client_of(base, api_key="wrong") as client:
            with pytest.raises(anthropic.AuthenticationError) as caught:
                await client.messages.create(**PLAIN)
    assert caught.value.type == "authentication_error"


async def test_models_have_the_shape_of_the_client_that_asks() -> None:
    async with serving(runtime_over(ScriptedModel([]))) as base, client_of(base) as client:
        listed = [model async for model in client.models.list()]
        shown = await client.models.retrieve("scripted")
        with pytest.raises(anthropic.NotFoundError):
            await client.models.retrieve("org/other")
        async with aiohttp.ClientSession() as session, session.get(f"{base}/v1/models") as answer:
            others = await answer.json()
    assert listed == [shown]
    assert (shown.id, shown.display_name, shown.type) == ("scripted", "scripted", "model")
    assert shown.created_at.year == 1970
    assert others["object"] == "list"


async def test_a_count_is_an_estimate_that_includes_what_the_gateway_adds() -> None:
    model = ScriptedModel([])
    picture: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO" * 10_000}}
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        off = {"skills": [], "skills_discovery": False}

        async def count(extra: dict[str, Any], content: Any = "x" * 400, **more: Any) -> int:
            messages: Any = [{"role": "user", "content": content}]
            counted = await client.messages.count_tokens(model="m", messages=messages, extra_body=extra, **more)
            return counted.input_tokens

        plain = await count(off)
        assert 100 <= plain <= 110
        assert await count({}) > plain + 100
        assert await count({"skills": ["invoice"]}) > plain + 100
        assert await count(off, tools=[WEATHER]) > plain
        assert await count(off, system="x" * 400) >= plain + 100
        assert 1600 <= await count(off, content=[picture]) <= 1700
        with pytest.raises(anthropic.BadRequestError):
            await count({"skills": ["nope"]})
    assert model.requests == []
