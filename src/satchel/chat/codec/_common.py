"""What the four translations share: reading with a true place in every complaint, and reconciling kept fields.

A request field that has a place in ``ChatRequest`` is written from there. What a body says beyond that, or says in
another way than we would, is kept raw under the body's own format and wins as long as it still means the same.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from satchel.chat.messages import Extra, Format, Json
from satchel.chat.request import ToolSpec
from satchel.errors import RequestError, SatchelError, UpstreamError

Object = dict[str, Json]
Fault = Callable[[str, str], SatchelError]

OURS = frozenset({"skills", "skills_discovery", "multi_agent"})
"""Request fields of our own; no model server ever sees them."""

_LONE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def invalid_request(path: str, expected: str) -> SatchelError:
    """The complaint about a caller's body; ``data["field"]`` is the place, as in ``messages[2].content``."""
    place = path or "The body"
    return RequestError("invalid-request", f"{place} must be {expected}.", data={"field": path})


def garbled_answer(path: str, expected: str) -> SatchelError:
    """The complaint about a model server's body."""
    place = path or "it"
    return UpstreamError(
        "upstream-garbled",
        f"The model server's answer is not in its format: {place} must be {expected}.",
        hint="Check that the address is the base of an API of this kind.",
        data={"field": path},
    )


@dataclass(frozen=True, slots=True)
class Node:
    """A value inside a body, with its place and what to raise when it has the wrong shape."""

    value: Json
    path: str
    fault: Fault

    def bad(self, expected: str) -> SatchelError:
        """The error to raise."""
        return self.fault(self.path, expected)

    def object(self) -> Object:
        if not isinstance(self.value, dict):
            raise self.bad("an object")
        return self.value

    def items(self) -> list[Node]:
        """The elements of an array."""
        if not isinstance(self.value, list):
            raise self.bad("an array")
        return [Node(item, f"{self.path}[{number}]", self.fault) for number, item in enumerate(self.value)]

    def get(self, key: str) -> Node:
        """A field of an object; its value is None when it is absent."""
        return Node(self.object().get(key), f"{self.path}.{key}" if self.path else key, self.fault)

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.bad("a string")
        return self.value

    def filled_text(self) -> str:
        if not isinstance(self.value, str) or not self.value:
            raise self.bad("a string that is not empty")
        return self.value

    def optional_text(self) -> str:
        return "" if self.value is None else self.text()

    def optional_integer(self) -> int | None:
        if self.value is None:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.bad("a whole number")
        return self.value

    def optional_number(self) -> float | None:
        if self.value is None:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.bad("a number")
        return self.value

    def optional_flag(self) -> bool:
        if self.value is None:
            return False
        if not isinstance(self.value, bool):
            raise self.bad("true or false")
        return self.value

    def strings(self) -> tuple[str, ...]:
        """An array of strings; None is none."""
        return () if self.value is None else tuple(item.text() for item in self.items())


def rest(raw: Mapping[str, Json], *known: str) -> Object:
    """The fields that are not known here."""
    return {key: value for key, value in raw.items() if key not in known}


def extras(form: Format, fields: Mapping[str, Json]) -> Extra:
    """Fields as the ``extra`` of one format."""
    return {form: fields} if fields else {}


def own(extra: Extra, form: Format) -> Object:
    """A copy of what is kept for one format."""
    return dict(extra.get(form, {}))


def leftovers(body: Mapping[str, Json], canonical: Mapping[str, Json], *known: str) -> Object:
    """The fields of a request that we would not write by ourselves, ``OURS`` excepted."""
    return {
        key: value
        for key, value in body.items()
        if key not in OURS and key not in known and not (key in canonical and canonical[key] == value)
    }


def reconcile(kept: Object, keys: Iterable[str], *, now: Mapping[str, Json], then: Mapping[str, Json]) -> Object:
    """``kept`` with each of ``keys`` as ``now`` has it, unless the kept form says the same already.

    ``then`` is what we would have written for the kept fields.
    """
    body = dict(kept)
    for key in keys:
        if key in body and then.get(key) == now.get(key):
            continue
        if key in now:
            body[key] = now[key]
        else:
            body.pop(key, None)
    return body


def split_tools(node: Node, decode: Callable[[Node], ToolSpec | None]) -> tuple[tuple[ToolSpec, ...], Object]:
    """A request's declarations, and under ``tools`` what else the field held: ``[position, raw]`` pairs."""
    raw = node.object()
    if "tools" not in raw:
        return (), {}
    if raw["tools"] is None:
        return (), {"tools": None}
    specs: list[ToolSpec] = []
    foreign: list[Json] = []
    for position, item in enumerate(node.get("tools").items()):
        spec = decode(item)
        if spec is None:
            foreign.append([position, item.value])
        else:
            specs.append(spec)
    return tuple(specs), {"tools": foreign} if foreign or not specs else {}


def join_tools(body: Object, declarations: Iterable[Json]) -> None:
    """Writes ``tools`` back: declarations, and the kept ones at their places."""
    was_named = "tools" in body
    kept = body.pop("tools", None)
    tools = list(declarations)
    for pair in kept if isinstance(kept, list) else ():
        match pair:
            case [int(position), raw]:
                tools.insert(position, raw)
            case _:
                continue
    if tools or isinstance(kept, list):
        body["tools"] = tools
    elif was_named:
        body["tools"] = None


def marked_error(text: str, *, is_error: bool) -> str:
    """A tool's answer for a format that has no place for ``is_error``: the text says it."""
    return f"Error: {text}" if is_error and not text.startswith("Error:") else text


def fresh_call_id() -> str:
    """An id for a call that came without one."""
    return f"call_{secrets.token_hex(12)}"


def data_url(media_type: str, data: str) -> str:
    """Base64 data as a URL."""
    return f"data:{media_type or sniffed_image_type(data)};base64,{data}"


def read_data_url(url: str) -> tuple[str, str] | None:
    """``(media type, base64 data)`` of a plain data URL."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    media_type = head.removeprefix("data:").removesuffix(";base64")
    return (media_type, data) if media_type and ";" not in media_type else None


_IMAGE_TYPES = (("/9j/", "image/jpeg"), ("R0lG", "image/gif"), ("UklGR", "image/webp"))


def sniffed_image_type(data: str) -> str:
    """The type of a base64 image that came without one."""
    return next((media_type for start, media_type in _IMAGE_TYPES if data.startswith(start)), "image/png")


MAX_COUNT = 2**53


def count(value: Json) -> int:
    """A token count as a server may write it; anything odd counts as 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 < value < MAX_COUNT else 0


class TextMender:
    """Joins characters that a server split into two halves over two pieces, and replaces halves that stay alone."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        """The piece as text that can be written as UTF-8."""
        if not self._half and (piece.isascii() or not _LONE.search(piece)):
            return piece
        text = self._half + piece
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        text = _PAIR.sub(_joined, text)
        return _LONE.sub("\ufffd", text)


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")
