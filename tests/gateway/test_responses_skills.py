"""Skills chosen in the vendor's way: by the shell tool's environment."""

from __future__ import annotations

import base64
from pathlib import Path
from random import Random
from typing import Any

import pytest
from openai.types.responses import Response
from pydantic import TypeAdapter

from satchel.chat.messages import ToolOutput
from satchel.chat.request import ChatRequest
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.gateway.responses import Wire, events_of, strict
from tests.gateway.serving import serving
from tests.library.test_zips import packed
from tests.support import runtime_over, write_skill

TEA = b"---\nname: tea\ndescription: Brews tea.\n---\nSteep it. See notes.md.\n"


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path, "invoice", body="The prefix is ZX-9.\n")
    write_skill(tmp_path, "deploy", body="Canary first.\n")
    return tmp_path


def shell(*entries: Any, kind: str = "container_auto") -> Any:
    return {"type": "shell", "environment": {"type": kind, "skills": list(entries)}}


def reference(name: str, **more: Any) -> Any:
    return {"type": "skill_reference", "skill_id": name, **more}


def inline(*files: tuple[str, bytes], name: str = "tea", data: str | None = None) -> Any:
    source = {
        "type": "base64",
        "media_type": "application/zip",
        "data": data if data is not None else base64.b64encode(packed(*files)).decode(),
    }
    return {"type": "inline", "name": name, "description": "Brews tea.", "source": source}


def results(request: ChatRequest) -> list[str]:
    return [part.text for item in request.messages for part in item.parts if isinstance(part, ToolOutput)]


@pytest.mark.parametrize("version", [{}, {"version": "latest"}, {"version": None}])
async def test_a_reference_selects_a_skill_and_the_shell_ends_here(skills: Path, version: dict[str, Any]) -> None:
    model = ScriptedModel([Reply(text=("ok",))])
    body = {
        "model": "m",
        "input": "a",
        "tools": [shell(reference("invoice", **version)), {"type": "web_search"}],
        "skills_discovery": False,
    }
    async with serving(runtime_over(model, skills)) as base:
        got = await Wire(base).post(body)
    strict(TypeAdapter(Response), got)
    (asked,) = model.requests
    assert "invoice" in asked.messages[0].text
    assert "deploy" not in asked.messages[0].text
    assert asked.extra["openai-responses"]["tools"] == [[0, {"type": "web_search"}]]
    assert got["tools"] == body["tools"]
    assert [notice["code"] for notice in got["satchel"]["notices"]] == ["shell-not-run"]


async def test_a_shell_without_skills_passes_through(skills: Path) -> None:
    tools = [{"type": "shell"}, shell(), {"type": "shell", "environment": {"type": "local", "skills": [{"name": "x"}]}}]
    model = ScriptedModel([Reply(text=("ok",))])
    async with serving(runtime_over(model, skills)) as base:
        got = await Wire(base).post({"model": "m", "input": "a", "tools": tools})
    assert model.requests[0].extra["openai-responses"]["tools"] == [[place, tool] for place, tool in enumerate(tools)]
    assert "notices" not in got["satchel"]


async def test_an_inline_skill_is_read_from_memory_and_only_in_its_request(skills: Path) -> None:
    reads = (
        call("skills_read", '{"skill": "tea"}', "a"),
        call("skills_read", '{"skill": "tea", "path": "notes.md"}', "b"),
        call("skills_read", '{"skill": "tea", "path": "leaf.png"}', "c"),
        call("skills_list", "{}", "d"),
    )
    model = ScriptedModel([Reply(calls=reads), Reply(text=("ok",)), Reply(calls=reads[:1]), Reply(text=("ok",))])
    entry = inline(("tea/SKILL.md", TEA), ("tea/notes.md", b"Three minutes."), ("tea/leaf.png", b"\x89PNG"))
    async with serving(runtime_over(model, skills)) as base:
        body = {"model": "m", "input": "a", "tools": [shell(entry, reference("invoice"))], "stream": True}
        got = (await events_of(base, body))[-1]["response"]
        await Wire(base).post({"model": "m", "input": "a"})
    strict(TypeAdapter(Response), got)
    assert got["satchel"]["skills"] == ["tea"]
    assert got["tools"][0]["environment"]["skills"][0]["source"]["data"] == "", "archives do not come back"
    manifest, notes, picture, listing = results(model.requests[1])
    assert "Steep it." in manifest
    assert "notes.md" in manifest
    assert notes.endswith("Three minutes.")
    assert "binary" in picture
    assert "tea (selected for this conversation)" in listing
    assert "invoice (selected for this conversation)" in listing
    assert "deploy" in listing
    assert results(model.requests[3])[0].startswith('Error: No skill called "tea" is available.')


async def test_an_inline_skill_takes_the_place_of_one_with_its_name(skills: Path) -> None:
    model = ScriptedModel([Reply(calls=(call("skills_read", '{"skill": "invoice"}'),)), Reply(text=("ok",))])
    mine = inline(("SKILL.md", b"---\nname: Invoice\ndescription: Mine.\n---\nUse AB-1.\n"), name="invoice")
    async with serving(runtime_over(model, skills)) as base:
        body = {"model": "m", "input": "a", "tools": [shell(mine)], "skills": ["invoice"]}
        await Wire(base).post(body)
    (read,) = results(model.requests[1])
    assert "AB-1" in read
    assert "ZX-9" not in read


BOMB = base64.b64encode(packed(("SKILL.md", TEA), ("zeros", bytes(3_000_000)))).decode()
LARGE = base64.b64encode(packed(("SKILL.md", TEA), ("a.txt", Random(0).randbytes(20_000) * 450))).decode()
GOOD = ("SKILL.md", TEA)


@pytest.mark.parametrize(
    ("entry", "param"),
    [
        (reference("nope"), "skills"),
        (reference("invoice", version="3"), "tools[0].environment.skills[0].version"),
        (reference("invoice", version=[1]), "tools[0].environment.skills[0].version"),
        (reference(""), "tools[0].environment.skills[0].skill_id"),
        ({"type": "magic"}, "tools[0].environment.skills[0].type"),
        ("x", "tools[0].environment.skills[0]"),
        (inline(data="%%%"), "tools[0].environment.skills[0].source.data"),
        (inline(data="é"), "tools[0].environment.skills[0].source.data"),
        (inline(data="AAAA"), "tools[0].environment.skills[0].source.data"),
        (inline(data=BOMB), "tools[0].environment.skills[0].source.data"),
        (inline(data=LARGE), "tools[0].environment.skills[0].source.data"),
        (inline(GOOD, ("../x", b"x")), "tools[0].environment.skills[0].source.data"),
        (inline(("SKILL.md", b"nothing")), "tools[0].environment.skills[0].source.data"),
        (inline(("a/SKILL.md", TEA), ("b/SKILL.md", TEA)), "tools[0].environment.skills[0].source.data"),
        ({**inline(GOOD), "source": None}, "tools[0].environment.skills[0].source"),
        ({**inline(GOOD), "source": {"type": "url"}}, "tools[0].environment.skills[0].source"),
    ],
)
async def test_what_selects_no_skill_is_refused_by_place(skills: Path, entry: Any, param: str) -> None:
    model = ScriptedModel([])
    async with serving(runtime_over(model, skills)) as base:
        status, got = await Wire(base).ask("POST", {"model": "m", "input": "a", "tools": [shell(entry)]})
    assert (status, got["error"]["param"]) == (400, param)
    assert model.requests == []


async def test_two_inline_skills_of_one_name_too_many_and_a_forced_shell_are_refused(skills: Path) -> None:
    async with serving(runtime_over(ScriptedModel([]), skills)) as base:
        for entries, choice in (
            ([inline(GOOD), inline(GOOD)], "auto"),
            ([inline(GOOD)] * 17, "auto"),
            ([reference("invoice")], {"type": "shell"}),
        ):
            body = {"model": "m", "input": "a", "tools": [shell(*entries)], "tool_choice": choice}
            assert await Wire(base).status("POST", body) == 400


async def test_inline_skills_are_refused_where_skills_are_off() -> None:
    async with serving(runtime_over(ScriptedModel([]), None)) as base:
        assert await Wire(base).status("POST", {"model": "m", "input": "a", "tools": [shell(inline(GOOD))]}) == 400
