from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.chat.messages import Json
from satchel.execution.options import INTERPRETERS, ExecutionOptions
from satchel.execution.python_arguments import MAX_SOURCE_CHARS
from satchel.execution.scripts import ScriptRunner
from satchel.execution.workspace import Workspace, create_workspace
from satchel.library import discover
from satchel.ports.execution import Confinement, Launch, Outcome
from satchel.ports.skills import HasDirectories
from satchel.sandbox.unconfined import UnconfinedExecutor
from satchel.skills.catalog import Catalog
from satchel.skills.model import LoadedSkill, Page, SkillRef
from satchel.sources.directory import DirectorySource
from satchel.tools.access import SkillAccess, usage
from satchel.tools.base import Progress, ToolCall, ToolContext, ToolResult
from satchel.tools.skill_read import SkillRead
from satchel.tools.skills_read import SkillsRead
from satchel.tools.skills_run import SkillsRun
from satchel.tools.words import split_arguments
from tests.support import write_skill

BODY = (
    "# Fuel\n\nRun `python scripts/budget.py 2400 --reserve 5` for the budget.\n"
    "Install with $HOME/skills/fuel/scripts/budget.py or not.\nscripts/other.sh for the rest.\n"
)
ECHO = "import json, sys\nprint(json.dumps(sys.argv[1:]))\n"
HINT = "[Satchel: running scripts here, not part of SKILL.md]"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {"scripts/budget.py": ECHO, "scripts/other.sh": "echo other\n", "references/a.md": "A\n", "data.py": "1\n"}
    write_skill(tmp_path / "skills", "fuel", body=BODY, files=files)
    write_skill(tmp_path / "skills", "prose", files={"references/a.md": "A\n"})
    return tmp_path


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(str(tmp_path))


def access(root: Path, *, runs: bool = True, reachable: tuple[str, ...] = ("fuel", "prose")) -> SkillAccess:
    library = discover([root / "skills"])
    skills = [skill for skill in library.skills if skill.name in reachable]
    return SkillAccess(DirectorySource(library), skills, runnable=INTERPRETERS if runs else ())


def tool(
    root: Path, workspace: Workspace | None = None, *, to: SkillAccess | None = None, sandbox: str = "off"
) -> SkillsRun:
    options = ExecutionOptions(scripts=True, sandbox=sandbox)  # pyright: ignore[reportArgumentType]
    runner = ScriptRunner(UnconfinedExecutor(), options, workspace=workspace, base=str(root))
    return SkillsRun(to or access(root), runner)


async def call(to: SkillsRun, /, **arguments: Json) -> ToolResult:
    return await to.run(ToolCall(call_id="c", name="skills_run", arguments=arguments), ToolContext())


async def printed(to: SkillsRun, /, **arguments: Json) -> list[str]:
    result = await call(to, **arguments)
    assert result.ok, result.text
    return cast("list[str]", json.loads(result.text.partition("stdout:\n")[2]))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"args": ["2400"]}, ["2400"]),
        ({"args": "2400"}, ["2400"]),
        ({"args": 2400}, ["2400"]),
        ({"args": 0.5}, ["0.5"]),
        ({"args": True}, ["true"]),
        ({"args": '["a b",""]'}, ["a b", ""]),
        ({"args": ' ["a"] '}, ["a"]),
        ({"args": '--out "my file.pdf"; rm'}, ["--out", "my file.pdf;", "rm"]),
        ({"args": ["$(touch pwned)", "a;b", "--x=y z", "é"]}, ["$(touch pwned)", "a;b", "--x=y z", "é"]),
        ({"args": ["a", None, 7, {"b": 1}]}, ["a", "7", '{"b": 1}']),
        ({"args": "", "arguments": "x"}, ["x"]),
        ({"args": [], "arguments": ["x"]}, ["x"]),
        ({"args": "a", "arguments": "x"}, ["a"]),
        ({"args": None}, []),
        ({}, []),
    ],
)
async def test_arguments_are_taken_as_models_write_them(root: Path, args: dict[str, Json], expected: list[str]) -> None:
    assert await printed(tool(root), skill="fuel", path="scripts/budget.py", **args) == expected


@pytest.mark.parametrize("args", ["[oops", "[1, 2]", '["a", 1]', "[]x", '{"a": 1'])
async def test_a_list_that_is_none_is_refused_with_the_way_to_write_it(root: Path, args: str) -> None:
    result = await call(tool(root), skill="fuel", path="scripts/budget.py", args=args)
    if args.startswith("["):
        assert (result.ok, result.code) == (False, "arguments-unreadable")
        assert '["first", "second value"]' in result.text
    else:
        assert result.ok


async def test_an_object_of_arguments_is_refused(root: Path) -> None:
    result = await call(tool(root), skill="fuel", path="scripts/budget.py", args={"--x": 1})
    assert (result.ok, result.code) == (False, "arguments-unreadable")


async def test_the_name_of_a_file_in_the_working_directory_is_one_argument(root: Path, workspace: Workspace) -> None:
    Path(workspace.work, "my report.pdf").write_text("x")  # noqa: ASYNC240 - set up
    to = tool(root, workspace)
    assert await printed(to, skill="fuel", path="scripts/budget.py", args="my report.pdf") == ["my report.pdf"]
    assert await printed(to, skill="fuel", path="scripts/budget.py", args="my other.pdf") == ["my", "other.pdf"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a  b\tc\nd", ["a", "b", "c", "d"]),
        ("'a b' \"c d\" e\\ f", ["a b", "c d", "e f"]),
        ("'' \"\"", ["", ""]),
        ("a'b'\"c\"d", ["abcd"]),
        ('"a\\"b\\\\c\\d$x"', ['a"b\\c\\d$x']),
        ("'a\\b' \\'", ["a\\b", "'"]),
        ("'open", ["open"]),
        ('"open \\', ["open \\"]),
        ('"open\\"', ['open"']),
        ("end\\", ["end\\"]),
        ("*.txt $HOME `id` | > &", ["*.txt", "$HOME", "`id`", "|", ">", "&"]),
        ("", []),
    ],
)
def test_a_line_is_split_and_nothing_in_it_expanded(line: str, words: list[str]) -> None:
    assert split_arguments(line) == words


@given(st.lists(st.text(st.characters(exclude_characters="'"))))
def test_quoted_words_come_back(words: list[str]) -> None:
    assert split_arguments(" ".join(f"'{word}'" for word in words)) == words


@given(st.text("a \\\"'\n"))
def test_any_text_can_be_split_and_no_letter_is_lost(text: str) -> None:
    assert sum(word.count("a") for word in split_arguments(text)) == text.count("a")


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"skill": "FUEL", "path": "./scripts/budget.py"}, "scripts/budget.py"),
        ({"skill": "$fuel", "path": "fuel/scripts/budget.py"}, "scripts/budget.py"),
        ({"skill_name": "fuel", "script": "scripts\\budget.py"}, "scripts/budget.py"),
        ({"name": "fuel", "file": "${CLAUDE_SKILL_DIR}/scripts/budget.py"}, "scripts/budget.py"),
        ({"skill": "fuel", "resource": "scripts/budget.py"}, "scripts/budget.py"),
        ({"skill_name": "fuel", "script_name": "scripts/budget.py"}, "scripts/budget.py"),
        ({"skill_name": "fuel", "script_path": "scripts/budget.py"}, "scripts/budget.py"),
        ({"skill": "fuel", "path": "$SKILL_DIR/scripts/budget.py"}, "scripts/budget.py"),
        ({"skill": "fuel", "path": "{baseDir}/scripts/budget.py"}, "scripts/budget.py"),
    ],
)
async def test_the_names_and_paths_that_models_write(root: Path, arguments: Mapping[str, Json], path: str) -> None:
    result = await call(tool(root), **arguments)
    assert (result.ok, result.skill, result.path) == (True, "fuel", path)


async def test_a_folder_of_the_skill_s_own_name_is_a_folder(root: Path) -> None:
    files = {"twin/run.py": "print('the folder')\n", "run.py": "print('the root')\n"}
    write_skill(root / "skills", "twin", files=files)
    to = tool(root, to=access(root, reachable=("twin",)))
    for path, said in (("twin/run.py", "the folder"), ("run.py", "the root"), ("twin/twin/run.py", "the folder")):
        assert said in (await call(to, skill="twin", path=path)).text


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("scripts/budget.py 5 'a b'", {"skill": "fuel", "path": "scripts/budget.py", "args": "5 'a b'"}),
        ("fuel/scripts/budget.py 5", {"skill": "fuel", "path": "scripts/budget.py", "args": "5"}),
        ("python scripts/budget.py", {"skill": "fuel", "path": "scripts/budget.py"}),
        ("python3 $SKILL_DIR/scripts/budget.py 5", {"skill": "fuel", "path": "scripts/budget.py", "args": "5"}),
        ("budget.py", {"skill": "fuel", "path": "scripts/budget.py", "args": "2400 --reserve 5"}),
        ("scripts/budgets.py", {"skill": "fuel", "path": "scripts/budget.py", "args": "2400 --reserve 5"}),
        ("", {"skill": "fuel", "path": "scripts/budget.py", "args": "2400 --reserve 5"}),
        ("SKILL.md", {"skill": "fuel", "path": "scripts/budget.py", "args": "2400 --reserve 5"}),
    ],
)
async def test_a_path_that_is_none_is_answered_with_the_call_that_was_meant(
    root: Path, path: str, meant: dict[str, str]
) -> None:
    result = await call(tool(root), skill="fuel", path=path)
    assert not result.ok
    assert result.text.startswith("Error: ")
    shown = result.text[result.text.index("{") : result.text.rindex("}") + 1]
    assert json.loads(shown) == meant


@pytest.mark.parametrize(
    "path", ["../prose/references/a.md", "/etc/passwd", "~/x.py", "scripts/../../x.py", ".git/x.sh"]
)
async def test_paths_that_lead_elsewhere_are_refused(root: Path, path: str) -> None:
    result = await call(tool(root), skill="fuel", path=path)
    assert (result.ok, result.code) == (False, "path-refused")
    assert "exit code" not in result.text


async def test_what_cannot_be_run_is_said_in_a_sentence(root: Path) -> None:
    to = tool(root)
    reference = await call(to, skill="fuel", path="references/a.md")
    assert (reference.ok, reference.code) == (False, "script-not-runnable")
    assert ".py, .js" in reference.text
    none = await call(to, skill="prose", path="scripts/x.py")
    assert 'The skill "prose" ships no script that can be run here.' in none.text
    unknown = await call(to, skill="gone", path="scripts/x.py")
    assert (unknown.code, "Available skills: fuel, prose" in unknown.text) == ("skill-not-found", True)
    missing = await call(to, path="scripts/x.py")
    assert missing.text.startswith("Error: skills_run needs the name of a skill.")
    unreachable = await call(tool(root, to=access(root, reachable=("prose",))), skill="fuel", path="scripts/budget.py")
    assert unreachable.code == "skill-not-found"
    nul = await call(to, skill="fuel", path="scripts/budget.py", args=["a\0b"])
    assert (nul.ok, nul.code) == (False, "arguments-unreadable")
    refused = await call(tool(root, sandbox="required"), skill="fuel", path="scripts/budget.py")
    assert (refused.ok, refused.code) == (False, "sandbox-unavailable")
    assert refused.text.startswith("Error: ")
    assert "no OS sandbox" in refused.text


async def test_a_failed_script_is_no_success_and_keeps_what_it_said(root: Path) -> None:
    to = tool(root, to=access(root))
    (root / "skills" / "fuel" / "scripts" / "other.sh").write_text("echo out; echo bad >&2; exit 4\n")
    result = await call(to, skill="fuel", path="scripts/other.sh")
    assert (result.ok, result.code) == (False, "script-failed")
    assert result.text.startswith("Ran scripts/other.sh (exit code 4, sandbox: none)")
    assert result.text.endswith("stdout:\nout\nstderr:\nbad")


async def test_produced_files_and_the_phases_are_told(root: Path, workspace: Workspace) -> None:
    (root / "skills" / "fuel" / "scripts" / "other.sh").write_text("echo 1 > out.csv\n")
    told: list[Progress] = []
    arguments: dict[str, Json] = {"skill": "fuel", "path": "scripts/other.sh"}
    result = await tool(root, workspace).run(
        ToolCall(call_id="c", name="skills_run", arguments=arguments), ToolContext(report=told.append)
    )
    assert result.files == ("out.csv",)
    assert [(item.phase, item.files) for item in told] == [("running", ()), ("finished", ("out.csv",))]


async def test_the_end_of_the_instructions_says_how_to_run_the_first_script(root: Path) -> None:
    def reading(name: str) -> ToolCall:
        return ToolCall(call_id="c", name="skills_read", arguments={"skill": name, "name": name})

    to = access(root)
    text = (await SkillsRead(to).run(reading("fuel"), ToolContext())).text
    hint = text.partition(HINT)[2]
    assert json.loads(hint[hint.index("{") :]) == {
        "skill": "fuel",
        "path": "scripts/budget.py",
        "args": "2400 --reserve 5",
    }
    assert hint.strip() in (await SkillRead(to).run(reading("fuel"), ToolContext())).text
    assert HINT not in (await SkillsRead(to).run(reading("prose"), ToolContext())).text
    assert HINT not in (await SkillsRead(access(root, runs=False)).run(reading("fuel"), ToolContext())).text


async def test_only_the_last_page_says_how_to_run_a_script(root: Path) -> None:
    write_skill(root / "skills", "long", body="Text.\n" * 60, files={"scripts/a.py": ECHO})
    library = discover([root / "skills"])
    to = SkillAccess(DirectorySource(library), library.skills, page_bytes=256, runnable=INTERPRETERS)
    read = SkillsRead(to)
    first = await read.run(ToolCall(call_id="c", name="r", arguments={"skill": "long"}), ToolContext())
    last = await read.run(ToolCall(call_id="c", name="r", arguments={"skill": "long", "offset": 256}), ToolContext())
    assert HINT not in first.text
    assert HINT in last.text


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("Run `scripts/a.py 5 x` now.", "5 x"),
        ("```\npython3 scripts/a.py --in FILE\n```\n", "--in FILE"),
        ("$ bash ./scripts/a.py 7\r\nmore", "7"),
        ("Run scripts/a.py for tables.", ""),
        ("`scripts/a.py` 5", ""),
        ("`other/scripts/a.pyx 5`", ""),
        ("See scripts/a.py.\n`~/skills/x/scripts/a.py 9`", "9"),
        ("", ""),
    ],
)
def test_a_command_in_the_instructions_shows_the_arguments(body: str, shown: str) -> None:
    assert usage(body, "scripts/a.py") == shown


async def test_choices_for_guided_models_are_the_scripts_of_what_was_read(root: Path) -> None:
    to = access(root)
    run = tool(root, to=to)
    assert run.spec.choices == ()
    await SkillsRead(to).run(ToolCall(call_id="c", name="r", arguments={"skill": "fuel"}), ToolContext())
    labels = {choice.arguments["path"]: choice.label for choice in run.spec.choices}
    assert labels == {
        "scripts/budget.py": "Run `python scripts/budget.py 2400 --reserve 5` for the budget.",
        "scripts/other.sh": "scripts/other.sh for the rest.",
    }
    texts: Json = {"type": "array", "items": {"type": "string"}}
    assert {choice.arguments["path"]: dict(choice.open) for choice in run.spec.choices} == {
        "scripts/budget.py": {"args": {**texts, "examples": [["2400", "--reserve", "5"]]}},
        "scripts/other.sh": {"args": texts},
    }
    await call(run, skill="fuel", path="scripts/budget.py")
    assert [choice.arguments["path"] for choice in run.spec.choices] == ["scripts/other.sh"]
    unguided = SkillAccess(
        DirectorySource(discover([root / "skills"])), to.skills, offers_choices=False, runnable=INTERPRETERS
    )
    await SkillsRead(unguided).run(ToolCall(call_id="c", name="r", arguments={"skill": "fuel"}), ToolContext())
    assert tool(root, to=unguided).spec.choices == ()


PARSED = (
    "import argparse, json, sys\np = argparse.ArgumentParser()\np.add_argument('--wind', type=float)\n"
    "p.add_argument('town')\np.parse_args()\nprint(json.dumps(sys.argv[1:]))\n"
)


async def test_arguments_that_a_script_declares_are_filled_in_by_name(root: Path) -> None:
    (root / "skills" / "fuel" / "scripts" / "budget.py").write_text(PARSED)
    to = access(root)
    run = tool(root, to=to)
    await SkillsRead(to).run(ToolCall(call_id="c", name="r", arguments={"skill": "fuel"}), ToolContext())
    (budget,) = [choice for choice in run.spec.choices if choice.arguments["path"] == "scripts/budget.py"]
    assert budget.open == {
        "args": {
            "type": "object",
            "properties": {
                "town": {"type": ["string", "null"]},
                "--wind": {"type": ["number", "null"], "default": None},
            },
            "required": ["town", "--wind"],
        }
    }
    values: Json = {"--wind": -4, "town": "Upper Brae"}
    assert await printed(run, skill="fuel", path="scripts/budget.py", args=values) == ["Upper Brae", "--wind", "-4"]
    wrong = await call(run, skill="fuel", path="scripts/budget.py", args={"city": "Nor"})
    assert (wrong.code, wrong.text.partition(". ")[0]) == (
        "arguments-unreadable",
        'Error: The script has no argument "city"',
    )


async def test_a_script_that_is_too_long_to_parse_is_given_a_list(root: Path) -> None:
    (root / "skills" / "fuel" / "scripts" / "budget.py").write_text(PARSED + "#" * MAX_SOURCE_CHARS)
    to = access(root)
    await SkillsRead(to).run(ToolCall(call_id="c", name="r", arguments={"skill": "fuel"}), ToolContext())
    kinds = [choice.open["args"] for choice in tool(root, to=to).spec.choices]
    assert [kind["type"] for kind in kinds if isinstance(kind, dict)] == ["array", "array"]
    refused = await call(tool(root, to=to), skill="fuel", path="scripts/budget.py", args={"town": "Nor"})
    assert refused.code == "arguments-unreadable"


async def test_it_is_offered_only_when_a_reachable_skill_ships_a_script(root: Path) -> None:
    assert await access(root).has_scripts()
    assert not await access(root, reachable=("prose",)).has_scripts()
    assert not await access(root, runs=False).has_scripts()
    assert not await access(root, reachable=()).has_scripts()


def test_the_declaration_is_flat_and_promises_what_holds(root: Path) -> None:
    spec = tool(root).spec
    properties = spec.parameters["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["skill", "path", "args"]
    assert [value["type"] for value in properties.values() if isinstance(value, dict)] == ["string"] * 3
    assert "The network is open" in spec.description

    class Confined(UnconfinedExecutor):
        @property
        def confinement(self) -> Confinement:
            return Confinement(backend="x", writes=True, network=True, home=True, process_tree=True)

        async def run(self, launch: Launch) -> Outcome:
            raise NotImplementedError(launch)

    def described(*, network: bool) -> str:
        options = ExecutionOptions(scripts=True, scripts_network=network)
        return SkillsRun(access(root), ScriptRunner(Confined(), options)).spec.description

    assert "It has no network" in described(network=False)
    assert "The network is open" in described(network=True)


class Elsewhere:
    """A source without directories, as one over a network would be."""

    label = "elsewhere"
    may_shadow = True

    def __init__(self, inner: DirectorySource) -> None:
        self._inner = inner

    async def scan(self, *, since: str | None = None) -> Catalog | None:
        return await self._inner.scan(since=since)

    async def load(self, ref: SkillRef) -> LoadedSkill:
        return await self._inner.load(ref)

    async def read(self, ref: SkillRef, path: str, *, offset: int = 0, max_bytes: int) -> Page:
        return await self._inner.read(ref, path, offset=offset, max_bytes=max_bytes)


async def test_a_skill_without_a_directory_runs_from_a_private_copy_of_its_texts(root: Path) -> None:
    library = discover([root / "skills"])
    source = Elsewhere(DirectorySource(library))
    assert not isinstance(source, HasDirectories)
    to = SkillAccess(source, library.skills, runnable=INTERPRETERS)
    (root / "skills" / "fuel" / "scripts" / "other.sh").write_text(
        'cat "$SKILL_DIR/references/a.md"; echo "$SKILL_DIR"\n'
    )
    result = await call(tool(root, to=to), skill="fuel", path="scripts/other.sh")
    first, directory = result.text.partition("stdout:\n")[2].split("\n")
    assert first == "A"
    assert not directory.startswith(str(root / "skills"))
    assert not Path(directory).exists()  # noqa: ASYNC240 - a check


async def test_a_source_of_directories_gives_its_own(root: Path) -> None:
    library = discover([root / "skills"])
    source = DirectorySource(library)
    assert isinstance(source, HasDirectories)
    async with source.directory(library.skills[0].ref) as found:
        assert found == str(root / "skills" / "fuel")
