"""``/api/chat``, ``/api/sessions`` and ``/api/models``."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from satchel.gateway.auth import caller_of, owner_of
from satchel.gateway.body import json_response, read_body
from satchel.gateway.failures import PlainErrorBody
from satchel.gateway.native.conversation import SessionTurn
from satchel.gateway.native.request import read_call
from satchel.gateway.native.translate import AnswerEncoder, FrameEncoder, model_body, session_body
from satchel.gateway.native.wire import (
    DeletedBody,
    NativeChatBody,
    OfferedModelsBody,
    SessionBody,
    SkillsBlock,
    TurnBody,
)
from satchel.gateway.response import TurnResponse
from satchel.gateway.state import CurrentGateway

SESSION_HEADER = "X-Satchel-Session"

_FAILURES: dict[int | str, dict[str, Any]] = {"default": {"model": PlainErrorBody}}
_CHAT_BODY = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": NativeChatBody.model_json_schema()}}}
}

router = APIRouter(tags=["Satchel"], responses=_FAILURES)


@router.post(
    "/api/chat",
    response_model=TurnBody,
    responses={
        200: {"description": "Frames, or one answer with `stream: false`.", "content": {"text/event-stream": {}}}
    },
    openapi_extra=_CHAT_BODY,
)
async def chat(request: Request, gateway: CurrentGateway) -> Response:
    """Answers a conversation that the client holds, or the next turn of one that the server holds."""
    caller, owner = caller_of(request, gateway.options), owner_of(request)
    call = await read_body(request, gateway.options.max_body_bytes, lambda body: read_call(body, caller, owner))
    held = SessionTurn(gateway.runtime, gateway.sessions, call) if call.session else None
    plain = call.turn()
    kind = FrameEncoder if call.is_streamed else AnswerEncoder
    return TurnResponse(
        held.open() if held else gateway.runtime.turn(plain),
        kind(plain.agent, held),
        heartbeat_s=gateway.options.heartbeat_s,
        headers={SESSION_HEADER: held.session_id} if held else None,
    )


@router.get("/api/sessions/{session_id}", response_model=SessionBody)
async def show_session(session_id: str, request: Request, gateway: CurrentGateway) -> Response:
    """A session's conversation after its last complete turn, for the key that began it."""
    return json_response(session_body(gateway.sessions.get(owner_of(request), session_id)).model_dump())


@router.delete("/api/sessions/{session_id}", response_model=DeletedBody)
async def delete_session(session_id: str, request: Request, gateway: CurrentGateway) -> Response:
    """Forgets a session, and removes its working directory."""
    await gateway.sessions.drop(owner_of(request), session_id)
    return json_response(DeletedBody(session=session_id).model_dump())


@router.get("/api/models", response_model=OfferedModelsBody)
async def list_models(request: Request, gateway: CurrentGateway) -> Response:
    """The models that can be asked for, and whether there are skills."""
    models = await gateway.runtime.models.models(caller_of(request, gateway.options))
    skills = None
    if gateway.runtime.source is not None:
        count = len((await gateway.runtime.catalog()).skills)
        skills = SkillsBlock(allowScripts=gateway.runs_scripts, count=count)
    return json_response(OfferedModelsBody(models=[model_body(info) for info in models], skills=skills).model_dump())
