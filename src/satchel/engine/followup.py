"""What a follow-up request gets back: the rounds that its client never saw, in the place of the answer that it saw.

A client's transcript holds neither our calls nor their results. Without them the model has forgotten what it read, and
its cache begins anew behind the first of them. A token gives them back.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from satchel.chat.arguments import read_arguments
from satchel.chat.messages import Json, Message, Opaque, Part, ToolOutput, ToolUse, message
from satchel.chat.opaque import open_calls
from satchel.chat.request import ChatRequest
from satchel.engine.continuation import Shelf
from satchel.engine.request import TurnRequest

_MAX_BYTES = 64 * 1024 * 1024
_TTL_S = 3600.0
_STORED_UPSTREAM = frozenset({"previous_response_id", "conversation"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer: what the client saw of it, and the ``messages`` that it really added.

    ``at`` is its place among the client's own messages, ``text`` its text without blanks, ``calls`` are those that were
    handed to the client. ``others`` are the ids of calls that are no functions.
    """

    at: int
    text: str
    calls: tuple[ToolUse, ...]
    messages: tuple[Message, ...]
    others: tuple[str, ...] = ()

    def is_seen_as(self, said: Message) -> bool:
        """Whether a client that sends ``said`` means this answer."""
        uses = said.tool_uses
        if said.role != "assistant" or len(uses) != len(self.calls):
            return False
        if (self.others or not uses) and set(open_calls(said)) != set(self.others):
            return False
        if not uses:
            return bool(self.others) or _squeezed(said.text) == self.text
        return {use.call_id for use in uses} == {use.call_id for use in self.calls} or all(
            _has_no_id(use)
            and use.name == call.name
            and read_arguments(use.arguments) == read_arguments(call.arguments)
            for use, call in zip(uses, self.calls, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A conversation with the answers that were found in it. ``is_matched`` is False when a token led to nothing."""

    messages: tuple[Message, ...]
    answers: tuple[Answer, ...] = ()
    is_matched: bool = True


class FollowUps:
    """Answers under tokens, each for the one who asked. A token leads to all earlier answers of its conversation."""

    def __init__(self, shelf: Shelf[tuple[Answer, ...]] | None = None) -> None:
        self._shelf = Shelf[tuple[Answer, ...]](max_bytes=_MAX_BYTES, ttl_s=_TTL_S) if shelf is None else shelf

    def restore(self, request: TurnRequest, messages: Sequence[Message]) -> Restored:
        """``messages``, which are the request's own, with the answers of its token in their places."""
        if not request.continuation:
            return Restored(messages=tuple(messages))
        answers = self._shelf.get(_owner(request), request.continuation) or ()
        places: dict[int, Answer] = {}
        end = len(messages)
        for answer in reversed(answers):
            place = _place(messages, answer, end)
            if place is not None:
                places[place] = answer
                end = place
        put_back: list[Message] = []
        ids: dict[str, str] = {}
        for index, said in enumerate(messages):
            if index in places:
                pairs = zip(said.tool_uses, places[index].calls, strict=True)
                ids |= {use.call_id: call.call_id for use, call in pairs if _has_no_id(use)}
                put_back += places[index].messages
            else:
                put_back.append(_answering(said, ids))
        return Restored(
            messages=tuple(put_back),
            answers=tuple(places[index] for index in sorted(places)),
            is_matched=bool(answers) and answers[-1] in places.values(),
        )

    def keep(
        self,
        request: TurnRequest,
        earlier: Sequence[Answer],
        text: str,
        calls: tuple[ToolUse, ...],
        transcript: tuple[Message, ...],
    ) -> str:
        """A token for this answer and the earlier ones, "" when there is nothing that a client does not have itself.

        ``text`` and ``calls`` are what the client saw, ``transcript`` is what the turn added.
        """
        answers = tuple(earlier)
        seen = _squeezed(text)
        others = tuple(call_id for said in transcript if said.role == "assistant" for call_id in open_calls(said))
        if len(transcript) > 1 and (seen or calls or others):
            at = len(request.chat.messages)
            answers = (*answers, Answer(at=at, text=seen, calls=calls, messages=transcript, others=others))
        if not answers:
            return ""
        token = f"cont_{secrets.token_urlsafe(24)}"
        held = [said for answer in answers for said in answer.messages]
        return token if self._shelf.put(_owner(request), token, answers, messages=held) else ""


def without_orphans(chat: ChatRequest, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with each result whose call is not before it told as a user's message.

    Strict servers refuse such a result. Its text is kept, since without it the model would make the same call again.
    Calls may also lie with the server, where the request says so; then nothing is changed.
    """
    if any(fields.get(name) for fields in chat.extra.values() for name in _STORED_UPSTREAM):
        return tuple(messages)
    called: set[str] = set()
    kept: list[Message] = []
    for said in messages:
        called.update(_calls_in(said))
        lost: list[ToolOutput] = []
        rest: list[Part] = []
        for part in said.parts:
            if isinstance(part, ToolOutput) and part.call_id not in called:
                lost.append(part)
            else:
                rest.append(part)
        if not lost:
            kept.append(said)
            continue
        kept += [replace(said, parts=tuple(rest))] if rest else []
        told = "\n\n".join(f"Result of an earlier {part.name or 'tool'} call:\n{part.text}" for part in lost)
        kept.append(message("user", told))
    return tuple(kept)


def _calls_in(said: Message) -> Iterator[str]:
    for part in said.parts:
        if isinstance(part, ToolUse):
            yield part.call_id
        elif isinstance(part, Opaque):
            yield from _ids(part.raw)


def _ids(raw: Json) -> Iterator[str]:
    """Ids of a call of a kind that we do not know."""
    if isinstance(raw, Mapping):
        yield from (value for key in ("id", "call_id") if isinstance(value := raw.get(key), str))
        yield from _ids(raw.get("tool_calls"))


def _has_no_id(use: ToolUse) -> bool:
    """Whether the client did not say which call it means: Ollama's clients keep no ids."""
    return use.extra.get("ollama", {}).get("id", "") is None


def _answering(said: Message, ids: Mapping[str, str]) -> Message:
    """The message with its results under the ids of the calls as they were made."""
    if not any(isinstance(part, ToolOutput) and part.call_id in ids for part in said.parts):
        return said
    parts = (
        replace(part, call_id=ids.get(part.call_id, part.call_id)) if isinstance(part, ToolOutput) else part
        for part in said.parts
    )
    return replace(said, parts=tuple(parts))


def _place(messages: Sequence[Message], answer: Answer, end: int) -> int | None:
    candidates = (answer.at, *range(end - 1, -1, -1))
    return next((index for index in candidates if index < end and answer.is_seen_as(messages[index])), None)


def _squeezed(text: str) -> str:
    """Faces join the prose of rounds each in its way, and clients strip it: blanks tell nothing."""
    return "".join(text.split())


def _owner(request: TurnRequest) -> str:
    who = f"{request.principal.id}\0{request.chat.caller.key}"
    return hashlib.sha256(who.encode("utf-8", "surrogatepass")).hexdigest()
