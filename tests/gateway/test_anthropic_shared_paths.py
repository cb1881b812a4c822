"""Paths that formats share, for clients that send ``anthropic-version``."""

from __future__ import annotations

import anthropic
import pytest

from satchel.testing.scripted_model import ScriptedModel
from tests.gateway.anthropic_client import client_of
from tests.gateway.serving import runtime_over, serving
from tests.gateway.shelf import shelf
from tests.gateway.test_requests import ask

VERSION = {"anthropic-version": "2023-06-01"}


async def test_the_official_client_lists_and_retrieves_skills() -> None:
    async with serving(runtime_over(ScriptedModel([]), shelf())) as base, client_of(base) as client:
        listed = [skill async for skill in client.beta.skills.list()]
        one = await client.beta.skills.retrieve("invoice")
    assert [skill.id for skill in listed] == ["deploy", "invoice"]
    assert one == listed[1]
    assert (one.type, one.display_name, one.source.type, one.latest_version_id) == (
        "skill",
        "invoice",
        "custom",
        "latest",
    )
    assert one.updated_at.isoformat() == one.created_at.isoformat() == "2023-11-14T22:13:20+00:00"


async def test_the_older_beta_reads_its_own_names() -> None:
    headers = {**VERSION, "anthropic-beta": "skills-2025-10-02"}
    async with serving(runtime_over(ScriptedModel([]), shelf())) as base:
        _, got, _ = await ask(base, "GET", "/v1/skills", headers=headers)
    assert (got["has_more"], got["next_page"]) == (False, None)
    skill = got["data"][1]
    assert (skill["display_title"], skill["source"], skill["latest_version"]) == ("invoice", "custom", "latest")


@pytest.mark.parametrize("path", ["/v1/models/none", "/v1/skills/none", "/v1/skills"])
async def test_failures_have_the_shape_of_the_client_that_asks(path: str) -> None:
    source = None if path == "/v1/skills" else shelf()
    async with serving(runtime_over(ScriptedModel([]), source)) as base:
        status, got, _ = await ask(base, "GET", path, headers=VERSION)
        _, plain, _ = await ask(base, "GET", path)
    assert status == 404
    assert (got["type"], got["error"]["type"]) == ("error", "not_found_error")
    assert "type" not in plain
    assert "code" in plain["error"]


async def test_a_refused_key_has_that_shape_too() -> None:
    async with serving(runtime_over(ScriptedModel([])), keys=("key",)) as base, client_of(base) as client:
        with pytest.raises(anthropic.AuthenticationError) as caught:
            await client.models.list()
    assert caught.value.type == "authentication_error"
