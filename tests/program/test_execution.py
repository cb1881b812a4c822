"""What ``satchel serve`` says of programs when it starts."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from satchel.testing.scripted_openai import ScriptedCall, ScriptedOpenAI, ScriptedTurn
from tests.gateway.test_requests import ask
from tests.program.program import PATIENCE_S, serving, start
from tests.program.standing import KINDS
from tests.support import write_skill

ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = ["--distance", "640", "--payload", "210", "--headwind", "18"]
RUN = ScriptedTurn(
    calls=(
        ScriptedCall(
            name="skills_run",
            fragments=(json.dumps({"skill": "fuel-budget", "path": "scripts/budget.py", "args": ARGUMENTS}),),
            call_id="c1",
        ),
    )
)


async def started(*arguments: str, folder: Path) -> tuple[Any, str]:
    """The event that it listens, and what stderr had when it was ended."""
    upstream = ("--upstream", "http://127.0.0.1:9/v1", "--skills-dir", str(folder))
    process = await start("serve", "--port", "0", "--json", *upstream, *arguments)
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        line = await process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = await process.communicate()
    return json.loads(line), err.decode()


async def test_nothing_is_said_where_nothing_may_run(tmp_path: Path) -> None:
    event, err = await started(folder=tmp_path)
    assert "execution" not in event
    assert "confined" not in err


async def test_what_is_allowed_and_open_is_said_before_it_listens(tmp_path: Path) -> None:
    allowed = ("--skills-allow-exec", "--code-exec", "--code-exec-unconfined", "--skills-sandbox", "off")
    event, err = await started(*allowed, folder=tmp_path)
    told = event["execution"]
    assert (told["scripts"], told["code"], told["installs"]) == (True, True, False)
    assert (told["confinement"]["backend"], told["confinement"]["is_full"]) == ("none", False)
    scripts, code, warning = err.splitlines()[:3]
    for line in (scripts, code):
        assert "Not confined on this host: " + "; ".join(told["confinement"]["gaps"]) in line
    assert warning.startswith("WARNING: --code-exec-unconfined: ")


async def test_a_script_runs_for_an_ordinary_openai_client_and_leaves_nothing(tmp_path: Path) -> None:
    async with ScriptedOpenAI([RUN, ScriptedTurn(text=("191.29",))]) as model:
        options = ("--skills-dir", str(ROOT / "skills"), "--upstream", model.url, "--skills-allow-exec")
        async with (
            serving(*options, TMPDIR=str(tmp_path)) as (url, _),
            AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as openai,
        ):
            answer = await openai.chat.completions.create(
                model="scripted",
                messages=[{"role": "user", "content": "How much fuel?"}],
                extra_body={"skills": ["fuel-budget"]},
            )
            told = json.dumps(model.requests[-1].body)
            _, page, _ = await ask(url, "GET", "/api/skills")
            _, models, _ = await ask(url, "GET", "/api/models")
    assert answer.choices[0].message.content == "191.29"
    assert answer.choices[0].message.tool_calls is None
    assert page["allowScripts"]
    assert models["skills"]["allowScripts"]
    assert "fuel to load: 191.29 kg" in told
    assert "exit code 0, sandbox: " in told
    assert "sandbox: none" not in told
    assert names(tmp_path) == []


async def test_an_operators_temperature_for_code_reaches_servers_of_every_format(tmp_path: Path) -> None:
    write_skill(tmp_path, "canary")
    shows: dict[str, Any] = {"scripted": {"capabilities": ["completion", "tools"]}}
    async with ScriptedOpenAI([ScriptedTurn(text=("done",))] * len(KINDS), shows=shows) as model:
        urls = {kind: model.url if kind in {"openai", "responses"} else model.root for kind in KINDS}
        upstreams = [f"--upstream={kind}={kind}:{url}" for kind, url in urls.items()]
        options = ("--skills-dir", str(tmp_path), *upstreams, "--code-exec", "--code-exec-temperature", "0.25")
        async with (
            serving(*options) as (url, _),
            AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as openai,
        ):
            for kind in KINDS:
                await openai.chat.completions.create(
                    model=f"{kind}/scripted", messages=[{"role": "user", "content": "Compute it."}]
                )
        bodies: list[dict[str, Any]] = [seen.body for seen in model.requests]
    sent: list[dict[str, Any]] = [body.get("options", body) for body in bodies]
    assert [body["temperature"] for body in sent] == [0.25] * len(KINDS)
    assert [body.get("repeat_penalty") for body in sent] == [1.0 if kind == "ollama" else None for kind in KINDS]


def names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]
