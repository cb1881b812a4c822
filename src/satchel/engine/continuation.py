"""Memory for what an answer's rounds added, so that a follow-up gets it back. Bounded, and gone with the process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
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
    size: int
    """With its messages, whoever else holds them."""


class Shelf(Generic[T]):
    """Values under ``(owner, token)``: nobody but the owner finds one, whoever knows the token.

    What was not used for ``ttl_s`` seconds is gone; when all is larger than ``max_bytes``, the least recently used of
    the owner who has the most goes first. Messages that several entries share count once, for as long as one of them
    is there. ``clock`` gives monotonic seconds.
    """

    def __init__(self, *, max_bytes: int, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._clock = clock
        self._entries: OrderedDict[tuple[str, str], _Entry[T]] = OrderedDict()
        self._tokens: dict[str, OrderedDict[str, None]] = {}
        """Of each owner, the least recently used first."""
        self._sizes: dict[str, int] = {}
        """Of what each owner has, as if nothing were shared."""
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
        """Keeps ``value``, in the place of what stood there. False when there is no room for it.

        ``messages`` are those that the value holds; ``extra_bytes`` is the size of the rest of it.
        """
        self.drop(owner, token)
        held = tuple({id(message): message for message in messages}.values())
        sizes = {id(message): self._shared.get(id(message), (0, 0))[1] or estimate_bytes(message) for message in held}
        own_bytes = extra_bytes + _OVERHEAD_BYTES + len(owner) + len(token)
        size = own_bytes + sum(sizes.values())
        if size > self._max_bytes:
            return False
        entry = _Entry(value, held, own_bytes, self._clock() + self._ttl_s, size)
        self._entries[owner, token] = entry
        self._tokens.setdefault(owner, OrderedDict())[token] = None
        self._sizes[owner] = self._sizes.get(owner, 0) + size
        self._bytes += own_bytes
        for key, bytes_of_it in sizes.items():
            count, _ = self._shared.get(key, (0, bytes_of_it))
            self._shared[key] = count + 1, bytes_of_it
            self._bytes += 0 if count else bytes_of_it
        self._make_room()
        return (owner, token) in self._entries

    def get(self, owner: str, token: str) -> T | None:
        """The value, which counts as used now; None for a token that is unknown, too old or another owner's."""
        self._make_room()
        entry = self._entries.get((owner, token))
        if entry is None:
            return None
        self._entries[owner, token] = replace(entry, until=self._clock() + self._ttl_s)
        self._entries.move_to_end((owner, token))
        self._tokens[owner].move_to_end(token)
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
        owner, token = key
        del self._tokens[owner][token]
        self._sizes[owner] -= entry.size
        if not self._tokens[owner]:
            del self._tokens[owner], self._sizes[owner]
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
            if now < entry.until:
                break
            self._forget(key)
        while self._bytes > self._max_bytes:
            # Nobody's go because of what somebody else puts here.
            most = max(self._sizes, key=self._sizes.__getitem__)
            self._forget((most, next(iter(self._tokens[most]))))


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
