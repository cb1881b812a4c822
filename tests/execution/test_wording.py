"""What a model reads first, and that nothing is said twice or of the wrong thing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from satchel.errors import FileError, PathError
from satchel.execution.file_session import Done, FileSession
from satchel.execution.ledger import ReadLedger
from satchel.execution.workspace import Workspace
from tests.execution.shells import Claiming, run, session


async def test_a_command_that_failed_says_so_before_it_says_where_it_ended(tmp_path: Path) -> None:
    """Some faces write "Error: " in front of what failed, and that a directory was entered is no error."""
    async with session(tmp_path, executor=Claiming()) as made:
        done = await run(made, "mkdir d; cd d; false")
        assert done.text == "Ran the command (exit code 1, sandbox: full)\nWorking directory is now: d\n(no output)"
        done = await run(made, "cd ..")
        assert done.text == "Working directory is now: .\nRan the command (exit code 0, sandbox: full)\n(no output)"
        done = await run(made, "sleep 20", timeout_s=0.3)
        assert done.text.startswith("Ran the command (stopped at the time limit after 0.")
        assert "were not kept" in done.text.splitlines()[1]


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("false", "Ran the command (exit code 1"),
        ("pip install requests", "Installing packages is not enabled"),
        ("true", "A background job has ended: %1"),
        ("grep x /dev/null", "A background job has ended: %1"),
    ],
)
async def test_that_a_job_has_ended_passes_for_no_error(tmp_path: Path, command: str, first: str) -> None:
    async with session(tmp_path) as made:
        await run(made, "true", background=True)
        while made.jobs.running:  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.01)
        done = await run(made, command)
        assert done.text.startswith(first)
        assert done.text.count("A background job has ended: %1") == 1


class Patches:
    async def patch_command(self, command: str, cwd: str) -> Done | None:
        del cwd
        return Done(text="Patched.") if command == "apply_patch" else None


@pytest.mark.parametrize("lost", ["workdir", "patch", "no such job"])
async def test_that_a_job_has_ended_is_said_by_a_result_that_has_room_for_it(tmp_path: Path, lost: str) -> None:
    async with session(tmp_path, patches=Patches()) as made:
        await run(made, "true", background=True)
        while made.jobs.running:  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.01)
        if lost == "workdir":
            await run(made, "ls", workdir="nowhere")
        elif lost == "patch":
            assert (await run(made, "apply_patch")).text == "Patched."
        else:
            assert (await run(made, "kill %7")).text.startswith("There is no background job %7.\n%1 exit code 0: true")
            return
        assert "A background job has ended: %1" in (await run(made, "true")).text


async def test_ending_a_job_twice_is_not_told_as_two_ends(tmp_path: Path) -> None:
    async with session(tmp_path) as made:
        await run(made, "sleep 60", background=True)
        assert (await run(made, "kill %1")).text.startswith("Ended: %1 stopped by the host after ")
        assert (await run(made, "kill %1")).text.startswith("It had ended before: %1 stopped by the host after ")


BEGIN, END = "*** Begin Patch\n", "\n*** End Patch"
FAILS = {
    "no such file": "*** Update File: no.py\n@@\n-a\n+b",
    "none to delete": "*** Delete File: no.py",
    "mismatch": "*** Update File: a.py\n@@\n-zz\n+b",
    "there already": "*** Add File: a.py\n+x",
    "no line of a hunk": "*** Update File: a.py\nx",
    "changes nothing": "*** Update File: a.py\n@@\n one",
    "a directory": "*** Update File: d\n@@\n-a\n+b",
    "no text": "*** Update File: bin\n@@\n-a\n+b",
    "a link": "*** Update File: ln\n@@\n-a\n+b",
    "outside": "*** Update File: ../x\n@@\n-a\n+b",
}


@pytest.fixture
def files(workspace: Workspace) -> FileSession:
    work = Path(workspace.work)
    (work / "a.py").write_text("one\n")
    (work / "bin").write_bytes(b"\0")
    (work / "d").mkdir()
    (work / "ln").symlink_to("a.py")
    return FileSession(workspace, ledger=ReadLedger(is_enforced=False))


@pytest.mark.parametrize("kind", FAILS)
async def test_that_nothing_was_changed_is_said_once(files: FileSession, kind: str) -> None:
    with pytest.raises((FileError, PathError)) as caught:
        await files.patch(BEGIN + FAILS[kind] + END)
    said = f"{caught.value.message} {caught.value.hint}".lower()
    assert said.count("nothing was changed") == 1
    assert "no change was made" not in said
    with pytest.raises((FileError, PathError)) as caught:
        await files.patch(f"{BEGIN}*** Add File: new.py\n+x\n{FAILS[kind]}{END}")
    assert caught.value.message.count("No other file of the patch was changed either.") == 1


async def test_what_was_removed_is_not_said_to_hold_anything(files: FileSession) -> None:
    done = await files.patch(f"{BEGIN}*** Delete File: a.py{END}")
    assert done.text == "Patched 1 file:\nD a.py\nWhat the patch removes is gone; there is no need to look."


async def test_reading_is_not_told_as_a_change(files: FileSession) -> None:
    with pytest.raises(PathError) as caught:
        await files.read("no-such.txt")
    assert caught.value.message == "There is no file no-such.txt."
    with pytest.raises(PathError) as caught:
        await files.read("a.py", 9)
    assert caught.value.message == "a.py has 1 line, so line 9 is past its end."
    with pytest.raises(PathError) as caught:
        await files.replace("no-such.txt", "a", "b")
    assert caught.value.message == "There is no file no-such.txt to be changed, so nothing was changed."


async def test_an_edit_of_an_empty_file_is_not_told_of_hunks(files: FileSession, workspace: Workspace) -> None:
    Path(workspace.work, "empty").touch()  # noqa: ASYNC240 - set up
    with pytest.raises(FileError) as caught:
        await files.replace("empty", "a", "b")
    assert caught.value.hint == "empty is empty."
