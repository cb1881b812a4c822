"""One generation: the model's stream turned into the turn's events, and its calls sorted by who answers them."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from satchel.chat.events import ModelCall, ModelDone, ModelEvent, ModelReasoning, ModelText
from satchel.chat.messages import Message, ToolUse
from satchel.chat.request import ChatRequest
from satchel.engine.events import CallDelta, ReasoningDelta, TextDelta
from satchel.errors import UpstreamError
from satchel.ports.models import ModelClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Who answers a call. Without any tool of ours in play, every call belongs to the client, unless they are barred.

    ``client`` leads from the declared names, as they are and in folded letter case, to the declared spelling.
    """

    own: frozenset[str]
    client: Mapping[str, str]
    is_passthrough: bool

    @classmethod
    def of(cls, own: Collection[str], client: Collection[str], *, is_barred: bool = False) -> Partition:
        """From the names of our tools and of the client's; the client's names count in any letter case."""
        spellings = {name.casefold(): name for name in reversed(tuple(client))} | {name: name for name in client}
        return cls(own=frozenset(own), client=spellings, is_passthrough=not own and not is_barred)

    def is_client(self, name: str) -> bool:
        """Whether the client answers calls of this name."""
        return self.is_passthrough or name.casefold() in self.client

    def spelling(self, name: str) -> str:
        """The name as the client declared it; the name itself when the client did not."""
        return self.client.get(name) or self.client.get(name.casefold(), name)

    def spelled(self, said: Message) -> Message:
        """The message with every call of the client's under its declared name."""
        parts = tuple(
            replace(part, name=self.spelling(part.name)) if isinstance(part, ToolUse) else part for part in said.parts
        )
        return replace(said, parts=parts)

    def split(self, uses: Collection[ToolUse]) -> tuple[tuple[ToolUse, ...], tuple[ToolUse, ...]]:
        """``(ours, the client's)``; ours includes calls to names that nobody declared."""
        ours = tuple(use for use in uses if not self.is_client(use.name))
        theirs = tuple(use for use in uses if self.is_client(use.name))
        return ours, theirs


class Round:
    """Runs one generation: ``async with Round(...)`` opens the model's stream, so the server has taken the request.

    ``done`` is set when ``events`` has ended without an error. ``taken`` are ids of calls before this generation: a
    call that comes with one of them, or twice with the same, gets an id of its own. With ``one_call`` only the first
    call of the generation is shown.
    """

    def __init__(
        self,
        models: ModelClient,
        chat: ChatRequest,
        partition: Partition,
        *,
        agent: str,
        number: int,
        taken: Iterable[str] = (),
        one_call: bool = False,
    ) -> None:
        self._stream = models.stream(chat)
        self._partition = partition
        self._agent = agent
        self._number = number
        self._one_call = one_call
        self._taken = set(taken)
        self._ids: dict[int, str] = {}
        self._given: dict[str, deque[str]] = {}
        self._client_index: dict[int, int] = {}
        self._source: AsyncIterator[ModelEvent] | None = None
        self._done: ModelDone | None = None

    async def __aenter__(self) -> Self:
        self._source = await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)

    @property
    def done(self) -> ModelDone:
        """The end of the generation, its calls under the ids that were shown and the client's under its names."""
        if self._done is None:
            raise UpstreamError("upstream-cut-off", "The model server ended its stream without a result.")
        return self._done

    async def events(self) -> AsyncGenerator[TextDelta | ReasoningDelta | CallDelta, None]:
        """Text and reasoning at once, fragments of the client's calls re-numbered from 0, nothing of our calls."""
        assert self._source is not None
        async for event in self._source:
            match event:
                case ModelText(text=text, extra=extra):
                    yield TextDelta(agent=self._agent, round=self._number, text=text, extra=extra)
                case ModelReasoning(text=text, opaque=opaque, extra=extra):
                    yield ReasoningDelta(agent=self._agent, round=self._number, text=text, opaque=opaque, extra=extra)
                case ModelCall():
                    call_id = self._id_of(event)
                    is_shown = not self._one_call or event.index == next(iter(self._ids))
                    if is_shown and self._partition.is_client(event.name):
                        yield self._client_delta(event, call_id)
                case ModelDone():
                    self._done = replace(event, message=self._partition.spelled(self._with_ids(event.message)))

    def _id_of(self, call: ModelCall) -> str:
        if call.index not in self._ids:
            self._ids[call.index] = self._free(call.call_id)
            self._given.setdefault(call.call_id, deque()).append(self._ids[call.index])
        return self._ids[call.index]

    def _free(self, given: str) -> str:
        call_id = given if given and given not in self._taken else f"call_{secrets.token_hex(12)}"
        self._taken.add(call_id)
        return call_id

    def _with_ids(self, said: Message) -> Message:
        def named(use: ToolUse) -> ToolUse:
            shown = self._given.get(use.call_id)
            call_id = shown.popleft() if shown else self._free(use.call_id)
            return use if call_id == use.call_id else replace(use, call_id=call_id)

        return replace(said, parts=tuple(named(part) if isinstance(part, ToolUse) else part for part in said.parts))

    def _client_delta(self, call: ModelCall, call_id: str) -> CallDelta:
        index = self._client_index.setdefault(call.index, len(self._client_index))
        return CallDelta(
            agent=self._agent,
            round=self._number,
            index=index,
            call_id=call_id,
            name=self._partition.spelling(call.name),
            arguments=call.arguments,
        )
