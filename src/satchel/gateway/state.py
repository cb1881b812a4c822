"""What routes work with: the runtime of this server and its options."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Annotated, cast

from fastapi import Depends, Request

from satchel.engine.request import Principal, TurnRequest
from satchel.engine.runtime import Runtime
from satchel.engine.turn import Turn
from satchel.execution.options import refusal
from satchel.gateway.auth import owner_of
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

    @property
    def runs_scripts(self) -> bool:
        """Whether models may run scripts of skills here, and this host can confine them as it has to."""
        execution = self.runtime.execution
        if execution is None or not execution.options.scripts:
            return False
        return not refusal(execution.executor, execution.options.sandbox)

    def turn(self, request: Request, turn: TurnRequest) -> AbstractAsyncContextManager[Turn]:
        """``Runtime.turn`` on behalf of whoever sent ``request``."""
        return self.runtime.turn(replace(turn, principal=Principal(id=owner_of(request))))


async def _gateway(request: Request) -> Gateway:
    return cast("Gateway", request.state.gateway)


CurrentGateway = Annotated[Gateway, Depends(_gateway)]
"""A route parameter of this type is the running server."""
