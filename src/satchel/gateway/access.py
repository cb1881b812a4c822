"""One log line a request: method, path, status, duration, skills, tokens, id. Never bodies, headers or query strings.

The id is made here and goes out in the headers in which OpenAI's and Anthropic's clients look for one.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from satchel.chat.events import Usage
from satchel.engine.events import RoundFinished, SkillLoaded, TurnEvent

logger = logging.getLogger("satchel.gateway")

_KEY = "satchel.access"
_ID_HEADERS = (b"x-request-id", b"request-id")


@dataclass(slots=True)
class AccessRecord:
    """What is known of one request. ``outcome`` is "ok", "hung-up", "shut-down", "crashed" or an error's code."""

    status: int = 0
    outcome: str = "ok"
    skills: list[str] = field(default_factory=list[str])
    usage: Usage = field(default_factory=Usage)

    def note(self, event: TurnEvent) -> None:
        """Keeps what the log tells of a turn; tokens of an aborted turn count as far as they are known."""
        if isinstance(event, SkillLoaded) and event.ref.name not in self.skills:
            self.skills.append(event.ref.name)
        elif isinstance(event, RoundFinished) and event.usage is not None:
            self.usage += event.usage


def record_of(scope: Scope) -> AccessRecord:
    """The record of the request in ``scope``."""
    record = scope.setdefault(_KEY, AccessRecord())
    assert isinstance(record, AccessRecord)
    return record


class AccessLog:
    """Writes the line when a request has ended, however it ended."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = record_of(scope)

        request_id = f"req_{secrets.token_hex(12)}"
        named = [(name, request_id.encode()) for name in _ID_HEADERS]

        def watched(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), *named]}
            return send(message)

        began = time.monotonic()
        has_returned = False
        try:
            await self._app(scope, receive, watched)
            has_returned = True
        finally:
            if not has_returned:
                record.outcome = "crashed"
                record.status = record.status or 500
            logger.info(
                "%s %s %s %.3fs %s id=%s skills=%s tokens=%d+%d",
                scope["method"],
                quote(scope["path"], safe="/:"),
                record.status or "-",
                time.monotonic() - began,
                record.outcome,
                request_id,
                ",".join(record.skills) or "-",
                record.usage.prompt_tokens,
                record.usage.completion_tokens,
            )
