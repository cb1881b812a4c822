"""The bundled skills, the real model, the program: the same answer from the command line and through the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.program.program import satchel, serving

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

SKILLS = str(Path(__file__).parents[2] / "skills")
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
