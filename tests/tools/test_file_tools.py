# ruff: noqa: ASYNC240 - small files of the test's own

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from satchel.chat.messages import Json
from satchel.execution.file_session import FileSession
from satchel.execution.ledger import ReadLedger
from satchel.execution.workspace import Workspace, create_workspace, remove_workspace
from satchel.tools.base import Progress, Tool, ToolCall, ToolContext, ToolResult
from satchel.tools.files import EDIT_ALIASES, READ_ALIASES, WRITE_ALIASES, EditFile, ReadFile, WriteFile
from satchel.tools.files_block import files_block
from satchel.tools.patch import PATCH_ALIASES, ApplyPatch

APP = "one\ntwo\nthree\nfour\n"
HUNK = "@@\n-two\n+2"
PATCH = f"*** Begin Patch\n*** Update File: app.txt\n{HUNK}\n*** End Patch"
PATCHED = APP.replace("two", "2")
ALL = ("read_file", "write_file", "apply_patch", "shell")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = create_workspace(str(tmp_path))
    (Path(made.work) / "app.txt").write_text(APP)
    yield made
    remove_workspace(made)


@pytest.fixture
def session(workspace: Workspace) -> FileSession:
    return FileSession(workspace, ledger=ReadLedger())


@pytest.fixture
def app(workspace: Workspace) -> Path:
    return Path(workspace.work) / "app.txt"


async def call(tool: Tool, **arguments: Json) -> ToolResult:
    return await called(tool, ToolContext(), arguments)


async def called(tool: Tool, context: ToolContext, arguments: dict[str, Json]) -> ToolResult:
    return await tool.run(ToolCall(call_id="c", name="x", arguments=arguments), context)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"path": "app.txt"}, "1 to 4"),
        ({"file_path": "app.txt", "offset": 2}, "2 to 4"),
        ({"filename": "./app.txt", "offset": "2", "limit": "2"}, "2 to 3"),
        ({"file": "app.txt", "start_line": 2, "end_line": 3}, "2 to 3"),
        ({"path": "app.txt", "view_range": [2, 3]}, "2 to 3"),
        ({"path": "app.txt", "view_range": [2, 2]}, "2 to 2"),
        ({"path": "app.txt", "start_line": 4, "end_line": 4}, "4 to 4"),
        ({"path": "app.txt", "view_range": "[2, -1]"}, "2 to 4"),
        ({"path": "app.txt", "view_range": "2-3"}, "2 to 3"),
        ({"path": "app.txt", "view_range": [2.0, 3.0]}, "2 to 3"),
        ({"path": "app.txt", "view_range": [3]}, "3 to 4"),
        ({"path": "app.txt", "view_range": {"a": 1}, "offset": 0}, "1 to 4"),
        ({"path": "app.txt", "offset": -3, "limit": 0}, "1 to 4"),
        ({"path": "app.txt", "limit": 10**12}, "1 to 4"),
    ],
)
async def test_lines_are_asked_for_in_many_ways(session: FileSession, arguments: dict[str, Json], lines: str) -> None:
    result = await call(ReadFile(session), **arguments)
    assert result.ok
    assert result.text.startswith(f"app.txt, line {lines} of 4\n")


async def test_files_are_written_whatever_their_text_is_called(session: FileSession, app: Path) -> None:
    for number, name in enumerate(("content", "text", "file_text", "contents")):
        result = await call(WriteFile(session), path=f"n{number}", **{name: " x \n"})
        assert (result.ok, result.files) == (True, (f"n{number}",))
        assert (app.parent / f"n{number}").read_text() == " x \n"
    await call(WriteFile(session), path="a.json", content={"a": [1, "é"]})
    assert (app.parent / "a.json").read_text() == '{\n  "a": [\n    1,\n    "é"\n  ]\n}\n'
    missing = await call(WriteFile(session), path="b")
    assert (missing.code, "needs content" in missing.text) == ("invalid-arguments", True)
    assert (await call(WriteFile(session), path="b", content="")).ok


async def test_an_existing_file_is_replaced_by_a_word_that_is_not_declared(session: FileSession, app: Path) -> None:
    refused = await call(WriteFile(session), path="app.txt", content="x")
    assert (refused.ok, refused.code, "apply_patch" in refused.text) == (False, "file-exists", True)
    assert app.read_text() == APP
    words: tuple[Json, ...] = ("no", False, 0, None, "", 2, [True], {"why": 1})
    for word in words:
        assert not (await call(WriteFile(session), path="app.txt", content="x", overwrite=word)).ok
    assert (await call(WriteFile(session), path="app.txt", content="x", overwrite="true")).ok
    assert app.read_text() == "x"


@pytest.mark.parametrize(
    "arguments",
    [
        {"patch": PATCH},
        {"input": PATCH},
        {"diff": PATCH},
        {"content": PATCH},
        {"text": PATCH},
        {"anything": PATCH},
        {"command": ["apply_patch", PATCH]},
        {"cmd": {"args": [PATCH]}},
        {"patch": f"apply_patch <<'EOF'\n{PATCH}\nEOF"},
        {"patch": f"```\n{PATCH}\n```"},
        {"path": "app.txt", "patch": PATCH},
        {"path": "app.txt", "patch": PATCH.removeprefix("*** Begin Patch\n")},
        {"path": "app.txt", "patch": HUNK},
        {"path": "app.txt", "diff": HUNK},
        {"type": "update_file", "path": "app.txt", "diff": HUNK},
        {"operation": {"type": "update_file", "path": "app.txt", "diff": HUNK}},
        {"patch": "", "input": PATCH},
    ],
)
async def test_a_patch_is_found_however_it_is_sent(session: FileSession, app: Path, arguments: dict[str, Json]) -> None:
    result = await call(ApplyPatch(session), **arguments)
    assert result.ok, result.text
    assert app.read_text() == PATCHED


async def test_other_kinds_of_one_file(session: FileSession, app: Path) -> None:
    assert (await call(ApplyPatch(session), operation={"type": "create_file", "path": "n", "diff": "+a"})).ok
    assert (app.parent / "n").read_text() == "a\n"
    assert (await call(ApplyPatch(session), type="delete_file", path="n")).ok
    assert not (app.parent / "n").exists()


async def test_a_call_without_its_arguments_is_told_what_it_needs(session: FileSession) -> None:
    for tool in (ReadFile, WriteFile, EditFile):
        result = await call(tool(session), path=" ", other="x")
        assert (result.code, "needs path" in result.text) == ("invalid-arguments", True)
    nothing = await call(ApplyPatch(session))
    assert (nothing.code, "*** Begin Patch" in nothing.text) == ("invalid-arguments", True)


async def test_a_failure_says_what_stands_there_and_what_to_do(session: FileSession) -> None:
    result = await call(ApplyPatch(session), patch=PATCH.replace("-two", "-tow"))
    assert (result.ok, result.code, result.files) == (False, "patch-mismatch", ())
    assert result.text.startswith("Error: A hunk does not match app.txt, so nothing was changed.")
    escaped = await call(ReadFile(session), path="../../etc/passwd")
    assert escaped.code == "path-refused"
    assert "working directory" in escaped.text
    assert "skill" not in escaped.text


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "app.txt", "old_string": "two", "new_string": "2"},
        {"file_path": "app.txt", "old_str": "two", "new_str": "2", "command": "str_replace"},
        {"path": "app.txt", "search": "two", "replace": "2"},
        {"path": "app.txt", "old_string": "two\n", "new_string": "2\n", "replace_all": "true"},
    ],
)
async def test_an_edit_by_habit_is_done(session: FileSession, app: Path, arguments: dict[str, Json]) -> None:
    result = await call(EditFile(session), **arguments)
    assert (result.ok, result.files, app.read_text()) == (True, ("app.txt",), PATCHED)


async def test_an_editor_of_several_commands(session: FileSession, app: Path) -> None:
    edit = EditFile(session)
    assert (await call(edit, command="view", path="app.txt", view_range=[1, 2])).text.startswith("app.txt, line 1 to 2")
    assert (await call(edit, command="create", path="new.txt", file_text="x")).ok
    assert (app.parent / "new.txt").read_text() == "x"
    assert (await call(edit, path="app.txt", old_string="two\n", new_string="")).ok
    assert app.read_text() == "one\nthree\nfour\n"
    refused = await call(edit, command="insert", path="app.txt", insert_line=1, new_str="x")
    assert (refused.ok, "apply_patch" in refused.text) == (False, True)


async def test_progress_names_the_files(session: FileSession) -> None:
    seen: list[Progress] = []
    context = ToolContext(report=seen.append)
    await called(WriteFile(session), context, {"path": "n", "content": "x"})
    await called(ApplyPatch(session), context, {"patch": PATCH})
    await called(ApplyPatch(session), context, {"patch": PATCH})
    assert [(step.phase, step.files) for step in seen] == [
        ("writing", ()), ("finished", ("n",)), ("writing", ()), ("finished", ("app.txt",)), ("writing", ()),
    ]  # fmt: skip
    assert [step.detail for step in seen if step.phase == "finished"] == ["n", "app.txt"]


def test_declarations_are_flat_and_no_name_is_taken_twice(session: FileSession) -> None:
    tools = (ReadFile(session), WriteFile(session), EditFile(session), ApplyPatch(session))
    for tool in tools:
        properties = tool.spec.parameters["properties"]
        assert isinstance(properties, dict)
        assert all(isinstance(item, dict) and item["type"] in {"string", "integer"} for item in properties.values())
    names = [tool.spec.name for tool in tools] + [*READ_ALIASES, *WRITE_ALIASES, *EDIT_ALIASES, *PATCH_ALIASES]
    assert len(set(names)) == len(names)
    # These mean looking at a picture, and are answered as unknown.
    assert not {"view", "open", "show", "look", "screenshot"} & set(names)


def test_the_block_is_a_fixed_text_of_the_declared_tools() -> None:
    block = files_block(ALL)
    assert block.startswith("## Working with files\n- ")
    assert block == files_block(tuple(reversed(ALL)))
    for tools in ((), ("shell",), ("skills_read", "shell")):
        assert files_block(tools) == ""
    assert "shell" not in files_block(("read_file", "write_file", "apply_patch"))
    assert "write_file" not in files_block(("read_file", "apply_patch"))
    assert "before you change it" in block
    assert "the smallest patch" in block
    assert "do not read the file back" in block
    assert len(block) < 1200
