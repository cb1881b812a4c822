"""Failures as HTTP: which status, and the body in the shape that clients of the path expect."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from satchel.errors import (
    PathError,
    RequestError,
    SandboxError,
    SatchelError,
    SkillError,
    UpstreamError,
    WeightsError,
)
from satchel.gateway.access import record_of
from satchel.gateway.body import json_response

_STATUS = {
    "invalid-request": HTTPStatus.BAD_REQUEST,
    "unauthorized": HTTPStatus.UNAUTHORIZED,
    "forbidden": HTTPStatus.FORBIDDEN,
    "not-found": HTTPStatus.NOT_FOUND,
    "too-large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "too-many": HTTPStatus.TOO_MANY_REQUESTS,
    "skill-not-found": HTTPStatus.NOT_FOUND,
    "path-not-found": HTTPStatus.NOT_FOUND,
    "session-conflict": HTTPStatus.CONFLICT,
    "model-not-found": HTTPStatus.NOT_FOUND,
    "context-overflow": HTTPStatus.BAD_REQUEST,
    "upstream-timeout": HTTPStatus.GATEWAY_TIMEOUT,
    "upstream-rate-limited": HTTPStatus.TOO_MANY_REQUESTS,
}
_BY_CLASS: tuple[tuple[type[SatchelError], HTTPStatus], ...] = (
    (SkillError, HTTPStatus.CONFLICT),
    (PathError, HTTPStatus.BAD_REQUEST),
    (UpstreamError, HTTPStatus.BAD_GATEWAY),
    (SandboxError, HTTPStatus.SERVICE_UNAVAILABLE),
    (WeightsError, HTTPStatus.SERVICE_UNAVAILABLE),
)
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_ANTHROPIC_TYPES = _TYPES | {
    404: "not_found_error",
    413: "request_too_large",
    503: "overloaded_error",
    504: "timeout_error",
}
_ANTHROPIC_HEADER = "anthropic-version"
_HEADER_TEXT = re.compile(r"[!-~][ -~]{0,63}")


class ErrorDetail(BaseModel):
    """What went wrong, and for whom."""

    message: str
    type: str
    code: str
    param: str | None = None


class ErrorBody(BaseModel):
    """The vendor's error shape, on every path under /v1/."""

    error: ErrorDetail


class PlainErrorBody(BaseModel):
    """The error shape of all other paths."""

    error: str


def status_of(failure: SatchelError) -> int:
    """The HTTP status of a failure.

    What a model server said is kept for 400 and 429, and for a key of the client's own; it is 502 otherwise.
    """
    if failure.code == "upstream-auth" and failure.data.get("is_callers_key"):
        forbidden = failure.data.get("status") == HTTPStatus.FORBIDDEN
        return HTTPStatus.FORBIDDEN if forbidden else HTTPStatus.UNAUTHORIZED
    if failure.code == "upstream-rejected" and failure.data.get("status") == HTTPStatus.BAD_REQUEST:
        return HTTPStatus.BAD_REQUEST
    known = _STATUS.get(failure.code)
    if known is not None:
        return known
    return next((status for kind, status in _BY_CLASS if isinstance(failure, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


def told(failure: SatchelError) -> str:
    """Message and hint as one text."""
    if not failure.hint:
        return failure.message
    stop = "" if failure.message.endswith((".", "!", "?")) else "."
    return f"{failure.message}{stop} {failure.hint}"


def anthropic_error(failure: SatchelError) -> dict[str, object]:
    """``{"type": "error", "error": {"type", "message"}}``."""
    return _anthropic(told(failure), status=status_of(failure))


def error_body(path: str, failure: SatchelError, *, is_anthropic: bool = False) -> dict[str, object]:
    """A failure in the shape that clients of ``path`` expect; ``is_anthropic`` are those that say so in a header."""
    if _is_anthropic(path, is_anthropic=is_anthropic):
        return anthropic_error(failure)
    return vendor_error(failure) if _is_vendor(path) else {"error": told(failure)}


def vendor_error(failure: SatchelError) -> dict[str, object]:
    """``{"error": {"message", "type", "code", "param", ...}}``. A refused request also gets its ``data``.

    ``data["vendor_code"]`` is the vendor's own word for the failure, where its clients look for it.
    """
    data = dict(failure.data)
    param, code = data.pop("field", None), str(data.pop("vendor_code", failure.code))
    body = _vendor(told(failure), status=status_of(failure), code=code, param=param)
    if isinstance(failure, RequestError):
        body["error"] = data | body["error"]
    return {**body}


def failure_response(path: str, failure: SatchelError, *, is_anthropic: bool = False) -> Response:
    """The answer to a request for ``path`` that failed before its first byte."""
    status = status_of(failure)
    headers: dict[str, str] = {}
    retry_after = str(failure.data.get("retry_after") or "")
    if _HEADER_TEXT.fullmatch(retry_after):
        headers["Retry-After"] = retry_after
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        # The rest of the body is still on its way: the connection cannot carry another request.
        headers["Connection"] = "close"
    return json_response(error_body(path, failure, is_anthropic=is_anthropic), status=status, headers=headers)


def shutting_down() -> SatchelError:
    """The failure of a request that the server's own end cuts off."""
    return UpstreamError("upstream-cut-off", "The server is shutting down.", hint="Try again later.", retryable=True)


class ShutDown:
    """Answers a request that the server cancels because its grace is over; a crash is something else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise
            record = record_of(scope)
            record.outcome = "shut-down"
            if not record.status:
                await failure_response(scope["path"], shutting_down())(scope, receive, send)


def install(app: FastAPI) -> None:
    """Makes every failure of the application an answer of that shape, the framework's own included."""
    app.add_middleware(ShutDown)
    app.add_exception_handler(SatchelError, _on_failure)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)
    app.add_exception_handler(Exception, _on_crash)


async def _on_failure(request: Request, error: Exception) -> Response:
    assert isinstance(error, SatchelError)
    record_of(request.scope).outcome = error.code
    return failure_response(request.url.path, error, is_anthropic=_ANTHROPIC_HEADER in request.headers)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    return _plain(request, f"{error.detail}.", status=error.status_code, code=code, headers=error.headers)


async def _on_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return _plain(request, f"{where}: {first['msg']}.", status=status, code="invalid-request", param=where)


async def _on_disconnect(request: Request, error: Exception) -> Response:
    del error
    # The client left while it was sending: nobody reads this, but the framework wants an answer.
    record_of(request.scope).outcome = "hung-up"
    return Response(status_code=HTTPStatus.BAD_REQUEST)


async def _on_crash(request: Request, error: Exception) -> Response:
    # The server logs the exception itself; a client learns nothing of our insides.
    del error
    return _plain(request, "The gateway failed.", status=HTTPStatus.INTERNAL_SERVER_ERROR, code="internal-error")


def _plain(
    request: Request,
    message: str,
    *,
    status: int,
    code: str,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    path = request.url.path
    body: object = {"error": message}
    if _is_anthropic(path, is_anthropic=_ANTHROPIC_HEADER in request.headers):
        body = _anthropic(message, status=status)
    elif _is_vendor(path):
        body = _vendor(message, status=status, code=code, param=param)
    return json_response(body, status=status, headers=headers)


def _vendor(message: str, *, status: int, code: str, param: object) -> dict[str, dict[str, object]]:
    kind = "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    return {"error": {"message": message, "type": _TYPES.get(status, kind), "code": code, "param": param}}


def _anthropic(message: str, *, status: int) -> dict[str, object]:
    kind = "api_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    return {"type": "error", "error": {"type": _ANTHROPIC_TYPES.get(status, kind), "message": message}}


def _is_anthropic(path: str, *, is_anthropic: bool) -> bool:
    """``is_anthropic`` counts on the paths that the formats share."""
    return _is_at(path, "/v1/messages") or (is_anthropic and (_is_at(path, "/v1/models") or _is_at(path, "/v1/skills")))


def _is_at(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")


def _is_vendor(path: str) -> bool:
    return path.startswith("/v1/")
