"""``/v1/skills``. While skills are off, these paths answer as if nothing stood there: clients probe for them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.exceptions import HTTPException
from starlette.responses import Response

from satchel.errors import SkillError
from satchel.gateway.body import json_response
from satchel.gateway.failures import ErrorBody
from satchel.gateway.skills_api.translate import detail_body, skill_body, unread_body
from satchel.gateway.skills_api.wire import SkillBody, SkillDetailBody, SkillListBody
from satchel.gateway.state import CurrentGateway
from satchel.ports.skills import SkillSource

_FAILURES: dict[int | str, dict[str, Any]] = {"default": {"model": ErrorBody}}

router = APIRouter(tags=["Skills"], responses=_FAILURES)


async def _source(gateway: CurrentGateway) -> SkillSource:
    if gateway.runtime.source is None:
        raise HTTPException(404)
    return gateway.runtime.source


CurrentSource = Annotated[SkillSource, Depends(_source)]


@router.get("/v1/skills", response_model=SkillListBody)
async def list_skills(gateway: CurrentGateway, source: CurrentSource) -> Response:
    """Every skill of the catalogue, sorted by name."""
    bodies: list[SkillBody] = []
    for skill in (await gateway.runtime.catalog()).skills:
        try:
            bodies.append(skill_body(await source.load(skill.ref)))
        except SkillError as error:
            bodies.append(unread_body(skill, error.message))
    return json_response(SkillListBody(data=bodies).model_dump())


@router.get("/v1/skills/{name}", response_model=SkillDetailBody)
async def show_skill(name: str, gateway: CurrentGateway, source: CurrentSource) -> Response:
    """One skill with its instructions."""
    skill = (await gateway.runtime.catalog()).get(name)
    if skill is None:
        raise SkillError("skill-not-found", f'No skill is called "{name}".', hint="GET /v1/skills lists them.")
    return json_response(detail_body(await source.load(skill.ref)).model_dump())
