"""What is written is parsed, confined; each kind has a twin that parses and must not be blamed."""

# ruff: noqa: ASYNC240 - small files of the test's own

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from satchel.errors import SandboxError
from satchel.execution.file_session import FileSession
from satchel.execution.ledger import ReadLedger
from satchel.execution.syntax import SyntaxChecker
from satchel.execution.workspace import Workspace
from satchel.ports.execution import Captured, Launch, Outcome
from satchel.sandbox.unconfined import UnconfinedExecutor


class Recording(UnconfinedExecutor):
    """Runs, and keeps what was asked for."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []

    async def run(self, launch: Launch) -> Outcome:
        self.launches.append(launch)
        return await super().run(launch)


class Unavailable(UnconfinedExecutor):
    async def run(self, launch: Launch) -> Outcome:
        raise SandboxError("sandbox-unavailable", "There is no sandbox here.")


async def notes(workspace: Workspace, files: dict[str, str]) -> Sequence[str]:
    for path, text in files.items():
        target = Path(workspace.work) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return await SyntaxChecker(UnconfinedExecutor(), workspace, os.environ).check(files)


BROKEN = {
    "a.py": ("x = 1\ndef f(:\n    pass\n", "line 2: invalid syntax"),
    "b.py": ("if True:\nx = 1\n", "line 2: expected an indented block"),
    "c.json": ('{\n  "a": 1,\n}\n', "line 3: Expecting property name"),
    "d.toml": ("[a]\nb = \n", "line 2: Invalid value"),
    "e.yaml": ("a: 1\nb: [1, 2\n", "line 3: "),
    "f.yml": ("a:\n\t- b\n", "line 2: "),
    "g.js": ("const a = 1;\nlet = = 2;\n", "line 2: "),
    "h.mjs": ("import a from 'b';\nlet x = ;\n", "line 2: "),
    "i.sh": ("#!/bin/bash\nif true; then\n  echo\n", "line 4: syntax error"),
    "j.bash": ("echo $(\n", "unexpected EOF"),
}
WHOLE = {
    "a.py": "def f():\n    return '\\d'  # a warning is no error\n",
    "c.json": '{"a": [1, 2]}\n',
    "bom.json": '\ufeff{"a": 1}',
    "empty.json": "",
    "commented.json": '// settings\n{"a": 1}\n',
    "tsconfig.json": '{"a": 1, /* why */ }',
    ".vscode/settings.json": "{ /* mine */ }",
    "d.toml": 'a = 1\n[b]\nc = "d"\n',
    "e.yaml": "a: &x 1\nb: !Ref x\n---\nc: *x\n",
    "template.yaml": "a: {{ value }}\n{% if x %}\n",
    "g.js": "const a = require('b');\n",
    "module.js": "import a from 'b';\nexport const c = await a();\n",
    "g.mjs": "import a from 'b';\nexport default a;\n",
    "i.sh": "if true; then\n  echo\nfi\n",
    "z.sh": "#!/usr/bin/env zsh\nfor x (a b) echo $x\n",
    "notes.txt": "def f(:",
    "no-ending": "{",
}


@pytest.mark.parametrize("path", BROKEN)
async def test_a_file_that_does_not_parse_is_named_with_its_line(workspace: Workspace, path: str) -> None:
    text, said = BROKEN[path]
    (note,) = await notes(workspace, {path: text})
    assert note.startswith(f"Warning: {path} does not parse now")
    assert said in note.partition("\n")[0]


@pytest.mark.parametrize("path", WHOLE)
async def test_a_file_that_parses_is_not_blamed(workspace: Workspace, path: str) -> None:
    assert await notes(workspace, {path: WHOLE[path]}) == ()


class OlderNode(UnconfinedExecutor):
    """Says what a node says that takes every .js file for a script, which the one here need not do."""

    def __init__(self, message: str) -> None:
        self._message = message

    async def run(self, launch: Launch) -> Outcome:
        path = launch.command[-1]
        said = (
            f"{path}:2\nlet x = 1;\n^^^^^^\n\nSyntaxError: {self._message}\n    at wrapSafe (node:internal/vm:73:18)\n"
        )
        return Outcome(exit_code=1, stderr=Captured(head=said.encode()))


@pytest.mark.parametrize(
    "message",
    [
        "Cannot use import statement outside a module",
        "Unexpected token 'export'",
        "Unexpected token 'import'",
        "Cannot use 'import.meta' outside a module",
        "await is only valid in async functions and the top level bodies of modules",
    ],
)
async def test_a_module_that_node_takes_for_a_script_is_not_blamed(workspace: Workspace, message: str) -> None:
    assert await SyntaxChecker(OlderNode(message), workspace, os.environ).check({"a.js": "a\nlet x = 1;\n"}) == ()


@pytest.mark.parametrize("message", ["Unexpected token '}'", "Identifier 'exported' has already been declared"])
async def test_any_other_mistake_that_node_finds_is_told(workspace: Workspace, message: str) -> None:
    (note,) = await SyntaxChecker(OlderNode(message), workspace, os.environ).check({"a.js": "a\nlet x = 1;\n"})
    assert note.startswith(f"Warning: a.js does not parse now, line 2: {message}\n")


async def test_a_node_that_fails_by_itself_says_nothing_of_the_file(workspace: Workspace) -> None:
    class Broken(UnconfinedExecutor):
        async def run(self, launch: Launch) -> Outcome:
            said = f"{launch.command[-1]}:1\nimport x\n\nError: Cannot find module 'x'\n"
            return Outcome(exit_code=1, stderr=Captured(head=said.encode()))

    assert await SyntaxChecker(Broken(), workspace, os.environ).check({"a.js": "import x\n"}) == ()


async def test_random_programs_and_where_they_break(workspace: Workspace) -> None:
    random.seed(7)
    lines = [f"value_{random.randrange(10**6)} = [{random.random()}]" for _ in range(30)]
    broken_at = random.randrange(30)
    broken = [*lines[:broken_at], f"def broken_{random.randrange(10**6)}(:", *lines[broken_at:]]
    found = await notes(workspace, {"good.py": "\n".join(lines) + "\n", "bad.py": "\n".join(broken) + "\n"})
    assert len(found) == 1
    assert f"bad.py does not parse now, line {broken_at + 1}: " in found[0]
    assert f"{broken_at + 1:>5} | def broken_" in found[0]


async def test_the_check_runs_nothing_of_the_file_and_may_not_write_it(workspace: Workspace) -> None:
    executor = Recording()
    text = "open('ran', 'w').write('x')\nraise SystemExit(3)\n"
    (Path(workspace.work) / "a.py").write_text(text)
    assert await SyntaxChecker(executor, workspace, os.environ).check({"a.py": text}) == ()
    assert [path.name for path in Path(workspace.work).iterdir()] == ["a.py"]
    (launch,) = executor.launches
    assert (launch.purpose, launch.network.mode, launch.writable) == ("check", "none", (workspace.tmp,))
    assert workspace.work in launch.readable
    assert launch.deadline_s <= 10


async def test_many_files_are_checked_in_few_programs(workspace: Workspace) -> None:
    executor = Recording()
    files = {f"{number}.py": "x = (\n" for number in range(20)}
    for path, text in files.items():
        (Path(workspace.work) / path).write_text(text)
    assert len(await SyntaxChecker(executor, workspace, os.environ).check(files)) == 8
    assert len(executor.launches) == 1


async def test_where_nothing_can_run_nothing_is_said(workspace: Workspace) -> None:
    assert await SyntaxChecker(Unavailable(), workspace, os.environ).check({"a.py": "(", "b.sh": "if"}) == ()


async def test_a_change_that_applies_and_breaks_the_file_says_so(workspace: Workspace) -> None:
    session = FileSession(
        workspace, ledger=ReadLedger(), checker=SyntaxChecker(UnconfinedExecutor(), workspace, os.environ)
    )
    assert "Warning" not in (await session.write("a.py", "x = [1]\n")).text
    broken = await session.patch("*** Begin Patch\n*** Update File: a.py\n-x = [1]\n+x = [1\n*** End Patch")
    assert broken.files == ("a.py",)
    assert "Warning: a.py does not parse now, line 1: '[' was never closed\n    1 | x = [1" in broken.text
    assert "Warning" not in (await session.replace("a.py", "[1", "[1]")).text
    assert "Warning" in (await session.write("b.json", "{")).text


async def test_no_program_of_the_workspace_has_a_part_in_what_is_said(workspace: Workspace) -> None:
    folder = Path(workspace.local_bin)
    folder.mkdir(parents=True)
    for name, code in (("node", 1), ("bash", 0), ("python", 1), ("python3", 1)):
        (folder / name).write_text(
            f"#!/bin/sh\necho SyntaxError: made up >&2\ntouch {workspace.tmp}/ran\nexit {code}\n"
        )
        (folder / name).chmod(0o755)
    files = {"bad.js": "let = = 2;\n", "good.js": "let a = 1;\n", "bad.sh": "if true; then\n", "good.py": "a = 1\n"}
    said = await notes(workspace, files)
    assert [note.split(" does not")[0] for note in said] == ["Warning: bad.js", "Warning: bad.sh"]
    assert "made up" not in "".join(said)
    assert not (Path(workspace.tmp) / "ran").exists()
