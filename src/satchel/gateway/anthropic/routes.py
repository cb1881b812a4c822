"""``/v1/messages``, and ``/v1/models`` and ``/v1/skills`` for clients that speak this format."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from satchel.errors import UpstreamError
from satchel.gateway.anthropic.skills import skill_item, skill_page
from satchel.gateway.anthropic.translate import (
    EventEncoder,
    MessageEncoder,
    estimated_tokens,
    model_body,
    model_list,
    read_call,
    read_prompt,
)
from satchel.gateway.anthropic.wire import (
    AnthropicErrorBody,
    CountBody,
    MessageBody,
    MessagesBody,
    PromptBody,
)
from satchel.gateway.auth import caller_of
from satchel.gateway.body import json_response, read_body
from satchel.gateway.response import TurnResponse
from satchel.gateway.shelf import CurrentSource, known_skill, modified_of
from satchel.gateway.state import CurrentGateway

_FAILURES: dict[int | str, dict[str, Any]] = {"default": {"model": AnthropicErrorBody}}


class _ForItsClients(APIRoute):
    """A path that the formats share: this one answers clients that send ``anthropic-version``, as theirs all do."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if all(name != b"anthropic-version" for name, _ in scope.get("headers", ())):
            return Match.NONE, {}
        return super().matches(scope)


router = APIRouter(tags=["Anthropic Messages"], responses=_FAILURES)
# The published schema has one entry a path and method, which is the one for everybody else.
shared_router = APIRouter(route_class=_ForItsClients, include_in_schema=False)


def _takes(kind: type[PromptBody]) -> dict[str, Any]:
    schema = {"schema": kind.model_json_schema()}
    return {"requestBody": {"required": True, "content": {"application/json": schema}}}


@router.post(
    "/v1/messages",
    response_model=MessageBody,
    responses={200: {"description": "One message, or events with `stream`.", "content": {"text/event-stream": {}}}},
    openapi_extra=_takes(MessagesBody),
)
async def messages(request: Request, gateway: CurrentGateway) -> Response:
    """Answers a conversation, with skills where the request does not turn them off."""
    caller = caller_of(request, gateway.options)
    has_skills = gateway.runtime.source is not None
    call = await read_body(
        request, gateway.options.max_body_bytes, lambda body: read_call(body, caller, has_skills=has_skills)
    )
    encoder = EventEncoder(call) if call.is_streamed else MessageEncoder(call)
    return TurnResponse(gateway.turn(request, call.turn), encoder, heartbeat_s=gateway.options.heartbeat_s)


@router.post("/v1/messages/count_tokens", response_model=CountBody, openapi_extra=_takes(PromptBody))
async def count_tokens(request: Request, gateway: CurrentGateway) -> Response:
    """Estimates the tokens of a prompt, with the block of skills and the tools that the gateway adds to it.

    It is an approximation: four bytes of text count as a token, and a picture or document as 1,600. No model is asked.
    """
    caller = caller_of(request, gateway.options)
    has_skills = gateway.runtime.source is not None
    call = await read_body(
        request, gateway.options.max_body_bytes, lambda body: read_prompt(body, caller, has_skills=has_skills)
    )
    async with gateway.turn(request, call.turn) as turn:
        count = estimated_tokens(turn.first_request())
    return json_response(CountBody(input_tokens=count).model_dump())


@shared_router.get("/v1/models")
async def list_models(request: Request, gateway: CurrentGateway) -> Response:
    """The models that can be asked for."""
    offered = await gateway.runtime.models.models(caller_of(request, gateway.options))
    return json_response(model_list(offered).model_dump())


@shared_router.get("/v1/models/{model_id:path}")
async def show_model(model_id: str, request: Request, gateway: CurrentGateway) -> Response:
    """One of them."""
    for info in await gateway.runtime.models.models(caller_of(request, gateway.options)):
        if info.id == model_id:
            return json_response(model_body(info).model_dump())
    raise UpstreamError("model-not-found", f'There is no model called "{model_id}".', hint="GET /v1/models lists them.")


@shared_router.get("/v1/skills")
async def list_skills(request: Request, gateway: CurrentGateway, source: CurrentSource) -> Response:
    """Every skill of the catalogue, sorted by name, on one page."""
    betas = caller_of(request, gateway.options).betas
    found = (await gateway.runtime.catalog()).skills
    return json_response(
        skill_page([skill_item(skill.name, await modified_of(source, skill), betas) for skill in found])
    )


@shared_router.get("/v1/skills/{name}")
async def show_skill(name: str, request: Request, gateway: CurrentGateway, source: CurrentSource) -> Response:
    """One of them."""
    skill = await known_skill(gateway, name)
    betas = caller_of(request, gateway.options).betas
    return json_response(skill_item(skill.name, await modified_of(source, skill), betas))
