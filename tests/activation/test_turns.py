from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

from satchel import MemorySkillRegistry, SkillSession, SkillTurns, inline
from satchel.activation.registry import FilesystemSkillRegistry
from satchel.errors import SetupError
from satchel.library import load_skill
from satchel.skills.model import Skill
from tests.activation.shelves import allow, put, session_over


def turns_over(root: Path, **options: Any) -> SkillTurns:
    session = session_over(root, dialect=options.pop("dialect", "portable"), bodies=options.pop("bodies", "system"))
    return SkillTurns(session, **options)


def call(name: str) -> dict[str, Any]:
    return {"id": "1", "function": {"name": "skill", "arguments": json.dumps({"name": name})}}


def said(turns: SkillTurns) -> str:
    message = turns.system_message()
    return "" if message is None else str(message["content"])


def named(skills: tuple[Skill, ...]) -> list[str]:
    return [skill.name for skill in skills]


async def test_a_model_that_activates_finds_the_instructions_in_the_next_system_message(tmp_path: Path) -> None:
    put(tmp_path, "deploy", body="Ship it.\n")
    turns = turns_over(tmp_path)
    await turns.begin("deploy please")
    before = said(turns)
    assert "- deploy: Sample skill for tests." in before
    assert "that then stand in this prompt" in before
    assert "Ship it." not in before
    (answer,) = await turns.answer([call("deploy")])
    assert cast("Any", answer)["content"] == (
        '(Skill "deploy" activated. Its instructions stand in the system prompt.)'
    )
    after = said(turns)
    assert after.startswith('## Active skills\n\n<skill name="deploy"')
    assert "Ship it." in after
    assert "- deploy:" not in after


async def test_active_skills_keep_their_place_when_others_come(tmp_path: Path) -> None:
    for name in ("b", "a"):
        put(tmp_path, name, body=f"Body of {name}.\n")
    turns = turns_over(tmp_path)
    await turns.begin("/b")
    first = said(turns)
    await turns.begin("/a")
    assert said(turns).startswith(first)


async def test_where_results_hold_the_bodies_the_prompt_does_not_repeat_them(tmp_path: Path) -> None:
    put(tmp_path, "deploy", body="Ship it.\n")
    turns = turns_over(tmp_path, bodies="result")
    await turns.begin("deploy")
    assert "that it returns" in said(turns)
    (answer,) = await turns.answer([call("deploy")])
    assert "Ship it." in str(answer)
    assert turns.system_message() is None


async def test_a_resolver_of_ones_own_gets_what_is_not_active_and_can_name_nothing_else(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        put(tmp_path / "root", name)
    put(tmp_path / "root", "hidden", "disable-model-invocation: true")
    given: list[list[str]] = []
    put(tmp_path / "elsewhere", "stranger")
    others = [await asyncio.to_thread(load_skill, tmp_path / path) for path in ("elsewhere/stranger", "root/hidden")]

    async def resolver(text: str, skills: Any) -> list[Any]:
        given.append([text, *(skill.name for skill in skills)])
        return [None, *(other.skill for other in others), *reversed(skills), *skills]

    turns = turns_over(tmp_path / "root", resolver=resolver, max_candidates=2)
    await turns.session.activate("a")
    begun = await turns.begin("Which?")
    assert given == [["Which?", "b", "c", "d"]]
    assert named(begun.candidates) == ["d", "c"]


async def test_a_plain_resolver(tmp_path: Path) -> None:
    put(tmp_path, "a")
    turns = turns_over(tmp_path, resolver=lambda _, skills: skills)
    assert named((await turns.begin("x")).candidates) == ["a"]


async def _raises(text: str, skills: Any) -> list[Skill]:
    raise RuntimeError(text)


async def _hangs(text: str, skills: Any) -> list[Skill]:
    await asyncio.Event().wait()
    return []


@pytest.mark.parametrize("resolver", [_raises, _hangs, lambda _, __: None, lambda _, __: 1 / 0])
async def test_a_resolver_that_fails_proposes_nothing(
    tmp_path: Path, resolver: Any, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path, "a")
    turns = turns_over(tmp_path, resolver=resolver, resolver_timeout_s=0.01)
    assert (await turns.begin("a")).candidates == ()
    assert "the resolver of skills" in caplog.text


@pytest.mark.parametrize("most", [0, -1])
async def test_no_candidates_at_all(tmp_path: Path, most: int) -> None:
    put(tmp_path, "a")
    turns = turns_over(tmp_path, max_candidates=most)
    assert (await turns.begin("a")).candidates == ()
    assert turns.system_message() is None


async def test_a_refused_skill_is_not_asked_for_at_every_file(tmp_path: Path) -> None:
    put(tmp_path, "deploy", "paths: [infra/**]")
    asked: list[object] = []

    def deny(request: object) -> str:
        asked.append(request)
        return "deny"

    session = session_over(tmp_path, dialect="tnsai", permission=deny, bodies="system")
    turns = SkillTurns(session)
    (refused,) = (await turns.begin("", files=["infra/a"])).activated
    assert (refused.code, session.active) == ("NOT_TRUSTED", ())
    assert (await turns.begin("", files=["infra/b"])).activated == ()
    await turns.refresh()
    assert len((await turns.begin("", files=["infra/a"])).activated) == 1
    assert len(asked) == 2


async def test_a_model_may_not_have_by_a_file_what_it_may_not_have_at_all(tmp_path: Path) -> None:
    put(tmp_path, "deploy", "paths: [infra/**]", "disable-model-invocation: true")
    turns = turns_over(tmp_path, dialect="tnsai")
    begun = await turns.begin("deploy", files=["infra/a"])
    assert (begun.activated, begun.candidates, turns.session.active) == ((), (), ())


async def test_files_at_hand_come_before_words(tmp_path: Path) -> None:
    put(tmp_path, "wordy")
    put(tmp_path, "filed", "paths: ['*.tf']")
    turns = turns_over(tmp_path, max_candidates=1)
    assert named((await turns.begin("wordy", files=["a.tf"])).candidates) == ["filed"]
    assert named((await turns.begin("wordy")).candidates) == ["wordy"]


async def test_the_policy_off_does_nothing(tmp_path: Path) -> None:
    put(tmp_path, "deploy", "paths: [infra/**]")
    turns = turns_over(tmp_path, dialect="tnsai", policy="off")
    begun = await turns.begin("/deploy staging", files=["infra/a.tf"])
    assert (begun.command, begun.activated, begun.candidates) == (None, (), ())
    assert (turns.session.active, turns.system_message(), turns.tools()) == ((), None, [])


async def test_the_policy_manual_only_leaves_it_to_people_and_programs(tmp_path: Path) -> None:
    for name in ("deploy", "lint"):
        put(tmp_path, name, "paths: [infra/**]", body=f"Body of {name}.\n")
    turns = turns_over(tmp_path, dialect="tnsai", policy="manual-only")
    begun = await turns.begin("deploy the build", files=["infra/a.tf"])
    assert (begun.activated, begun.candidates) == ((), ())
    assert (turns.tools(), turns.system_message()) == ([], None)
    (answer,) = await turns.answer([call("deploy")])
    assert "DISABLED" in str(answer)
    assert turns.session.active == ()
    await turns.begin("/deploy prod")
    await turns.session.activate("lint", by="program")
    assert named(turns.session.active) == ["deploy", "lint"]
    assert "Body of deploy." in said(turns)


async def test_at_most_so_many_candidates_as_the_host_says(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path, f"build-{number}")
    assert len((await turns_over(tmp_path).begin("build")).candidates) == 3
    turns = turns_over(tmp_path, max_candidates=1)
    assert named((await turns.begin("build")).candidates) == ["build-0"]


def test_an_unknown_policy(tmp_path: Path) -> None:
    with pytest.raises(SetupError):
        turns_over(tmp_path, policy="sometimes")


async def test_skills_of_a_program_are_its_own_and_replace_each_other() -> None:
    registry = MemorySkillRegistry([inline(name="a", description="A.", instructions="Old.")])
    registry.register(inline(name="a", description="A.", instructions="New."))
    session = SkillSession(registry)
    assert (await session.activate("a")).body == "New."
    assert (registry.unregister("a"), registry.unregister("a")) == (True, False)
    assert await registry.load("a") is None


def test_a_skill_of_a_directory_is_not_a_programs_own(tmp_path: Path) -> None:
    registry = MemorySkillRegistry()
    with pytest.raises(SetupError) as caught:
        registry.register(inline(name="a", description="A.", instructions="x"), load_skill(put(tmp_path, "b")))
    assert caught.value.code == "setting-invalid"
    assert registry.unregister("a") is False


async def test_a_broken_skill_on_disk_does_not_hide_a_programs_own(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "SKILL.md").write_text("broken")
    memory = MemorySkillRegistry([inline(name="a", description="A.", instructions="Mine.")])
    session = SkillSession([FilesystemSkillRegistry(tmp_path), memory], permission=allow)
    assert (await session.activate("a")).body == "Mine."
