"""The shell of scenarios: it asks the session first, and what is let through runs in the sandbox."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from satchel.activation.enforce import ToolPolicy
from satchel.activation.session import SkillSession
from satchel.errors import SandboxError
from satchel.evals.host import SessionHost
from satchel.evals.scenario import Shell
from satchel.evals.shell import GuardedShell, open_shell
from satchel.execution.workbench import Execution
from satchel.ports.execution import Launch
from satchel.testing.fake_executor import FakeExecutor, printed
from satchel.tools.base import ToolCall, ToolContext, ToolResult
from tests.evals.runs import ferry


def launch(*command: str) -> Launch:
    return Launch(command=command, purpose="shell", cwd="/")


async def test_the_first_glob_that_matches_says_what_comes_out() -> None:
    executor = FakeExecutor([("git log*", printed("one", exit_code=0)), ("git *", printed("", exit_code=2))])
    assert await executor.run(launch("git", "log", "-1")) == printed("one", exit_code=0)
    assert (await executor.run(launch("bash", "-c", " git status "))).exit_code == 2
    assert await executor.run(launch("ls")) == printed("ls: not found", exit_code=127)
    assert len(executor.launches) == 3
    assert executor.confinement.gaps == ()


@asynccontextmanager
async def host_over(root: Path, execution: Execution) -> AsyncGenerator[tuple[SessionHost, GuardedShell]]:
    wanted = Shell(allow=("Bash(cat:*)",), before=("echo one > kept",))
    async with open_shell(wanted, execution.executor, root) as shell:
        session = SkillSession(root, permission=lambda _: "allow", tool_policy=ToolPolicy(hook=shell.hook))
        yield SessionHost(session, shell), shell


async def used(host: SessionHost, tool: str, **arguments: Any) -> ToolResult:
    return await host.call(ToolCall(call_id="c", name=tool, arguments=arguments), ToolContext())


async def test_a_command_runs_when_the_hook_lets_it(tmp_path: Path, execution: Execution) -> None:
    async with host_over(ferry(tmp_path), execution) as (host, shell):
        backend = execution.executor.confinement.backend
        read = await used(host, "bash", command="cat kept")
        assert read.text == f"Ran the command (exit code 0, sandbox: {backend})\nstdout:\none"
        refused = await used(host, "bash", command="cat kept; rm kept")
        assert (refused.ok, refused.code) == (False, "PERMISSION_DENIED")
        assert (await used(host, "bash", command=" ")).code == "INVALID_PARAM"
        assert (await used(host, "bash", command="cat kept")).ok
        assert (shell.asked, shell.ran) == (["cat kept", "cat kept; rm kept", "cat kept"], ["cat kept", "cat kept"])


async def test_a_command_sees_the_skills_and_nothing_beside_them(tmp_path: Path, execution: Execution) -> None:
    (tmp_path / "secret").write_text("not for programs", encoding="utf-8")
    root = ferry(tmp_path / "skills")
    async with host_over(root, execution) as (host, _):
        assert "The fare is" in (await used(host, "bash", command=f"cat {root}/ferry/SKILL.md")).text
        hidden = await used(host, "bash", command=f"cat {tmp_path}/secret")
    assert not hidden.ok
    assert "not for programs" not in hidden.text


async def test_a_launch_that_fails_is_told_to_the_model(tmp_path: Path, execution: Execution) -> None:
    class Broken(FakeExecutor):
        async def run(self, launch: Launch) -> Any:
            raise SandboxError("launch-failed", "No room.")

    async with open_shell(Shell(allow=("Bash",)), Broken(), ferry(tmp_path)) as shell:
        session = SkillSession(tmp_path, permission=lambda _: "allow", tool_policy=ToolPolicy(hook=shell.hook))
        told = await used(SessionHost(session, shell), "bash", command="ls")
    assert (told.ok, told.code) == (False, "launch-failed")


async def test_a_preparation_that_fails_is_said_with_the_command(tmp_path: Path, execution: Execution) -> None:
    with pytest.raises(SandboxError) as caught:
        async with open_shell(Shell(before=("cat nothing-here",)), execution.executor, tmp_path):
            pass
    assert "cat nothing-here" in caught.value.message


async def test_a_guided_model_chooses_until_a_skill_is_active(tmp_path: Path) -> None:
    session = SkillSession(ferry(tmp_path), permission=lambda _: "allow")
    host = SessionHost(session, None)
    assert [choice.arguments for choice in host.specs()[0].choices] == [{"name": "ferry"}]
    host.offers_choices = False
    assert host.specs()[0].choices == ()
    host.offers_choices = True
    loaded = await used(host, "skill", name="ferry")
    assert loaded.loaded is not None
    assert (await used(host, "skill", name="ferry")).code == "already_loaded"
    assert (await used(host, "skill", name="nobody")).code == "NOT_FOUND"
    assert host.specs()[0].choices == ()
    assert "skill, not a tool" in host.advise_unknown("ferry")
    assert host.advise_unknown("other") == ""
