"""Ollama's API. ``api`` is its ``/api``, under whatever prefix the application gives it."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from satchel.errors import UpstreamError
from satchel.gateway.auth import caller_of
from satchel.gateway.body import json_response, read_body
from satchel.gateway.fields import read_fields, refused
from satchel.gateway.ollama.translate import (
    LineEncoder,
    ObjectEncoder,
    OllamaCall,
    load_answer,
    read_chat,
    read_generate,
    shown_body,
    tag_body,
)
from satchel.gateway.ollama.wire import (
    ChatAnswerBody,
    ChatBody,
    GenerateAnswerBody,
    GenerateBody,
    LoadedBody,
    OllamaErrorBody,
    ShowBody,
    ShownBody,
    TagsBody,
    VersionBody,
)
from satchel.gateway.response import TurnResponse
from satchel.gateway.state import CurrentGateway

SPOKEN_VERSION = "0.12.6"
"""The Ollama whose API this is. Clients ask for it and leave out what an older one did not have."""
_VERSION = VersionBody(version=SPOKEN_VERSION, satchel=metadata.version("satchel"))

_FAILURES: dict[int | str, dict[str, Any]] = {"default": {"model": OllamaErrorBody}}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Lines of JSON, the last with `done`; one object when `stream` is false.",
        "content": {"application/x-ndjson": {}},
    }
}


def _takes(kind: type[ChatBody | GenerateBody | ShowBody]) -> dict[str, Any]:
    schema = {"schema": kind.model_json_schema()}
    return {"requestBody": {"required": True, "content": {"application/json": schema}}}


api = APIRouter(tags=["Ollama"], responses=_FAILURES)
root = APIRouter(tags=["Ollama"])
chat_router = APIRouter(tags=["Ollama"], responses=_FAILURES)


@chat_router.post("/api/chat/ollama", response_model=ChatAnswerBody, responses=_ANSWER, openapi_extra=_takes(ChatBody))
@api.post("/chat", response_model=ChatAnswerBody, responses=_ANSWER, openapi_extra=_takes(ChatBody))
async def chat(request: Request, gateway: CurrentGateway) -> Response:
    """Answers a conversation, with skills where the request does not turn them off."""
    caller = caller_of(request, gateway.options)
    call = await read_body(request, gateway.options.max_body_bytes, lambda body: read_chat(body, caller))
    return _answer(request, call, gateway)


@api.post("/generate", response_model=GenerateAnswerBody, responses=_ANSWER, openapi_extra=_takes(GenerateBody))
async def generate(request: Request, gateway: CurrentGateway) -> Response:
    """Answers one prompt, with skills where the request does not turn them off."""
    caller = caller_of(request, gateway.options)
    call = await read_body(request, gateway.options.max_body_bytes, lambda body: read_generate(body, caller))
    return _answer(request, call, gateway)


def _answer(request: Request, call: OllamaCall, gateway: CurrentGateway) -> Response:
    if call.turn is None:
        return json_response(load_answer(call))
    encoder = (LineEncoder if call.is_streamed else ObjectEncoder)(call, agent=call.turn.agent)
    return TurnResponse(gateway.turn(request, call.turn), encoder, heartbeat_s=gateway.options.heartbeat_s)


@api.get("/tags", response_model=TagsBody)
async def tags(request: Request, gateway: CurrentGateway) -> Response:
    """The models that can be asked for."""
    offered = await gateway.runtime.models.models(caller_of(request, gateway.options))
    return json_response(TagsBody(models=[tag_body(info) for info in offered]).model_dump())


@api.get("/ps", response_model=LoadedBody)
async def loaded() -> Response:
    """Which models are loaded, as far as that is known."""
    return json_response(LoadedBody().model_dump())


@api.post("/show", response_model=ShownBody, openapi_extra=_takes(ShowBody))
async def show(request: Request, gateway: CurrentGateway) -> Response:
    """What is known of one model. A name without a tag also means the one with the tag "latest"."""
    asked = await read_body(request, gateway.options.max_body_bytes, lambda body: read_fields(ShowBody, body))
    name = asked.model or asked.name
    if not name:
        raise refused("model", "The name of a model is required.")
    models, caller = gateway.runtime.models, caller_of(request, gateway.options)
    offered = {info.id: info for info in await models.models(caller)}
    info = offered.get(name) or offered.get(f"{name}:latest") or offered.get(name.removesuffix(":latest"))
    if info is None:
        raise UpstreamError("model-not-found", f'There is no model called "{name}".', hint="GET /api/tags lists them.")
    return json_response(shown_body(info, await models.capabilities(info.id, caller)).model_dump())


@api.get("/version", response_model=VersionBody)
async def version() -> Response:
    """Which API this is."""
    return json_response(_VERSION.model_dump())


@root.get("/", response_class=PlainTextResponse)
@root.head("/", response_class=PlainTextResponse)
async def greet() -> Response:
    """How Ollama's clients find out that a server is there. Needs no key."""
    return PlainTextResponse("Ollama is running")
