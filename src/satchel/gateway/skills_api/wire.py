"""Skills as the HTTP interface shows them. The keys are the published ones, in their published order."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel


class FileBody(BaseModel):
    """A bundled file: its path inside the skill, its size in bytes, and whether it is text."""

    path: str
    bytes: int
    kind: str
    text: bool


class SkillBody(BaseModel):
    """A skill. ``bytes`` is its whole size; ``files`` leaves out SKILL.md and licences; ``modified`` is in UTC."""

    id: str
    object: Literal["skill"] = "skill"
    name: str
    description: str
    license: str | None
    compatibility: str | None
    metadata: dict[str, Any]
    allowed_tools: list[str]
    files: list[FileBody]
    bytes: int
    origin: Literal["discovered"]
    warnings: list[str]
    modified: str | None


class SkillDetailBody(SkillBody):
    """A skill with the body of its SKILL.md."""

    instructions: str


class SkillListBody(BaseModel):
    """``GET /v1/skills``."""

    object: Literal["list"] = "list"
    data: list[SkillBody]


class LoadErrorBody(BaseModel):
    """Something that keeps a folder from being a skill; ``path`` is on the server."""

    path: str
    message: str


class SkillPageBody(BaseModel):
    """``GET /api/skills``: the skills, and what was found that did not load."""

    enabled: Literal[True] = True
    installable: Literal[False] = False
    allowScripts: bool  # noqa: N815 - the published key
    discovery: bool
    skills: list[SkillBody]
    errors: list[LoadErrorBody]
