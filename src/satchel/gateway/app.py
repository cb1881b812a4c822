"""The gateway as one ASGI application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import Depends, FastAPI
from pydantic import BaseModel

from satchel.engine.runtime import Runtime
from satchel.gateway import artifacts, failures
from satchel.gateway.access import AccessLog
from satchel.gateway.anthropic import routes as anthropic
from satchel.gateway.auth import KeyCheck, OriginCheck
from satchel.gateway.native import routes as native
from satchel.gateway.ollama import routes as ollama
from satchel.gateway.openai_chat import routes as openai_chat
from satchel.gateway.openai_responses import routes as openai_responses
from satchel.gateway.options import ServerOptions
from satchel.gateway.sessions import Sessions
from satchel.gateway.skills_api import routes as skills_api
from satchel.gateway.state import Gateway
from satchel.gateway.tidying import look_s, tidied

RuntimeOpener = Callable[[], AbstractAsyncContextManager[Runtime]]


class HealthBody(BaseModel):
    """``GET /health``."""

    status: str = "ok"


def create_app(open_runtime: RuntimeOpener, options: ServerOptions, *, is_ollama: bool = False) -> FastAPI:
    """An application that serves one runtime.

    ``open_runtime`` is entered when the server starts, in the server's event loop, and left when it stops. Whatever
    it raises ends the start of the server. ``is_ollama`` makes it stand in for an Ollama: that API is at the root too,
    where a client that cannot be given a base path looks for it.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[dict[str, object], None]:
        del app
        async with open_runtime() as runtime:
            sessions = Sessions(idle_s=options.session_idle_s)
            async with tidied(sessions, runtime, every_s=look_s(options.session_idle_s)):
                yield {"gateway": Gateway(runtime=runtime, options=options, sessions=sessions)}

    # The documentation pages would load scripts of another host; /openapi.json is there for tools of one's own.
    app = FastAPI(title="Satchel", lifespan=lifespan, docs_url=None, redoc_url=None)
    failures.install(app)
    app.add_middleware(AccessLog)
    may_speak = [Depends(OriginCheck(options)), Depends(KeyCheck(options.keys))]
    # Before the routes of the same paths that serve every client.
    app.include_router(anthropic.shared_router, dependencies=may_speak)
    app.include_router(anthropic.router, dependencies=may_speak)
    app.include_router(openai_chat.router, dependencies=may_speak)
    app.include_router(openai_responses.router, dependencies=may_speak)
    app.include_router(skills_api.router, dependencies=may_speak)
    app.include_router(ollama.api, prefix="/ollama/api", dependencies=may_speak)
    app.include_router(ollama.root, prefix="/ollama")
    app.include_router(ollama.chat_router, dependencies=may_speak)
    # At a path that no Ollama has, since answers of every surface say what was produced.
    app.include_router(artifacts.router, dependencies=may_speak)
    if is_ollama:
        app.include_router(ollama.api, prefix="/api", dependencies=may_speak)
        app.include_router(ollama.root)
    else:
        # Ollama's clients look for their own API at these paths.
        app.include_router(native.router, dependencies=may_speak)
    app.add_api_route("/health", _health, tags=["Server"])
    return app


async def _health() -> HealthBody:
    """Answers while the server accepts requests. Needs no key."""
    return HealthBody()
