"""The program in front of model servers of every kind, one or several."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, NotFoundError

from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn, says
from tests.program.program import satchel, serving
from tests.support import write_skill

KEY, OTHER = "sk-first-1234567", "sk-other-7654321"
SHOWS: dict[str, Any] = {"scripted": {"capabilities": ["completion", "tools"]}}


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    write_skill(root, "canary", body="The share is 6 %.\n")
    return root


@pytest.mark.parametrize("kind", ["openai", "responses", "ollama", "anthropic"])
async def test_an_upstream_of_every_kind_reads_a_skill(skills: Path, kind: str) -> None:
    read = ScriptedCall(name="skills_read", fragments=('{"skill": "can', 'ary"}'), call_id="call_1")
    turns = [ScriptedTurn(text=("Let me ", "look."), calls=(read,)), ScriptedTurn(text=("It is ", "6 %."))]
    async with ScriptedOpenAI(turns, shows=SHOWS) as model:
        url = model.url if kind in {"openai", "responses"} else model.root
        options = ("--skills-dir", str(skills), "--upstream", f"{kind}:{url}")
        ended = await satchel("run", "Which share?", *options, SATCHEL_UPSTREAM_KEY=KEY)
    assert (ended.code, ended.out) == (0, "Let me look.\n\nIt is 6 %.\n"), ended.err
    assert "The share is 6 %." in json.dumps(model.requests[1].body)
    assert KEY in json.dumps(dict(model.requests[0].headers))
    assert KEY not in ended.err


async def test_several_upstreams_behind_one_gateway(skills: Path) -> None:
    answers = [says("from one"), says("again from one")]
    async with (
        ScriptedOpenAI(answers, models=[{"id": "both"}, {"id": "x"}]) as one,
        ScriptedOpenAI([says("from two"), says("again from two")], models=[{"id": "both"}], shows=SHOWS) as two,
    ):
        options = ("--upstream", f"one={one.url}", "--upstream", f"two=anthropic:{two.root}")
        keys = {"SATCHEL_UPSTREAM_KEY": KEY, "SATCHEL_UPSTREAM_KEY_TWO": OTHER}
        async with (
            serving("--skills-dir", str(skills), *options, **keys) as (url, _),
            AsyncOpenAI(base_url=f"{url}/v1", api_key="theirs", max_retries=0) as client,
        ):
            assert [model.id async for model in client.models.list()] == ["both", "x", "two/both"]
            asked: Any = [{"role": "user", "content": "hi"}]
            said: list[str | None] = []
            for name in ("both", "two/both", "x"):
                whole = await client.chat.completions.create(model=name, messages=asked)
                said.append(whole.choices[0].message.content)
                assert whole.model == name
            assert said == ["from one", "from two", "again from one"]
            with pytest.raises(NotFoundError) as caught:
                await client.chat.completions.create(model="bothh", messages=asked)
            assert "both" in str(caught.value)
        assert {seen.headers["Authorization"] for seen in one.requests} == {f"Bearer {KEY}"}
        assert [seen.headers["x-api-key"] for seen in two.requests] == [OTHER]


async def test_doctor_shows_each_upstream_and_no_key(skills: Path) -> None:
    async with ScriptedOpenAI([]) as model:
        ended = await satchel(
            "doctor",
            "--skills-dir",
            str(skills),
            "--upstream",
            f"{model.url}?key={OTHER}",
            "--upstream",
            f"home=ollama:{model.root}",
            "--upstream",
            "anthropic:http://127.0.0.1:9",
            "--upstream",
            "tiny=embedded:small",
            SATCHEL_UPSTREAM_KEY=KEY,
            SATCHEL_UPSTREAM_KEY_HOME=OTHER,
        )
    assert ended.code == 1
    assert f"ok       upstream   openai (openai {model.url}): offers scripted" in ended.out
    assert f"ok       upstream   home (ollama {model.root}): offers scripted" in ended.out
    assert "failed   upstream   anthropic (anthropic http://127.0.0.1:9): The model server" in ended.out
    assert " model      Qwen2.5-Coder-0.5B-Instruct" in ended.out
    assert "models.upstream_key.home comes from SATCHEL_UPSTREAM_KEY_HOME" in ended.out
    assert KEY not in ended.out + ended.err
    assert OTHER not in ended.out + ended.err
    assert model.requests == []


def _answers(can: bool) -> Callable[[dict[str, Any]], ScriptedTurn]:
    def answer(body: dict[str, Any]) -> ScriptedTurn:
        last = body["messages"][-1]
        if can and body.get("tools") and last["role"] == "user":
            return ScriptedTurn(calls=(ScriptedCall(name="note_word", fragments=('{"word": "marble"}',), call_id="a"),))
        return says(str(body["messages"][-1 if last["role"] == "tool" else 0]["content"]) if can else "what?")

    return answer


@pytest.mark.parametrize(("can", "code"), [(True, 0), (False, 1)])
async def test_a_probe_compares_what_is_known_with_what_is_seen(skills: Path, can: bool, code: int) -> None:
    async with ScriptedOpenAI([_answers(can)] * 4) as model:
        options = ("--skills-dir", str(skills), "--upstream", model.url, "--probe")
        ended = await satchel("doctor", *options, "--json", SATCHEL_UPSTREAM_KEY=KEY)
    found = json.loads(ended.out)
    assert (ended.code, found["ok"]) == (code, can), ended.out
    rows = {row["capability"]: row for row in found["probe"]}
    assert {row["model"] for row in rows.values()} == {"scripted"}
    assert [rows[name]["verdict"] for name in ("tools", "tool_role", "system")] == (
        ["agrees"] * 3 if can else ["contradicts"] * 3
    )
    assert rows["usage"]["observed"] == "no"


async def test_a_probe_is_a_table_for_people(skills: Path) -> None:
    async with ScriptedOpenAI([_answers(can=False)] * 4) as model:
        options = ("--skills-dir", str(skills), "--upstream", f"mine={model.url}", "--probe", "--model", "qwen3")
        ended = await satchel("doctor", *options)
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["qwen3", "of", "mine"] in lines
    assert ["tools", "native", "none", "contradicts"] in lines
    assert "--model-tools none writes skills into the prompt" in ended.out
    assert [seen.body["model"] for seen in model.requests] == ["qwen3"] * 4


@pytest.mark.parametrize("tools", ["none", "native"])
async def test_whether_a_model_gets_tools_can_be_set(skills: Path, tools: str) -> None:
    async with ScriptedOpenAI([says("ok")]) as model:
        options = ("--skills-dir", str(skills), "--upstream", model.url, "--skill", "canary", "--model-tools", tools)
        await satchel("run", "hi", *options)
    assert ("tools" in model.requests[0].body) == (tools == "native")
    assert ("The share is 6 %." in json.dumps(model.requests[0].body)) == (tools == "none")


async def test_a_diffusion_model_refuses_tools_of_the_client(skills: Path) -> None:
    async with (
        ScriptedOpenAI([says("ok")]) as model,
        serving("--skills-dir", str(skills), "--upstream", model.url) as (url, _),
    ):
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            asked: Any = [{"role": "user", "content": "hi"}]
            tools: Any = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
            with pytest.raises(Exception, match="cannot call tools"):
                await client.chat.completions.create(model="diffusiongemma", messages=asked, tools=tools)
            whole = await client.chat.completions.create(model="diffusiongemma", messages=asked)
            assert whole.choices[0].message.content == "ok"
    assert len(model.requests) == 1
    assert "tools" not in model.requests[0].body
