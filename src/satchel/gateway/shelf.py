"""The skills of a gateway, as more than one surface looks at them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.exceptions import HTTPException

from satchel.errors import SkillError
from satchel.gateway.state import CurrentGateway, Gateway
from satchel.ports.skills import SkillSource
from satchel.skills.model import Skill


async def existing_source(gateway: CurrentGateway) -> SkillSource:
    """Where skills come from. Without skills it is as if nothing stood at the path."""
    if gateway.runtime.source is None:
        raise HTTPException(404)
    return gateway.runtime.source


CurrentSource = Annotated[SkillSource, Depends(existing_source)]


async def known_skill(gateway: Gateway, name: str) -> Skill:
    """The skill of that name. Raises ``SkillError`` "skill-not-found"."""
    skill = (await gateway.runtime.catalog()).get(name)
    if skill is None:
        raise SkillError("skill-not-found", f'No skill is called "{name}".', hint="GET /v1/skills lists them.")
    return skill


async def modified_of(source: SkillSource, skill: Skill) -> float:
    """When it was last changed, in Unix seconds; 0 when that is unknown or it can no longer be read."""
    try:
        return (await source.load(skill.ref)).modified
    except SkillError:
        return 0.0
