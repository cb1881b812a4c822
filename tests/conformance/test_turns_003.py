"""Seed 003, skills at work: the store and the resolver, several active skills, files and tools, in its row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from satchel import MemorySkillRegistry, SkillSession, SkillTurns, ToolPolicy, inline
from satchel.activation.enforce import ToolDecision
from satchel.skills.model import LoadedSkill
from tests.activation.shelves import allow
from tests.conformance.reading import skill, text, write

ROW = "tnsai"
DEPLOY = text(
    "name: deploy",
    "description: Production deploy procedure",
    "when-to-use: When the user asks to ship a build",
    "allowed-tools: [bash, kubectl]",
    "arguments: [environment]",
    "paths: ['infra/**']",
    body="# Deploy to $0 as ${BUILD_TAG}\n",
)
LINT = text("name: lint", "description: Checks a build", "allowed-tools: [eslint]", body="# Lint\n")


def session_of(root: Path, *more: Any, **options: Any) -> SkillSession:
    chosen: dict[str, Any] = {"permission": allow, "bodies": "system", "environ": {"BUILD_TAG": "v1.4.2"}} | options
    return SkillSession([root, *more], dialect=ROW, **chosen)


def made(name: str, instructions: str, *tools: str) -> LoadedSkill:
    return inline(name=name, description="Made.", instructions=instructions, allowed_tools=tools, dialect=ROW)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "deploy", DEPLOY)
    write(tmp_path, "lint", LINT)
    return tmp_path


def content(turns: SkillTurns) -> str:
    message = turns.system_message()
    return "" if message is None else str(message["content"])


def names(skills: Any) -> list[str]:
    return [item.name for item in skills]


async def test_the_bodies_of_all_active_skills_stand_in_the_system_prompt(root: Path) -> None:
    turns = SkillTurns(session_of(root))
    begun = await turns.begin("/deploy staging")
    assert begun.command is not None
    assert begun.command.kind == "ok"
    await turns.begin("/LINT")
    assert names(turns.session.active) == ["deploy", "lint"]
    prompt = content(turns)
    assert "# Deploy to staging as v1.4.2\n" in prompt
    assert "# Lint\n" in prompt


async def test_candidates_are_the_skills_that_share_most_words_with_the_message(root: Path) -> None:
    for number in range(4):
        write(root, f"build-{number}", skill(f"build-{number}"))
    turns = SkillTurns(session_of(root))
    assert names((await turns.begin("ship the build")).candidates) == ["deploy", "build-0", "build-1"]
    listed = content(turns)
    assert "- build-1: Sample skill for tests." in listed
    assert "- build-2:" not in listed
    assert names((await turns.begin("ship a release")).candidates) == ["deploy", "lint"]
    assert names((await turns.begin("asks")).candidates) == ["deploy"]
    assert (await turns.begin("Guten Tag")).candidates == ()
    assert turns.system_message() is None


async def test_phrases_in_when_to_use_move_a_skill_ahead(root: Path) -> None:
    turns = SkillTurns(session_of(root))
    assert names((await turns.begin("a build")).candidates) == ["deploy", "lint"]
    assert names((await turns.begin("lint")).candidates) == ["lint"]


async def test_the_policy_auto_lets_a_model_activate_what_it_may(root: Path) -> None:
    write(root, "inner", text("name: inner", "description: A build", "disable-model-invocation: true"))
    turns = SkillTurns(session_of(root))
    assert turns.policy == "auto"
    assert "inner" not in names((await turns.begin("inner build")).candidates)
    assert len(turns.tools()) == 1
    calls = [
        {"id": name, "function": {"name": "skill", "arguments": f'{{"name": "{name}"}}'}} for name in ("lint", "inner")
    ]
    first, second = (str(answer) for answer in await turns.answer(calls))
    assert "activated" in first
    assert "DISABLED" in second
    assert names(turns.session.active) == ["lint"]
    assert (await turns.session.activate("inner", by="program")).kind == "ok"


async def test_a_user_may_not_start_what_is_not_for_users(root: Path) -> None:
    write(root, "inner", text("name: inner", "description: D", "user-invocable: false"))
    turns = SkillTurns(session_of(root))
    begun = await turns.begin("/inner")
    assert begun.command is not None
    assert (begun.command.code, turns.session.active) == ("DISABLED", ())
    assert (await turns.session.activate("inner", by="program")).kind == "ok"


async def test_files_at_hand_activate_in_this_row_and_propose_in_portable(root: Path) -> None:
    turns = SkillTurns(session_of(root))
    (activated,) = (await turns.begin("Look here.", files=["infra/main.tf"])).activated
    assert (activated.kind, activated.name) == ("ok", "deploy")
    assert (await turns.begin("And here.", files=["infra/main.tf"])).activated == ()
    portable = SkillTurns(SkillSession(root, permission=allow, bodies="system"))
    begun = await portable.begin("Look here.", files=["src/main.py", "infra/main.tf"])
    assert (begun.activated, names(begun.candidates)) == ((), ["deploy"])
    assert portable.session.active == ()


async def decided(session: SkillSession, *tools: str) -> list[ToolDecision]:
    return [await session.check_call(tool, {}) for tool in tools]


async def test_tools_are_granted_while_their_skill_is_active(root: Path) -> None:
    policy = ToolPolicy(hook=lambda _: "deny", preapprove=True)
    session = session_of(root, permission=lambda _: "allow_tools", tool_policy=policy)
    assert [item.allowed for item in await decided(session, "kubectl", "eslint")] == [False, False]
    await session.activate("deploy")
    granted, other = await decided(session, "kubectl", "eslint")
    assert (granted.allowed, granted.who, granted.skill) == (True, "pre-approval", "deploy")
    assert not other.allowed
    session.unload("deploy")
    assert not (await decided(session, "kubectl"))[0].allowed


async def test_the_filter_is_the_union_of_what_active_skills_allow(root: Path) -> None:
    free = MemorySkillRegistry([made("free", "Anything.")])
    session = session_of(root, free, tool_policy=ToolPolicy(enforce=True))
    tools = ("bash", "eslint", "rm")
    assert [item.allowed for item in await decided(session, *tools)] == [True, True, True]
    await session.activate("free")
    assert [item.allowed for item in await decided(session, *tools)] == [True, True, True]
    await session.activate("deploy")
    assert [item.allowed for item in await decided(session, *tools)] == [True, False, False]
    await session.activate("lint")
    assert [item.allowed for item in await decided(session, *tools)] == [True, True, False]


async def test_skills_of_a_program_survive_a_refresh_and_a_file_of_their_name_wins(root: Path) -> None:
    store = MemorySkillRegistry([made("deploy", "From the program."), made("plan", "Plan.")])
    turns = SkillTurns(session_of(root, store))
    assert (await turns.session.activate("plan")).body == "Plan."
    turns.session.unload("plan")
    write(root, "fresh", text("description: New on disk"))
    store.register(made("later", "Later."))
    assert (await turns.session.activate("fresh")).kind == "not_found"
    entries = await turns.refresh()
    assert names(entries) == ["deploy", "fresh", "later", "lint", "plan"]
    assert names((await turns.begin("fresh")).candidates) == ["fresh"]
    for name, body in (("plan", "Plan."), ("later", "Later."), ("fresh", "Body.\n")):
        assert (await turns.session.activate(name)).body == body
    assert (await turns.session.activate("deploy")).body.startswith("# Deploy to")
