"""What a chat client of one's own program is made of: a model server, a probe of it, and a runtime over skills."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING

from satchel.activation.origin import RegistrySource
from satchel.activation.registry import FilesystemSkillRegistry, Skills, SourceRegistry, open_registry
from satchel.chat.messages import Json
from satchel.engine.limits import LoopLimits
from satchel.engine.runtime import HostFactory, Runtime
from satchel.errors import UpstreamError
from satchel.execution.workbench import Execution
from satchel.ports.models import ModelClient, UpstreamOptions
from satchel.ports.skills import SkillSource
from satchel.skills.dialects import PORTABLE
from satchel.sources.directory import DirectorySource
from satchel.wiring.sources import skill_hosts

if TYPE_CHECKING:
    from aiohttp import ClientResponse

    from satchel.upstream.http import Endpoint

_SERVER_TROUBLE = range(500, 600)


def local_runtime(
    models: ModelClient,
    skills: Skills | Iterable[Skills],
    *,
    limits: LoopLimits,
    hosts: HostFactory = skill_hosts,
    execution: Execution | None = None,
) -> Runtime:
    """A runtime that runs the loop here. Directories are scanned now."""
    return Runtime(models=models, source=_source(skills), hosts=hosts, limits=limits, execution=execution)


def _source(skills: Skills | Iterable[Skills]) -> SkillSource:
    registry = open_registry(skills, dialect=PORTABLE)
    if isinstance(registry, FilesystemSkillRegistry):
        return DirectorySource(registry.library)
    return registry.source if isinstance(registry, SourceRegistry) else RegistrySource(registry)


async def serves_skills(options: UpstreamOptions) -> bool:
    """Whether the server lists skills at ``/skills`` as our gateway does, so that it knows our request fields.

    Raises ``UpstreamError`` when that cannot be told: no answer, a refused key, a server in trouble.
    """
    from satchel.upstream.http import Endpoint

    endpoint = Endpoint(options)
    try:
        headers = {"Authorization": f"Bearer {options.api_key}"} if options.api_key else {}
        response = await endpoint.request("GET", "/skills", headers=headers)
        try:
            if response.status == HTTPStatus.OK:
                return await _lists_skills(endpoint, response)
            failure = await endpoint.failure(response, secret=options.api_key)
        finally:
            response.close()
    except UpstreamError as error:
        if error.code == "upstream-garbled":
            return False
        raise
    finally:
        await endpoint.aclose()
    is_in_trouble = response.status in _SERVER_TROUBLE and response.status != HTTPStatus.NOT_IMPLEMENTED
    if is_in_trouble or failure.code in {"upstream-auth", "upstream-rate-limited"}:
        raise failure
    return False


async def _lists_skills(endpoint: Endpoint, response: ClientResponse) -> bool:
    from satchel.upstream.http import read_json

    async with aclosing(endpoint.pieces(response)) as pieces:
        return _is_our_listing(read_json(b"".join([piece async for piece in pieces])))


def _is_our_listing(raw: Json) -> bool:
    """A vendor has a list of the same name: its entries say nothing of their origin, and it comes in pages."""
    if not isinstance(raw, dict) or raw.get("object") != "list" or not isinstance(items := raw.get("data"), list):
        return False
    if not items:
        return "has_more" not in raw
    return all(isinstance(item, dict) and item.get("object") == "skill" and "origin" in item for item in items)
