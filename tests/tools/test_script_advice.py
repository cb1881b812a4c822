"""A script of a skill that was given to the shell: the result names the call that runs it, and no other result does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from satchel.chat.messages import ToolOutput
from satchel.engine.runtime import Runtime
from satchel.execution.options import INTERPRETERS, ExecutionOptions
from satchel.execution.workbench import Execution
from satchel.library import discover
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.sources.directory import DirectorySource
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from satchel.tools.access import SkillAccess
from satchel.tools.base import ToolCall, ToolContext, ToolResult
from satchel.tools.script_advice import ScriptAdvice
from satchel.tools.shell import ShellTool
from satchel.tools.skills_read import SkillsRead
from satchel.wiring.sources import skill_hosts
from tests.execution.shells import session
from tests.support import ask, collect, write_skill

FILES = {"scripts/budget.py": "print(1)\n", "scripts/other.sh": "echo 1\n", "scripts/page.js": "1\n", "data.csv": "1\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_skill(tmp_path / "skills", "fuel", body="Run scripts/budget.py.\n", files=FILES)
    write_skill(tmp_path / "skills", "hidden", files={"scripts/secret.py": "print(2)\n"})
    return tmp_path


def reach(root: Path, *names: str) -> SkillAccess:
    library = discover([root / "skills"])
    return SkillAccess(
        DirectorySource(library), [skill for skill in library.skills if skill.name in names], runnable=INTERPRETERS
    )


async def said(root: Path, command: str, access: SkillAccess | None = None) -> ToolResult:
    async with session(root) as made:
        tool = ShellTool(made, ScriptAdvice(access or reach(root, "fuel")))
        return await tool.run(ToolCall(call_id="c", name="shell", arguments={"command": command}), ToolContext())


@pytest.mark.parametrize(
    ("command", "path", "args"),
    [
        ("python scripts/budget.py 2400 --reserve 5", "scripts/budget.py", "2400 --reserve 5"),
        ("python3 -u ./scripts/budget.py 'a b'", "scripts/budget.py", "'a b'"),
        ("bash scripts/other.sh", "scripts/other.sh", ""),
        ("sh scripts/other.sh", "scripts/other.sh", ""),
        ("scripts/other.sh", "scripts/other.sh", ""),
        ("node scripts/page.js x", "scripts/page.js", "x"),
        ("python fuel/scripts/budget.py", "scripts/budget.py", ""),
        ("python /home/me/.claude/skills/Fuel/scripts/budget.py", "scripts/budget.py", ""),
        ("python $SKILL_DIR/scripts/budget.py", "scripts/budget.py", ""),
        ("python ${CLAUDE_SKILL_DIR}/scripts/budget.py 1", "scripts/budget.py", "1"),
        ("mkdir -p out && python scripts/budget.py > out/a.txt", "scripts/budget.py", ""),
        ("python scripts/budget.py 2>&1 | tail -5", "scripts/budget.py", ""),
        ("cd skills/fuel && python scripts/budget.py 7", "scripts/budget.py", "7"),
    ],
)
async def test_the_call_that_was_meant_is_named(root: Path, command: str, path: str, args: str) -> None:
    result = await said(root, command)
    last = result.text.splitlines()[-1]
    assert last.startswith(f'{path} is a script of the skill "fuel" and not in the working directory. Call skills_run')
    meant = cast("dict[str, Any]", json.loads(last[last.index("{") : last.rindex("}") + 1]))
    assert meant == {"skill": "fuel", "path": path} | ({"args": args} if args else {})


async def test_arguments_that_a_shell_would_expand_are_left_to_the_model(root: Path) -> None:
    result = await said(root, 'python scripts/budget.py "$AMOUNT"')
    assert result.text.endswith(
        'Call skills_run with {"skill": "fuel", "path": "scripts/budget.py"} and the arguments in args.'
    )


@pytest.mark.parametrize(
    "command",
    [
        "python scripts/budgets.py",  # no skill has it
        "python budget.py",  # nor that one, there
        "python scripts/secret.py",  # of a skill that this turn cannot reach
        "python data.csv; cat data.csv",  # no script
        "cat scripts/budget.py",  # to read it is another tool's work
        "ls scripts",
        "python -c 'open(\"scripts/budget.py\")'",
        "mkdir scripts; echo 'open(\"in.csv\")' > scripts/budget.py; python scripts/budget.py",  # it is there and ran
        "mkdir scripts; echo > scripts/budget.py; python scripts/budget.py; cat nothing",
        "cd nowhere; ls",
        "echo python scripts/budget.py",
    ],
)
async def test_nothing_is_said_where_no_such_script_was_meant(root: Path, command: str) -> None:
    assert "skills_run" not in (await said(root, command)).text


@pytest.mark.parametrize("command", [";".join(f"x{i}" for i in range(30)), "echo " + "x" * 9000])
async def test_what_is_compared_is_bounded_however_much_is_printed(root: Path, command: str) -> None:
    """It is done in the loop that serves everybody."""
    advice = ScriptAdvice(reach(root, "fuel"))
    printed = "scripts/budget.py: not found"
    assert await advice.of("scripts/budget.py", printed)
    assert not await advice.of(f"{command}; scripts/budget.py", printed)
    assert not await advice.of("scripts/budget.py", "\n".join(["x: not found"] * 30 + [printed]))


async def test_of_several_skills_the_one_that_was_read_is_meant(root: Path) -> None:
    write_skill(root / "skills", "also", files={"scripts/budget.py": "print(3)\n"})
    access = reach(root, "also", "fuel")
    both = (await said(root, "python scripts/budget.py", access)).text.splitlines()[-1]
    assert 'the skills "also" and "fuel"' in both
    assert both.count('"path": "scripts/budget.py"') == 2
    arguments = {"skill": "fuel", "path": "SKILL.md"}
    await SkillsRead(access).run(ToolCall(call_id="c", name="skills_read", arguments=arguments), ToolContext())
    assert 'of the skill "fuel"' in (await said(root, "python scripts/budget.py", access)).text


@pytest.mark.parametrize("scripts", [True, False])
async def test_it_is_said_in_a_turn_only_where_scripts_may_run(root: Path, scripts: bool) -> None:
    shell = Reply(calls=(call("shell", json.dumps({"command": "python scripts/budget.py"}), "c"),))
    model = ScriptedModel([shell, Reply(text=("done",))])
    options = ExecutionOptions(code=True, scripts=scripts, sandbox="off", unconfined=True)
    execution = Execution(UnconfinedExecutor(), options, base=str(root), host={"PATH": "/usr/bin:/bin"})
    source = DirectorySource(discover([root / "skills"]))
    await collect(Runtime(models=model, source=source, hosts=skill_hosts, execution=execution), ask())
    (told,) = (part.text for item in model.requests[-1].messages for part in item.parts if isinstance(part, ToolOutput))
    assert ("skills_run" in told) is scripts
