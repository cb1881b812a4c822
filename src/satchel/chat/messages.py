"""The one conversation: messages made of parts. Every wire format is translated to and from this shape.

``extra`` keeps, per wire format, the fields that this shape has no place for; they are replayed only to the same
format. ``Opaque`` and ``Reasoning.opaque`` carry a vendor's signed or encrypted items unread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Format = Literal["openai-chat", "openai-responses", "ollama", "anthropic"]
Role = Literal["system", "developer", "user", "assistant", "tool"]
Extra = Mapping[Format, Mapping[str, Json]]


def _no_extra() -> Extra:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Plain text."""

    text: str
    extra: Extra = field(default_factory=_no_extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """A model's reasoning. ``opaque`` is the vendor's own item (a signature, encrypted content), kept unread."""

    text: str = ""
    opaque: Mapping[str, Json] | None = None
    format: Format | None = None
    extra: Extra = field(default_factory=_no_extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A model's call. ``arguments`` is JSON text; it is replayed byte for byte when it is one JSON object."""

    call_id: str
    name: str
    arguments: str
    extra: Extra = field(default_factory=_no_extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """The answer to one call."""

    call_id: str
    text: str
    name: str = ""
    is_error: bool = False
    extra: Extra = field(default_factory=_no_extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image, sound or document: either a ``url`` or base64 ``data`` with its ``media_type``."""

    kind: Literal["image", "audio", "document"]
    media_type: str = ""
    url: str = ""
    data: str = ""
    extra: Extra = field(default_factory=_no_extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """A part that only one wire format knows, replayed unchanged to that format and dropped elsewhere."""

    format: Format
    raw: Json


Part = Text | Reasoning | ToolUse | ToolOutput | Media | Opaque


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. Parts keep their order."""

    role: Role
    parts: tuple[Part, ...]
    extra: Extra = field(default_factory=_no_extra)

    @property
    def text(self) -> str:
        """All text parts joined without a separator."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The calls in this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolUse))


def message(role: Role, text: str) -> Message:
    """A message of one text part."""
    return Message(role=role, parts=(Text(text=text),))
