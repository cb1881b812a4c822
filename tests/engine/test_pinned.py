"""A conversation's skills stay what they were in its first turn."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.chat.capabilities import ModelCapabilities
from satchel.engine.pinned import PinnedSkills
from satchel.errors import SkillError
from satchel.testing.scripted_model import Reply, ScriptedModel
from tests.support import ask, collect, runtime_over, write_skill


@pytest.mark.parametrize("tools", ["native", "none"])
async def test_the_block_is_the_same_bytes_when_the_skills_are_gone(tmp_path: Path, tools: str) -> None:
    write_skill(tmp_path, "pdf", body="Old words.\n")
    write_skill(tmp_path, "csv")
    capabilities = ModelCapabilities(tools="native" if tools == "native" else "none")
    model = ScriptedModel([Reply(text=("Hi",))] * 3, capabilities=capabilities)
    runtime = runtime_over(model, tmp_path)
    request = replace(ask(skills=("pdf",)), pinned=PinnedSkills(await runtime.catalog()))
    await collect(runtime, request)
    shutil.rmtree(tmp_path / "pdf")
    shutil.rmtree(tmp_path / "csv")
    write_skill(tmp_path, "pdf", body="Quite other words, and many more of them.\n" * 50)
    await runtime.rescan()
    await collect(runtime, request)
    await collect(runtime, ask(skills=("pdf",)))
    first, pinned, fresh = (item.messages[0].text for item in model.requests)
    assert first == pinned
    assert first != fresh
    assert ("Old words." in pinned) == (tools == "none")


async def test_a_skill_that_was_gone_before_it_was_first_loaded_is_an_error(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "pdf")
    runtime = runtime_over(ScriptedModel([]), tmp_path)
    request = replace(ask(skills=("pdf",)), pinned=PinnedSkills(await runtime.catalog()))
    shutil.rmtree(folder)
    with pytest.raises(SkillError) as raised:
        await collect(runtime, request)
    assert raised.value.code == "skill-not-found"
