"""What is hostile in a request: keys, bodies, paths. And how failures and the log look."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import RequestError, SatchelError, SkillError, UpstreamError
from satchel.gateway.body import MAX_DEPTH, encode_json, parse_object
from satchel.gateway.failures import failure_response, vendor_error
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.gateway.serving import runtime_over, serving
from tests.gateway.shelf import shelf

ASK = [{"role": "user", "content": "Hello, my word is hunter2."}]
CHAT = "/v1/chat/completions"


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
    assert json.loads(encode_json(value).decode()) == value


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
        await ask(base, "POST", f"{CHAT}?token=sesame", json={"messages": ASK}, headers=headers)
        await ask(base, "GET", "/v1/skills/no%0Asuch", headers=headers)
    lines = [record.getMessage() for record in caplog.records if record.name == "satchel.gateway"]
    assert len(lines) == 2
    assert lines[0].startswith(f"POST {CHAT} 200 ")
    assert lines[0].endswith("s ok skills=invoice tokens=20+10")
    assert lines[1].startswith("GET /v1/skills/no%0Asuch 404 ")
    assert "skill-not-found" in lines[1]
    for secret in ("hunter2", "hush-hush", "sesame"):
        assert secret not in caplog.text
