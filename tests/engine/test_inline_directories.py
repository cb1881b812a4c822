from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from satchel.chat.messages import Json
from satchel.engine.inline import InlineSource
from satchel.engine.prompt import without
from satchel.execution.options import INTERPRETERS, ExecutionOptions
from satchel.execution.scripts import ScriptRunner
from satchel.library import discover
from satchel.library.inline import read_inline
from satchel.ports.skills import HasDirectories, SkillSource
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.skills.model import Skill
from satchel.sources.directory import DirectorySource
from satchel.tools.access import SkillAccess
from satchel.tools.base import ToolCall, ToolContext, ToolResult
from satchel.tools.skills_run import SkillsRun
from tests.support import write_skill


def archive(script: str = "print(1)\n") -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("sent/SKILL.md", "---\nname: sent\ndescription: Sent.\n---\nBody.\n")
        file.writestr("sent/scripts/a.py", script)
    return data.getvalue()


async def test_a_skill_of_the_request_has_no_directory_and_others_keep_theirs(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "pdf")
    base = DirectorySource(discover([tmp_path]))
    sent = read_inline(archive())
    source = InlineSource([sent], base)
    assert isinstance(source, HasDirectories)
    async with source.directory(sent.loaded.ref) as directory:
        assert directory == ""
    async with source.directory(base.library.skills[0].ref) as directory:
        assert directory == str(folder)


def test_nothing_is_run_of_skills_that_cannot_be_read() -> None:
    assert "skills_run" in without({"skills_read"})
    assert "skills_run" not in without({"skills_list"})


GIVEN = "import os\nprint(os.environ.get('DEMO_TOKEN', 'nothing'))\n"


async def ran(tmp_path: Path, skill: Skill, source: SkillSource, **options: Any) -> ToolResult:
    runner = ScriptRunner(
        UnconfinedExecutor(),
        ExecutionOptions(scripts=True, sandbox="off", grants={"sent": ("DEMO_TOKEN",)}, **options),
        host={"DEMO_TOKEN": "short"},
        base=str(tmp_path),
    )
    tool = SkillsRun(SkillAccess(source, [skill], runnable=INTERPRETERS), runner)
    arguments: dict[str, Json] = {"skill": "sent", "path": "scripts/a.py"}
    return await tool.run(ToolCall(call_id="c", name="skills_run", arguments=arguments), ToolContext())


async def test_a_skill_of_the_request_gets_nothing_that_its_name_was_granted(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "sent", files={"scripts/a.py": GIVEN})
    base = DirectorySource(discover([tmp_path / "skills"]))
    installed = await ran(tmp_path, base.library.skills[0], base)
    assert "short" in installed.text
    sent = read_inline(archive(GIVEN))
    result = await ran(tmp_path, sent.loaded.skill, InlineSource([sent], base), unconfined=True)
    assert "nothing" in result.text
    assert "short" not in result.text


async def test_a_script_of_the_request_is_held_as_code_is(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "other")
    sent = read_inline(archive(GIVEN))
    source = InlineSource([sent], DirectorySource(discover([tmp_path / "skills"])))
    result = await ran(tmp_path, sent.loaded.skill, source)
    assert (result.ok, result.code) == (False, "sandbox-unavailable")
