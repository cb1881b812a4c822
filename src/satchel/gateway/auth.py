"""Who may speak to the gateway: holders of a key, or every program on this machine when no key is configured."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from satchel.chat.request import Caller
from satchel.errors import RequestError
from satchel.gateway.options import ServerOptions

_LOOPBACK_V4 = re.compile(r"127(?:\.[0-9]{1,3}){3}")
_api_key = APIKeyHeader(name="x-api-key", auto_error=False, description="The same, as Anthropic clients send it.")
_bearer = HTTPBearer(auto_error=False, description="One of the server's keys; not needed when it has none.")


class KeyCheck:
    """A dependency that lets a request through when it carries one of the keys.

    Digests of equal length are compared, all of them each time, so neither the length of a key nor its place in the
    list shows in the time that a refusal takes.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = tuple(_digest(key.encode()) for key in keys)

    async def __call__(
        self,
        request: Request,
        bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
        x_api_key: Annotated[str | None, Depends(_api_key)],
    ) -> None:
        """Raises ``RequestError`` "unauthorized"."""
        del bearer, x_api_key  # They stand here for the OpenAPI page.
        if self._digests and not self._is_known(sent_key(request)):
            raise RequestError(
                "unauthorized",
                "The key is missing or not known here.",
                hint='Send "Authorization: Bearer KEY" or "x-api-key: KEY" with a key of this server.',
            )

    def _is_known(self, key: str) -> bool:
        # Header text is Latin-1 on the way in; this gives back the bytes that were sent.
        digest = _digest(key.encode("latin-1"))
        return sum(hmac.compare_digest(digest, known) for known in self._digests) > 0


class OriginCheck:
    """A dependency that keeps web pages of other sites out of a gateway that asks for no key.

    A browser sends the address of the page as Origin. A page that points its own name at this machine is known by the
    Host that it asked for.
    """

    def __init__(self, options: ServerOptions) -> None:
        self._is_open = not options.keys
        self._is_local = _is_loopback(options.host)

    async def __call__(self, request: Request) -> None:
        """Raises ``RequestError`` "forbidden"."""
        if not self._is_open:
            return
        host = _hostname("//" + request.headers.get("host", ""))
        origin = request.headers.get("origin")
        page = _hostname(origin or "")
        is_foreign = origin is not None and page != host and not _is_loopback(page)
        if is_foreign or (self._is_local and not _is_loopback(host)):
            raise RequestError(
                "forbidden",
                "Web pages of other sites may not use this gateway.",
                hint="Set SATCHEL_KEYS and send one of the keys to use it from elsewhere.",
            )


def caller_of(request: Request, options: ServerOptions) -> Caller:
    """Who asks. Keys of this gateway are its own business and go nowhere; any other key may go upstream."""
    betas = request.headers.get("anthropic-beta", "")
    return Caller(
        key="" if options.keys else sent_key(request),
        betas=tuple(name for item in betas.split(",") if (name := item.strip())),
    )


def owner_of(request: Request) -> str:
    """Whose a thing is that this request leaves here: a digest of the key that was sent, "local" without one."""
    key = sent_key(request)
    return hashlib.sha256(key.encode("latin-1")).hexdigest() if key else "local"


def sent_key(request: Request) -> str:
    """The key in ``Authorization: Bearer`` or ``x-api-key``, "" without one."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    if scheme.casefold() == "bearer" and bearer.strip():
        return bearer.strip()
    return request.headers.get("x-api-key", "").strip()


def _hostname(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    return host in {"localhost", "::1"} or bool(_LOOPBACK_V4.fullmatch(host))


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
