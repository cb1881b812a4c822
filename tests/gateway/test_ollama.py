"""Ollama's API through its official client, against a real server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import ollama
import pytest

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.events import Usage
from satchel.errors import UpstreamError
from satchel.gateway.ollama.wire import ChatAnswerBody, GenerateAnswerBody
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.gateway.serving import Flow, runtime_over, serving, silent, soon
from tests.gateway.shelf import shelf

ASK: list[Any] = [{"role": "user", "content": "Number this bill."}]
WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
TEXT = "Let me look.\n\nThe prefix\u2028is ZX-9 é😀.\x85"


def reads_then_answers(times: int = 1) -> ScriptedModel:
    rounds = [
        Reply(
            text=("Let me ", "look."),
            calls=(call("skills_read", '{"skill": "invoice"}'),),
            usage=Usage(prompt_tokens=100, completion_tokens=7),
        ),
        Reply(
            reasoning=("It is ", "ZX."),
            text=("The prefix\u2028", "is ZX-9 é😀.\x85"),
            usage=Usage(prompt_tokens=160, completion_tokens=9),
        ),
    ]
    return ScriptedModel(rounds * times)


def client(base: str) -> ollama.AsyncClient:
    return ollama.AsyncClient(host=f"{base}/ollama")


def blocking(base: str) -> tuple[ollama.ChatResponse, list[ollama.ChatResponse]]:
    with ollama.Client(host=f"{base}/ollama") as asker:
        return asker.chat(model="m", messages=ASK), list(asker.chat(model="m", messages=ASK, stream=True))


async def lines(base: str, body: dict[str, Any], path: str = "/ollama/api/chat") -> list[Any]:
    async with aiohttp.ClientSession() as session, session.post(base + path, json=body) as answer:
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/x-ndjson"
        text = (await answer.read()).decode()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


async def test_streamed_and_whole_answers_carry_the_same_text_for_every_kind_of_client() -> None:
    async with serving(runtime_over(reads_then_answers(4), shelf())) as base, client(base) as asker:
        whole = await asker.chat(model="m", messages=ASK)
        parts = [part async for part in await asker.chat(model="m", messages=ASK, stream=True)]
        whole_2, parts_2 = await asyncio.to_thread(blocking, base)
    assert whole.message.content == whole_2.message.content == TEXT
    assert whole.message.thinking == "It is ZX."
    for streamed in (parts, parts_2):
        assert "".join(part.message.content or "" for part in streamed) == TEXT
        assert "".join(part.message.thinking or "" for part in streamed) == "It is ZX."
        assert [part.done for part in streamed] == [*[False] * (len(streamed) - 1), True]
        assert (streamed[-1].prompt_eval_count, streamed[-1].eval_count) == (260, 16)


async def test_a_stream_is_the_default_and_ends_with_one_line_that_says_it_is_done() -> None:
    async with serving(runtime_over(reads_then_answers(), shelf())) as base:
        said = await lines(base, {"model": "m", "messages": ASK})
    assert [line["done"] for line in said] == [*[False] * (len(said) - 1), True]
    assert all(line["model"] == "m" and line["created_at"].endswith("Z") for line in said)
    assert all(line["message"]["role"] == "assistant" for line in said)
    assert "skills_read" not in json.dumps(said)
    last = said[-1]
    assert last["message"] == {"role": "assistant", "content": ""}
    assert last["done_reason"] == "stop"
    assert last["total_duration"] >= last["prompt_eval_duration"] + last["eval_duration"] > 0
    assert last["load_duration"] == 0
    assert last["satchel"].pop("continuation")
    assert last["satchel"] == {
        "rounds": [{"prompt_eval_count": 100, "eval_count": 7}, {"prompt_eval_count": 160, "eval_count": 9}],
        "skills": ["invoice"],
    }


async def test_whole_answers_have_exactly_the_documented_shape() -> None:
    async with serving(runtime_over(reads_then_answers(2), shelf())) as base, aiohttp.ClientSession() as session:
        for path, body, kind in (
            ("chat", {"messages": ASK}, ChatAnswerBody),
            ("generate", {"prompt": "Number this bill."}, GenerateAnswerBody),
        ):
            async with session.post(f"{base}/ollama/api/{path}", json={**body, "stream": False}) as answer:
                assert answer.headers["content-type"] == "application/json; charset=utf-8"
                got = await answer.json()
            assert kind.model_validate(got).model_dump(exclude_unset=True) == got


async def test_only_the_clients_own_calls_come_back_with_arguments_as_an_object() -> None:
    mixed = Reply(
        text=("Checking.",),
        calls=(
            call("skills_read", '{"skill": "invoice"}'),
            call("weather", '{"city": "Oslo"}', "call_a"),
            call("weather", "```json\n{'city': 'Bergen'}\n```", "call_b"),
        ),
    )
    async with serving(runtime_over(ScriptedModel([mixed] * 3), shelf())) as base, client(base) as asker:
        whole = await asker.chat(model="m", messages=ASK, tools=[WEATHER])
        stream = await asker.chat(model="m", messages=ASK, tools=[WEATHER], stream=True)
        streamed = [use async for part in stream for use in part.message.tool_calls or ()]
        said = await lines(base, {"model": "m", "messages": ASK, "tools": [WEATHER]})
    expected = [("weather", {"city": "Oslo"}), ("weather", {"city": "Bergen"})]
    for uses in (whole.message.tool_calls or (), streamed):
        assert [(use.function.name, use.function.arguments) for use in uses] == expected
    called = [line for line in said if "tool_calls" in line["message"]]
    assert [(use["id"], use["function"]["index"]) for use in called[0]["message"]["tool_calls"]] == [
        ("call_a", 0),
        ("call_b", 1),
    ]
    assert called == [said[-2]]
    assert whole.done_reason == said[-1]["done_reason"] == "stop"


async def test_the_answer_to_a_call_finds_its_call_again() -> None:
    model = ScriptedModel([Reply(calls=(call("weather", '{"city": "Oslo"}'),)), Reply(text=("Rain.",))])
    async with serving(runtime_over(model, shelf())) as base, client(base) as asker:
        first = await asker.chat(model="m", messages=ASK, tools=[WEATHER])
        told = [*ASK, first.message, {"role": "tool", "tool_name": "weather", "content": "wet"}]
        second = await asker.chat(model="m", messages=told, tools=[WEATHER])
    assert second.message.content == "Rain."
    sent = model.requests[1].messages
    uses = [use for message in sent for use in message.tool_uses]
    outputs = [part for message in sent for part in message.parts if hasattr(part, "is_error")]
    assert [part.call_id for part in outputs] == [use.call_id for use in uses]  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("stream", [False, True])
async def test_thinking_can_be_left_out(stream: bool) -> None:
    async with serving(runtime_over(reads_then_answers(2), shelf())) as base:
        body = {"model": "m", "prompt": "Number this bill.", "stream": stream}
        async with aiohttp.ClientSession() as session:
            for think, told in ((False, False), ("high", True)):
                async with session.post(f"{base}/ollama/api/generate", json={**body, "think": think}) as answer:
                    assert (b'"thinking"' in await answer.read()) is told


async def test_generate_asks_one_prompt() -> None:
    picture = "iVBORw0KGgo="
    async with serving(runtime_over(model := reads_then_answers(2), shelf())) as base, client(base) as asker:
        whole = await asker.generate(model="m", prompt="Number this.", system="Be brief.", images=[picture])
        stream = await asker.generate(model="m", prompt="Number this.", stream=True)
        streamed = [part async for part in stream]
    assert whole.response == "".join(part.response or "" for part in streamed) == TEXT
    assert whole.thinking == "It is ZX."
    assert (whole.done, whole.done_reason, streamed[-1].eval_count) == (True, "stop", 16)
    system, user = model.requests[0].messages
    assert system.text.startswith("Be brief.\n\n")
    assert [type(part).__name__ for part in user.parts] == ["Text", "Media"]


@pytest.mark.parametrize(("keep_alive", "reason"), [(None, "load"), ("5m", "load"), (0, "unload"), ("0s", "unload")])
async def test_nothing_to_answer_is_a_request_to_load(keep_alive: Any, reason: str) -> None:
    model = ScriptedModel([])
    async with serving(runtime_over(model, shelf())) as base, client(base) as asker:
        generated = await asker.generate(model="m", keep_alive=keep_alive)
        chatted = await asker.chat(model="m", messages=[], keep_alive=keep_alive)
    for answer in (generated, chatted):
        assert (answer.done, answer.done_reason, answer.model) == (True, reason, "m")
    assert (generated.response, chatted.message.content) == ("", "")
    assert model.requests == []


@pytest.mark.parametrize(
    ("path", "change", "field"),
    [
        ("chat", {"skills": ["nope"]}, "nope"),
        ("chat", {"skills": "invoice"}, "skills"),
        ("chat", {"stream": "true"}, "stream"),
        ("chat", {"think": 3}, "think"),
        ("chat", {"format": "yaml"}, "format"),
        ("chat", {"options": {"temperature": "hot"}}, "options.temperature"),
        ("chat", {"options": []}, "options"),
        ("chat", {"messages": [{"role": "boss", "content": "x"}]}, "messages[0].role"),
        ("chat", {"messages": "hi"}, "messages"),
        ("generate", {"raw": True}, "raw"),
        ("generate", {"template": "{{ .Prompt }}"}, "template"),
        ("generate", {"suffix": "end"}, "suffix"),
        ("generate", {"context": [1, 2]}, "context"),
        ("generate", {"images": [3]}, "images[0]"),
        ("show", {"model": ""}, "model"),
    ],
)
async def test_what_cannot_be_had_is_refused_by_name(path: str, change: dict[str, Any], field: str) -> None:
    model = ScriptedModel([])
    body = {"model": "m", "messages": ASK, "prompt": "Hi.", **change}
    async with serving(runtime_over(model, shelf())) as base, aiohttp.ClientSession() as session:
        async with session.post(f"{base}/ollama/api/{path}", json=body) as answer:
            got = await answer.json()
    assert answer.status == 400
    assert list(got) == ["error"]
    assert field in got["error"]
    assert model.requests == []


async def test_options_are_understood_and_the_others_are_kept_for_an_ollama() -> None:
    schema = {"type": "object", "properties": {"number": {"type": "string"}}}
    model = ScriptedModel([Reply(text=("ok",))] * 2)
    options = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["END"], "num_predict": 40, "num_ctx": 8192}
    async with serving(runtime_over(model, shelf())) as base, client(base) as asker:
        await asker.chat(model="m", messages=ASK, options=options, format=schema, keep_alive="1h", think=True)
        await lines(base, {"messages": ASK, "format": "json", "skills": [], "skills_discovery": False, "stream": True})
    first, second = model.requests
    assert (first.max_tokens, first.sampling.temperature, first.sampling.top_p) == (40, 0.5, 0.9)
    assert (first.sampling.seed, first.sampling.stop) == (7, ("END",))
    kept = first.extra["ollama"]
    assert kept["options"] == {"num_ctx": 8192}
    assert (kept["format"], kept["keep_alive"], kept["think"]) == (schema, "1h", True)
    assert first.extra["openai-chat"] == {
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    }
    assert first.extra["openai-responses"] == {
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema}}
    }
    assert second.extra["openai-chat"] == {"response_format": {"type": "json_object"}}
    assert dict(second.extra["ollama"]) == {"format": "json"}
    assert [message.text for message in second.messages] == ["Number this bill."]


async def test_models_are_listed_and_shown() -> None:
    model = ScriptedModel([], capabilities=ModelCapabilities(context_tokens=4096))
    async with serving(runtime_over(model)) as base, client(base) as asker:
        listed = await asker.list()
        shown = await asker.show("scripted:latest")
        running = await asker.ps()
        with pytest.raises(ollama.ResponseError) as caught:
            await asker.show("org/other")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{base}/ollama/api/version") as answer:
                assert sorted(await answer.json()) == ["satchel", "version"]
            for path in ("/ollama/", "/ollama"):
                async with session.get(base + path) as answer:
                    assert (answer.status, await answer.text()) == (200, "Ollama is running")
                async with session.head(base + path) as answer:
                    assert answer.status in {200, 307}
    assert [(item.model, item.size, item.digest) for item in listed.models] == [("scripted", 0, "")]
    assert listed.models[0].modified_at is not None
    assert shown.capabilities == ["completion", "tools"]
    assert shown.modelinfo == {"general.architecture": "unknown", "unknown.context_length": 4096}
    assert list(running.models) == []
    assert (caught.value.status_code, caught.value.error) == (
        404,
        'There is no model called "org/other". GET /api/tags lists them.',
    )


async def test_tools_are_not_promised_for_a_model_that_cannot_call_them() -> None:
    for tools in ("guided", "none"):
        async with (
            serving(runtime_over(ScriptedModel([], capabilities=ModelCapabilities(tools=tools)))) as base,
            client(base) as asker,
        ):
            assert (await asker.show("scripted")).capabilities == ["completion"]


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
@pytest.mark.parametrize("stream", [False, True])
async def test_upstream_failures_have_their_status(
    code: str, data: dict[str, object], status: int, stream: bool
) -> None:
    def refuses(request: object) -> Reply:
        raise UpstreamError(code, "It failed.", hint="Try later.", data=data)

    async with serving(runtime_over(ScriptedModel([refuses] * 2), shelf())) as base, client(base) as asker:

        async def read() -> None:
            if not stream:
                await asker.chat(model="m", messages=ASK)
            else:
                await anext(await asker.chat(model="m", messages=ASK, stream=True))

        with pytest.raises(ollama.ResponseError) as caught:
            await read()
        async with aiohttp.ClientSession() as session:
            body = {"messages": ASK, "stream": stream}
            async with session.post(f"{base}/api/chat/ollama", json=body) as refused:
                assert refused.headers.get("retry-after") == data.get("retry_after")
    assert (caught.value.status_code, caught.value.error) == (status, "It failed. Try later.")


async def test_a_failure_inside_a_stream_is_a_line_and_never_looks_like_an_end() -> None:
    failing = Reply(text=("Half an ans",), error=UpstreamError("upstream-cut-off", "It broke."))
    async with serving(runtime_over(ScriptedModel([failing] * 2), shelf())) as base, client(base) as asker:
        said = await lines(base, {"messages": ASK})
        text: list[str] = []

        async def read() -> None:
            async for part in await asker.chat(model="m", messages=ASK, stream=True):
                text.extend([part.message.content or ""])

        with pytest.raises(ollama.ResponseError, match="It broke"):
            await read()
    assert text == ["Half an ans"]
    assert [line.get("done") for line in said] == [False, None]
    assert said[-1] == {"error": "It broke."}


async def test_a_limit_is_told_as_the_reason() -> None:
    async with (
        serving(runtime_over(ScriptedModel([Reply(text=("Half",), finish="length")] * 2))) as base,
        client(base) as asker,
    ):
        whole = await asker.chat(model="m", messages=ASK)
        said = await lines(base, {"messages": ASK})
    assert whole.done_reason == said[-1]["done_reason"] == "length"


async def test_a_silent_stream_is_kept_alive_by_lines_without_text() -> None:
    go_on = asyncio.Event()
    model = ScriptedModel([Reply(text=("at ", "last"), wait=go_on)])
    async with serving(runtime_over(model), heartbeat_s=0.01) as base, aiohttp.ClientSession() as session:
        body = {"model": "m", "prompt": "Hi."}
        async with session.post(f"{base}/ollama/api/generate", json=body) as answer:
            beat = json.loads(await answer.content.readline())
            go_on.set()
            rest = [json.loads(line) for line in (await answer.read()).splitlines()]
    assert (beat["model"], beat["response"], beat["done"]) == ("m", "", False)
    assert "".join(line["response"] for line in rest) == "at last"


@pytest.mark.parametrize("stream", [False, True])
async def test_hanging_up_stops_the_model(stream: bool) -> None:
    flow = Flow(silent)
    async with serving(runtime_over(flow)) as base, aiohttp.ClientSession() as session:
        body = {"messages": ASK, "stream": stream}
        asking = asyncio.create_task(session.post(f"{base}/ollama/api/chat", json=body).__aenter__())
        await soon(flow.entered)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await soon(flow.left)


async def test_keys_are_asked_for_everywhere_but_at_the_greeting() -> None:
    async with serving(runtime_over(reads_then_answers(), shelf()), keys=("secret",)) as base:
        async with aiohttp.ClientSession() as session:
            for method, path in (
                ("POST", "/ollama/api/chat"),
                ("POST", "/ollama/api/generate"),
                ("POST", "/ollama/api/show"),
                ("POST", "/api/chat/ollama"),
                ("GET", "/ollama/api/tags"),
                ("GET", "/ollama/api/ps"),
                ("GET", "/ollama/api/version"),
            ):
                async with session.request(method, base + path) as answer:
                    assert (answer.status, list(await answer.json())) == (401, ["error"])
            async with session.get(f"{base}/ollama/") as answer:
                assert answer.status == 200
        headers = {"Authorization": "Bearer secret"}
        async with ollama.AsyncClient(host=f"{base}/ollama", headers=headers) as known:
            assert (await known.chat(model="m", messages=ASK)).message.content == TEXT
