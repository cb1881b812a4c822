from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.program.program import at_import, redirected, satchel
from tests.support import write_skill


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    write_skill(root, "canary", description="Größe und Anteil. Use when asked.")
    return root


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--skills-dir", "skills"),
        ("list", "--skills-dir", "skills", "--json"),
        ("lisst", "--json"),
        ("--help",),
    ],
)
async def test_output_that_cannot_be_written_is_one_message(
    skills: Path, redirection: str, arguments: tuple[str, ...]
) -> None:
    ended = await redirected(redirection, *arguments, cwd=skills.parent)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("satchel: standard output cannot be written: ")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
async def test_without_standard_error_the_result_is_the_same(skills: Path, redirection: str) -> None:
    (skills / "broken").mkdir()
    (skills / "broken" / "SKILL.md").write_text("no frontmatter")
    options = ("--skills-dir", str(skills))
    whole, silent = await satchel("list", *options), await redirected(redirection, "list", *options)
    assert "broken" in whole.err
    assert (silent.code, silent.out) == (whole.code, whole.out)
    assert (await redirected(redirection, "lisst", *options)).code == 2


async def test_a_missing_input_is_no_question(skills: Path) -> None:
    ended = await redirected("<&-", "run", "--upstream", "http://127.0.0.1:9/v1", "--skills-dir", str(skills))
    assert (ended.code, ended.out) == (2, "")
    assert "question" in ended.err
    assert "Traceback" not in ended.err


async def test_all_streams_may_be_closed(skills: Path) -> None:
    assert (await redirected("<&- >&- 2>&-", "list", "--skills-dir", str(skills))).code == 1
    assert (await redirected("<&- >&- 2>&-", "check", "nowhere")).code == 2


async def test_a_narrow_encoding_is_no_failure(skills: Path) -> None:
    options = ("--skills-dir", str(skills))
    text = await satchel("list", *options, PYTHONIOENCODING="ascii")
    assert (text.code, text.out) == (0, "canary  Gr\\xf6\\xdfe und Anteil. Use when asked.\n")
    listed = await satchel("list", *options, "--json", PYTHONIOENCODING="ascii")
    wide = await satchel("list", *options, "--json")
    assert listed.out.isascii()
    assert json.loads(listed.out) == json.loads(wide.out)
    failed = await satchel("show", "größe", *options, "--json", PYTHONIOENCODING="ascii")
    assert "größe" in failed.events[0]["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("list",), 2), (("list", "--skills-dir", "."), 2), (("check", "."), 2), (("new", "x"), 2), (("doctor",), 1)],
)
async def test_a_removed_working_directory_is_said(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    # The hook's module is looked for first of all, when the program has already started in the directory.
    hook = at_import(tmp_path, "satchel", f"os.rmdir({str(gone)!r})")
    ended = await satchel(*arguments, cwd=gone, PYTHONPATH=hook)
    assert ended.code == code
    assert "Traceback" not in ended.err
    assert "No such file or directory" in ended.err + ended.out


async def test_a_removed_working_directory_matters_only_to_relative_paths(skills: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    hook = at_import(tmp_path, "satchel", f"os.rmdir({str(gone)!r})")
    ended = await satchel("list", "--skills-dir", str(skills), cwd=gone, PYTHONPATH=hook)
    assert ended.code == 0
    assert ended.out.startswith("canary")


@pytest.mark.parametrize("module", ["satchel.cli.console", "cyclopts", "satchel.cli.list", "satchel.library"])
async def test_an_interrupt_while_it_starts_is_no_failure(skills: Path, tmp_path: Path, module: str) -> None:
    hook = at_import(tmp_path, module, "signal.raise_signal(signal.SIGINT)")
    ended = await satchel("list", "--skills-dir", str(skills), PYTHONPATH=hook)
    assert (ended.code, ended.out, ended.err) == (130, "", "")


async def test_names_that_are_no_text_are_shown_safely(tmp_path: Path) -> None:
    folder = os.fsdecode(b"gr\xf6\xdfe")
    made = await satchel("new", "notes", "--dir", folder, cwd=tmp_path)
    assert (made.code, made.out) == (0, f"gr??e{os.sep}notes{os.sep}SKILL.md\n")
    assert "Traceback" not in made.err
    again = await satchel("new", "notes", "--dir", folder, cwd=tmp_path)
    assert (again.code, "exists already" in again.err) == (2, True)


async def test_doctor_names_a_missing_package_and_goes_on(skills: Path, tmp_path: Path) -> None:
    # As if the package were not installed: it is found nowhere.
    hide = (
        "import importlib.machinery as m; old = m.PathFinder.find_spec; "
        "m.PathFinder.find_spec = staticmethod("
        "lambda name, path=None, target=None: None if name in ('aiohttp', 'xllamacpp') else old(name, path, target))"
    )
    hook = at_import(tmp_path, "satchel", hide)
    for upstream in ((), ("--upstream", "http://127.0.0.1:9/v1")):
        ended = await satchel("doctor", "--json", "--skills-dir", str(skills), *upstream, PYTHONPATH=hook)
        said = json.loads(ended.out)
        found = {item["what"]: item for item in said["findings"]}
        assert (ended.code, said["ok"], ended.err) == (1, False, "")
        assert (found["models"]["status"], found["models"]["detail"]) == ("missing", "not installed: aiohttp")
        asked = found["upstream" if upstream else "model"]
        assert (asked["status"], "aiohttp" in asked["detail"]) == ("failed", True)
        assert found["skills"]["status"] == "ok"


async def test_doctor_reports_an_address_that_is_none(skills: Path) -> None:
    ended = await satchel("doctor", "--skills-dir", str(skills), "--upstream", "http://user@host/v1")
    assert ended.code == 1
    assert "failed   upstream" in ended.out
