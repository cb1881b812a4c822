"""When the listing had to leave skills out, the model is told how to find them, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.chat.capabilities import ModelCapabilities
from satchel.chat.messages import ToolOutput
from satchel.chat.request import ChatRequest
from satchel.engine.events import Notice, SkillLoaded
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.support import ask, collect, runtime_over, write_skill

OWN = ["skills_list", "skills_read"]
SEARCH = ["skill_search", "skill_read"]


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    for number in range(98):
        write_skill(tmp_path, f"a{number:02d}", description="Sample.")
    write_skill(tmp_path, "zebra", description="Paints stripes on horses.", body="Secret word: OKAPI.\n")
    return tmp_path


def names(request: ChatRequest) -> list[str]:
    return [tool.name for tool in request.tools]


def outputs(request: ChatRequest) -> list[str]:
    return [part.text for said in request.messages for part in said.parts if isinstance(part, ToolOutput)]


async def test_a_cut_listing_leads_to_a_search_and_the_search_to_the_skill(skills: Path) -> None:
    model = ScriptedModel(
        [
            Reply(calls=(call("skill_search", '{"query": "stripes, horse"}'),)),
            Reply(calls=(call("skill_read", '{"name": "zebra"}'),)),
            Reply(text=("OKAPI",)),
        ]
    )
    events, done = await collect(runtime_over(model, skills), ask())
    assert [names(request) for request in model.requests] == [[*OWN, *SEARCH]] * 3
    system = model.requests[0].messages[0].text
    assert "zebra" not in system
    assert "(3 further skills are installed; call skill_search with what the task is about, or skills_list" in system
    assert outputs(model.requests[2])[0].startswith("- zebra: Paints stripes on horses.")
    assert "Secret word: OKAPI." in outputs(model.requests[2])[1]
    assert [event.code for event in events if isinstance(event, Notice)] == ["catalog-cut"]
    assert [(event.ref.name, event.how) for event in events if isinstance(event, SkillLoaded)] == [("zebra", "read")]
    assert done.finish == "stop"


async def test_a_whole_listing_needs_no_search(skills: Path) -> None:
    for number in range(3):
        (skills / f"a{number:02d}" / "SKILL.md").unlink()
    model = ScriptedModel([Reply(calls=(call("skill_search", '{"query": "x"}'),)), Reply(text=("ok",))])
    await collect(runtime_over(model, skills), ask())
    assert names(model.requests[0]) == OWN
    assert "skill_search" not in model.requests[0].messages[0].text
    assert 'no tool called "skill_search"' in outputs(model.requests[1])[0]


async def test_selected_skills_alone_need_no_search(skills: Path) -> None:
    model = ScriptedModel([Reply(text=("ok",))])
    await collect(runtime_over(model, skills), ask(skills=("zebra",), discovery=False))
    assert names(model.requests[0]) == OWN


@pytest.mark.parametrize(("theirs", "ours"), [("Skill_Search", OWN), ("skill_read", OWN), ("skills_read", [])])
async def test_a_clients_tool_of_one_of_the_names_takes_its_pair_with_it(
    skills: Path, theirs: str, ours: list[str]
) -> None:
    model = ScriptedModel([Reply(text=("ok",))])
    await collect(runtime_over(model, skills), ask(tools=(theirs,)))
    assert names(model.requests[0]) == [theirs, *ours]
    assert "call skill_search" not in model.requests[0].messages[0].text


@pytest.mark.parametrize("tools", ["none", "guided"])
async def test_models_that_get_no_listing_get_no_search(skills: Path, tools: str) -> None:
    model = ScriptedModel(
        [Reply(text=("ok",))],
        capabilities=ModelCapabilities(tools=tools),  # pyright: ignore[reportArgumentType]
    )
    await collect(runtime_over(model, skills), ask())
    assert not set(names(model.requests[0])) & set(SEARCH)


async def test_nothing_is_declared_where_nothing_can_be_reached(tmp_path: Path) -> None:
    model = ScriptedModel([Reply(text=("ok",))])
    await collect(runtime_over(model, tmp_path), ask(tools=("weather",)))
    assert names(model.requests[0]) == ["weather"]
    assert model.requests[0].messages == ask().chat.messages
