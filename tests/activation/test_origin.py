"""Registries of skills as the origin of a runtime: what is listed, loaded and read, and by whom."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.activation.origin import RegistrySource
from satchel.activation.registry import MemorySkillRegistry, open_registry
from satchel.errors import PathError, SkillError, StoreError
from satchel.library import discover, load_skill
from satchel.ports.skills import SkillEntry, SkillRegistry
from satchel.skills.dialects import PORTABLE
from satchel.skills.model import LoadedSkill
from satchel.skills.plain import inline
from satchel.sources.directory import DirectorySource
from tests.activation.shelves import put


class Made:
    """A host's own registry: the skills it is given, whatever they are."""

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


def origin(*skills: object) -> RegistrySource:
    return RegistrySource(open_registry(skills, dialect=PORTABLE))  # pyright: ignore[reportArgumentType]


async def page(source: RegistrySource, name: str, path: str = "SKILL.md") -> str:
    catalog = await source.scan()
    assert catalog is not None
    skill = catalog.get(name)
    assert skill is not None
    return (await source.read(skill.ref, path, max_bytes=4096)).text


async def test_every_kind_of_registry_is_listed_loaded_and_read(tmp_path: Path) -> None:
    put(tmp_path / "a", "on-disk", body="Disk.\n", files={"references/r.md": "More."})
    put(tmp_path / "b", "in-source", files={"references/s.md": "Some."})
    put(tmp_path / "c", "hosted", files={"references/h.md": "Hosted."})
    put(tmp_path / "a", "twice", body="First.\n")
    hosted = Made(await asyncio.to_thread(load_skill, tmp_path / "c" / "hosted"), made("twice", "Second."))
    source = origin(
        tmp_path / "a", DirectorySource(discover([tmp_path / "b"])), hosted, MemorySkillRegistry([made("mine")])
    )
    catalog = await source.scan()
    assert catalog is not None
    assert [skill.name for skill in catalog.skills] == ["hosted", "in-source", "mine", "on-disk", "twice"]
    bodies = {skill.name: (await source.load(skill.ref)).body for skill in catalog.skills}
    assert (bodies["on-disk"], bodies["twice"], bodies["mine"]) == ("Disk.\n", "First.\n", "Made.")
    for name, path, told in (
        ("on-disk", "references/r.md", "More."),
        ("in-source", "references/s.md", "Some."),
        ("hosted", "references/h.md", "Hosted."),
        ("mine", "SKILL.md", "Made."),
    ):
        assert await page(source, name, path) == told
    assert (await page(source, "hosted")).startswith("---\nname: hosted\n")


@pytest.mark.parametrize("path", ["../secret", "link", ".env"])
async def test_a_host_s_registry_opens_no_way_out_of_a_skill(tmp_path: Path, path: str) -> None:
    folder = put(tmp_path / "skills", "a", files={".env": "x"})
    (tmp_path / "skills" / "secret").write_text("x", encoding="utf-8")
    (folder / "link").symlink_to(tmp_path / "skills" / "secret")
    with pytest.raises(PathError):
        await page(RegistrySource(Made(await asyncio.to_thread(load_skill, folder))), "a", path)


async def test_a_registry_is_asked_once_until_it_is_looked_at_again() -> None:
    registry = Made(made("a"))
    source = RegistrySource(registry)
    first = await source.scan()
    assert first is not None
    assert (await source.scan(since=first.revision), registry.discovered) == (None, 1)
    registry.skills["b"] = made("b")
    fresh = await source.rescan()
    assert ([skill.name for skill in fresh.skills], registry.discovered) == (["a", "b"], 2)
    assert fresh.revision != first.revision
    assert (await source.rescan()).revision == fresh.revision


async def test_a_skill_is_known_by_the_name_of_its_entry() -> None:
    class Renamed(Made):
        async def discover(self) -> Sequence[SkillEntry]:
            return [replace(item, name="other") for item in await super().discover()]

        async def load(self, name: str) -> LoadedSkill | None:
            return self.skills["a"] if name == "other" else None

    source = RegistrySource(Renamed(made("a")))
    catalog = await source.scan()
    assert catalog is not None
    (skill,) = catalog.skills
    assert (skill.name, (await source.load(skill.ref)).name) == ("other", "other")


class Failing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def discover(self) -> Sequence[SkillEntry]:
        raise self.error

    async def load(self, name: str) -> LoadedSkill | None:
        raise self.error


async def test_what_a_registry_does_wrong_is_an_error_of_ours() -> None:
    source = RegistrySource(Failing(ConnectionError("no route")))
    for _ in range(2):
        with pytest.raises(StoreError) as store:
            await source.scan()
        assert (store.value.code, "ConnectionError" in store.value.message) == ("store-unavailable", True)
    cases: list[tuple[SkillRegistry, str]] = [
        (Failing(ConnectionError("no route")), "skill-invalid"),
        (Failing(SkillError("skill-invalid", "Not any more.")), "skill-invalid"),
        (Made(), "skill-not-found"),
        (open_registry([Made(), Made()], dialect=PORTABLE), "skill-not-found"),
    ]
    for registry, code in cases:
        for work in (RegistrySource(registry).load, _read(RegistrySource(registry))):
            with pytest.raises(SkillError) as caught:
                await work(made("a").ref)
            assert caught.value.code == code


def _read(source: RegistrySource):
    async def read(ref: object) -> object:
        return await source.read(ref, "SKILL.md", max_bytes=10)  # pyright: ignore[reportArgumentType]

    return read
