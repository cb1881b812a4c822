"""The bundled skills, the real model, the program: the same answer from the command line and through the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.program.program import satchel, serving

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

SKILLS = str(Path(__file__).parents[2] / "skills")
EVENTS = ("turn_started", "tool_finished", "text_delta", "turn_done")
FLIGHT = "The Petrel flies 640 km with a payload of 210 kg against 18 km/h of wind. How much fuel do we load?"
QUESTION = "We deploy the checkout service today. What share of the traffic goes to the canary first?"


async def test_one_answer_from_the_command_line_and_through_the_gateway() -> None:
    ended = await satchel("run", QUESTION, "--skills-dir", SKILLS)
    assert ended.code == 0, ended.err
    assert "canary-deploy/SKILL.md" in ended.err
    assert "6" in ended.out
    asked: Any = [{"role": "user", "content": QUESTION}]
    async with serving("--skills-dir", SKILLS) as (url, _), AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as openai:
        model = (await openai.models.list()).data[0].id
        whole = await openai.chat.completions.create(model=model, messages=asked)
        stream = await openai.chat.completions.create(model=model, messages=asked, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
    assert whole.model == model
    assert whole.usage is not None
    assert whole.usage.completion_tokens > 0
    assert whole.choices[0].message.content == "".join(pieces) == ended.out.rstrip("\n")


async def test_a_figure_that_only_a_script_works_out_from_the_command_line_and_through_the_gateway() -> None:
    options = ("--skills-dir", SKILLS, "--skills-allow-exec")
    ended = await satchel("run", FLIGHT, *options, "--json")
    assert ended.code == 0, ended.err
    by_name = {name: [event for event in ended.events if event["event"] == name] for name in EVENTS}
    (started,), (done,) = by_name["turn_started"], by_name["turn_done"]
    assert all(started["confinement"][held] for held in ("writes", "network", "home"))
    calls = [(event["name"], event["path"], event["ok"]) for event in by_name["tool_finished"]]
    assert calls == [("skills_read", "SKILL.md", True), ("skills_run", "scripts/budget.py", True)]
    outputs = [part["text"] for said in done["transcript"] if said["role"] == "tool" for part in said["parts"]]
    assert "191.29" not in outputs[0]  # it stands nowhere in the skill
    assert outputs[1].startswith(f"Ran scripts/budget.py (exit code 0, sandbox: {started['confinement']['backend']})")
    assert outputs[1].endswith("fuel to load: 191.29 kg")
    answer = "".join(event["text"] for event in by_name["text_delta"])
    assert "191.29" in answer
    asked: Any = [{"role": "user", "content": FLIGHT}]
    async with serving(*options) as (url, _), AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as openai:
        whole = await openai.chat.completions.create(model=(await openai.models.list()).data[0].id, messages=asked)
    assert whole.choices[0].message.content == answer
    assert whole.choices[0].message.tool_calls is None
