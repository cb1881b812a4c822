"""What the host puts right or explains within a call, with names that nobody knows before; each beside its twin.

A twin is the call that looks alike and in which nothing was wrong, or in which nothing can be done: there the host says
nothing, and a failure stays one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.errors import FileError, PathError
from satchel.execution.file_session import FileSession
from satchel.execution.ledger import ReadLedger
from satchel.execution.options import InstallOptions
from satchel.execution.shell import CodeSession
from satchel.execution.syntax import SyntaxChecker
from satchel.execution.workspace import Workspace
from satchel.sandbox.unconfined import UnconfinedExecutor
from tests.execution.registry import Registry
from tests.execution.shells import OPTIONS, left_in, printed, run, session
from tests.execution.test_installs import fresh, installer

ALLOWED = replace(OPTIONS, install=InstallOptions(enabled=True))
CLOSING = "no need to read"


@pytest.fixture
async def code(registry: Registry, tmp_path: Path) -> AsyncIterator[CodeSession]:
    """A session that installs from the registry of the test."""
    installs = installer(UnconfinedExecutor(), registry)
    async with session(tmp_path, options=ALLOWED, host={"PATH": os.environ["PATH"]}, installer=installs) as made:
        yield made


@pytest.fixture
def files(workspace: Workspace) -> FileSession:
    checker = SyntaxChecker(UnconfinedExecutor(), workspace, os.environ)
    return FileSession(workspace, ledger=ReadLedger(), checker=checker)


def word() -> str:
    return f"w{secrets.token_hex(4)}"


def lines(count: int = 30) -> list[str]:
    return [f"{word()} = {number}" for number in range(count)]


def put(workspace: Workspace, content: list[str]) -> str:
    path = f"{word()}.txt"
    Path(workspace.work, path).write_text("\n".join(content) + "\n")
    return path


def held(workspace: Workspace, path: str) -> str:
    return Path(workspace.work, path).read_text()


def update(path: str, *hunk: str) -> str:
    return "\n".join(("*** Begin Patch", f"*** Update File: {path}", *hunk, "*** End Patch"))


# A missing import


async def test_a_missing_import_is_put_right_within_the_call(registry: Registry, code: CodeSession) -> None:
    module, symbol, value = word(), word(), word()
    registry.add_wheel(module, "1.0", {f"{module}.py": f"{symbol} = {value!r}\n"})
    done = await run(code, f"python -c 'from {module} import {symbol}; print({symbol})'")
    assert (done.ok, printed(done).strip()) == (True, value), done.text
    assert f"{module} was missing: the host installed it and ran this again." in done.text


async def test_a_missing_import_that_no_registry_has_stays_a_failure(registry: Registry, code: CodeSession) -> None:
    module = word()
    done = await run(code, f"python -c 'import {module}; print({module})'")
    assert not done.ok
    assert f"The run needs {module}, which could not be installed." in done.text
    assert "installed it and ran this again" not in done.text
    assert registry.seen == [f"/simple/{module}/"]


async def test_a_module_that_breaks_when_it_is_imported_is_not_looked_for(
    registry: Registry, code: CodeSession
) -> None:
    module, symbol = word(), word()
    registry.add_wheel(module, "1.0", {f"{module}.py": f"{symbol} = 1\n"})
    Path(code.workspace.work, f"{module}.py").write_text("raise ValueError('of its own')\n")  # noqa: ASYNC240 - set up
    done = await run(code, f"python -c 'from {module} import {symbol}'")
    assert (done.ok, "ValueError: of its own" in done.text, registry.seen) == (False, True, [])


# Installs that were refused or read wrong


@pytest.mark.parametrize("form", ["git+https://host.example/{}.git", "./{}", "--index-url https://host.example/{} x"])
async def test_a_refused_install_runs_nothing_behind_it(registry: Registry, code: CodeSession, form: str) -> None:
    done = await run(code, f"pip install {form.format(word())}; touch ran; false | tail -5")
    assert (done.ok, done.outcome, left_in(code), registry.seen) == (False, None, [], [])
    assert "exit code" not in done.text


async def test_an_install_that_worked_lets_the_rest_run(registry: Registry, code: CodeSession) -> None:
    name = fresh()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    done = await run(code, f"pip install {name}; touch ran; false")
    assert done.outcome is not None
    # The code is that of the last command, which no install hides.
    assert (done.ok, done.outcome.exit_code, left_in(code)) == (False, 1, ["ran"])


async def test_a_redirection_is_no_package(registry: Registry, code: CodeSession) -> None:
    name, log = fresh(), word()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    done = await run(code, f"pip install {name} 2>&1 >{log} && python -c 'import {name}'")
    assert done.ok, done.text
    assert registry.seen[0] == f"/simple/{name}/"
    assert {path.split("/")[2].partition("-")[0] for path in registry.seen} == {name}


async def test_a_command_that_speaks_of_an_install_performs_none(registry: Registry, code: CodeSession) -> None:
    name, log = fresh(), word()
    registry.add_wheel(name, "1.0", {f"{name}.py": ""})
    done = await run(code, f"echo 'pip install {name}' >{log} 2>&1; cat {log}")
    assert (done.ok, printed(done), registry.seen) == (True, f"pip install {name}\n", [])
    assert "nstalled" not in done.text


# Python under the name that models write


@pytest.mark.parametrize("name", ["python", "python3"])
async def test_python_is_there_under_either_name(tmp_path: Path, name: str) -> None:
    said, other = word(), tmp_path / "bin" / name
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho another Python\n")
    other.chmod(0o755)
    async with session(tmp_path, host={"PATH": str(other.parent)}) as made:
        done = await run(made, f"{name} -c 'print(\"{said}\")'")
        assert (done.ok, printed(done)) == (True, f"{said}\n")


async def test_a_program_that_is_not_there_is_still_not_there(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        for name in (word(), f"python-{word()}"):
            done = await run(made, f"{name} -c 'print(1)'")
            assert done.outcome is not None
            assert (done.ok, done.outcome.exit_code) == (False, 127)
            assert f"{name}: command not found" in done.text


# Files


async def test_one_line_is_changed_by_a_patch_and_never_by_writing_the_file(
    workspace: Workspace, files: FileSession
) -> None:
    content = lines()
    path, at, new = put(workspace, content), secrets.randbelow(len(content)), word()
    retyped = "\n".join(new if number == at else line for number, line in enumerate(content)) + "\n"
    with pytest.raises(FileError) as caught:
        await files.write(path, retyped)
    assert (caught.value.code, "apply_patch" in caught.value.hint) == ("file-exists", True)
    assert held(workspace, path) == "\n".join(content) + "\n"
    done = await files.patch(update(path, f"-{content[at]}", f"+{new}"))
    assert (done.files, held(workspace, path)) == ((path,), retyped)


async def test_a_file_of_a_new_name_is_written(workspace: Workspace, files: FileSession) -> None:
    content = lines()
    path = put(workspace, content)
    done = await files.write(f"new-{path}", "\n".join(content) + "\n")
    assert (done.files, CLOSING in done.text, "apply_patch" in done.text) == ((f"new-{path}",), True, False)


@pytest.mark.parametrize("rest", ["[(", "'", "return return"])
async def test_a_change_that_breaks_a_program_is_said(files: FileSession, rest: str) -> None:
    content, path = lines(), f"{word()}.py"
    at = secrets.randbelow(len(content))
    await files.write(path, "\n".join(content) + "\n")
    broken = await files.patch(update(path, f"-{content[at]}", f"+{word()} = {rest}"))
    assert broken.files == (path,)
    assert f"Warning: {path} does not parse now, line {at + 1}: " in broken.text


async def test_a_change_that_breaks_nothing_warns_of_nothing(files: FileSession) -> None:
    content, path = lines(), f"{word()}.py"
    at = secrets.randbelow(len(content))
    assert "Warning" not in (await files.write(path, "\n".join(content) + "\n")).text
    whole = await files.patch(update(path, f"-{content[at]}", f"+{word()} = ['{word()}']"))
    assert (whole.files, "Warning" in whole.text) == ((path,), False)


async def test_a_hunk_that_misses_is_shown_what_stands_there(workspace: Workspace, files: FileSession) -> None:
    content = lines()
    path, at, wrong = put(workspace, content), 1 + secrets.randbelow(len(content) - 2), word()
    with pytest.raises(FileError) as caught:
        await files.patch(update(path, f" {content[at - 1]}", f"-{wrong}", f"+{word()}", f" {content[at + 1]}"))
    assert f'At line {at + 1} the file has "{content[at]}" where the hunk has "{wrong}".' in caught.value.message
    assert f"{at + 1:>5} | {content[at]}\n" in caught.value.hint
    assert held(workspace, path) == "\n".join(content) + "\n"


async def test_a_hunk_that_fits_is_told_no_more_than_that(workspace: Workspace, files: FileSession) -> None:
    content, new = lines(), word()
    path, at = put(workspace, content), 1 + secrets.randbelow(len(content) - 2)
    done = await files.patch(update(path, f" {content[at - 1]}", f"-{content[at]}", f"+{new}", f" {content[at + 1]}"))
    assert done.text.startswith(f"Patched 1 file:\nM {path} (+1 -1)\n")
    assert "Note" not in done.text
    assert held(workspace, path).splitlines()[at] == new


async def test_line_numbers_in_a_hunk_are_named_as_the_cause(workspace: Workspace, files: FileSession) -> None:
    content = lines()
    path, at = put(workspace, content), 1 + secrets.randbelow(len(content) - 2)
    numbered = [f"{number + 1}:{content[number]}" for number in (at - 1, at)]
    with pytest.raises(FileError) as caught:
        await files.patch(update(path, f" {numbered[0]}", f"-{numbered[1]}", f"+{word()}"))
    assert "carry the line numbers of a listing" in caught.value.message


async def test_numbers_that_stand_in_the_file_are_matched_like_any_text(
    workspace: Workspace, files: FileSession
) -> None:
    content = [f"{number + 1}:{word()}" for number in range(9)]
    path, at, new = put(workspace, content), secrets.randbelow(9), word()
    done = await files.patch(update(path, f"-{content[at]}", f"+{at + 1}:{new}"))
    assert "number" not in done.text
    assert held(workspace, path).splitlines()[at] == f"{at + 1}:{new}"


async def test_a_hunk_that_fits_twice_is_said_with_the_other_line(workspace: Workspace, files: FileSession) -> None:
    content, old, new = lines(), word(), word()
    first, second = sorted(secrets.SystemRandom().sample(range(len(content)), 2))
    content[first] = content[second] = old
    path = put(workspace, content)
    done = await files.patch(update(path, f"-{old}", f"+{new}"))
    assert f"applied to the first, line {first + 1}; it also fits at line {second + 1}." in done.text
    assert held(workspace, path).splitlines()[second] == old


async def test_a_hunk_that_is_led_to_its_place_fits_once(workspace: Workspace, files: FileSession) -> None:
    content, old, new = lines(), word(), word()
    first, second, third = (start + secrets.randbelow(7) for start in (2, 11, 21))
    content[first] = content[second] = content[third] = old
    path = put(workspace, content)
    done = await files.patch(update(path, f"@@ {content[second - 1]}", f"-{old}", f"+{new}"))
    assert "fits" not in done.text
    assert held(workspace, path).splitlines()[second] == new


async def test_what_was_not_written_is_never_said_to_be_there(workspace: Workspace, files: FileSession) -> None:
    content = lines()
    path = put(workspace, content)
    refused = (
        files.write(path, word()),
        files.write(f"../{path}", word()),
        files.patch(update(path, f"-{word()}", f"+{word()}")),
        files.patch(update(word(), f"-{word()}", f"+{word()}")),
        files.replace(path, word(), word()),
    )
    for call in refused:
        with pytest.raises((FileError, PathError)) as caught:
            await call
        assert CLOSING not in caught.value.message + caught.value.hint
    assert held(workspace, path) == "\n".join(content) + "\n"
    assert [entry.name for entry in Path(workspace.work).iterdir()] == [path]  # noqa: ASYNC240 - a check
