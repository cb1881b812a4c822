"""``/api/code/artifacts``: what programs produced, for the key that let them run, as downloads and nothing else."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any, BinaryIO
from urllib.parse import quote

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from satchel.errors import RequestError
from satchel.execution.artifacts import Artifact, Artifacts
from satchel.execution.lease import leased
from satchel.gateway.auth import owner_of
from satchel.gateway.body import json_response
from satchel.gateway.failures import PlainErrorBody
from satchel.gateway.state import CurrentGateway, Gateway

_CHUNK = 256 * 1024
_FAILURES: dict[int | str, dict[str, Any]] = {"default": {"model": PlainErrorBody}}
_BYTES: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}


class _AnyName(Convertor[str]):
    """The rest of a path, also over a line's end: a program may name a file so."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", _AnyName())

router = APIRouter(prefix="/api/code/artifacts", tags=["Satchel"], responses=_FAILURES)


class ArtifactBody(BaseModel):
    """A produced file: its path in the working directory, and when it goes, in Unix seconds."""

    path: str
    bytes: int
    expires: int


class ArtifactsBody(BaseModel):
    """``GET /api/code/artifacts/{run}``: what is kept of a run, oldest first."""

    run: str
    files: list[ArtifactBody]


@router.head("/{run_id}", include_in_schema=False)
@router.get("/{run_id}", response_model=ArtifactsBody)
async def list_artifacts(run_id: str, request: Request, gateway: CurrentGateway) -> Response:
    """The files that are kept of a run, for the key whose request it was."""
    shelf = _shelf(gateway)
    kept = await asyncio.to_thread(shelf.of, owner_of(request), run_id)
    if not kept:
        raise _no_such("No files of such a run are kept.")
    now = time.time()
    files = [ArtifactBody(path=item.path, bytes=item.bytes, expires=int(now + shelf.left_s(item))) for item in kept]
    return json_response(ArtifactsBody(run=run_id, files=files).model_dump())


@router.head("/{run_id}/{path:name}", include_in_schema=False)
@router.get("/{run_id}/{path:name}", response_class=Response, responses=_BYTES)
async def download_artifact(run_id: str, path: str, request: Request, gateway: CurrentGateway) -> Response:
    """One of these files as it was when its program ended, as a download."""
    shelf = _shelf(gateway)
    # A name among those that are kept, and never a place on a disk.
    found = await asyncio.to_thread(shelf.find, owner_of(request), run_id, path)
    if found is None:
        raise _no_such("No such file of such a run is kept.")
    return _Download(shelf, found)


class _Download(Response):
    """Sends a kept file. It is open only while it is sent; one that expires meanwhile is sent to its end."""

    def __init__(self, shelf: Artifacts, artifact: Artifact) -> None:
        # No model wrote this type: a browser must neither show the file nor guess what it is.
        super().__init__(media_type="application/octet-stream", headers=_headers(artifact))
        self._shelf = shelf
        self._artifact = artifact

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        async with leased(partial(self._shelf.open, self._artifact.id), _close) as file:
            if file is None:
                raise _no_such("The file has just gone.")
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while scope["method"] != "HEAD" and (chunk := await asyncio.to_thread(file.read, _CHUNK)):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _headers(artifact: Artifact) -> dict[str, str]:
    name = artifact.name
    plain = "".join(char if char.isascii() else "_" for char in name)
    return {
        "Content-Length": str(artifact.bytes),
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
        "Cache-Control": "private, no-store",
    }


def _shelf(gateway: Gateway) -> Artifacts:
    execution = gateway.runtime.execution
    if execution is None or execution.artifacts is None:
        raise _no_such("Nothing is run here, so no files are kept.")
    return execution.artifacts


def _close(file: BinaryIO | None) -> None:
    if file is not None:
        file.close()


def _no_such(message: str) -> RequestError:
    hint = (
        "Files are kept for a while only, and for the key that made them. "
        "Send the key that the request was made with, also where the server asks for none."
    )
    return RequestError("not-found", message, hint=hint)
