from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.chat.messages import Json
from satchel.errors import PathError, SandboxError
from satchel.execution.shell_call import ShellRequest
from satchel.ports.execution import Launch, Outcome
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.tools.base import Progress, ToolCall, ToolContext, ToolResult
from satchel.tools.shell import ShellTool, command_argument, flag_argument, timeout_argument
from tests.execution.shells import Claiming, session


async def called(tool: ShellTool, arguments: Mapping[str, Json], seen: list[Progress] | None = None) -> ToolResult:
    report = seen.append if seen is not None else [].append
    return await tool.run(ToolCall(call_id="1", name="shell", arguments=arguments), ToolContext(report=report))


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({"command": "ls -la"}, "ls -la"),
        ({"cmd": "ls"}, "ls"),
        ({"script": "ls"}, "ls"),
        ({"shell": "ls"}, "ls"),
        ({"input": "ls"}, "ls"),
        ({"command": "", "cmd": "ls"}, "ls"),
        ({"command": ["ls", "-la", "my file"]}, "ls -la 'my file'"),
        ({"command": ["echo", "$HOME; ls"]}, "echo '$HOME; ls'"),
        ({"command": '["ls", "my file"]'}, "ls 'my file'"),
        ({"command": ["bash", "-lc", "cd a && ls | head"]}, "cd a && ls | head"),
        ({"command": ["/bin/sh", "-c", "ls"]}, "ls"),
        ({"command": ["cd a && ls"]}, "cd a && ls"),
        ({"command": ["head", "-n", 3, "f"]}, "head -n 3 f"),
        ({"command": "[ -f x ] && echo yes"}, "[ -f x ] && echo yes"),
        ({"command": '[ "a" = "b" ]'}, '[ "a" = "b" ]'),
        ({"command": "[1, 2]"}, "[1, 2]"),
        ({"command": '["ls", 1]'}, '["ls", 1]'),
        ({"command": "  indented\n"}, "  indented\n"),
        ({}, ""),
        ({"command": None}, ""),
        ({"command": {"a": 1}}, ""),
        ({"command": []}, ""),
        ({"other": "ls"}, ""),
    ],
)
def test_however_a_command_is_written(arguments: Mapping[str, Json], command: str) -> None:
    assert command_argument(arguments) == command


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        ({"timeout_ms": 300}, 0.3),
        ({"timeout_ms": 5}, 0.005),
        ({"timeout_ms": "120000"}, 120.0),
        ({"timeout_ms": 1500.5}, 1.5005),
        ({"timeout": 300}, 300.0),
        ({"timeout": 999}, 999.0),
        ({"timeout": 1000}, 1.0),
        ({"timeout": 60000}, 60.0),
        ({"timeout_s": "30"}, 30.0),
        ({"timeout_ms": 2000, "timeout": 5}, 2.0),
        ({"timeout_ms": None, "timeout": 5}, 5.0),
        ({"timeout_ms": 0}, None),
        ({"timeout_ms": -5}, None),
        ({"timeout_ms": True}, None),
        ({"timeout": "soon"}, None),
        ({"timeout": float("inf")}, None),
        ({"timeout": 10**400}, None),
        ({"timeout": [5]}, None),
        ({}, None),
    ],
)
def test_however_a_time_limit_is_written(arguments: Mapping[str, Json], seconds: float | None) -> None:
    assert timeout_argument(arguments) == seconds


@pytest.mark.parametrize("given", [True, "true", "True", " yes ", "1", 1])
def test_what_says_yes(given: Json) -> None:
    assert flag_argument({"background": given}, "run_in_background", "background")


@pytest.mark.parametrize("given", [False, "false", "no", "0", 0, "", None, [], "maybe"])
def test_what_does_not_say_yes(given: Json) -> None:
    assert not flag_argument({"detach": given}, "detach")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["command", "cmd", "timeout", "timeout_ms", "background"]), JSON))
def test_no_arguments_break_the_reading(arguments: dict[str, Json]) -> None:
    assert isinstance(command_argument(arguments), str)
    limit = timeout_argument(arguments)
    assert limit is None or limit >= 0
    assert flag_argument(arguments, "background") in {True, False}


async def test_a_command_is_run_and_reported(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        seen: list[Progress] = []
        result = await called(ShellTool(made), {"cmd": "mkdir d; echo hi > d/f.txt; cat d/f.txt", "cwd": "."}, seen)
        assert result.ok
        assert "stdout:\nhi" in result.text
        assert result.files == ("d/f.txt",)
        assert [(step.phase, step.files) for step in seen] == [("running", ()), ("finished", ("d/f.txt",))]
        result = await called(ShellTool(made), {"command": "ls; exit 3", "work_dir": "d"})
        assert (result.ok, result.code) == (False, "command-failed")
        assert "exit code 3" in result.text
        assert "stdout:\nf.txt" in result.text


async def test_a_job_is_started_however_that_is_asked_for(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        for number, name in enumerate(("run_in_background", "background", "detach"), start=1):
            result = await called(ShellTool(made), {"command": "sleep 30", name: "true"})
            assert result.ok
            assert f"job-{number}.log" in result.text


async def test_what_cannot_be_run_is_a_sentence(tmp_path: Path) -> None:
    class Broken(UnconfinedExecutor):
        async def run(self, launch: Launch) -> Outcome:
            raise SandboxError("launch-failed", "It broke.", hint="Mend it.")

    async with session(tmp_path, executor=Broken()) as made:
        assert (await called(ShellTool(made), {"command": "ls"})).text == "Error: It broke. Mend it."
        result = await called(ShellTool(made), {})
        assert (result.ok, result.text.startswith("Error: ")) == (False, True)
        result = await called(ShellTool(made), {"command": "ls", "directory": "/etc"})
        assert result.code == "path-refused"


async def test_the_declaration_is_flat_and_says_how_commands_run(tmp_path: Path) -> None:
    async with session(tmp_path, executor=Claiming()) as made:
        tool = ShellTool(made)
        assert tool.spec.name == "shell"
        assert "bash" in tool.spec.description
        assert "no network" in tool.spec.description
        properties = tool.spec.parameters["properties"]
        assert isinstance(properties, dict)
        assert list(properties) == ["command", "workdir", "timeout_ms", "run_in_background"]
        kinds = {str(entry["type"]) for entry in properties.values() if isinstance(entry, dict)}
        assert kinds == {"string", "integer"}
        assert made.workspace.root not in str(tool.spec)
        assert tool.spec == ShellTool(made).spec
    async with session(tmp_path) as made:
        assert "the network is open" in ShellTool(made).spec.description


async def test_a_patch_is_told_as_the_applier_tells_it(tmp_path: Path) -> None:
    class Patches:
        async def patch_command(self, command: str, cwd: str) -> None:
            if "apply_patch" in command:
                raise PathError("path-not-found", "There is no a.txt.", hint="List the files.")

    async with session(tmp_path, patches=Patches()) as made:
        result = await called(ShellTool(made), {"command": ["apply_patch", "*** Begin Patch\n*** End Patch"]})
        assert (result.ok, result.code, result.text) == (
            False,
            "path-not-found",
            "Error: There is no a.txt. List the files.",
        )
        assert (await made.run(ShellRequest(command="true"))).ok
