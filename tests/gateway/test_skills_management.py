"""``/api/skills``: what a page that manages skills needs, without uploads."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from satchel.chat.messages import ToolOutput
from satchel.engine.runtime import Runtime
from satchel.execution.options import ExecutionOptions
from satchel.library import discover
from satchel.skills.catalog import Catalog
from satchel.sources.directory import DirectorySource
from satchel.testing.scripted_model import Reply, ScriptedModel, call
from tests.gateway.benches import working
from tests.gateway.native import streaming, user
from tests.gateway.serving import runtime_over, serving, soon
from tests.gateway.shelf import shelf
from tests.gateway.test_requests import ask
from tests.support import runtime_over as runtime_over_directory
from tests.support import write_skill


async def test_the_page_lists_skills_and_what_did_not_load(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf")
    broken = tmp_path / "broken" / "SKILL.md"
    broken.parent.mkdir()
    broken.write_text("no frontmatter")
    async with serving(runtime_over_directory(ScriptedModel([]), tmp_path)) as base:
        status, got, _ = await ask(base, "GET", "/api/skills")
        _, listed, _ = await ask(base, "GET", "/v1/skills")
    assert status == 200
    assert list(got) == ["enabled", "installable", "allowScripts", "discovery", "skills", "errors"]
    assert (got["enabled"], got["installable"], got["allowScripts"], got["discovery"]) == (True, False, False, True)
    assert got["skills"] == listed["data"]
    (error,) = got["errors"]
    assert list(error) == ["path", "message"]
    assert error["path"] == str(broken)
    assert error["message"]


@pytest.mark.parametrize("scripts", [True, False])
async def test_whether_scripts_may_run_is_told(tmp_path: Path, scripts: bool) -> None:
    execution = ExecutionOptions(scripts=scripts, code=True)
    async with working(ScriptedModel([]), tmp_path / "base", execution=execution) as (base, _):
        _, page, _ = await ask(base, "GET", "/api/skills")
        _, models, _ = await ask(base, "GET", "/api/models")
    assert page["allowScripts"] is scripts
    assert models["skills"]["allowScripts"] is scripts


async def test_one_skill_has_its_instructions_and_an_unknown_one_is_404_in_the_plain_shape() -> None:
    async with serving(runtime_over(ScriptedModel([]), shelf())) as base:
        status, got, _ = await ask(base, "GET", "/api/skills/invoice")
        missing, refused, _ = await ask(base, "GET", "/api/skills/nope")
    assert (status, got["instructions"]) == (200, "# Invoices\nThe secret prefix is ZX-9.\n")
    assert missing == 404
    assert list(refused) == ["error"]
    assert '"nope"' in refused["error"]


async def test_a_file_is_plain_text_that_no_browser_takes_for_anything_else(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf", files={"references/page.html": "<script>é</script>", "references/empty.md": ""})
    async with serving(runtime_over_directory(ScriptedModel([]), tmp_path)) as base, aiohttp.ClientSession() as session:
        async with session.get(f"{base}/api/skills/pdf/files/references/page.html") as answer:
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert await answer.read() == "<script>é</script>".encode()
        async with session.get(f"{base}/api/skills/pdf/files/SKILL.md") as answer:
            assert (await answer.text()).startswith("---\nname: pdf\n")
        async with session.get(f"{base}/api/skills/pdf/files/references/empty.md") as answer:
            assert (answer.status, await answer.read()) == (200, b"")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("pdf/files/none.md", 404),
        ("nope/files/SKILL.md", 404),
        ("pdf/files/%2e%2e/csv/SKILL.md", 400),
        ("pdf/files/..%2f..%2fsecret", 400),
        ("pdf/files/.env", 400),
        ("pdf/files/%2fetc%2fpasswd", 400),
        ("pdf/files/link.md", 400),
        ("pdf/files/image.png", 400),
        ("pdf/files/large.txt", 413),
    ],
)
async def test_a_file_that_is_not_to_be_shown_is_refused(tmp_path: Path, path: str, status: int) -> None:
    files = {"image.png": "\0\0", ".env": "KEY=hunter2", "large.txt": "x" * (512 * 1024 + 1)}
    folder = write_skill(tmp_path / "skills", "pdf", files=files)
    write_skill(tmp_path / "skills", "csv")
    (tmp_path / "secret").write_text("hunter2")
    (folder / "link.md").symlink_to(tmp_path / "secret")
    async with serving(runtime_over_directory(ScriptedModel([]), tmp_path / "skills")) as base:
        async with aiohttp.ClientSession() as session:
            async with session.get(URL(f"{base}/api/skills/{path}", encoded=True)) as answer:
                assert answer.status == status
                body = await answer.json()
    assert list(body) == ["error"]
    assert "hunter2" not in body["error"]


async def test_a_file_of_exactly_the_limit_is_shown(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf", files={"full.txt": "x" * (512 * 1024)})
    async with serving(runtime_over_directory(ScriptedModel([]), tmp_path)) as base, aiohttp.ClientSession() as session:
        async with session.get(f"{base}/api/skills/pdf/files/full.txt") as answer:
            assert len(await answer.read()) == 512 * 1024


async def test_a_rescan_finds_what_is_new_and_what_is_gone(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf")
    async with serving(runtime_over_directory(ScriptedModel([]), tmp_path)) as base:
        (tmp_path / "pdf").rename(tmp_path.parent / f"{tmp_path.name}-moved")
        write_skill(tmp_path, "csv")
        _, before, _ = await ask(base, "GET", "/api/skills")
        status, after, _ = await ask(base, "POST", "/api/skills/rescan")
        _, listed, _ = await ask(base, "GET", "/v1/skills")
        _, models, _ = await ask(base, "GET", "/api/models")
    assert [skill["name"] for skill in before["skills"]] == ["pdf"]
    assert status == 200
    assert list(after) == list(before)
    assert [skill["name"] for skill in after["skills"]] == ["csv"]
    assert after["skills"] == listed["data"]
    assert models["skills"]["count"] == 1


async def test_a_turn_that_runs_keeps_its_skills_across_a_rescan(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf")
    go_on = asyncio.Event()
    model = ScriptedModel([Reply(wait=go_on, calls=(call("skills_list"),)), Reply(text=("Hi",))])
    async with serving(runtime_over_directory(model, tmp_path)) as base:
        async with streaming(base, {"messages": [user("Hello")]}) as stream:
            await soon(model.asked)
            write_skill(tmp_path, "csv")
            _, after, _ = await ask(base, "POST", "/api/skills/rescan")
            go_on.set()
            done = (await stream.rest())[-1]
            assert (done["done"], done["finish"]) == (True, "stop")
    assert [skill["name"] for skill in after["skills"]] == ["csv", "pdf"]
    (listed,) = (part.text for part in model.requests[1].messages[-1].parts if isinstance(part, ToolOutput))
    assert "pdf" in listed
    assert "csv" not in listed


async def test_looks_at_the_skills_do_not_overlap(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf")
    running, most = 0, 0

    class Watched(DirectorySource):
        async def rescan(self) -> Catalog:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                return await super().rescan()
            finally:
                running -= 1

    runtime = Runtime(models=ScriptedModel([]), source=Watched(discover([tmp_path])))
    await asyncio.gather(*(runtime.rescan() for _ in range(5)))
    assert most == 1


async def test_skills_in_memory_are_what_they_were_after_a_rescan() -> None:
    async with serving(runtime_over(ScriptedModel([]), shelf())) as base:
        status, got, _ = await ask(base, "POST", "/api/skills/rescan")
    assert (status, len(got["skills"])) == (200, 2)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/api/skills", 403),
        ("DELETE", "/api/skills/invoice", 403),
        ("DELETE", "/api/skills/nope", 404),
    ],
)
async def test_nothing_is_installed_or_deleted(method: str, path: str, status: int) -> None:
    async with serving(runtime_over(ScriptedModel([]), shelf())) as base:
        got_status, got, _ = await ask(base, method, path)
    assert got_status == status
    if status == 403:
        assert "Uploads are off" in got["error"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/skills"),
        ("POST", "/api/skills"),
        ("POST", "/api/skills/rescan"),
        ("GET", "/api/skills/pdf"),
        ("DELETE", "/api/skills/pdf"),
        ("GET", "/api/skills/pdf/files/SKILL.md"),
    ],
)
async def test_while_skills_are_off_nothing_stands_there(method: str, path: str) -> None:
    async with serving(runtime_over(ScriptedModel([]))) as base:
        status, got, _ = await ask(base, method, path)
        _, unknown, _ = await ask(base, method, "/api/nothing")
    assert (status, got) == (404, unknown)


async def test_a_page_of_another_site_cannot_rescan(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf")
    async with serving(runtime_over_directory(ScriptedModel([]), tmp_path)) as base:
        write_skill(tmp_path, "csv")
        status, _, _ = await ask(base, "POST", "/api/skills/rescan", headers={"Origin": "https://evil.example"})
        _, listed, _ = await ask(base, "GET", "/v1/skills")
    assert status == 403
    assert len(listed["data"]) == 1
