from __future__ import annotations

import io
import zipfile
from pathlib import Path

from satchel.engine.inline import InlineSource
from satchel.engine.prompt import without
from satchel.library import discover
from satchel.library.inline import read_inline
from satchel.ports.skills import HasDirectories
from satchel.sources.directory import DirectorySource
from tests.support import write_skill


def archive() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("sent/SKILL.md", "---\nname: sent\ndescription: Sent.\n---\nBody.\n")
        file.writestr("sent/scripts/a.py", "print(1)\n")
    return data.getvalue()


async def test_a_skill_of_the_request_has_no_directory_and_others_keep_theirs(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "pdf")
    base = DirectorySource(discover([tmp_path]))
    sent = read_inline(archive())
    source = InlineSource([sent], base)
    assert isinstance(source, HasDirectories)
    async with source.directory(sent.loaded.ref) as directory:
        assert directory == ""
    async with source.directory(base.library.skills[0].ref) as directory:
        assert directory == str(folder)


def test_nothing_is_run_of_skills_that_cannot_be_read() -> None:
    assert "skills_run" in without({"skills_read"})
    assert "skills_run" not in without({"skills_list"})
