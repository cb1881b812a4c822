"""What routes work with: the runtime of this server and its options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from satchel.engine.runtime import Runtime
from satchel.gateway.kept import KeptResponses
from satchel.gateway.options import ServerOptions
from satchel.gateway.sessions import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """One running server. The lifespan makes it; requests find it in their state."""

    runtime: Runtime
    options: ServerOptions
    sessions: Sessions
    responses: KeptResponses = field(default_factory=KeptResponses)


async def _gateway(request: Request) -> Gateway:
    return cast("Gateway", request.state.gateway)


CurrentGateway = Annotated[Gateway, Depends(_gateway)]
"""A route parameter of this type is the running server."""
