from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from satchel.activation.registry import CompositeSkillRegistry, FilesystemSkillRegistry
from satchel.activation.session import SkillSession
from satchel.errors import SetupError, SkillError, StoreError
from satchel.library import discover
from satchel.ports.skills import SkillEntry
from satchel.skills.model import LoadedSkill
from satchel.skills.plain import inline
from satchel.sources.directory import DirectorySource
from tests.activation.shelves import D, allow, brief, put
from tests.conformance.reading import text, write


class Made:
    """A host's own registry."""

    def __init__(self, *skills: LoadedSkill) -> None:
        self.skills = {item.name: item for item in skills}
        self.discovered = 0

    async def discover(self) -> Sequence[SkillEntry]:
        self.discovered += 1
        return [SkillEntry(name=name, skill=item.skill) for name, item in self.skills.items()]

    async def load(self, name: str) -> LoadedSkill | None:
        return self.skills.get(name)


def made(name: str, body: str = "Made.") -> LoadedSkill:
    return inline(name=name, description=f"Is {name}.", instructions=body)


def session_of(skills: Any, **options: Any) -> SkillSession:
    chosen: dict[str, Any] = {"permission": allow, **options}
    return SkillSession(skills, **chosen)


async def test_the_default_registry_lists_skills_with_their_places(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    put(second, "b")
    put(first, "a")
    put(second, "a")
    write(second, "c", text("name: other", D))
    registry = FilesystemSkillRegistry([first, second], dialect="agent-sh")
    entries = await registry.discover()
    assert [(entry.name, entry.root_index, entry.dir) for entry in entries] == [
        ("a", 0, str(first / "a")),
        ("b", 1, str(second / "b")),
        ("c", 0, str(second / "c")),
    ]
    assert (entries[0].description, entries[0].frontmatter["name"]) == ("Sample skill for tests.", "a")
    assert [item.rule for item in entries[2].diagnostics] == ["name-directory-mismatch"]
    assert await registry.discover() is entries
    loaded = await registry.load("b")
    assert loaded is not None
    assert loaded.body == "Body.\n"
    assert await registry.load("nothing") is None


async def test_a_root_given_through_a_link_keeps_its_index(tmp_path: Path) -> None:
    put(tmp_path / "real", "a")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (entry,) = await FilesystemSkillRegistry([tmp_path / "empty", tmp_path / "link"]).discover()
    assert (entry.root_index, entry.root) == (1, str(tmp_path / "real"))


async def test_a_skill_in_another_root_behind_a_link_is_inside_the_fence(tmp_path: Path) -> None:
    put(tmp_path / "shared", "a")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a").symlink_to(tmp_path / "shared" / "a")
    roots = [tmp_path / "project", tmp_path / "shared"]
    session = session_of(roots, permission=None, unsafe_allow_skill_without_hook=True)
    assert (await session.activate("a")).kind == "ok"


async def test_a_registry_of_the_host_s_own_is_asked_once(tmp_path: Path) -> None:
    registry = Made(made("plan", "Do $ARGUMENTS."))
    session = session_of(registry)
    with pytest.raises(SetupError) as caught:
        session.system_message()
    assert "discover()" in caught.value.hint
    assert [entry.name for entry in await session.discover()] == ["plan"]
    assert "- plan: Is plan." in cast("str", session.system_message()["content"])
    assert (await session.activate("plan", "it")).body == "Do it."
    assert brief(await session.activate("deploy")) == ("not_found", "NOT_FOUND")
    assert registry.discovered == 1
    registry.skills["deploy"] = made("deploy")
    await session.reload()
    assert (await session.activate("deploy")).kind == "ok"
    del registry.skills["plan"]
    session.unload("plan")
    assert brief(await session.activate("plan")) == ("error", "IO_ERROR")


async def test_what_another_registry_makes_is_not_trusted_by_itself() -> None:
    session = session_of(Made(made("plan")), permission=None)
    assert brief(await session.activate("plan")) == ("error", "NOT_TRUSTED")


async def test_registries_stand_wherever_a_root_does_and_the_first_wins(tmp_path: Path) -> None:
    project, user = tmp_path / "project", tmp_path / "user"
    put(project, "a", body="Project.\n")
    put(user, "a")
    put(user, "b", body="User.\n")
    session = session_of([project, Made(made("a"), made("b"), made("c")), user])
    entries = {entry.name: entry for entry in await session.discover()}
    assert {name: entry.root_index for name, entry in entries.items()} == {"a": 0, "b": 1, "c": 1}
    a = await session.activate("a")
    assert (a.body, (await session.activate("b")).body) == ("Project.\n", "Made.")
    assert cast("Any", a.frontmatter["metadata"])["shadowed"] == ("(no directory)", str(user / "a"))


async def test_a_broken_skill_never_takes_the_place_of_a_good_one(tmp_path: Path) -> None:
    write(tmp_path / "first", "a", text("name: a"))
    session = session_of([tmp_path / "first", Made(made("a"))])
    assert (await session.activate("a")).body == "Made."
    write(tmp_path / "second", "b", text("name: b"))
    good = session_of([Made(made("b")), tmp_path / "second"])
    assert (await good.activate("b")).body == "Made."


class Failing:
    async def discover(self) -> Sequence[SkillEntry]:
        raise ConnectionError("no route")

    async def load(self, name: str) -> LoadedSkill | None:
        raise ConnectionError("no route")


class FailsToLoad(Made):
    async def load(self, name: str) -> LoadedSkill | None:
        if name == "broken":
            raise SkillError("skill-invalid", "It is not what it was.", hint="Mend it.")
        raise ConnectionError("no route")


async def test_a_registry_that_fails_is_an_error_for_the_model_and_no_exception() -> None:
    session = session_of(Failing())
    for _ in range(2):
        reply = await session.activate("a")
        assert (brief(reply), reply.reason) == (("error", "IO_ERROR"), "the registry raised ConnectionError")
    again = await session.invoke("/a")
    assert again is not None
    assert brief(again) == ("error", "IO_ERROR")
    with pytest.raises(StoreError):
        await session.discover()
    loading = session_of(FailsToLoad(made("a"), made("broken")))
    reply = await loading.activate("a")
    assert (brief(reply), reply.reason) == (("error", "IO_ERROR"), "its registry raised ConnectionError")
    assert "It is not what it was." in (await loading.activate("broken")).output


async def test_one_failing_registry_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    session = session_of([Failing(), Made(made("a"))])
    assert (await session.activate("a")).kind == "ok"
    assert "a registry of skills raised ConnectionError; it is left out" in caplog.text
    assert await CompositeSkillRegistry([Failing()]).load("a") is None


async def test_a_source_is_a_registry_too(tmp_path: Path) -> None:
    folder = put(tmp_path, "a")
    source = DirectorySource(discover([tmp_path]))
    session = session_of(source)
    assert [entry.dir for entry in await session.discover()] == [str(folder)]
    assert (await session.activate("a")).kind == "ok"
    mixed = session_of([source, Made(made("c"))])
    assert [entry.name for entry in await mixed.discover()] == ["a", "c"]
    put(tmp_path, "b")
    for each in (session, mixed):
        await each.reload()
        assert (await each.activate("b")).kind == "ok"


def test_what_has_no_skills_is_refused() -> None:
    for wrong in (7, object(), [None]):
        with pytest.raises(SetupError) as caught:
            SkillSession(cast("Any", wrong))
        assert caught.value.code == "setting-invalid"


async def test_a_skill_that_broke_after_it_was_found(tmp_path: Path) -> None:
    folder = put(tmp_path, "a")
    session = session_of(discover([tmp_path], dialect="agent-sh"))
    for content, code in (
        (text("name: a", "description [x"), "INVALID_FRONTMATTER"),
        (text("name: b", D), "NAME_MISMATCH"),
    ):
        await asyncio.to_thread((folder / "SKILL.md").write_text, content)
        reply = await session.activate("a")
        assert brief(reply) == ("error", code)
        assert reply.path == str(folder / "SKILL.md")
    await asyncio.to_thread((folder / "SKILL.md").write_text, text("name: a", D))
    assert (await session.activate("a")).kind == "ok"


async def test_broken_skills_are_named_in_the_log_once_for_each_reading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, "silent", text("name: silent"))
    write(tmp_path, "plain", "No fence.\n")
    put(tmp_path, "good")
    library = discover([tmp_path], dialect="agent-sh")
    session = session_of(library)
    session_of(library)
    told = f"the skill in {tmp_path / 'silent'} cannot be used: The description is missing. (line 1)"
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [told]
    assert (await session.activate("good")).kind == "ok"
    caplog.clear()
    for number in range(30):
        write(tmp_path, f"silent-{number:02}", text("name: x"))
    await session.reload()
    lines = [record.getMessage() for record in caplog.records]
    assert (len(lines), lines[0], lines[-1]) == (21, told, "11 more skills cannot be used")
