# ruff: noqa: ASYNC240 - small files of the test's own

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from satchel.errors import FileError, PathError
from satchel.execution.file_session import FileSession
from satchel.execution.ledger import ReadLedger
from satchel.execution.workspace import Workspace

APP = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


@pytest.fixture
def session(workspace: Workspace) -> FileSession:
    return FileSession(workspace, ledger=ReadLedger())


@pytest.fixture
def strict(workspace: Workspace) -> FileSession:
    return FileSession(workspace, ledger=ReadLedger(is_enforced=True))


@pytest.fixture
def work(workspace: Workspace) -> Path:
    (Path(workspace.work) / "app.py").write_text(APP)
    return Path(workspace.work)


def patch(*parts: str) -> str:
    return "\n".join(("*** Begin Patch", *parts, "*** End Patch"))


# Reading


async def test_lines_with_their_numbers(session: FileSession, work: Path) -> None:
    assert (await session.read("app.py", 5)).text == (
        "app.py, line 5 to 6 of 6\n    5 | def two():\n    6 |     return 2"
    )
    (work / "empty").touch()
    assert (await session.read("empty")).text == "empty is empty."


async def test_a_long_file_comes_in_pages(session: FileSession, work: Path) -> None:
    (work / "long").write_text("".join(f"{number}\n" for number in range(1, 1001)))
    first = (await session.read("long")).text
    assert first.startswith("long, line 1 to 400 of 1000\n    1 | 1\n")
    assert first.endswith('  400 | 400\n[600 more line(s) below; go on with read_file(path="long", offset=401)]')
    last = (await session.read("long", 999, 400)).text
    assert last == "long, line 999 to 1000 of 1000\n  999 | 999\n 1000 | 1000"
    with pytest.raises(PathError, match="has 1000 lines, so line 1001 is past its end") as caught:
        await session.read("long", 1001)
    assert caught.value.code == "offset-past-end"


async def test_a_page_is_bounded_however_long_the_lines_are(session: FileSession, work: Path) -> None:
    (work / "wide").write_text(("x" * 100_000 + "\n") * 40)
    text = (await session.read("wide", 1, 4000)).text
    assert len(text) < 52_000
    assert "[... 98000 more characters]" in text
    assert "more line(s) below" in text


async def test_an_unchanged_file_is_not_shown_twice_in_a_row(session: FileSession, work: Path) -> None:
    assert "def one" in (await session.read("app.py")).text
    again = (await session.read("./app.py")).text
    assert again == "app.py is unchanged since you last read it, so it is not shown again."
    assert "def one" in (await session.read("app.py")).text
    (work / "app.py").write_text(APP + "x\n")
    assert "    7 | x" in (await session.read("app.py")).text
    assert "line 2 to 2 of 7" in (await session.read("app.py", 2, 1)).text


async def test_bytes_that_are_no_text_are_kept_by_a_change(session: FileSession, work: Path) -> None:
    (work / "latin").write_bytes(b"caf\xe9\none\n")
    assert "caf\ufffd" in (await session.read("latin")).text
    await session.patch(patch("*** Update File: latin", "-one", "+two"))
    assert (work / "latin").read_bytes() == b"caf\xe9\ntwo\n"


async def test_what_cannot_be_read_is_said_with_the_next_step(session: FileSession, work: Path) -> None:
    (work / "sub").mkdir()
    (work / "data").write_bytes(b"\0")
    said: list[str] = []
    for path in ("ap.py", "sub", "data", "nothing-like-it.xyz"):
        with pytest.raises(PathError) as caught:
            await session.read(path)
        said.append(f"{caught.value.message} {caught.value.hint}")
    assert said[0] == "There is no file ap.py. Did you mean app.py?"
    assert "is a directory" in said[1]
    assert "ls -la sub" in said[1]
    assert "is not a text file" in said[2]
    assert "with ls" in said[3]


# New files


async def test_a_new_file_need_not_be_read_back(session: FileSession, work: Path) -> None:
    done = await session.write("src/new.py", "x = 1\n")
    assert done.text == (
        "Created src/new.py (1 line, 6 B). It holds exactly what you wrote; there is no need to read it back."
    )
    assert (done.files, (work / "src/new.py").read_text()) == (("src/new.py",), "x = 1\n")
    assert (await session.write("empty", "")).files == ("empty",)


async def test_an_existing_file_is_not_written_but_by_the_word(session: FileSession, work: Path) -> None:
    with pytest.raises(FileError) as caught:
        await session.write("app.py", "other")
    assert caught.value.code == "file-exists"
    assert "apply_patch" in caught.value.hint
    assert (work / "app.py").read_text() == APP
    before = (work / "app.py").stat()
    same = await session.write("app.py", APP)
    assert (same.text, same.files) == ("app.py already holds exactly this; nothing was written.", ())
    assert (work / "app.py").stat().st_ino == before.st_ino
    replaced = await session.write("app.py", "other", overwrite=True)
    assert (replaced.text.partition(" (")[0], (work / "app.py").read_text()) == ("Replaced app.py", "other")


async def test_half_characters_do_not_stop_a_file(session: FileSession, work: Path) -> None:
    await session.write("a", "x\ud800y")
    assert (work / "a").read_text() == "x?y"


# Patches


async def test_many_files_at_once(session: FileSession, work: Path) -> None:
    (work / "gone").write_text("gone\n")
    (work / "run.sh").write_text("old\n")
    (work / "run.sh").chmod(0o755)
    done = await session.patch(
        patch(
            "*** Update File: app.py", "@@ def two():", "-    return 2", "+    return 3",
            "*** Add File: pkg/new.py", "+a", "+b\x0cb\u2028b",
            "*** Delete File: gone",
            "*** Update File: run.sh", "*** Move to: bin/run", "-old", "+new",
        )
    )  # fmt: skip
    assert done.text == (
        "Patched 4 files:\nM app.py (+1 -1)\nA pkg/new.py (+2)\nD gone\nR run.sh -> bin/run (+1 -1)\n"
        "The files hold what the patch says; there is no need to read them back."
    )
    assert set(done.files) == {"app.py", "pkg/new.py", "bin/run"}
    assert (work / "app.py").read_text() == APP.replace("2\n", "3\n")
    assert (work / "pkg/new.py").read_text() == "a\nb\x0cb\u2028b\n"
    assert ((work / "bin/run").read_text(), (work / "bin/run").stat().st_mode & 0o777) == ("new\n", 0o755)
    assert not (work / "gone").exists()
    assert not (work / "run.sh").exists()


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (("*** Update File: app.py", "-nowhere", "+x"), "patch-mismatch"),
        (("*** Update File: none.py", "-a", "+x"), "path-not-found"),
        (("*** Delete File: none.py",), "path-not-found"),
        (("*** Add File: app.py", "+x"), "file-exists"),
        (("*** Add File: sub", "+x"), "file-exists"),
        (("*** Update File: app.py", "*** Move to: first", "-def one():", "+def three():"), "file-exists"),
        (("*** Add File: ../out", "+x"), "path-refused"),
        (
            ("*** Update File: app.py", "*** Move to: a", "*** Move to: b", "-def one():", "+def two():"),
            "patch-invalid",
        ),
        (("*** Add File: x", "x"), "patch-invalid"),
    ],
)
async def test_one_bad_part_and_nothing_is_written(
    session: FileSession, work: Path, bad: tuple[str, ...], code: str
) -> None:
    (work / "other").write_text("other\n")
    (work / "sub").mkdir()
    with pytest.raises((FileError, PathError)) as caught:
        await session.patch(
            patch("*** Add File: first", "+1", "*** Delete File: other", "*** Add File: x2", "+x", *bad)
        )
    assert caught.value.code == code
    assert caught.value.message.endswith("No other file of the patch was changed either.")
    assert sorted(path.name for path in work.iterdir()) == ["app.py", "other", "sub"]
    assert (work / "app.py").read_text() == APP


async def test_a_move_to_its_own_path_keeps_the_file(session: FileSession, work: Path) -> None:
    await session.patch(patch("*** Update File: app.py", "*** Move to: ./app.py", "-    return 2", "+    return 3"))
    assert (work / "app.py").read_text() == APP.replace("2\n", "3\n")
    same = await session.patch(patch("*** Update File: app.py", "*** Move to: app.py"))
    assert (same.text, same.files) == ("The files hold this already; nothing was written.", ())
    assert (work / "app.py").exists()


async def test_parts_of_a_patch_build_on_each_other(session: FileSession, work: Path) -> None:
    await session.patch(
        patch(
            "*** Update File: app.py", "-def one():", "+def first():",
            "*** Update File: app.py", " def first():", "-    return 1", "+    return 10",
            "*** Add File: a", "+1",
            "*** Update File: a", "*** Move to: b", "-1", "+2",
            "*** Delete File: b",
            "*** Add File: b", "+3",
        )
    )  # fmt: skip
    assert (work / "app.py").read_text().startswith("def first():\n    return 10\n")
    assert (work / "b").read_text() == "3\n"
    assert not (work / "a").exists()


async def test_a_hunk_that_fits_twice_is_named_in_the_result(session: FileSession, work: Path) -> None:
    (work / "twice").write_text("a\nb\na\n")
    done = await session.patch(patch("*** Update File: twice", "-a", "+c"))
    assert "\nNote: A hunk fits in several places of twice." in done.text


async def test_a_patch_in_a_command_line_is_meant_in_its_folder(session: FileSession, work: Path) -> None:
    (work / "sub").mkdir()
    add = patch("*** Add File: x", "+1")
    assert await session.patch_command("ls -la", str(work)) is None
    done = await session.patch_command(f"cd sub && apply_patch <<'EOF'\n{add}\nEOF", str(work))
    assert done is not None
    assert done.files == ("sub/x",)
    done = await session.patch_command(f"apply_patch <<'EOF'\n{patch('*** Add File: y', '+1')}\nEOF", str(work / "sub"))
    assert done is not None
    assert done.files == ("sub/y",)


async def test_changes_that_come_together_do_not_lose_each_other(session: FileSession, work: Path) -> None:
    (work / "count").write_text("".join(f"line {number}\n" for number in range(20)))
    patches = [patch("*** Update File: count", f"-line {number}", f"+done {number}") for number in range(20)]
    await asyncio.gather(*(session.patch(text) for text in patches))
    assert (work / "count").read_text() == "".join(f"done {number}\n" for number in range(20))


# Replacing a text


async def test_a_text_that_is_there_once_is_replaced(session: FileSession, work: Path) -> None:
    done = await session.replace("app.py", "return 2", "return 3")
    assert done.text == "M app.py (line 6). It holds what you wrote; there is no need to read it back."
    assert (work / "app.py").read_text() == APP.replace("2\n", "3\n")
    await session.replace("app.py", "\n\n\ndef two():\n    return 3", "")
    assert (work / "app.py").read_text() == "def one():\n    return 1\n"
    (work / "windows").write_bytes(b"a\r\nb\r\n")
    await session.replace("windows", "a\nb\n", "c\nd\n")
    assert (work / "windows").read_bytes() == b"c\r\nd\r\n"


async def test_a_text_that_is_there_several_times_needs_the_word(session: FileSession, work: Path) -> None:
    with pytest.raises(FileError, match=r"appears 2 times in app.py \(line 2, 6\)") as caught:
        await session.replace("app.py", "return", "yield")
    assert "replace_all" in caught.value.hint
    done = await session.replace("app.py", "return", "yield", everywhere=True)
    assert done.text.startswith("M app.py (line 2, 2 times)")
    assert (work / "app.py").read_text() == APP.replace("return", "yield")


async def test_places_that_overlap_are_counted_as_they_are_replaced(session: FileSession, work: Path) -> None:
    (work / "rows").write_text("-- -- -- --\n")
    done = await session.replace("rows", "-- --", "=", everywhere=True)
    assert "2 times" in done.text
    assert (work / "rows").read_text() == "= =\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("return 3", "x", "does not match app.py"),
        ("def  one()", "x", "does not match app.py"),
        ("def one():\nreturn 1", "x", "but for blanks at the ends of lines or the indentation"),
        ("    6 |     return 2", "x", "carry the line numbers of a listing"),
        ("", "x", "no text to replace"),
        ("return 1", "return 1", "are the same"),
    ],
)
async def test_a_text_that_cannot_be_replaced(session: FileSession, work: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(FileError) as caught:
        await session.replace("app.py", old, new)
    assert caught.value.code == "edit-mismatch"
    assert said in caught.value.message
    assert (work / "app.py").read_text() == APP


async def test_a_replacement_is_bounded(session: FileSession, work: Path) -> None:
    (work / "many").write_text("a" * 100_000)
    with pytest.raises(FileError) as caught:
        await session.replace("many", "a", "b" * 100_000, everywhere=True)
    assert caught.value.code == "file-too-large"


# The ledger


async def test_without_the_hosts_word_nothing_need_be_read(session: FileSession, work: Path) -> None:
    await session.replace("app.py", "return 2", "return 3")


async def test_a_file_that_was_not_read_is_not_changed(strict: FileSession, work: Path) -> None:
    update = patch("*** Update File: app.py", "-    return 2", "+    return 3")
    for change in (
        strict.patch(update),
        strict.patch(patch("*** Delete File: app.py")),
        strict.replace("app.py", "return 2", "return 3"),
        strict.write("app.py", "x", overwrite=True),
    ):
        with pytest.raises(FileError, match="was not read in this session") as caught:
            await change
        assert caught.value.code == "NOT_READ_THIS_SESSION"
        assert 'read_file(path="app.py")' in caught.value.hint
    assert (work / "app.py").read_text() == APP
    await strict.read("app.py", 1, 2)
    await strict.patch(update)


async def test_a_file_that_changed_since_is_not_changed(strict: FileSession, work: Path) -> None:
    await strict.read("app.py")
    (work / "app.py").write_text("# by a program\n" + APP)
    with pytest.raises(FileError) as caught:
        await strict.replace("app.py", "return 2", "return 3")
    assert caught.value.code == "STALE_READ"
    await strict.read("app.py")
    await strict.replace("app.py", "return 2", "return 3")
    # What one wrote oneself is known.
    await strict.replace("app.py", "return 3", "return 4")
    await strict.write("own", "1\n")
    await strict.patch(patch("*** Update File: own", "-1", "+2"))
    await strict.patch(patch("*** Update File: own", "*** Move to: mine"))
    await strict.patch(patch("*** Update File: mine", "-2", "+3"))
    assert (work / "mine").read_text() == "3\n"


def test_a_ledger_forgets_the_oldest() -> None:
    ledger = ReadLedger(is_enforced=True)
    for number in range(3000):
        ledger.read(f"f{number}", b"x", 1, 400)
    ledger.check("f2999", b"x")
    with pytest.raises(FileError):
        ledger.check("f0", b"x")


def test_a_file_that_was_read_again_is_not_the_oldest() -> None:
    ledger = ReadLedger(is_enforced=True)
    for number in (*range(2000), 0, 2000):
        ledger.read(f"f{number}", b"x", 1, 400)
    ledger.check("f0", b"x")
    with pytest.raises(FileError):
        ledger.check("f1", b"x")


async def test_what_is_said_of_a_patch_is_bounded_however_many_hunks_it_has(session: FileSession, work: Path) -> None:
    (work / "same").write_text("a\n" * 400)
    hunks = [line for _ in range(200) for line in ("@@", " a", "+b")]
    done = await session.patch(patch("*** Update File: same", *hunks))
    assert done.text.count("Note: A hunk fits in several places") == 20
    assert "Note: More hunks of the patch were placed so" in done.text
    assert (work / "same").read_text().count("b") == 200
