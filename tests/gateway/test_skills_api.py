"""The skills of a server, over HTTP."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import aiohttp

from satchel.gateway.app import create_app
from satchel.gateway.options import ServerOptions
from satchel.testing.scripted_model import ScriptedModel
from tests.gateway.serving import runtime_over, serving
from tests.gateway.shelf import shelf
from tests.gateway.test_requests import ask
from tests.support import runtime_over as runtime_over_directory
from tests.support import write_skill

KEYS = [
    "id", "object", "name", "description", "license", "compatibility", "metadata", "allowed_tools", "files", "bytes",
    "origin", "warnings", "modified",
]  # fmt: skip


async def test_skills_are_listed_by_name_with_the_published_keys() -> None:
    async with serving(runtime_over(ScriptedModel([]), shelf())) as base:
        status, got, _ = await ask(base, "GET", "/v1/skills")
    assert status == 200
    assert got["object"] == "list"
    deploy, invoice = got["data"]
    assert list(invoice) == KEYS
    assert invoice == {
        "id": "invoice",
        "object": "skill",
        "name": "invoice",
        "description": "Numbers invoices.\nUse for bills.",
        "license": "MIT",
        "compatibility": None,
        "metadata": {"owner": "billing", "tags": ["a", "b"]},
        "allowed_tools": ["Read"],
        "files": [{"path": "scripts/check.py", "bytes": 30, "kind": "script", "text": True}],
        "bytes": 160,
        "origin": "discovered",
        "warnings": ["The name was normalised."],
        "modified": "2023-11-14T22:13:20Z",
    }
    assert (deploy["license"], deploy["metadata"], deploy["modified"], deploy["bytes"]) == (None, {}, None, 40)
    assert "/srv/private" not in json.dumps(got)


async def test_one_skill_adds_its_instructions() -> None:
    async with serving(runtime_over(ScriptedModel([]), shelf())) as base:
        status, got, _ = await ask(base, "GET", "/v1/skills/Invoice")
    assert status == 200
    assert list(got) == [*KEYS, "instructions"]
    assert got["instructions"] == "# Invoices\nThe secret prefix is ZX-9.\n"


async def test_an_unknown_skill_is_404_in_the_vendors_shape() -> None:
    async with serving(runtime_over(ScriptedModel([]), shelf())) as base:
        status, got, _ = await ask(base, "GET", "/v1/skills/nope")
    assert status == 404
    assert got["error"]["type"] == "invalid_request_error"
    assert got["error"]["code"] == "skill-not-found"
    assert '"nope"' in got["error"]["message"]


async def test_a_skill_that_vanished_does_not_take_the_list_with_it() -> None:
    async with serving(runtime_over(ScriptedModel([]), shelf(gone=("deploy",)))) as base:
        status, got, _ = await ask(base, "GET", "/v1/skills")
        single, _, _ = await ask(base, "GET", "/v1/skills/deploy")
    assert status == 200
    assert [(skill["name"], skill["warnings"]) for skill in got["data"]] == [
        ("deploy", ["The folder of deploy is gone."]),
        ("invoice", ["The name was normalised."]),
    ]
    assert single == 404


async def test_a_folder_that_was_deleted_is_404_and_one_that_broke_is_409(tmp_path: Path) -> None:
    gone, broke = write_skill(tmp_path, "deploy"), write_skill(tmp_path, "invoice")
    async with serving(runtime_over_directory(ScriptedModel([]), tmp_path)) as base:
        shutil.rmtree(gone)
        (broke / "SKILL.md").write_text("no frontmatter")
        status, got, _ = await ask(base, "GET", "/v1/skills/deploy")
        conflict, _, _ = await ask(base, "GET", "/v1/skills/invoice")
        listed, everything, _ = await ask(base, "GET", "/v1/skills")
    assert (status, got["error"]["code"], str(tmp_path) in json.dumps(got)) == (404, "skill-not-found", False)
    assert (conflict, listed) == (409, 200)
    assert [skill["name"] for skill in everything["data"]] == ["deploy", "invoice"]


async def test_without_skills_the_routes_answer_like_any_unknown_path() -> None:
    async with serving(runtime_over(ScriptedModel([]))) as base, aiohttp.ClientSession() as session:
        bodies: list[bytes] = []
        for path in ("/v1/skills", "/v1/skills/invoice", "/v1/nothing"):
            async with session.get(base + path) as answer:
                assert answer.status == 404
                bodies.append(await answer.read())
    assert len(set(bodies)) == 1


def test_the_description_of_the_interface_lists_every_route() -> None:
    app = create_app(lambda: (_ for _ in ()).throw(AssertionError), ServerOptions())
    schema = app.openapi()
    assert set(schema["paths"]) == {
        "/v1/chat/completions", "/v1/models", "/v1/models/{model_id}", "/v1/skills", "/v1/skills/{name}", "/health",
        "/v1/messages", "/v1/messages/count_tokens",
        "/ollama/", "/api/chat/ollama",
        *(f"/ollama/api/{name}" for name in ("chat", "generate", "tags", "show", "version", "ps")),
        "/v1/responses", "/v1/responses/{response_id}", "/v1/responses/{response_id}/input_items",
        "/api/chat", "/api/models", "/api/sessions/{session_id}", "/api/skills", "/api/skills/rescan",
        "/api/skills/{name}", "/api/skills/{name}/files/{path}",
        "/api/code/artifacts/{run_id}", "/api/code/artifacts/{run_id}/{path}",
    }  # fmt: skip
    chat = schema["paths"]["/v1/chat/completions"]["post"]
    assert set(chat["requestBody"]["content"]["application/json"]["schema"]["properties"]) >= {
        "skills", "skills_discovery", "multi_agent", "stream",
    }  # fmt: skip
    assert set(chat["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    assert "$defs" not in json.dumps(chat)
    responses = schema["paths"]["/v1/responses"]["post"]
    assert set(responses["requestBody"]["content"]["application/json"]["schema"]["properties"]) >= {
        "skills", "previous_response_id", "store", "input",
    }  # fmt: skip
    assert set(responses["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    assert "$defs" not in json.dumps(responses)
    assert {"CompletionBody", "SkillBody", "SkillDetailBody", "ModelListBody", "ErrorBody"} <= set(
        schema["components"]["schemas"]
    )
