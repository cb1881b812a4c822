"""By what names a skill is activated, in dialects whose names are other than the tool's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from satchel.activation.session import SkillSession
from satchel.library import discover
from tests.activation.shelves import D, allow, brief
from tests.conformance.reading import text, write

LONG = "a-" * 40 + "a"


def session_in(root: Path, dialect: str) -> SkillSession:
    return SkillSession(discover([root], dialect=dialect), permission=allow)


@pytest.mark.parametrize("name", [LONG, "My Skill", "Über_7", "a.b"])
@pytest.mark.parametrize("by", ["model", "user", "program"])
async def test_what_is_listed_can_be_activated_whatever_its_name(tmp_path: Path, name: str, by: str) -> None:
    write(tmp_path, "folder", text(f"name: {name}", D))
    session = session_in(tmp_path, "contextchef")
    assert f"- {name}: " in str(session.system_message()["content"])
    assert (await session.activate(name, by=cast("Any", by))).kind == "ok"
    assert (await session.activate(name)).kind == "already_loaded"


@pytest.mark.parametrize("by", ["model", "user", "program"])
async def test_a_long_name_that_nobody_has_is_refused_for_everybody(tmp_path: Path, by: str) -> None:
    write(tmp_path, "folder", text(f"name: {LONG}", D))
    reply = await session_in(tmp_path, "contextchef").activate(LONG + "x", by=cast("Any", by))
    assert (brief(reply), "at most 64" in reply.message) == (("error", "INVALID_PARAM"), True)


async def test_a_broken_skill_lends_its_name_no_right_to_be_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "MySkill", text("name: MySkill", D))
    session = session_in(tmp_path, "agent-sh")
    reply = await session.activate("MySkill")
    assert (brief(reply), "lowercase-kebab-case" in reply.message) == (("error", "INVALID_PARAM"), True)
    assert brief(await session.activate("MySkill", by="program")) == ("error", "INVALID_FRONTMATTER")


@pytest.mark.parametrize("dialect", ["tnsai", "portable", "tensorsharp"])
async def test_letter_case_counts_for_nobody_where_the_row_says_so(tmp_path: Path, dialect: str) -> None:
    write(tmp_path, "deploy", text("name: deploy", D))
    session = session_in(tmp_path, dialect)
    reply = await session.activate("Deploy")
    assert (reply.kind, reply.name) == ("ok", "deploy")
    for name in ("DEPLOY", "deploy"):
        assert (await session.activate(name)).kind == "already_loaded"
    assert brief(await session.activate("DEPLOYS")) == ("error", "INVALID_PARAM")


@pytest.mark.parametrize("dialect", ["agent-sh", "contextchef", "flowcraft"])
async def test_letter_case_counts_for_everybody_elsewhere(tmp_path: Path, dialect: str) -> None:
    write(tmp_path, "deploy", text("name: deploy", D))
    session = session_in(tmp_path, dialect)
    assert brief(await session.activate("Deploy")) == ("error", "INVALID_PARAM")
    assert brief(await session.activate("Deploy", by="user")) == ("not_found", "NOT_FOUND")
