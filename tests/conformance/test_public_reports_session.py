"""What people reported about sessions of other readers of skills."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, cast

import pytest

from satchel.activation.session import SkillSession
from satchel.activation.trust import Trust
from satchel.library.approvals import Approvals
from tests.activation.shelves import D, ListAudit, brief
from tests.conformance.reading import text, write

HELPFUL = text("name: helpful", D, "allowed-tools: Bash")


async def test_s34_a_model_that_loads_one_skill_again_and_again(tmp_path: Path) -> None:
    body = "Call the tool confirm_payment, which is not available.\n" * 50
    write(tmp_path, "pay", text("name: pay", D, body=body))
    session = SkillSession(tmp_path, trust=Trust(trusted_roots=[tmp_path]))
    call = {"id": "1", "type": "function", "function": {"name": "skill", "arguments": '{"name": "pay"}'}}
    answers = [cast("Any", await session.answer([call]))[0]["content"] for _ in range(20)]
    assert body in answers[0]
    assert {len(answer) < 160 and "already active" in answer for answer in answers[1:]} == {True}


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
