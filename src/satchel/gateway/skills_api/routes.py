"""``/v1/skills`` and ``/api/skills``.

While skills are off, these paths answer as if nothing stood there: clients probe for them.
"""

from __future__ import annotations

from typing import Any, NoReturn

from fastapi import APIRouter, Depends
from starlette.responses import PlainTextResponse, Response

from satchel.errors import RequestError, SkillError
from satchel.gateway.body import json_response
from satchel.gateway.failures import ErrorBody, PlainErrorBody
from satchel.gateway.shelf import CurrentSource, existing_source, known_skill
from satchel.gateway.skills_api.translate import detail_body, load_errors, skill_body, unread_body
from satchel.gateway.skills_api.wire import SkillBody, SkillDetailBody, SkillListBody, SkillPageBody
from satchel.gateway.state import CurrentGateway, Gateway
from satchel.ports.skills import SkillSource

MAX_FILE_BYTES = 512 * 1024

_FAILURES: dict[int | str, dict[str, Any]] = {"default": {"model": ErrorBody}}
_PLAIN_FAILURES: dict[int | str, dict[str, Any]] = {"default": {"model": PlainErrorBody}}


router = APIRouter(tags=["Skills"])


@router.get("/v1/skills", response_model=SkillListBody, responses=_FAILURES)
async def list_skills(gateway: CurrentGateway, source: CurrentSource) -> Response:
    """Every skill of the catalogue, sorted by name."""
    return json_response(SkillListBody(data=await _bodies(gateway, source)).model_dump())


@router.get("/v1/skills/{name}", response_model=SkillDetailBody, responses=_FAILURES)
@router.get("/api/skills/{name}", response_model=SkillDetailBody, responses=_PLAIN_FAILURES)
async def show_skill(name: str, gateway: CurrentGateway, source: CurrentSource) -> Response:
    """One skill with its instructions."""
    skill = await known_skill(gateway, name)
    return json_response(detail_body(await source.load(skill.ref)).model_dump())


@router.get("/api/skills", response_model=SkillPageBody, responses=_PLAIN_FAILURES)
async def page_skills(gateway: CurrentGateway, source: CurrentSource) -> Response:
    """The same list, with what did not load."""
    return json_response((await _page(gateway, source)).model_dump())


@router.get("/api/skills/{name}/files/{path:path}", response_class=PlainTextResponse, responses=_PLAIN_FAILURES)
async def show_file(name: str, path: str, gateway: CurrentGateway, source: CurrentSource) -> Response:
    """One text file of a skill, up to 512 KiB."""
    skill = await known_skill(gateway, name)
    page = await source.read(skill.ref, path, max_bytes=MAX_FILE_BYTES)
    if not page.is_last:
        raise RequestError("too-large", f"The file has {page.total} bytes; {MAX_FILE_BYTES} are the most to be shown.")
    return PlainTextResponse(page.text, headers={"X-Content-Type-Options": "nosniff"})


@router.post("/api/skills/rescan", response_model=SkillPageBody, responses=_PLAIN_FAILURES)
async def rescan_skills(gateway: CurrentGateway, source: CurrentSource) -> Response:
    """Looks for skills again. Turns that run and sessions keep those that they began with."""
    await gateway.runtime.rescan()
    return json_response((await _page(gateway, source)).model_dump())


@router.post("/api/skills", responses=_PLAIN_FAILURES, dependencies=[Depends(existing_source)])
async def install_skill() -> None:
    """Refused: this server takes no uploads."""
    _refuse()


@router.delete("/api/skills/{name}", responses=_PLAIN_FAILURES, dependencies=[Depends(existing_source)])
async def delete_skill(name: str, gateway: CurrentGateway) -> None:
    """Refused: only uploaded skills could be deleted."""
    await known_skill(gateway, name)
    _refuse()


def _refuse() -> NoReturn:
    raise RequestError(
        "forbidden",
        "Uploads are off: skills are neither installed nor deleted over HTTP here.",
        hint="Change the server's skills directories and send POST /api/skills/rescan.",
    )


async def _page(gateway: Gateway, source: SkillSource) -> SkillPageBody:
    catalog = await gateway.runtime.catalog()
    return SkillPageBody(
        allowScripts=gateway.runs_scripts,
        discovery=gateway.runtime.discovery,
        skills=await _bodies(gateway, source),
        errors=load_errors(catalog.diagnostics),
    )


async def _bodies(gateway: Gateway, source: SkillSource) -> list[SkillBody]:
    bodies: list[SkillBody] = []
    for skill in (await gateway.runtime.catalog()).skills:
        try:
            bodies.append(skill_body(await source.load(skill.ref)))
        except SkillError as error:
            bodies.append(unread_body(skill, error.message))
    return bodies
