"""``/v1/responses``, and what is left of answers afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from satchel.chat.messages import Message
from satchel.errors import RequestError
from satchel.gateway.auth import caller_of, owner_of
from satchel.gateway.body import json_response, read_body
from satchel.gateway.failures import ErrorBody
from satchel.gateway.fields import refused
from satchel.gateway.kept import KeptResponse
from satchel.gateway.openai_responses.output import Object
from satchel.gateway.openai_responses.request import read_call, resolve_references
from satchel.gateway.openai_responses.shell import open_bundles
from satchel.gateway.openai_responses.translate import EventEncoder, ResponseEncoder, kept_response
from satchel.gateway.openai_responses.wire import DeletedBody, ItemListBody, ResponseBody, ResponsesBody
from satchel.gateway.response import TurnResponse
from satchel.gateway.state import CurrentGateway, Gateway

_FAILURES: dict[int | str, dict[str, Any]] = {"default": {"model": ErrorBody}}
_BODY = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": ResponsesBody.model_json_schema()}}}
}

router = APIRouter(tags=["OpenAI Responses"], responses=_FAILURES)


@router.post(
    "/v1/responses",
    response_model=ResponseBody,
    responses={200: {"description": "One response, or events with `stream`.", "content": {"text/event-stream": {}}}},
    openapi_extra=_BODY,
)
async def create_response(request: Request, gateway: CurrentGateway) -> Response:
    """Answers an input, with skills where the request does not turn them off."""
    caller, owner = caller_of(request, gateway.options), owner_of(request)
    call = await read_body(request, gateway.options.max_body_bytes, lambda body: read_call(body, caller))
    before = _conversation(gateway, owner, call.previous)
    call = replace(call, chat=resolve_references(call.chat, lambda: gateway.responses.output_items(owner)))
    inline = await asyncio.to_thread(open_bundles, call.bundles) if call.bundles else ()

    def keep(body: Object, added: Sequence[Message]) -> bool:
        return gateway.responses.keep(owner, str(body["id"]), kept_response(call, body, before, added))

    turn = call.turn(before, inline=inline)
    kind = EventEncoder if call.is_streamed else ResponseEncoder
    encoder = kind(call, agent=turn.agent, keep=keep)
    return TurnResponse(gateway.turn(request, turn), encoder, heartbeat_s=gateway.options.heartbeat_s)


@router.get("/v1/responses/{response_id}", response_model=ResponseBody)
async def show_response(
    response_id: str,
    request: Request,
    gateway: CurrentGateway,
    stream: bool = False,
) -> Response:
    """An answer that was kept, for the key that asked for it."""
    if stream:
        raise refused("stream", "A finished answer is not streamed again.")
    return json_response(_kept(gateway, request, response_id).body)


@router.delete("/v1/responses/{response_id}", response_model=DeletedBody)
async def delete_response(response_id: str, request: Request, gateway: CurrentGateway) -> Response:
    """Forgets an answer."""
    if not gateway.responses.drop(owner_of(request), response_id):
        raise _no_such(response_id)
    return json_response(DeletedBody(id=response_id).model_dump())


@router.get("/v1/responses/{response_id}/input_items", response_model=ItemListBody)
async def list_input_items(
    response_id: str,
    request: Request,
    gateway: CurrentGateway,
    *,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
) -> Response:
    """The items that one request brought, in pages."""
    items = _kept(gateway, request, response_id).inputs
    ordered = items if order == "asc" else items[::-1]
    places = {item["id"]: place for place, item in enumerate(ordered)}
    if after is not None and after not in places:
        raise refused("after", "There is no item of this id here.")
    start = 0 if after is None else places[after] + 1
    page = ordered[start : start + limit]
    body = ItemListBody(
        data=list(page),
        first_id=str(page[0]["id"]) if page else None,
        last_id=str(page[-1]["id"]) if page else None,
        has_more=start + limit < len(ordered),
    )
    return json_response(body.model_dump())


def _conversation(gateway: Gateway, owner: str, previous: str) -> tuple[Message, ...]:
    if not previous:
        return ()
    kept = gateway.responses.get(owner, previous)
    if kept is None:
        raise RequestError(
            "invalid-request",
            f"Previous response with id '{previous}' not found.",
            hint="Answers are kept for a time, for the key that asked for them, and not with store false.",
            data={"field": "previous_response_id", "vendor_code": "previous_response_not_found"},
        )
    return kept.messages


def _kept(gateway: Gateway, request: Request, response_id: str) -> KeptResponse:
    kept = gateway.responses.get(owner_of(request), response_id)
    if kept is None:
        raise _no_such(response_id)
    return kept


def _no_such(response_id: str) -> RequestError:
    return RequestError("not-found", f"Response with id '{response_id}' not found.", data={"field": "response_id"})
