"""``/v1/chat/completions`` and ``/v1/models``."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from satchel.errors import UpstreamError
from satchel.gateway.auth import caller_of
from satchel.gateway.body import json_response, read_body
from satchel.gateway.failures import ErrorBody
from satchel.gateway.openai_chat.translate import ChunkEncoder, CompletionEncoder, model_body, read_call
from satchel.gateway.openai_chat.wire import ChatBody, CompletionBody, ModelBody, ModelListBody
from satchel.gateway.response import TurnResponse
from satchel.gateway.state import CurrentGateway

_FAILURES: dict[int | str, dict[str, Any]] = {"default": {"model": ErrorBody}}
_CHAT_BODY = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": ChatBody.model_json_schema()}}}
}

router = APIRouter(tags=["OpenAI Chat Completions"], responses=_FAILURES)


@router.post(
    "/v1/chat/completions",
    response_model=CompletionBody,
    responses={200: {"description": "One completion, or chunks with `stream`.", "content": {"text/event-stream": {}}}},
    openapi_extra=_CHAT_BODY,
)
async def chat_completions(request: Request, gateway: CurrentGateway) -> Response:
    """Answers a conversation, with skills where the request does not turn them off."""
    caller = caller_of(request, gateway.options)
    call = await read_body(request, gateway.options.max_body_bytes, lambda body: read_call(body, caller))
    agent = call.turn.agent
    encoder = (
        ChunkEncoder(agent=agent, include_usage=call.include_usage, include_steps=call.include_steps)
        if call.is_streamed
        else CompletionEncoder(agent=agent)
    )
    return TurnResponse(gateway.turn(request, call.turn), encoder, heartbeat_s=gateway.options.heartbeat_s)


@router.get("/v1/models", response_model=ModelListBody)
async def list_models(request: Request, gateway: CurrentGateway) -> Response:
    """The models that can be asked for."""
    models = [model_body(info) for info in await gateway.runtime.models.models(caller_of(request, gateway.options))]
    return json_response(ModelListBody(data=models).model_dump())


@router.get("/v1/models/{model_id:path}", response_model=ModelBody)
async def show_model(model_id: str, request: Request, gateway: CurrentGateway) -> Response:
    """One of them."""
    offered = await gateway.runtime.models.models(caller_of(request, gateway.options))
    models = {info.id: info for info in offered}
    if model_id not in models:
        raise UpstreamError(
            "model-not-found", f'There is no model called "{model_id}".', hint="GET /v1/models lists them."
        )
    return json_response(model_body(models[model_id]).model_dump())
