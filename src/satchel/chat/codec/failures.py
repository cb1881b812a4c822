"""What a model server says when it fails, read into an ``UpstreamError``, whatever its format."""

from __future__ import annotations

import json
import re
from http import HTTPStatus

from satchel.chat.messages import Json
from satchel.errors import UpstreamError

MAX_MESSAGE_CHARS = 600

_OVERFLOW = re.compile(
    r"context.{0,3}length|context.{0,3}window|context.{0,3}size|maximum context|exceed_context|too many (input )?tokens"
    r"|(prompt|input) is too long|reduce the length of the (messages|prompt)|max_model_len",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model.{0,120}?(not found|not exist|doesn't exist|unknown|not available|not loaded)"
    r"|(no such|unknown|invalid) model",
    re.IGNORECASE | re.DOTALL,
)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]+")
_RETRY_AFTER = re.compile(r"\d{1,9}(\.\d{1,9})?|[A-Z][a-z]{2}, [\w :]{1,30} GMT")
_REDIRECTS = range(300, 400)
_REFUSALS = range(400, 500)
_ERRORS = range(400, 600)
_MIN_SECRET_CHARS = 8
_NO_SECRETS = frozenset(
    {"anything", "changeme", "lm-studio", "no-key-required", "not-needed", "not-required", "placeholder"}
    | {"sk-no-key-required", "undefined", "unneeded"}
)
_RATE = frozenset({"rate_limit_exceeded", "rate_limit_error", "too_many_requests"})
_AUTH = frozenset({"authentication_error", "permission_error", "invalid_api_key"})


def read_failure(
    raw: Json, *, status: int = 0, retry_after: str = "", model: str = "", secret: str = ""
) -> UpstreamError:
    """The error for an error body.

    Args:
        raw: The decoded body, or its text when it was not JSON. An ``error`` field may be an object or a string.
        status: The HTTP status, 0 for an error inside a stream.
        retry_after: The header of that name, as sent; kept when it is a number or a date.
        model: The model that was asked for, for the message.
        secret: A key that must not appear in the message.
    """
    message, kinds = _said(raw)
    message = masked(message, secret)
    kinds = frozenset(kind for kind in kinds if kind == masked(kind, secret))
    if len(message) > MAX_MESSAGE_CHARS:
        message = message[:MAX_MESSAGE_CHARS] + "..."
    data: dict[str, object] = {"status": status} if status else {}
    if _RETRY_AFTER.fullmatch(retry_after):
        data["retry_after"] = retry_after
    if kinds:
        data["kinds"] = sorted(kinds)
    code, hint, retryable = _classify(status or _status_inside(raw), message, kinds, model)
    said = f': "{message}"' if message else "."
    return UpstreamError(code, f"{_HEADS[code]}{said}", hint=hint, data=data, retryable=retryable)


def masked(text: str, secret: str) -> str:
    """The text without the key, as it is and as JSON writes it.

    A short one and the usual words of clients that have no key stay: they are no secret, and the text may need them.
    """
    if len(secret) < _MIN_SECRET_CHARS or secret.casefold() in _NO_SECRETS:
        return text
    for form in (secret, json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(secret)[1:-1]):
        text = text.replace(form, "[key]")
    return text


_HEADS = {
    "upstream-auth": "The model server refused the key",
    "upstream-rate-limited": "The model server asks to slow down",
    "upstream-timeout": "The model server ran out of time",
    "upstream-rejected": "The model server refused the request",
    "upstream-failed": "The model server failed",
    "model-not-found": "The model server does not have this model",
    "context-overflow": "The conversation is longer than the model's context window",
}


def _classify(status: int, message: str, kinds: frozenset[str], model: str) -> tuple[str, str, bool]:
    if status in {401, 403} or kinds & _AUTH:
        return "upstream-auth", "Check the key that is configured for this model server.", False
    if status == HTTPStatus.TOO_MANY_REQUESTS or kinds & _RATE:
        quota = "insufficient_quota" in kinds
        hint = "The account's quota is used up." if quota else "Try again later."
        return "upstream-rate-limited", hint, not quota
    if _OVERFLOW.search(message) or kinds & {"context_length_exceeded", "exceed_context_size_error"}:
        return "context-overflow", "Shorten the conversation or the skills, or use a model with a larger window.", False
    if "model_not_found" in kinds or (status in {0, 400, 404} and _NO_MODEL.search(message)):
        asked = f' It was asked for "{model}".' if model else ""
        return "model-not-found", f"Ask the server for its models.{asked}", False
    if status == HTTPStatus.NOT_FOUND:
        return "upstream-rejected", "Check the address: it is the base of the API, often ending in /v1.", False
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return "upstream-timeout", "Try again.", True
    if status in _REDIRECTS:
        return "upstream-rejected", "The address redirects; configure the address it leads to.", False
    if status in _REFUSALS or (not status and "invalid_request_error" in kinds):
        return "upstream-rejected", "", False
    return "upstream-failed", "Try again; if it persists, see the model server's own log.", True


def _status_inside(raw: Json) -> int:
    error = raw.get("error") if isinstance(raw, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and code in _ERRORS else 0


def _said(raw: Json) -> tuple[str, frozenset[str]]:
    """The message, and the words by which the server classifies the failure."""
    if isinstance(raw, str):
        return ("" if raw.lstrip().startswith("<") else _line(raw)), frozenset()
    if not isinstance(raw, dict):
        return "", frozenset()
    error = raw.get("error") or raw
    if isinstance(error, str):
        return _line(error), frozenset()
    if not isinstance(error, dict):
        return "", frozenset()
    kinds = frozenset(word for key in ("type", "code") if isinstance(word := error.get(key), str) and word)
    for key in ("message", "detail", "error", "msg"):
        said = error.get(key)
        if isinstance(said, str) and said.strip():
            return _line(said), kinds
        if isinstance(said, list) and said:
            return _line(str(said)), kinds
    return "", kinds


def _line(text: str) -> str:
    return " ".join(_UNPRINTABLE.sub(" ", text).split())
