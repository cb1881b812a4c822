"""Points of our table of conflicts that come after reading (38 to 48): what of them there is, with each design's dialect.

Activation once a session, rankings and permission are no matter of reading; what is tested here is what tools,
listings and placement do with a library that was read in any of the five dialects.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.activation.enforce import ToolPolicy
from satchel.activation.session import SkillSession
from satchel.activation.turns import SkillTurns
from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.messages import Json, Text, message
from satchel.context import Assembler, Blocklist
from satchel.context.block import BlockOptions, plan
from satchel.context.listings import available_skills, format_skill_listing, render_section
from satchel.context.place import place
from satchel.library import Library, discover
from satchel.sources.directory import DirectorySource
from satchel.tools.access import SkillAccess
from satchel.tools.base import ToolCall, ToolContext
from satchel.tools.skills_list import SkillsList
from satchel.tools.skills_read import SkillsRead
from tests.activation.shelves import allow, brief
from tests.conformance.reading import SEEDS, D, text, write

LONG = "Sorts things. " * 100


@pytest.fixture
def root(tmp_path: Path) -> Path:
    pdf = write(tmp_path, "pdf", text("name: pdf", D, body="# PDF\n"))
    for number in range(45):
        (pdf / "scripts").mkdir(exist_ok=True)
        (pdf / "scripts" / f"s{number:02}.py").write_text("print()\n")
    write(tmp_path, "tidy", text("name: tidy", D))
    return tmp_path


def access(library: Library) -> SkillAccess:
    return SkillAccess(DirectorySource(library), library.skills)


async def call(library: Library, *calls: dict[str, Json]) -> list[str]:
    tool = SkillsRead(access(library))
    done = [
        await tool.run(ToolCall(call_id="c", name="skills_read", arguments=given), ToolContext()) for given in calls
    ]
    return [result.text for result in done]


@pytest.mark.parametrize("row", SEEDS)
async def test_38_reading_a_skill_again_answers_again(row: str, root: Path) -> None:
    first, second = await call(discover([root], dialect=row), {"skill": "pdf"}, {"skill": "pdf"})
    assert "# PDF" in first
    assert "# PDF" in second
    assert ("read this before" in first, "read this before" in second) == (False, True)


@pytest.mark.parametrize("row", SEEDS)
async def test_41_an_unknown_name_is_answered_with_all_there_are(row: str, root: Path) -> None:
    (answer,) = await call(discover([root], dialect=row), {"skill": "pfd"})
    assert answer.endswith('No skill called "pfd" is available. Available skills: pdf, tidy.')


@pytest.mark.parametrize("row", SEEDS)
def test_42_lines_of_a_listing(row: str, root: Path) -> None:
    skills = discover([root], dialect=row).skills
    about = "Sample skill for tests."
    plain = format_skill_listing(skills, dialect=row).text.splitlines()
    assert plain == [f"- pdf: {about}", f"- tidy: {about}"]
    assert f"- pdf: {about}" in plan((), skills, BlockOptions(read_tool=True, list_tool=True)).text.splitlines()
    assert f"- tidy: {about} (file: {root / 'tidy' / 'SKILL.md'})" in render_section(skills, dialect=row).text
    assert f"<description>{about}" in available_skills(skills, dialect=row).text


@pytest.mark.parametrize("row", SEEDS)
def test_42_how_much_of_a_description_a_listing_shows(row: str, tmp_path: Path) -> None:
    write(tmp_path, "sort", text("name: sort", f"description: {LONG}"))
    skills = discover([tmp_path], dialect=row).skills
    shown = [len(line) for line in format_skill_listing(skills, dialect=row).text.splitlines()]
    # agent-sh refuses what is longer than 1,024; two of the others show 1,024 and two show all.
    sizes = {"agent-sh": [], "tensorsharp": [1024], "flowcraft": [1024], "tnsai": [1399], "contextchef": [1399]}
    assert [size - len("- sort: ") for size in shown] == pytest.approx(sizes[row], abs=24)


@pytest.mark.parametrize("row", SEEDS)
def test_43_the_block_joins_the_first_system_message_wherever_skills_come_from(row: str, root: Path) -> None:
    library = discover([root], dialect=row)
    for tools in (True, False):
        options = BlockOptions(read_tool=tools, list_tool=tools)
        block = plan([library.load("pdf")], [] if not tools else library.skills, options).text
        given = (message("system", "Be brief."), message("user", "Hi."))
        placed = place(given, block, ModelCapabilities())
        assert [item.role for item in placed] == ["system", "user"]
        (part,) = placed[0].parts
        assert isinstance(part, Text)
        assert part.text == f"Be brief.\n\n{block}"
        assert ("# PDF" in part.text) is not tools


@pytest.mark.parametrize("row", SEEDS)
async def test_44_nothing_is_ranked_unless_somebody_asks_for_a_ranking(row: str, root: Path) -> None:
    write(root, "aged", text("name: aged", "description: Turns a page yellow."))
    library = discover([root], dialect=row)
    names = ["aged", "pdf", "tidy"]
    session = SkillSession(library, permission=allow)
    for listed in (
        format_skill_listing(library.skills, dialect=row).text,
        plan((), library.skills, BlockOptions(read_tool=True, list_tool=True)).text,
        str(session.system_message()["content"]),
        str(Assembler().set_system_prompt(format_skill_listing(library.skills).text).compile().messages),
    ):
        places = [listed.index(f"- {name}: ") for name in names]
        assert places == sorted(places)
    assert [skill.name for skill, _ in library.catalog.rank("tidy the yellow page")] == ["tidy", "aged"]
    turns = SkillTurns(session, max_candidates=1)
    assert [skill.name for skill in (await turns.begin("tidy the yellow page")).candidates] == ["tidy"]
    found = await SkillTurns(session, resolver=lambda _, skills: skills[::-1]).begin("tidy")
    assert [skill.name for skill in found.candidates] == names[::-1]


@pytest.mark.parametrize("row", SEEDS)
async def test_45_files_beside_a_body(row: str, root: Path) -> None:
    library = discover([root], dialect=row)
    (read,) = await call(library, {"skill": "pdf"})
    assert (read.count("- scripts/"), "(5 more; call skills_list" in read) == (40, True)
    tool = SkillsList(access(library))
    listed = await tool.run(ToolCall(call_id="c", name="skills_list", arguments={}), ToolContext())
    assert (listed.text.count("scripts/"), "… and 15 more" in listed.text) == (30, True)


@pytest.mark.parametrize("row", SEEDS)
async def test_46_a_hook_an_operator_s_settings_and_a_blocklist_are_layers_of_their_own(row: str, root: Path) -> None:
    write(root, "sweep", text("name: sweep", D, "allowed-tools: [broom]", body="Sweep.\n"))
    library = discover([root], dialect=row)
    # The hook decides about an activation, in every row, and "ask" is no.
    for hook in (None, lambda _: "ask", lambda _: "deny"):
        session = SkillSession(library, permission=hook)
        assert brief(await session.activate("sweep")) == ("error", "NOT_TRUSTED")
    asked: list[object] = []
    session = SkillSession(library, permission=lambda request: asked.append(request) or "allow")
    assert (await session.activate("sweep")).kind == "ok"
    assert len(asked) == 1
    # The tools of a server, which its operator switched on, ask nobody.
    (read,) = await call(library, {"skill": "sweep"})
    assert ("Sweep." in read, len(asked)) == (True, 1)
    # What a program blocks says nothing to the session, and what the session denies nothing to the program.
    blocked = Blocklist(["broom"])
    assert not blocked.check_tool_call({"name": "broom"}).allowed
    assert (await session.check_call("broom", {})).allowed
    strict = SkillSession(library, permission=allow, tool_policy=ToolPolicy(deny=["broom"]))
    assert not (await strict.check_call("broom", {})).allowed
    assert Blocklist().check_tool_call({"name": "broom"}).allowed


def test_48_names_of_tools_have_no_dots_and_no_hyphens(root: Path) -> None:
    tools = access(discover([root]))
    assert [tool.spec.name for tool in (SkillsList(tools), SkillsRead(tools))] == ["skills_list", "skills_read"]
