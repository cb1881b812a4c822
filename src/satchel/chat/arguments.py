"""A call's arguments: what a model wrote, read generously, and what may be sent back to a model server.

Models wrap arguments into code fences, encode them twice, run two objects together or write Python instead of JSON.
"""

from __future__ import annotations

import ast
import json
import re
import string
import warnings
from typing import cast

from satchel.chat.messages import Json

MAX_TOLERANT_CHARS = 64 * 1024
"""Longest text that is read generously; a longer one is read when it is one JSON object, and not looked at again."""
MAX_LITERAL_CHARS = 4 * 1024
"""Longest text that is tried as a Python literal, which takes far longer than JSON."""
MAX_OBJECTS = 16
"""Most objects run together that are merged; what follows is ignored."""
MAX_DEPTH = 64
"""Arguments nested deeper than this are not read."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_JSON_BLANKS = " \t\r\n"
_BETWEEN = _JSON_BLANKS + ",;"
_FENCE = "```"


def writable(text: str) -> str:
    """The text with every half of a broken character pair replaced: such text cannot be written as UTF-8."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise ValueError(f"{digits} is beyond every number")
    return number


_STRICT = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_LENIENT = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, strict=False)


def settle(text: str) -> tuple[dict[str, Json] | None, str]:
    """``(read_arguments(text), replayable(text))`` from one reading."""
    whole = _one_object(text)
    if whole is not None:
        return whole, text
    read = _read(text, depth=2) if len(text) <= MAX_TOLERANT_CHARS else None
    return read, "{}" if read is None else to_json(read)


def read_arguments(text: str) -> dict[str, Json] | None:
    """The arguments as a mapping, or None when nothing of the kind can be read.

    Accepted, in this order: nothing or ``null`` (no arguments); one JSON object, raw line breaks inside its strings
    included; a code fence around any of these; a JSON string that holds any of these; an object followed by anything
    (at most ``MAX_OBJECTS`` objects run together are merged as long as they share no key, from the first shared key
    on the rest is ignored); a Python dict literal of at most ``MAX_LITERAL_CHARS`` characters. Beyond
    ``MAX_TOLERANT_CHARS`` only one JSON object is accepted.
    """
    return settle(text)[0]


def replayable(text: str) -> str:
    """The arguments as they may be sent to a model server: always exactly one JSON object.

    The text itself, byte for byte, when it is one; else the JSON text of what could be read; else ``{}``.
    """
    return settle(text)[1]


def is_one_object(text: str) -> bool:
    """Whether the text is exactly one JSON object, which is replayed byte for byte."""
    return _one_object(text) is not None


def to_json(value: Json) -> str:
    """JSON text of one line, with characters beyond ASCII as they are."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _one_object(text: str) -> dict[str, Json] | None:
    if _SURROGATE.search(text) or not text.lstrip(_JSON_BLANKS).startswith("{"):
        return None
    try:
        value = cast("dict[str, Json]", _STRICT.decode(text))
        return value if not _needs_a_look(text) or _checked(value) == value else None
    except (ValueError, RecursionError):
        return None


def _read(text: str, *, depth: int) -> dict[str, Json] | None:
    stripped = text.lstrip("\ufeff").strip()
    if stripped in {"", "null", "None"}:
        return {}
    if stripped.startswith(_FENCE):
        fenced = _inside_fence(stripped)
        return _read(fenced, depth=depth - 1) if depth and fenced.strip() else None
    if stripped.startswith('"'):
        inner = _decode(stripped, 0)
        if not depth or inner is None or inner[1] != len(stripped) or not isinstance(inner[0], str):
            return None
        return _read(inner[0], depth=depth - 1)
    if not stripped.startswith("{"):
        return None
    objects = _objects(stripped)
    return _literal(stripped) if objects is None else objects


def _inside_fence(text: str) -> str:
    return text.removeprefix(_FENCE).lstrip(string.ascii_letters).partition(_FENCE)[0]


def _decode(text: str, start: int) -> tuple[Json, int] | None:
    try:
        value, end = cast("tuple[Json, int]", _LENIENT.raw_decode(text, start))
        return (_checked(value) if _needs_a_look(text[start:end]) else value), end
    except (ValueError, RecursionError):
        return None


def _objects(text: str) -> dict[str, Json] | None:
    merged: dict[str, Json] | None = None
    start = 0
    for _ in range(MAX_OBJECTS):
        if not text.startswith("{", start) or not (decoded := _decode(text, start)):
            break
        value, end = decoded
        if not isinstance(value, dict) or (merged and merged.keys() & value.keys()):
            break
        merged = merged or {}
        merged.update(value)
        start = end
        while start < len(text) and text[start] in _BETWEEN:
            start += 1
    return merged


def _literal(text: str) -> dict[str, Json] | None:
    if len(text) > MAX_LITERAL_CHARS:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            plain = _checked(_plain(cast("object", ast.literal_eval(text))))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return plain if isinstance(plain, dict) else None


def _plain(value: object) -> Json:
    """A Python literal as JSON. Raises ``ValueError`` for what JSON cannot say."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[object] | tuple[object, ...]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[object, object]", value)
        if all(isinstance(key, str) for key in pairs):
            return {str(key): _plain(item) for key, item in pairs.items()}
    raise ValueError("not JSON")


def _needs_a_look(text: str) -> bool:
    return bool(
        text.count("{") + text.count("[") > MAX_DEPTH
        or (not text.isascii() and _SURROGATE.search(text))
        or _ESCAPED_SURROGATE.search(text)
    )


def _checked(value: Json, depth: int = 0) -> Json:
    """The value with every text made ``writable``.

    Raises ``ValueError`` when it is nested deeper than ``MAX_DEPTH``.
    """
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, list):
        return [_checked(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {writable(key): _checked(item, depth + 1) for key, item in value.items()}
    return value
