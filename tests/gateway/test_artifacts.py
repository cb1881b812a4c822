"""Produced files over HTTP: downloads, for the key whose request made them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from yarl import URL

from satchel.chat.events import ModelEvent
from satchel.chat.request import ChatRequest
from satchel.execution.artifacts import Artifacts
from satchel.execution.workspace import ProducedFile, Workspace, create_workspace
from satchel.testing.scripted_model import ScriptedModel
from tests.gateway.benches import descriptors, plain, shell, until, working
from tests.gateway.native import frames_of, user
from tests.gateway.serving import client_of, runtime_over, serving
from tests.gateway.test_requests import ask

LIST = "/api/code/artifacts"
MAKES = "mkdir -p out && echo '<script>1</script>' > out/page.html && echo 7 > seven.txt"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "base"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(str(tmp_path))


async def put(*arguments: Any, **more: Any) -> None:
    await asyncio.to_thread(_put, *arguments, **more)


def _put(shelf: Artifacts, workspace: Workspace, path: str, data: bytes = b"x", *, owner: str = "local") -> None:
    target = Path(workspace.work, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    assert shelf.keep(workspace, [ProducedFile(path=path, bytes=len(data))], owner=owner, run="run_1").files


async def got(url: str, path: str, **options: Any) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers of a path that is sent as it stands, dots and all."""
    async with aiohttp.ClientSession() as client, client.get(URL(url + path, encoded=True), **options) as answer:
        return answer.status, await answer.read(), {name.lower(): value for name, value in answer.headers.items()}


async def test_a_client_of_our_own_surface_finds_the_download(base: Path) -> None:
    async with working(ScriptedModel(shell(MAKES)), base) as (url, _):
        frames = await frames_of(url, {"messages": [user("Make a page.")]})
        (step,) = plain(frames, "skill_step")
        finished = plain(frames, "tool_progress")[-1]
        assert step["files"] == finished["files"] == ["out/page.html", "seven.txt"]
        assert step["run"] == finished["run"]
        status, listed, _ = await ask(url, "GET", f"{LIST}/{step['run']}")
        assert status == 200
        assert listed["run"] == step["run"]
        assert [(item["path"], item["bytes"]) for item in listed["files"]] == [("out/page.html", 19), ("seven.txt", 2)]
        assert all(item["expires"] > 1_700_000_000 for item in listed["files"])
        status, body, headers = await got(url, f"{LIST}/{step['run']}/out/page.html")
    assert (status, body) == (200, b"<script>1</script>\n")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"].startswith('attachment; filename="page.html"; ')
    assert headers["content-length"] == "19"
    assert headers["content-security-policy"] == "sandbox"


async def test_a_turn_that_made_nothing_says_nothing_of_files(base: Path) -> None:
    async with working(ScriptedModel(shell("echo 7")), base) as (url, _):
        frames = await frames_of(url, {"messages": [user("Seven?")]})
        (step,) = plain(frames, "skill_step")
        assert not {"files", "run"} & set(step)


@pytest.mark.parametrize("stream", [True, False])
async def test_clients_of_the_vendors_formats_find_it_in_the_extension(base: Path, stream: bool) -> None:
    async with working(ScriptedModel(shell(MAKES)), base) as (url, shelf):
        async with client_of(url) as openai:
            asked: Any = {"model": "m", "messages": [user("Make a page.")]}
            if stream:
                chunks = [chunk async for chunk in await openai.chat.completions.create(**asked, stream=True)]
                told: Any = chunks[-1].model_extra
            else:
                told = (await openai.chat.completions.create(**asked)).model_extra
        (made,) = told["satchel"]["artifacts"]
        assert made["files"] == ["out/page.html", "seven.txt"]
        assert {item.path for item in shelf.of(_owner("none"), made["run"])} == set(made["files"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [user("Make a page.")]}),
        ("/v1/responses", {"model": "m", "input": "Make a page."}),
        ("/ollama/api/chat", {"model": "m", "stream": False, "messages": [user("Make a page.")]}),
    ],
)
async def test_so_do_those_of_the_other_formats(base: Path, path: str, body: dict[str, Any]) -> None:
    async with working(ScriptedModel(shell(MAKES)), base) as (url, _):
        status, answer, _ = await ask(url, "POST", path, json=body)
        assert status == 200
        (made,) = answer["satchel"]["artifacts"]
        assert made["files"] == ["out/page.html", "seven.txt"]
        status, _, _ = await got(url, f"{LIST}/{made['run']}/seven.txt")
    assert status == 200


JOB = "echo 7 > seven.txt; touch made; sleep 77501"


class Waiting(ScriptedModel):
    """Answers the second time when a job has written."""

    def __init__(self, base: Path) -> None:
        super().__init__(shell(JOB, run_in_background="true"))
        self._base = base

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncGenerator[AsyncIterator[ModelEvent], None]:
        if self.requests:
            while not await asyncio.to_thread(lambda: list(self._base.glob("satchel-*/*/work/made"))):  # noqa: ASYNC110 - a job makes it
                await asyncio.sleep(0.01)
        async with super().stream(request) as events:
            yield events


@pytest.mark.parametrize("stream", [True, False])
async def test_what_a_job_wrote_when_the_turn_ends_is_found_too(base: Path, stream: bool) -> None:
    async with working(Waiting(base), base) as (url, _):
        body = {"messages": [user("Make a page.")]}
        if stream:
            frames = await frames_of(url, body)
            assert "files" not in plain(frames, "skill_step")[0]
            end = frames[-1]
        else:
            _, end, _ = await ask(url, "POST", "/api/chat", json={**body, "stream": False})
        assert end["files"] == ["made", "seven.txt"]
        assert (await got(url, f"{LIST}/{end['run']}/seven.txt"))[:2] == (200, b"7\n")


async def test_a_vendors_client_finds_it_in_the_extension(base: Path) -> None:
    async with working(Waiting(base), base) as (url, _):
        body = {"model": "m", "messages": [user("Make a page.")]}
        _, answer, _ = await ask(url, "POST", "/v1/chat/completions", json=body)
        (made,) = answer["satchel"]["artifacts"]
        assert made["files"] == ["made", "seven.txt"]
        assert (await got(url, f"{LIST}/{made['run']}/seven.txt"))[0] == 200


def _owner(key: str) -> str:

    return hashlib.sha256(key.encode()).hexdigest()


async def test_files_belong_to_the_key_that_made_them(base: Path) -> None:
    mine, theirs = ({"Authorization": f"Bearer {key}"} for key in ("key-a", "key-b"))
    async with working(ScriptedModel(shell(MAKES)), base, keys=("key-a", "key-b")) as (url, _):
        frames = await frames_of(url, {"messages": [user("Make a page.")]}, headers=mine)
        run = plain(frames, "skill_step")[0]["run"]
        for path in (f"{LIST}/{run}", f"{LIST}/{run}/seven.txt"):
            assert (await got(url, path, headers=mine))[0] == 200
            status, body, _ = await got(url, path, headers=theirs)
            assert (status, list(json.loads(body))) == (404, ["error"])
            assert (await got(url, path))[0] == 401


async def test_a_server_without_keys_tells_callers_apart_by_theirs_and_says_so(base: Path) -> None:
    """Clients that insist on some key, such as the official ones, send one that means nothing here."""
    async with working(ScriptedModel(shell(MAKES)), base) as (url, _):
        sent = {"Authorization": "Bearer none"}
        frames = await frames_of(url, {"messages": [user("Make a page.")]}, headers=sent)
        run = plain(frames, "skill_step")[0]["run"]
        for path in (f"{LIST}/{run}", f"{LIST}/{run}/seven.txt"):
            assert (await got(url, path, headers=sent))[0] == 200
            status, body, _ = await got(url, path)
            assert status == 404
            assert "Send the key that the request was made with, also where the server asks for none." in body.decode()


async def test_only_the_very_name_of_a_kept_file_finds_it(base: Path, workspace: Workspace) -> None:
    async with working(ScriptedModel([]), base) as (url, shelf):
        await put(shelf, workspace, "out/a b.txt", b"data")
        assert (await got(url, f"{LIST}/run_1/out/a%20b.txt"))[:2] == (200, b"data")
        before = descriptors()
        wrong = [
            f"{LIST}/run_2", f"{LIST}/run_2/out/a%20b.txt", f"{LIST}/run_1/", f"{LIST}/run_1/out",
            f"{LIST}/run_1/out/../out/a%20b.txt", f"{LIST}/run_1/%2e%2e/%2e%2e/etc/passwd", f"{LIST}/run_1//etc/passwd",
            f"{LIST}/run_1/out%5Ca%20b.txt", f"{LIST}/run_1/out/a%20b.txt%00", f"{LIST}/run_1/out/A%20B.txt",
        ]  # fmt: skip
        for path in wrong:
            status, body, _ = await got(url, path)
            assert (status, list(json.loads(body))) == (404, ["error"]), path
        await until(lambda: descriptors() <= before)


@pytest.mark.parametrize(
    ("name", "plain_name"),
    [
        ("zählung.txt", "z_hlung.txt"),
        ('a"b;c.txt', "a_b;c.txt"),
        ("\u202etxt.exe", "_txt.exe"),
        ("a\r\nX-Evil: 1\n", "a__X-Evil: 1_"),
    ],
)
async def test_a_name_cannot_break_out_of_its_header(
    base: Path, workspace: Workspace, name: str, plain_name: str
) -> None:
    async with working(ScriptedModel([]), base) as (url, shelf):
        await put(shelf, workspace, name)
        status, _, headers = await got(url, f"{LIST}/run_1/{quote(name)}")
    assert status == 200
    said = headers["content-disposition"]
    assert said.startswith(f"attachment; filename=\"{plain_name}\"; filename*=UTF-8''")
    assert said.isascii()


async def test_where_nothing_runs_nothing_is_kept() -> None:
    async with serving(runtime_over(ScriptedModel([]))) as url:
        for path in (f"{LIST}/run_1", f"{LIST}/run_1/a.txt"):
            status, body, _ = await got(url, path)
            assert (status, list(json.loads(body))) == (404, ["error"])


async def test_a_client_that_leaves_in_the_middle_leaves_no_file_open(base: Path, workspace: Workspace) -> None:
    async with working(ScriptedModel([]), base) as (url, shelf):
        await put(shelf, workspace, "large", b"x" * (32 * 1024 * 1024))
        before = descriptors()
        async with aiohttp.ClientSession() as client:
            answer = await client.get(f"{url}{LIST}/run_1/large")
            assert await answer.content.readexactly(1024) == b"x" * 1024
            answer.close()
        await until(lambda: descriptors() <= before)
        status, body, _ = await got(url, f"{LIST}/run_1/large")
    assert (status, len(body)) == (200, 32 * 1024 * 1024)


async def test_a_head_tells_what_a_download_would(base: Path, workspace: Workspace) -> None:
    async with working(ScriptedModel([]), base) as (url, shelf):
        await put(shelf, workspace, "seven.txt", b"7\n")
        for path in (f"{LIST}/run_1", f"{LIST}/run_1/seven.txt"):
            status, _, expected = await got(url, path)
            async with aiohttp.ClientSession() as client, client.head(url + path) as answer:
                assert (answer.status, await answer.read()) == (status, b"")
                same = {"Content-Type", "Content-Length"}
                assert {name: answer.headers[name] for name in same} == {name: expected[name.lower()] for name in same}
        assert answer.headers["Content-Length"] == "2"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        async with aiohttp.ClientSession() as client, client.head(f"{url}{LIST}/run_1/eight.txt") as answer:
            assert answer.status == 404


async def test_the_files_of_a_session_go_when_it_is_deleted(base: Path) -> None:
    async with working(ScriptedModel(shell(MAKES)), base) as (url, shelf):
        frames = await frames_of(url, {"messages": [user("Make a page.")], "session": "new"})
        path = f"{LIST}/{plain(frames, 'skill_step')[0]['run']}/seven.txt"
        assert (await got(url, path))[0] == 200
        status, _, _ = await ask(url, "DELETE", f"/api/sessions/{frames[0]['session']}")
        assert (status, (await got(url, path))[0]) == (200, 404)
        assert shelf.sweep() == 0


async def test_what_cannot_be_fetched_is_not_offered_and_the_reason_is_said(base: Path) -> None:
    makes = "truncate -s 65M large; touch \"$(printf 'caf\\351')\" \"$(printf 'two\\nlines')\""
    async with working(ScriptedModel([*shell(makes), *shell(makes)]), base) as (url, _):
        frames = await frames_of(url, {"messages": [user("Make them.")]})
        (step,) = plain(frames, "skill_step")
        large = {"path": "large", "reason": "is larger than the 64 MiB that a kept file may have"}
        odd = {"path": "caf\\xe9", "reason": "has a name that is no UTF-8 text"}
        assert step["files"] == plain(frames, "tool_progress")[-1]["files"] == ["two\nlines"]
        assert sorted(step["not_kept"], key=lambda item: item["path"]) == [odd, large]
        assert (await got(url, f"{LIST}/{step['run']}/two%0Alines"))[0] == 200
        asked: dict[str, Any] = {"model": "m", "messages": [user("Make them.")]}
        _, answer, _ = await ask(url, "POST", "/v1/chat/completions", json=asked)
        (made,) = answer["satchel"]["artifacts"]
        assert made["files"] == ["two\nlines"]
        assert {item["path"] for item in made["not_kept"]} == {"large", "caf\\xe9"}
