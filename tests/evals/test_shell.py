"""The shell of scenarios: it runs nothing, asks the session first, and says what its table says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from satchel.activation.enforce import ToolPolicy
from satchel.activation.session import SkillSession
from satchel.evals.host import FakeShell, SessionHost
from satchel.evals.scenario import Output, Shell
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


def host_over(root: Path) -> tuple[SessionHost, FakeShell]:
    shell = FakeShell(Shell(allow=("Bash(git log:*)",), outputs=(Output(match="git log*", text="one"),)))
    session = SkillSession(root, permission=lambda _: "allow", tool_policy=ToolPolicy(hook=shell.hook))
    return SessionHost(session, shell), shell


async def used(host: SessionHost, tool: str, **arguments: Any) -> ToolResult:
    return await host.call(ToolCall(call_id="c", name=tool, arguments=arguments), ToolContext())


async def test_a_command_runs_when_the_hook_lets_it(tmp_path: Path) -> None:
    host, shell = host_over(ferry(tmp_path))
    assert (await used(host, "bash", command="git log -1")).text == "(exit code 0)\none"
    refused = await used(host, "bash", command="git log; rm -rf x")
    assert (refused.ok, refused.code) == (False, "PERMISSION_DENIED")
    assert (await used(host, "bash", command=" ")).code == "INVALID_PARAM"
    assert (shell.asked, shell.ran) == (["git log -1", "git log; rm -rf x"], ["git log -1"])


async def test_a_guided_model_chooses_until_a_skill_is_active(tmp_path: Path) -> None:
    host, _ = host_over(ferry(tmp_path))
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
