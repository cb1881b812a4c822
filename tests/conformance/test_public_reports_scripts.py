"""What people reported about running the scripts of skills, under every sandbox of this host and without one."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from satchel.activation.session import SkillSession
from satchel.chat.messages import Json, ToolOutput
from satchel.engine.host import ToolBox, ToolHost
from satchel.engine.runtime import HostContext, Runtime
from satchel.execution.options import INTERPRETERS, ExecutionOptions
from satchel.execution.scripts import ScriptRunner
from satchel.execution.workbench import Execution
from satchel.execution.workspace import Workspace, create_workspace, remove_workspace
from satchel.library import discover
from satchel.ports.execution import Executor
from satchel.sources.directory import DirectorySource
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from satchel.tools.access import SkillAccess
from satchel.tools.base import ToolCall, ToolContext, ToolResult
from satchel.tools.script_advice import ScriptAdvice
from satchel.tools.shell import ShellTool
from satchel.tools.skill import SkillActivate
from satchel.tools.skills_run import SkillsRun
from satchel.wiring.sources import skill_hosts
from tests.backends import EVERY, executor_of
from tests.execution.shells import session
from tests.support import ask, write_skill

Ran = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = create_workspace(str(tmp_path))
    yield made
    assert remove_workspace(made)


@pytest.fixture(params=EVERY)
async def executor(request: pytest.FixtureRequest) -> Executor:
    made = await executor_of(request.param)
    assert made.confinement.backend == ("none" if request.param == "unconfined" else request.param)
    return made


@pytest.fixture
def ran(executor: Executor, workspace: Workspace) -> Ran:
    """Runs a script of a skill, in the workspace."""
    return partial(_ran, executor, workspace)


def written(tmp_path: Path, name: str, files: dict[str, str]) -> Path:
    """The folder of one skill, its scripts without any execute bit and with their line ends as given."""
    folder = write_skill(tmp_path / "skills", name)
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode())
        target.chmod(0o644)
    return folder


async def _ran(
    executor: Executor, workspace: Workspace, folder: Path, path: str, args: Json, **options: object
) -> ToolResult:
    library = discover([folder.parent])
    access = SkillAccess(DirectorySource(library), library.skills, runnable=INTERPRETERS)
    allowed = ExecutionOptions(scripts=True, sandbox="off", **options)  # pyright: ignore[reportArgumentType]
    runner = ScriptRunner(executor, allowed, workspace=workspace)
    arguments: dict[str, Json] = {"skill": folder.name, "path": path, "args": args}
    return await SkillsRun(access, runner).run(
        ToolCall(call_id="c", name="skills_run", arguments=arguments), ToolContext()
    )


def stdout(result: ToolResult) -> str:
    return result.text.partition("stdout:\n")[2].partition("\nstderr:\n")[0]


async def test_s24_no_argument_of_a_skill_is_run(tmp_path: Path, executor: Executor) -> None:
    own = "Plan for: $ARGUMENTS\nStatus: !`touch pwned3`\n```!\ntouch pwned4\n```\n"
    write_skill(tmp_path / "skills", "plan", body=own, files={"scripts/x.sh": "touch pwned5\n"})
    library = discover([tmp_path / "skills"])
    session = SkillSession(library, permission=lambda _: "allow")
    await session.discover()
    given = "x\n```!\ntouch pwned\n```\n!`touch pwned2`"
    loads = call("skill", json.dumps({"name": "plan", "arguments": given}))
    model = ScriptedModel([Reply(calls=(loads,)), Reply(text=("Planned.",))])
    options = ExecutionOptions(scripts=True, code=True, sandbox="off", unconfined=True)
    base = tmp_path / "base"
    base.mkdir()
    execution = Execution(executor, options, base=str(base))

    async def hosts(context: HostContext) -> tuple[ToolHost, ...]:
        return (ToolBox((SkillActivate(session),)), *await skill_hosts(context))

    runtime = Runtime(models=model, source=DirectorySource(library), hosts=hosts, execution=execution)
    async with runtime.turn(ask()) as turn:
        async for _ in turn:
            assert not list(tmp_path.rglob("pwned*"))  # noqa: ASYNC240 - a check
    assert {"skill", "shell", "skills_run"} <= {tool.name for tool in model.requests[0].tools}
    (output,) = (part for said in model.requests[1].messages for part in said.parts if isinstance(part, ToolOutput))
    assert f"Plan for: {given}\nStatus: !`touch pwned3`\n```!\ntouch pwned4\n```" in output.text


async def test_s28_a_script_is_found_in_the_skill_and_its_data_where_the_work_is(
    tmp_path: Path, workspace: Workspace, ran: Ran
) -> None:
    code = (
        "import json, os, sys\nseen = [os.getcwd(), os.environ['SKILL_DIR'], os.path.exists(sys.argv[1])]\n"
        "print(*seen)\njson.dump(seen, open('seen.json', 'w'))\n"
    )
    folder = written(tmp_path, "ocr", {"scripts/ocr.py": code, "references/opts.md": "opts"})
    Path(workspace.work, "in.png").touch()  # noqa: ASYNC240 - set up
    result = await ran(folder, "scripts/ocr.py", ["in.png"])
    seen = Path(workspace.work, "seen.json").read_text(encoding="utf-8")  # noqa: ASYNC240 - a check
    assert json.loads(seen) == [workspace.work, str(folder), True]
    assert stdout(result).startswith(". $SKILL_DIR True\n")  # a model is told no path of the host


async def test_s28_a_script_that_the_shell_was_given_is_called_by_its_right_name(tmp_path: Path) -> None:
    folder = written(tmp_path, "ocr", {"scripts/ocr.py": "print(1)"})
    library = discover([folder.parent])
    access = SkillAccess(DirectorySource(library), library.skills, runnable=INTERPRETERS)
    async with session(tmp_path) as made:
        tool = ShellTool(made, ScriptAdvice(access))
        arguments: dict[str, Json] = {"command": "python scripts/ocr.py in.png"}
        result = await tool.run(ToolCall(call_id="c", name="shell", arguments=arguments), ToolContext())
    assert result.text.endswith('Call skills_run with {"skill": "ocr", "path": "scripts/ocr.py", "args": "in.png"}.')


async def test_s29_no_execute_bit_no_shebang_and_no_line_end_decides(tmp_path: Path, ran: Ran) -> None:
    """The ending chooses, as the design says and the report does not; the first line's options count all the same."""
    scripts = {
        "scripts/a.sh": "#!/bin/bash -eu\nfalse\necho no\n",
        "scripts/b.py": '#!/usr/bin/env python3\r\nprint("ok")\r\n',
        "scripts/c": '#!/usr/bin/env -S python3 -u\nprint("c")\n',
        "scripts/d.sh": "#!/usr/bin/env python3\necho shell\n",
        "scripts/e.sh": "#!/bin/bash -e\r\necho one\r\nexit 0\r\n",
    }
    folder = written(tmp_path, "s", scripts)
    results = {path: await ran(folder, path, "") for path in scripts}
    assert results["scripts/a.sh"].text.startswith("Ran scripts/a.sh (exit code 1, ")
    assert results["scripts/a.sh"].text.endswith("(no output)")
    assert [stdout(results[path]) for path in list(scripts)[1:]] == ["ok", "c", "shell", "one"]
    assert results["scripts/e.sh"].ok  # "exit 0" and a carriage return is no number
    missing = await ran(folder, "scripts/b.py", "", interpreters={".py": ("no-such-python",)})
    assert "no-such-python is not installed" in missing.text


async def test_s31_a_flood_stays_bounded_and_says_how_much_it_was(tmp_path: Path, ran: Ran) -> None:
    code = "import sys\nwhile True: sys.stdout.buffer.write(b'y\\xff' * 32768)\n"
    folder = written(tmp_path, "y", {"scripts/flood.py": code})
    result = await ran(folder, "scripts/flood.py", "", script_timeout_s=1.0)
    assert (result.ok, result.code) == (False, "script-failed")
    assert "stopped at the time limit" in result.text
    assert "bytes left out ...]" in result.text
    assert len(result.text) < 40 * 1024


async def test_s32_arguments_are_data(tmp_path: Path, ran: Ran) -> None:
    folder = written(tmp_path, "e", {"scripts/echo.py": "import sys, json; print(json.dumps(sys.argv[1:]))"})
    given: list[Json] = ["$(touch pwned)", "a;b", "--x=y z", "é"]
    result = await ran(folder, "scripts/echo.py", given)
    assert json.loads(stdout(result)) == given
    assert result.files == ()
    assert not any(tmp_path.rglob("pwned"))  # noqa: ASYNC240 - a check
    refused = await ran(folder, "scripts/echo.py", {"x": 1})
    assert refused.text.startswith("Error: args must be one text or a list of texts")
    assert (await ran(folder, "../echo.py", "")).code == "path-refused"


async def test_s33_a_script_gets_what_the_host_grants_and_nothing_for_declaring_it(
    tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DEMO_TOKEN"):
        monkeypatch.setenv(name, f"value of {name}")
    code = "import os; print(sorted(os.environ)); print(os.environ.get('DEMO_TOKEN'))"
    folder = written(tmp_path, "k", {"scripts/env.py": code})
    manifest = "---\nname: k\ndescription: K.\nmetadata:\n  env: OPENAI_API_KEY, DEMO_TOKEN\n---\nBody.\n"
    (folder / "SKILL.md").write_text(manifest)
    declared = await ran(folder, "scripts/env.py", "")
    assert not {"OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DEMO_TOKEN"} & set(stdout(declared).split("'"))
    grants = {"k": ("DEMO_TOKEN", "OPENAI_API_KEY"), "other": ("AWS_SECRET_ACCESS_KEY",)}
    granted = await ran(folder, "scripts/env.py", "", grants=grants)
    words = set(stdout(granted).split("'"))
    assert {"DEMO_TOKEN"} == {"OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DEMO_TOKEN"} & words
    assert os.environ["DEMO_TOKEN"] not in granted.text
    assert "[masked]" in granted.text
