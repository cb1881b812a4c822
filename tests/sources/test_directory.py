from __future__ import annotations

from pathlib import Path

import pytest

from satchel.errors import SkillError
from satchel.library import discover
from satchel.ports.skills import SkillSource
from satchel.skills.model import SkillRef
from satchel.sources.directory import DirectorySource
from tests.support import write_skill


async def test_a_library_as_an_origin(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf", files={"a.md": "A"})
    source = DirectorySource(discover([tmp_path]))
    port: SkillSource = source
    assert (port.label, port.may_shadow) == ("directory", True)
    catalog = await port.scan()
    assert catalog is not None
    (skill,) = catalog.skills
    assert skill.ref == SkillRef(source="directory", name="pdf")
    assert (await port.load(skill.ref)).files[-1].path == "a.md"
    assert (await port.read(skill.ref, "a.md", max_bytes=10)).text == "A"
    with pytest.raises(SkillError):
        await port.load(SkillRef(source="directory", name="none"))


async def test_only_a_rescan_changes_the_catalogue(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf")
    source = DirectorySource(discover([tmp_path]))
    first = await source.scan()
    assert first is not None
    write_skill(tmp_path, "xlsx")
    assert await source.scan(since=first.revision) is None
    await source.rescan()
    second = await source.scan(since=first.revision)
    assert second is not None
    assert [skill.name for skill in second.skills] == ["pdf", "xlsx"]
    assert [skill.name for skill in first.skills] == ["pdf"]
