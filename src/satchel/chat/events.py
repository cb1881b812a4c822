"""What a model server says while it generates, whatever its wire format.

A stream of these ends with exactly one ``ModelDone``, or with a ``satchel.errors.UpstreamError``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from satchel.chat.messages import Extra, Json, Message

Finish = Literal["stop", "length", "tool_calls", "content_filter"]


def _no_extra() -> Extra:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the model server counted them.

    ``cached_tokens`` (read from a cache) and ``cache_write_tokens`` (written to one) are part of ``prompt_tokens``.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelText:
    """A piece of the answer's text."""

    text: str
    extra: Extra = field(default_factory=_no_extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReasoning:
    """A piece of the model's reasoning.

    ``opaque`` is the vendor's whole signed or encrypted item, in the piece that ends it; ``extra`` tells which item and
    which part of it the piece belongs to, where the wire format has such.
    """

    text: str
    opaque: Mapping[str, Json] | None = None
    extra: Extra = field(default_factory=_no_extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A piece of a call: ``arguments`` is the next fragment of its JSON text.

    ``index`` numbers the calls of this generation from 0. ``call_id`` and ``name`` are complete in every delta of
    the call: an adapter holds fragments back until both are known.
    """

    index: int
    call_id: str
    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDone:
    """The end of a generation. ``message`` is the whole assistant message, ready to be replayed.

    ``finish`` is decided from the calls that were made, not from the wire alone: "tool_calls" exactly when the
    message has calls. ``usage`` is None when the server reported none.
    """

    finish: Finish
    message: Message
    usage: Usage | None = None
    extra: Extra = field(default_factory=_no_extra)


ModelEvent = ModelText | ModelReasoning | ModelCall | ModelDone
