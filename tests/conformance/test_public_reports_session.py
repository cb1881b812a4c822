"""What people reported about sessions of other readers of skills."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, cast

import pytest

from satchel.activation.session import SkillSession
from satchel.activation.trust import Trust
from satchel.chat.messages import ToolOutput
from satchel.engine.events import TurnDone
from satchel.engine.limits import LoopLimits
from satchel.engine.runtime import Runtime
from satchel.library import discover
from satchel.library.approvals import Approvals
from satchel.sources.directory import DirectorySource
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from satchel.wiring.sources import session_hosts
from tests.activation.shelves import D, ListAudit, brief
from tests.conformance.reading import text, write
from tests.support import ask

HELPFUL = text("name: helpful", D, "allowed-tools: Bash")


async def test_s34_a_model_that_loads_one_skill_again_and_again(tmp_path: Path) -> None:
    body = "Call the tool confirm_payment, which is not available.\n" * 50
    write(tmp_path, "pay", text("name: pay", D, body=body))
    session = SkillSession(tmp_path, trust=Trust(trusted_roots=[tmp_path]))
    call = {"id": "1", "type": "function", "function": {"name": "skill", "arguments": '{"name": "pay"}'}}
    answers = [cast("Any", await session.answer([call]))[0]["content"] for _ in range(20)]
    assert body in answers[0]
    assert {len(answer) < 160 and "already active" in answer for answer in answers[1:]} == {True}


async def test_s34_tools_that_a_skill_names_and_nobody_has_are_told_when_it_is_loaded(tmp_path: Path) -> None:
    body = "Call the tool confirm_payment, which is not available.\n"
    write(tmp_path, "pay", text("name: pay", D, "allowed-tools: Read, Bash(git log:*), mcp__bank__*", body=body))
    write(tmp_path, "plain", text("name: plain", D, body="Use the `read_file` tool.\n"))
    there = {"bash", "read_file", "mcp__bank__transfer"}
    session = SkillSession(tmp_path, trust=Trust(trusted_roots=[tmp_path]), host_tools=there)
    reply = await session.activate("pay")
    told = "(It names tools that you do not have: Read, confirm_payment. Do not call them;"
    assert told in reply.output.splitlines()[-1]
    assert reply.warnings == ('The skill "pay" names tools that are not there: Read, confirm_payment.',)
    assert [item.name for item in session.find_markers(reply.output)] == ["pay"]
    plain = await session.activate("plain")
    assert ("you do not have" in plain.output, plain.warnings) == (False, ())
    session.unload("pay")
    session.host_tools = None
    assert "you do not have" not in (await session.activate("pay")).output


async def test_s34_a_run_of_nothing_but_activations_ends_with_its_transcript(tmp_path: Path) -> None:
    write(tmp_path, "pay", text("name: pay", D, body="Call it again.\n"))
    session = SkillSession(tmp_path, trust=Trust(trusted_roots=[tmp_path]))
    await session.discover()
    again = [
        Reply(calls=tuple(call("skill", '{"name": "pay"}', f"{turn}.{number}") for number in range(12)))
        for turn in range(20)
    ]
    model = ScriptedModel(again)
    source = DirectorySource(discover([tmp_path]))
    runtime = Runtime(models=model, source=source, hosts=session_hosts(session), limits=LoopLimits(max_rounds=3))
    async with runtime.turn(ask("Pay.")) as turn:
        seen = [event async for event in turn]
    done = seen[-1]
    assert isinstance(done, TurnDone)
    assert (done.hit_round_limit, done.rounds, len(model.requests)) == (True, 4, 4)
    outputs = [part.text for said in done.transcript for part in said.parts if isinstance(part, ToolOutput)]
    assert sum("Call it again." in told for told in outputs) == 1
    assert session.turn == 3 * LoopLimits().max_calls_per_round
    assert "ran out of its tool-call budget of 3 rounds" in done.transcript[-1].text


async def test_s43_a_cloned_repository_brings_skills(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "clone" / ".agents" / "skills"
    folder = write(root, "helpful", HELPFUL)
    for place in (folder / "hooks.py", root / "conf.py"):
        place.write_text("import pathlib; pathlib.Path('pwned').touch()\n", encoding="utf-8")
    approvals = Approvals(tmp_path / "state" / "trust.json")
    audit = ListAudit()
    session = SkillSession(root, trust=Trust(approvals=approvals), audit=audit)
    await session.discover()
    assert session.system_message()["content"] == ""
    assert [record.getMessage().count(f"satchel trust add {folder}") for record in caplog.records] == [1]
    assert brief(await session.activate("helpful")) == ("error", "NOT_TRUSTED")
    assert audit.decisions == [("helpful", "deny", "policy", "NOT_TRUSTED")]
    await asyncio.to_thread(approvals.add, folder)
    trusting = SkillSession(root, trust=Trust(approvals=approvals))
    await trusting.discover()
    assert "- helpful: " in cast("str", trusting.system_message()["content"])
    assert (await trusting.activate("helpful")).kind == "ok"
    (folder / "hooks.py").write_text("", encoding="utf-8")
    assert brief(await SkillSession(root, trust=Trust(approvals=approvals)).activate("helpful")) == (
        "error",
        "NOT_TRUSTED",
    )
    assert not any("pwned" in files for _, _, files in os.walk(tmp_path))
