"""A client's next request gives the model back what it read, on every surface that carries a transcript."""

from __future__ import annotations

from typing import Any

import anthropic
import ollama
import pytest

from satchel.chat.messages import ToolOutput
from satchel.chat.request import ChatRequest
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.gateway.serving import client_of, runtime_over, serving
from tests.gateway.shelf import shelf
from tests.gateway.test_ollama import lines

QUESTION: Any = {"role": "user", "content": "Number this bill in Oslo."}
SCHEMA: Any = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTION: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
ARGUMENTS = '{"city": "Oslo"}'


def mixed_then_plain() -> ScriptedModel:
    both = Reply(
        text=("Let me look.",),
        calls=(call("skills_read", '{"skill": "invoice"}', "own"), call("weather", ARGUMENTS, "theirs")),
    )
    return ScriptedModel([both, Reply(text=("ZX-9.",))])


def is_continued(model: ScriptedModel) -> None:
    """The second request begins with the first, then has all calls of that answer and a result for each."""
    first, second = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    added = second.messages[len(first.messages) :]
    assert [use.call_id for use in added[0].tool_uses] == ["own", "theirs"]
    assert results(second) == {"own": "# Invoices\nThe secret prefix is ZX-9.\n", "theirs": "Rain."}


def results(request: ChatRequest) -> dict[str, str]:
    parts = [part for said in request.messages for part in said.parts if isinstance(part, ToolOutput)]
    return {part.call_id: part.text for part in parts}


@pytest.mark.parametrize("include_usage", [None, False, True])
async def test_chat_completions(*, include_usage: bool | None) -> None:
    model = mixed_then_plain()
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        if include_usage is None:
            whole = await client.chat.completions.create(model="m", messages=[QUESTION], tools=[FUNCTION])
            said: Any = whole.choices[0].message.model_dump(exclude_none=True)
            extension: Any = (whole.model_extra or {})["satchel"]
        else:
            stream = await client.chat.completions.create(
                model="m",
                messages=[QUESTION],
                tools=[FUNCTION],
                stream=True,
                stream_options={"include_usage": include_usage},
            )
            chunks = [chunk async for chunk in stream]
            extension = (chunks[-1].model_extra or {})["satchel"]
            assert sum("satchel" in (chunk.model_extra or {}) for chunk in chunks) == 1
            calls = [{"id": "theirs", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}]
            said = {"role": "assistant", "content": "Let me look.", "tool_calls": calls}
        answer: Any = {"role": "tool", "tool_call_id": "theirs", "content": "Rain."}
        again = await client.chat.completions.create(
            model="m",
            messages=[QUESTION, said, answer],
            tools=[FUNCTION],
            extra_body={"skills_continuation": extension["continuation"]},
        )
    assert again.choices[0].message.content == "ZX-9."
    assert "notices" not in (again.model_extra or {})["satchel"]
    is_continued(model)


async def test_chat_completions_with_a_token_of_nobody() -> None:
    model = ScriptedModel([Reply(text=("x",))])
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        got = await client.chat.completions.create(
            model="m", messages=[QUESTION], extra_body={"skills_continuation": "cont_nobody"}
        )
    notices = (got.model_extra or {})["satchel"]["notices"]
    assert [notice["code"] for notice in notices] == ["continuation-unmatched"]
    assert "continuation" not in (got.model_extra or {})["satchel"]


async def test_ollama_whose_clients_send_no_ids() -> None:
    model = mixed_then_plain()
    async with serving(runtime_over(model, shelf())) as base:
        async with ollama.AsyncClient(host=f"{base}/ollama") as asker:
            first = await asker.chat(model="m", messages=[QUESTION], tools=[FUNCTION])
        said = first.message.model_dump(exclude_none=True)
        assert "id" not in said["tool_calls"][0]
    assert said["tool_calls"][0]["function"] == {"name": "weather", "arguments": {"city": "Oslo"}}
    model = mixed_then_plain()
    async with serving(runtime_over(model, shelf())) as base:
        one = (await lines(base, {"model": "m", "messages": [QUESTION], "tools": [FUNCTION]}))[-1]
        answer = {"role": "tool", "tool_name": "weather", "content": "Rain."}
        body = {"model": "m", "messages": [QUESTION, said, answer], "tools": [FUNCTION]}
        body["skills_continuation"] = one["satchel"]["continuation"]
        again = (await lines(base, body))[-1]
    assert "notices" not in again["satchel"]
    is_continued(model)


async def test_anthropic_messages() -> None:
    model = mixed_then_plain()
    tool: Any = {"name": "weather", "input_schema": SCHEMA}
    async with serving(runtime_over(model, shelf())) as base:
        async with anthropic.AsyncAnthropic(base_url=base, api_key="none", max_retries=0) as client:
            first = await client.messages.create(model="m", max_tokens=100, messages=[QUESTION], tools=[tool])
            blocks: Any = [block.model_dump(exclude_none=True) for block in first.content]
            result: Any = {"type": "tool_result", "tool_use_id": "theirs", "content": "Rain."}
            again = await client.messages.create(
                model="m",
                max_tokens=100,
                messages=[QUESTION, {"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}],
                tools=[tool],
                extra_body={"skills_continuation": (first.model_extra or {})["satchel"]["continuation"]},
            )
    assert "notices" not in (again.model_extra or {})["satchel"]
    is_continued(model)
