"""Bytes of requests and answers: a bounded read of one JSON object, and JSON that any text survives."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar, cast

from starlette.requests import Request
from starlette.responses import Response

from satchel.chat.messages import Json
from satchel.errors import RequestError

MAX_DEPTH = 128
"""How deep arrays and objects of a request may be nested; far above any real schema, far below the recursion limit."""

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ESCAPED = json.JSONEncoder(separators=(",", ":"))


_LARGE_BYTES = 1024 * 1024
_MAX_VALUES = 1_000_000
"""Most values of a body: small ones take many times their bytes, and nobody else runs while they are read."""
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)

T = TypeVar("T")


async def read_body(request: Request, max_bytes: int, decode: Callable[[dict[str, Json]], T]) -> T:
    """What ``decode`` makes of the request's body, which is one JSON object. A large one is read in a thread.

    Raises ``RequestError`` "too-large" above ``max_bytes``, counted while reading, and "invalid-request" for what is
    not JSON, not an object or nested too deep; "too-large" also for more values than anybody needs.
    """
    raw = await _read(request, max_bytes)
    if len(raw) <= _LARGE_BYTES:
        return decode(parse_object(raw))
    return await asyncio.to_thread(lambda: decode(parse_object(raw)))


def parse_object(raw: bytes) -> dict[str, Json]:
    """The JSON object in ``raw``. Raises ``RequestError`` "invalid-request", and "too-large" for too many values."""
    if _separators(raw) > _MAX_VALUES and _separators(_STRING.sub(b"", raw)) > _MAX_VALUES:
        raise RequestError("too-large", f"The body holds more than {_MAX_VALUES} values.", hint="Send fewer.")
    try:
        value: object = _DECODER.decode(raw.decode(json.detect_encoding(raw), "surrogatepass"))
    except json.JSONDecodeError as error:
        raise _invalid(
            f"The body is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except UnicodeDecodeError as error:
        raise _invalid(f"The body is not valid UTF-8 at byte {error.start}.") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        # A constant that JSON does not have, or a number with more digits than Python reads.
        raise _invalid(f"The body is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise _invalid("The body must be one JSON object.")
    body = cast("dict[str, Json]", value)
    if _is_deeper(body, MAX_DEPTH):
        raise _too_deep()
    return body


def encode_json(value: object) -> bytes:
    """Compact JSON in UTF-8. A lone surrogate, which has no UTF-8 form, goes out as its escape."""
    try:
        return _COMPACT.encode(value).encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(value).encode()


def json_response(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """``value`` as an ``application/json`` answer."""
    return Response(encode_json(value), status_code=status, headers=headers, media_type="application/json")


async def _read(request: Request, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    total = 0
    async for piece in request.stream():
        total += len(piece)
        if total <= max_bytes:
            pieces.append(piece)
            continue
        pieces.clear()
        # A client that is still sending would not see an answer on a connection that is cut, so a little more is
        # read and thrown away.
        if total > 2 * max_bytes:
            break
    if total > max_bytes:
        raise RequestError(
            "too-large",
            f"The body is larger than {max_bytes} bytes.",
            hint="Send less, or raise the server's body limit.",
            data={"max_body_bytes": max_bytes},
        )
    return b"".join(pieces)


def _separators(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def _is_deeper(value: Json, depth: int) -> bool:
    level: list[Json] = [value]
    for _ in range(depth):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _invalid(message: str) -> RequestError:
    return RequestError("invalid-request", message)


def _too_deep() -> RequestError:
    return _invalid(f"The body is nested deeper than {MAX_DEPTH} levels.")
