"""What is hostile in a request: keys, bodies, paths. And how failures and the log look."""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message

from satchel.chat.request import Caller
from satchel.errors import RequestError, SatchelError, SkillError, UpstreamError
from satchel.gateway.body import MAX_DEPTH, encode_json, parse_object, read_body
from satchel.gateway.failures import failure_response, vendor_error
from satchel.gateway.fields import MAX_MESSAGES, MAX_PARTS, MAX_TOOLS
from satchel.gateway.openai_chat.translate import read_call
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests import support
from tests.gateway.serving import runtime_over, serving
from tests.gateway.shelf import shelf
from tests.support import write_skill

ASK = [{"role": "user", "content": "Hello, my word is hunter2."}]
CHAT = "/v1/chat/completions"


def test_a_body_of_very_many_values_is_refused_before_it_is_read() -> None:
    lists = b'{"a":[' + b"[]," * 600_000 + b"[]]}"
    for raw in (lists, lists.replace(b"[]", b"1")[:-2] + b",1" * 600_000 + b"]}"):
        with pytest.raises(RequestError, match="more than 1000000 values") as caught:
            parse_object(raw)
        assert caught.value.code == "too-large"
    text = ",[{" * 600_000 + '\\"\\'
    assert parse_object(json.dumps({"a": text}).encode()) == {"a": text}
    with pytest.raises(RequestError, match="not valid JSON"):
        parse_object(b'"' + b'\\"' * 2_000_000 + b"," * 1_500_000)


async def ask(base: str, method: str, path: str, **options: Any) -> tuple[int, Any, dict[str, str]]:
    async with aiohttp.ClientSession() as session, session.request(method, base + path, **options) as answer:
        return answer.status, await answer.json(), {key.lower(): value for key, value in answer.headers.items()}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "line 1, column 1"),
        (b'{"messages": [,]}', "line 1, column 15"),
        (b"[1]", "one JSON object"),
        (b"\xff\xfe\xfd", "UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"a": ' + b"[" * 100_000, "nested deeper"),
        (b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}", "nested deeper"),
    ],
)
async def test_a_body_that_is_no_json_object_is_refused_with_the_reason(body: bytes, says: str) -> None:
    model = ScriptedModel([])
    async with serving(runtime_over(model)) as base:
        status, got, _ = await ask(base, "POST", CHAT, data=body)
    assert status == 400
    assert got["error"]["code"] == "invalid-request"
    assert says in got["error"]["message"]
    assert model.requests == []


async def test_a_body_above_the_limit_is_refused_however_it_is_sent() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    model = ScriptedModel([Reply(text=("ok",))])
    async with serving(runtime_over(model), max_body_bytes=1000) as base:
        for data in (b"x" * 1001, pieces()):
            status, got, headers = await ask(base, "POST", CHAT, data=data)
            assert status == 413
            assert got["error"]["code"] == "too-large"
            assert headers["connection"] == "close"
        exact = json.dumps({"messages": ASK}).encode().ljust(1000)
        status, _, _ = await ask(base, "POST", CHAT, data=exact)
    assert status == 200


def test_the_deepest_allowed_body_is_allowed() -> None:
    inner = MAX_DEPTH - 1
    body = parse_object(b'{"a":' + b"[" * inner + b"]" * inner + b"}")
    assert list(body) == ["a"]
    with pytest.raises(RequestError, match="nested deeper"):
        parse_object(b'{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}")


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_a_refusal(raw: bytes) -> None:
    try:
        outcome: object = parse_object(raw)
    except RequestError as error:
        outcome = error.code
    assert isinstance(outcome, dict) or outcome == "invalid-request"


@given(st.dictionaries(st.text(), st.text(st.characters(categories=["L", "Cs", "So", "Cc"]))))
def test_any_text_survives_the_way_out(value: dict[str, str]) -> None:
    # Two halves of a character that stand side by side are that character on the wire.
    joined = {_joined(key): _joined(text) for key, text in value.items()}
    assert json.loads(encode_json(value).decode()) == joined


def _joined(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


async def test_keys_are_asked_for_everywhere_but_at_health() -> None:
    paths = [("POST", CHAT), ("GET", "/v1/models"), ("GET", "/v1/models/x"), ("GET", "/v1/skills")]
    async with serving(runtime_over(ScriptedModel([]), shelf()), keys=("first-key", "zweiter-schlüssel")) as base:
        for method, path in paths:
            for header in (None, "Bearer wrong", "Bearer first-key2", "Basic first-key", "Bearer ", "first-key"):
                headers = {"Authorization": header} if header is not None else {}
                status, got, sent = await ask(base, method, path, headers=headers)
                assert status == 401
                assert got["error"]["type"] == "authentication_error"
                assert got["error"]["code"] == "unauthorized"
                assert sent["www-authenticate"] == "Bearer"
        for key in ("first-key", "zweiter-schlüssel"):
            status, _, _ = await ask(base, "GET", "/v1/models", headers={"Authorization": f"Bearer {key}"})
            assert status == 200
        assert (await ask(base, "GET", "/health"))[:2] == (200, {"status": "ok"})


async def test_the_frameworks_own_failures_have_our_shape() -> None:
    async with serving(runtime_over(ScriptedModel([]))) as base:
        status, got, _ = await ask(base, "GET", "/v1/nothing")
        assert (status, got["error"]["code"], got["error"]["type"]) == (404, "not-found", "invalid_request_error")
        status, got, headers = await ask(base, "GET", CHAT)
        assert (status, got["error"]["code"], headers["allow"]) == (405, "method-not-allowed", "POST")
        assert (await ask(base, "GET", "/nothing"))[:2] == (404, {"error": "Not Found."})


async def test_a_bug_of_ours_is_a_500_that_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(request: object) -> Reply:
        raise ZeroDivisionError("inner detail")

    async with serving(runtime_over(ScriptedModel([broken]))) as base:
        status, got, _ = await ask(base, "POST", CHAT, json={"messages": ASK})
    assert status == 500
    assert got["error"]["code"] == "internal-error"
    assert "inner detail" not in json.dumps(got)
    assert any(record.exc_info and record.exc_info[0] is ZeroDivisionError for record in caplog.records)


def test_every_code_has_a_status_of_its_kind() -> None:
    def tree(kind: type[SatchelError]) -> list[type[SatchelError]]:
        return [kind, *(below for child in kind.__subclasses__() for below in tree(child))]

    for kind in tree(SatchelError):
        for code in kind.codes:
            status = failure_response("/v1/x", kind(code, "m")).status_code
            assert 400 <= status < 600
            assert (status < 500) == (vendor_error(kind(code, "m"))["error"]["type"] != "server_error")  # pyright: ignore[reportIndexIssue]


def test_other_paths_get_the_plain_shape() -> None:
    failure = SkillError("skill-not-found", "No such skill", hint="Look again.")
    assert failure_response("/api/skills/x", failure).body == b'{"error":"No such skill. Look again."}'


@pytest.mark.parametrize("value", ["7\r\nX-Evil: 1", "é", " 7", "9" * 100, ""])
def test_a_retry_after_that_is_no_header_text_is_dropped(value: str) -> None:
    failure = UpstreamError("upstream-rate-limited", "Slow down.", data={"retry_after": value})
    assert "retry-after" not in failure_response("/v1/x", failure).headers


def test_what_an_upstream_failure_carries_stays_inside() -> None:
    body = vendor_error(UpstreamError("upstream-failed", "m", data={"status": 500, "body": "private"}))
    assert "private" not in json.dumps(body)


async def test_one_line_a_request_without_bodies_or_keys(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="satchel.gateway")
    model = ScriptedModel([Reply(calls=(call("skills_read", '{"skill": "invoice"}'),)), Reply(text=("ok",))])
    async with serving(runtime_over(model, shelf()), keys=("hush-hush",)) as base:
        headers = {"Authorization": "Bearer hush-hush"}
        _, _, sent = await ask(base, "POST", f"{CHAT}?token=sesame", json={"messages": ASK}, headers=headers)
        await ask(base, "GET", "/v1/skills/no%0Asuch", headers=headers)
    lines = [record.getMessage() for record in caplog.records if record.name == "satchel.gateway"]
    assert len(lines) == 2
    assert lines[0].startswith(f"POST {CHAT} 200 ")
    assert lines[0].endswith(" skills=invoice tokens=20+10")
    assert f" ok id={sent['request-id']} " in lines[0]
    assert sent["x-request-id"] == sent["request-id"]
    assert lines[1].startswith("GET /v1/skills/no%0Asuch 404 ")
    assert "skill-not-found" in lines[1]
    for secret in ("hunter2", "hush-hush", "sesame"):
        assert secret not in caplog.text


MANY = {"role": "user", "content": "x"}
PART = {"type": "text", "text": "x"}
TOOL = {"type": "function", "function": {"name": "f"}}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": [MANY] * (MAX_MESSAGES + 1)}, "messages"),
        ({"messages": ASK, "tools": [TOOL] * (MAX_TOOLS + 1)}, "tools"),
        ({"messages": [*ASK, {"role": "user", "content": [PART] * (MAX_PARTS + 1)}]}, "messages[1].content"),
        ({"messages": [{"role": "user", "content": [PART] * (MAX_PARTS // 2 + 1)}] * 2}, "messages[1].content"),
        ({"messages": [{"role": "assistant", "tool_calls": [CALL] * (MAX_PARTS + 1)}]}, "messages[0].tool_calls"),
    ],
)
def test_bodies_of_endless_small_things_are_refused_by_field(body: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_call(body, Caller())
    assert caught.value.code == "invalid-request"
    assert caught.value.data["field"] == field


async def test_only_a_large_body_is_read_in_a_thread() -> None:
    read_in: list[bool] = []

    def decode(body: dict[str, Any]) -> int:
        read_in.append(threading.current_thread() is threading.main_thread())
        return len(body["text"])

    for size in (10, 2 * 1024 * 1024):
        raw = b'{"text": "' + b"x" * size + b'"}'

        async def receive(raw: bytes = raw) -> Message:
            return {"type": "http.request", "body": raw, "more_body": False}

        assert await read_body(Request({"type": "http", "headers": []}, receive), 2**22, decode) == size
    assert read_in == [True, False]


async def test_a_skill_that_broke_or_went_while_serving_is_no_crash(tmp_path: Path) -> None:
    for name in ("broken", "gone"):
        write_skill(tmp_path, name, body="x\n")
    runtime = support.runtime_over(ScriptedModel([]), tmp_path)
    assert runtime.source is not None
    async with serving(runtime) as base:
        stale = await runtime.catalog()
        (tmp_path / "broken" / "SKILL.md").write_text("no frontmatter\n")
        shutil.rmtree(tmp_path / "gone")
        for skill in stale.skills:
            with pytest.raises(SkillError) as caught:
                await runtime.source.load(skill.ref)
            assert failure_response(CHAT, caught.value).status_code in {404, 409}
            status, body, _ = await ask(base, "POST", CHAT, json={"messages": ASK, "skills": [skill.name]})
            assert status in {400, 404, 409}, body
            status, body, _ = await ask(base, "GET", f"/v1/skills/{skill.name}")
            assert status in {404, 409}, body


@pytest.mark.parametrize(
    ("code", "status"), [("skill-not-found", 404), ("skill-invalid", 409), ("skill-ambiguous", 409)]
)
def test_what_is_wrong_with_a_skill_is_no_fault_of_the_gateway(code: str, status: int) -> None:
    assert failure_response(CHAT, SkillError(code, "No.")).status_code == status


@pytest.mark.parametrize("off", [{}, {"skills": [], "skills_discovery": False}])
def test_several_choices_are_refused_with_skills_and_without(off: dict[str, Any]) -> None:
    body: dict[str, Any] = {"model": "m", "messages": ASK, "n": 2, **off}
    with pytest.raises(RequestError, match="n: Only one choice can be made here, with skills or without"):
        read_call(body, Caller())


@pytest.mark.parametrize("path", [CHAT, "/v1/responses", "/v1/messages", "/api/chat", "/api/chat/ollama"])
async def test_a_misspelled_field_of_ours_is_refused_and_the_right_one_named(path: str) -> None:
    body = {"model": "m", "messages": ASK, "input": "x", "max_tokens": 9, "skills_discover": False}
    async with serving(runtime_over(ScriptedModel([]))) as base:
        status, got, _ = await ask(base, "POST", path, json=body)
    assert status == 400
    assert "skills_discover: There is no such field. Did you mean skills_discovery" in json.dumps(got)
