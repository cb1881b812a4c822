"""Memory for what an answer's rounds added, so that a follow-up gets it back. Bounded, and gone with the process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from satchel.chat.messages import Extra, Json, Media, Message, Opaque, Part, Reasoning, Text, ToolOutput, ToolUse

_OVERHEAD_BYTES = 256
"""What an entry, a message, a part and every value in an unread item cost beside their text."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    value: T
    messages: tuple[Message, ...]
    own_bytes: int
    until: float


class Shelf(Generic[T]):
    """Values under ``(owner, token)``: nobody but the owner finds one, whoever knows the token.

    What was not used for ``ttl_s`` seconds is gone; when all is larger than ``max_bytes``, the least recently used
    goes first. Messages that several entries share count once, for as long as one of them is there. ``clock`` gives
    monotonic seconds.
    """

    def __init__(self, *, max_bytes: int, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._clock = clock
        self._entries: OrderedDict[tuple[str, str], _Entry[T]] = OrderedDict()
        self._shared: dict[int, tuple[int, int]] = {}
        """Of each message by identity: by how many entries it is held, and its size."""
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: tuple[str, str]) -> bool:
        """Whether the owner has something under the token. Counts as no use."""
        self._make_room()
        return key in self._entries

    @property
    def size_bytes(self) -> int:
        """The estimated size of all that is kept."""
        return self._bytes

    def put(self, owner: str, token: str, value: T, *, messages: Iterable[Message] = (), extra_bytes: int = 0) -> bool:
        """Keeps ``value``, in the place of what stood there. False when it is larger than all the room there is.

        ``messages`` are those that the value holds; ``extra_bytes`` is the size of the rest of it.
        """
        self.drop(owner, token)
        held = tuple({id(message): message for message in messages}.values())
        sizes = {id(message): self._shared.get(id(message), (0, 0))[1] or estimate_bytes(message) for message in held}
        own_bytes = extra_bytes + _OVERHEAD_BYTES + len(owner) + len(token)
        if own_bytes + sum(sizes.values()) > self._max_bytes:
            return False
        entry = _Entry(value, held, own_bytes, self._clock() + self._ttl_s)
        self._entries[owner, token] = entry
        self._bytes += own_bytes
        for key, size in sizes.items():
            count, _ = self._shared.get(key, (0, size))
            self._shared[key] = count + 1, size
            self._bytes += 0 if count else size
        self._make_room()
        return True

    def get(self, owner: str, token: str) -> T | None:
        """The value, which counts as used now; None for a token that is unknown, too old or another owner's."""
        self._make_room()
        entry = self._entries.get((owner, token))
        if entry is None:
            return None
        self._entries[owner, token] = _Entry(entry.value, entry.messages, entry.own_bytes, self._clock() + self._ttl_s)
        self._entries.move_to_end((owner, token))
        return entry.value

    def values(self, owner: str) -> list[T]:
        """All that the owner has here, the least recently used first. Counts as no use."""
        self._make_room()
        return [entry.value for (kept_for, _), entry in self._entries.items() if kept_for == owner]

    def drop(self, owner: str, token: str) -> bool:
        """Forgets a value. False when there was none."""
        self._make_room()
        return self._forget((owner, token))

    def _forget(self, key: tuple[str, str]) -> bool:
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        self._bytes -= entry.own_bytes
        for message in entry.messages:
            count, size = self._shared.pop(id(message))
            if count > 1:
                self._shared[id(message)] = count - 1, size
            else:
                self._bytes -= size
        return True

    def _make_room(self) -> None:
        # Every use moves an entry to the end and renews its time, so the first one is the first to be too old.
        now = self._clock()
        while self._entries:
            key, entry = next(iter(self._entries.items()))
            if self._bytes <= self._max_bytes and now < entry.until:
                return
            self._forget(key)


def estimate_bytes(message: Message) -> int:
    """About how much memory a message takes: its text, and a fixed sum for everything that is not text."""
    return _OVERHEAD_BYTES + estimate_json(message.extra) + sum(_part_bytes(part) for part in message.parts)


def _part_bytes(part: Part) -> int:
    match part:
        case Text() | Reasoning():
            held = len(part.text) + (estimate_json(dict(part.opaque or {})) if isinstance(part, Reasoning) else 0)
        case ToolUse():
            held = len(part.call_id) + len(part.name) + len(part.arguments)
        case ToolOutput():
            held = len(part.call_id) + len(part.name) + len(part.text)
        case Media():
            held = len(part.url) + len(part.data)
        case Opaque():
            return _OVERHEAD_BYTES + estimate_json(part.raw)
    return _OVERHEAD_BYTES + held + estimate_json(part.extra)


def estimate_json(value: Json | Extra) -> int:
    """The same for a JSON value."""
    total = 0
    rest: list[object] = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, Mapping):
            fields = cast("Mapping[str, object]", item)
            total += _OVERHEAD_BYTES * len(fields)
            rest += [*fields.keys(), *fields.values()]
        elif isinstance(item, list):
            total += _OVERHEAD_BYTES
            rest += cast("list[object]", item)
    return total
