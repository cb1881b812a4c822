"""Who may speak to the gateway: bearer keys, or anybody when none is configured."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Annotated

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from satchel.errors import RequestError

_bearer = HTTPBearer(auto_error=False, description="One of the server's keys; not needed when it has none.")


class KeyCheck:
    """A dependency that lets a request through when it carries one of the keys.

    Digests of equal length are compared, all of them each time, so neither the length of a key nor its place in the
    list shows in the time that a refusal takes.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = tuple(_digest(key.encode()) for key in keys)

    async def __call__(self, sent: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]) -> None:
        """Raises ``RequestError`` "unauthorized"."""
        if self._digests and not self._is_known(sent.credentials if sent else ""):
            raise RequestError(
                "unauthorized",
                "The key is missing or not known here.",
                hint='Send "Authorization: Bearer KEY" with a key of this server.',
            )

    def _is_known(self, key: str) -> bool:
        # Header text is Latin-1 on the way in; this gives back the bytes that were sent.
        digest = _digest(key.encode("latin-1"))
        return sum(hmac.compare_digest(digest, known) for known in self._digests) > 0


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
