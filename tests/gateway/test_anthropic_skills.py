"""Skills that an Anthropic client selects in its own way, and where the block goes beside cache marks."""

from __future__ import annotations

from typing import Any

import aiohttp
import anthropic
import pytest

from satchel.chat.codec.anthropic import encode_request
from satchel.testing.scripted_model import Reply, ScriptedModel
from tests.gateway.anthropic_client import PLAIN, WEATHER, client_of, events
from tests.gateway.serving import runtime_over, serving
from tests.gateway.shelf import shelf

CODE: Any = {"type": "code_execution_20250825", "name": "code_execution"}
MARK: Any = {"type": "ephemeral"}


def chosen(*names: str, **more: str) -> Any:
    return {"skills": [{"type": "custom", "skill_id": name, **more} for name in names]}


def ok(times: int = 1) -> ScriptedModel:
    return ScriptedModel([Reply(text=("ok",))] * times)


@pytest.mark.parametrize("version", [{}, {"version": "latest"}])
async def test_a_containers_skills_are_selected_here_and_no_container_goes_on(version: Any) -> None:
    model = ok(2)
    container: Any = {"id": "container_1", **chosen("invoice", **version)}
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        answer = await client.beta.messages.create(
            **PLAIN,
            container=container,
            tools=[CODE, WEATHER],
            betas=["skills-2025-10-02", "code-execution-2025-08-25"],
            extra_body={"skills_discovery": False, "skills": ["invoice"]},
        )
        said = await events(base, {"container": chosen("invoice", **version), "tools": [CODE]})
    for request, tools in zip(model.requests, ([WEATHER["name"], "skills_read"], ["skills_read"]), strict=True):
        assert [tool.name for tool in request.tools] == tools
        assert "container" not in encode_request(request, stream=False)
        assert "code_execution" not in str(request)
        assert "invoice" in request.messages[0].text
    assert "deploy" not in model.requests[0].messages[0].text
    assert answer.container is not None
    assert [skill.to_dict() for skill in answer.container.skills or ()] == [
        {"type": "custom", "skill_id": "invoice", "version": "latest"}
    ]
    assert answer.container.expires_at.tzinfo is not None
    assert [notice["code"] for notice in answer.satchel["notices"]] == ["container-replaced"]  # pyright: ignore[reportAttributeAccessIssue]
    assert said[-2]["delta"]["container"]["skills"][0]["skill_id"] == "invoice"


async def test_a_container_of_ours_that_is_sent_back_goes_no_further() -> None:
    model = ok(2)
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        first = await client.messages.create(**PLAIN, container=chosen("invoice"))
        assert first.container is not None
        await client.messages.create(**PLAIN, container=first.container.id, tools=[CODE])
    assert dict(model.requests[1].extra) == {}


async def test_a_container_without_skills_passes_through() -> None:
    model = ok(3)
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        containers: list[Any] = ["container_1", {"id": "container_1"}]
        for container in containers:
            answer = await client.messages.create(**PLAIN, container=container, tools=[CODE])
            sent = encode_request(model.requests[-1], stream=False)
            assert sent["container"] == container
            assert CODE in sent["tools"]  # pyright: ignore[reportOperatorIssue]
            assert answer.container is None
    async with serving(runtime_over(model)) as base, client_of(base) as client:
        await client.messages.create(**PLAIN, container=chosen("pptx"), tools=[CODE])
    assert encode_request(model.requests[-1], stream=False)["container"] == chosen("pptx")


@pytest.mark.parametrize(
    ("container", "says"),
    [
        (chosen("invoice", version="3"), 'container.skills[0].version: There is no version "3" of "invoice" here'),
        (chosen("invoices"), 'No skill is called "invoices". Did you mean "invoice"?'),
        ({"skills": [{"type": "anthropic", "skill_id": "pptx"}]}, 'No skill is called "pptx". Available skills: '),
    ],
)
async def test_a_skill_that_is_not_here_is_refused_with_what_is(container: Any, says: str) -> None:
    async with serving(runtime_over(ok(), shelf())) as base, client_of(base) as client:
        with pytest.raises(anthropic.BadRequestError) as caught:
            await client.messages.create(**PLAIN, container=container)
    assert says in (caught.value.api_message or "")


@pytest.mark.parametrize(
    "system",
    [
        [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Facts.", "cache_control": MARK}],
        [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
    ],
)
async def test_a_cache_mark_stays_at_the_end_of_the_callers_own_text(system: Any) -> None:
    model = ok()
    async with serving(runtime_over(model, shelf())) as base, client_of(base) as client:
        await client.messages.create(**PLAIN, system=system)
    sent: Any = encode_request(model.requests[0], stream=False)
    assert sent["system"][:-1] == system
    assert "cache_control" not in sent["system"][-1]
    assert "invoice" in sent["system"][-1]["text"]


async def test_the_block_follows_a_system_prompt_that_is_plain_text() -> None:
    model = ok(2)
    async with serving(runtime_over(model, shelf())) as base, aiohttp.ClientSession() as session:
        for system in ({"system": "Be brief."}, {}):
            async with session.post(f"{base}/v1/messages", json={**PLAIN, **system}) as answer:
                assert answer.status == 200
    with_text, without = (encode_request(request, stream=False)["system"] for request in model.requests)
    assert with_text == f"Be brief.\n\n{without}"
    assert "invoice" in str(without)
