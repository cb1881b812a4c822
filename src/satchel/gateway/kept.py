"""Answers that clients may come back to by their ids. In memory, bounded, and nobody's but the asker's."""

from __future__ import annotations

from dataclasses import dataclass

from satchel.chat.messages import Json, Message
from satchel.engine.continuation import Shelf, estimate_json


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResponse:
    """``body`` is the answer as it was sent, ``inputs`` the items that this request brought.

    ``messages`` is the conversation up to and with the answer, our own tool turns included, without the request's
    instructions.
    """

    body: dict[str, Json]
    inputs: tuple[dict[str, Json], ...]
    messages: tuple[Message, ...]


class KeptResponses:
    """Responses by owner and id. Bounded in bytes and in the time since a response was last asked for."""

    def __init__(self, *, max_bytes: int = 64 * 1024 * 1024, ttl_s: float = 24 * 3600.0) -> None:
        self._shelf: Shelf[KeptResponse] = Shelf(max_bytes=max_bytes, ttl_s=ttl_s)

    def keep(self, owner: str, response_id: str, response: KeptResponse) -> bool:
        """False when it is too large to be kept."""
        size = estimate_json(response.body) + sum(estimate_json(item) for item in response.inputs)
        return self._shelf.put(owner, response_id, response, messages=response.messages, extra_bytes=size)

    def get(self, owner: str, response_id: str) -> KeptResponse | None:
        """None for an id that is unknown, too old or another owner's."""
        return self._shelf.get(owner, response_id)

    def drop(self, owner: str, response_id: str) -> bool:
        """Forgets one. False when there was none."""
        return self._shelf.drop(owner, response_id)

    def output_items(self, owner: str) -> dict[str, dict[str, Json]]:
        """Every output item that the owner has been given and that is still here, by its id."""
        found: dict[str, dict[str, Json]] = {}
        for response in self._shelf.values(owner):
            output = response.body.get("output")
            for item in output if isinstance(output, list) else ():
                if isinstance(item, dict) and isinstance(item.get("id"), str):
                    found[str(item["id"])] = item
        return found
