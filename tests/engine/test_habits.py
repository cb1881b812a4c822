"""Names and arguments that models bring along from elsewhere, in whole turns: each is answered as what was meant."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from satchel.chat.messages import ToolOutput
from satchel.engine.events import ToolFinished
from satchel.engine.runtime import Runtime
from satchel.execution.options import ExecutionOptions
from satchel.execution.workbench import Execution
from satchel.library import discover
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.sources.directory import DirectorySource
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from satchel.wiring.sources import skill_hosts
from tests.support import ask, collect, write_skill

PATCH = "*** Begin Patch\n*** Add File: b.txt\n+new\n*** End Patch\n"
SCRIPT = {"skill": "fuel", "path": "scripts/budget.py"}
NAMES: list[tuple[str, dict[str, Any]]] = [
    ("read_file read Read readfile read_text_file view_file cat_file get_file", {"path": "a.txt"}),
    ("write_file write Write writefile create_file new_file put_file", {"path": "b.txt", "content": "new\n"}),
    (
        (
            "edit_file edit Edit editfile apply_edit replace_in_file string_replace "
            "str_replace str_replace_editor str_replace_based_edit_tool"
        ),
        {"path": "a.txt", "old_string": "old", "new_string": "new"},
    ),
    ("apply_patch apply-patch applypatch apply_patch_tool", {"patch": PATCH}),
    (
        (
            "shell bash Bash sh exec terminal local_shell run_shell run_shell_command shell_command "
            "run_command execute_command exec_command"
        ),
        {"command": "cat a.txt"},
    ),
    ("skills_run run_skill_script run_script", SCRIPT),
]
CALLS = [(name, arguments) for names, arguments in NAMES for name in names.split()]
OTHERS: list[tuple[str, dict[str, Any]]] = [
    *(("shell", {name: "cat a.txt"}) for name in ("cmd", "script", "input", "shell")),
    *(("shell", {"command": "cat a.txt", name: "."}) for name in ("workdir", "work_dir", "cwd", "directory")),
    *(("read_file", {name: "a.txt"}) for name in ("file_path", "filepath", "filename", "file_name", "file")),
    *(("apply_patch", {name: PATCH}) for name in ("input", "diff", "content", "text", "other")),
    *(("skills_run", {"skill": "fuel", name: SCRIPT["path"]}) for name in ("script", "file", "resource")),
    *(("skills_run", {**SCRIPT, name: ["x"]}) for name in ("args", "arguments")),
    *(("skills_read", {"skill": "fuel", name: SCRIPT["path"]}) for name in ("file", "resource", "script")),
]
DECLARED = {"skills_list", "skills_read", "skills_run", "shell", "read_file", "write_file", "apply_patch"}


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    write_skill(tmp_path / "skills", "fuel", body="Run it.\n", files={"scripts/budget.py": "print('old new')\n"})
    options = ExecutionOptions(code=True, scripts=True, unconfined=True, sandbox="off")
    execution = Execution(UnconfinedExecutor(), options, base=str(tmp_path), host={"PATH": os.environ["PATH"]})
    source = DirectorySource(discover([tmp_path / "skills"]))
    return Runtime(models=ScriptedModel([]), source=source, hosts=skill_hosts, execution=execution)


async def answered(runtime: Runtime, name: str, arguments: dict[str, Any]) -> tuple[ToolFinished, str]:
    """What became of a call in a workspace with a file, and what the model was told."""
    make = call("shell", json.dumps({"command": "echo old > a.txt"}), "c1")
    model = ScriptedModel(
        [Reply(calls=(make,)), Reply(calls=(call(name, json.dumps(arguments), "c2"),)), Reply(text=("done",))]
    )
    runtime.models = model
    events, _ = await collect(runtime, ask())
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert {spec.name for spec in model.requests[0].tools} == DECLARED
    outputs = [part for item in model.requests[-1].messages for part in item.parts if isinstance(part, ToolOutput)]
    return finished[-1], outputs[-1].text


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[name for name, _ in CALLS])
async def test_a_tool_by_another_name(runtime: Runtime, name: str, arguments: dict[str, Any]) -> None:
    finished, told = await answered(runtime, name, arguments)
    assert finished.ok, told
    assert "old" in told or {"a.txt", "b.txt"} & set(finished.files)


@pytest.mark.parametrize(("name", "arguments"), OTHERS, ids=[f"{name} {list(given)[-1]}" for name, given in OTHERS])
async def test_an_argument_by_another_name(runtime: Runtime, name: str, arguments: dict[str, Any]) -> None:
    finished, told = await answered(runtime, name, arguments)
    assert finished.ok, told
    assert "old" in told or finished.files == ("b.txt",)


@pytest.mark.parametrize("name", ["view", "open", "show", "look", "screenshot", "python", "browser"])
async def test_a_name_that_may_mean_anything_stays_unknown(runtime: Runtime, name: str) -> None:
    finished, told = await answered(runtime, name, {"path": "a.txt"})
    assert (finished.ok, finished.code) == (False, "unknown-tool")
    assert "old" not in told
