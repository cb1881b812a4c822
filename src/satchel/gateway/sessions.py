"""Conversations that the server holds for its clients: in memory, bounded, and nobody's but the asker's."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from satchel.chat.messages import Message
from satchel.chat.request import ToolSpec
from satchel.engine.continuation import Shelf, estimate_json
from satchel.engine.events import TurnDone
from satchel.engine.pinned import PinnedSkills
from satchel.engine.request import SkillSelection, TurnRequest
from satchel.errors import RequestError, StoreError

_LEAST_BYTES = 16 * 1024
"""What a session counts for beside its messages, so that the bound on bytes bounds their number too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation after its last complete turn. ``created`` is in Unix seconds.

    ``messages`` are the conversation as model servers are sent it, our own tool turns included and the block of skills
    not. ``shown`` is the same as its client knows it.
    """

    id: str
    created: int
    skills: SkillSelection
    pinned: PinnedSkills
    model: str = ""
    tools: tuple[ToolSpec, ...] = ()
    messages: tuple[Message, ...] = ()
    shown: tuple[Message, ...] = ()
    turns: int = 0

    @property
    def open_calls(self) -> tuple[str, ...]:
        """Ids of the calls to the client's tools that the next turn has to answer."""
        return tuple(use.call_id for use in self.shown[-1].tool_uses) if self.shown else ()

    def after(self, turn: TurnRequest, asked: Sequence[Message], done: TurnDone, answer: Message) -> Session:
        """The session when a turn that brought ``asked`` is ``done``; ``answer`` is what its client was told."""
        return replace(
            self,
            model=turn.chat.model,
            tools=turn.chat.tools,
            messages=(*self.messages, *asked, *done.transcript),
            shown=(*self.shown, *asked, answer),
            turns=self.turns + 1,
        )


class Claim:
    """The right to the next turn of one session. ``session`` is None for one that this turn begins."""

    def __init__(self, session: Session | None, put: Callable[[Session], bool]) -> None:
        self.session = session
        self.is_deleted = False
        self._put = put

    def keep(self, session: Session) -> bool:
        """Puts the session in the place of what it was. False when it was deleted meanwhile, or is too large."""
        return not self.is_deleted and self._put(session)


class Sessions:
    """Sessions by owner and id, for ``idle_s`` seconds after their last use and in ``max_bytes`` together.

    When there are more, those that were not used for the longest time go first. ``clock`` gives monotonic seconds.
    """

    def __init__(
        self, *, idle_s: float, max_bytes: int = 64 * 1024 * 1024, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._shelf: Shelf[Session] = Shelf(max_bytes=max_bytes, ttl_s=idle_s, clock=clock)
        self._claims: dict[tuple[str, str], Claim] = {}

    @staticmethod
    def new_id() -> str:
        """An id that cannot be guessed."""
        return f"sess_{secrets.token_urlsafe(24)}"

    def get(self, owner: str, session_id: str) -> Session:
        """Raises ``RequestError`` "not-found" for an id that is unknown, too old or another owner's."""
        session = self._shelf.get(owner, session_id)
        if session is None:
            raise _no_such()
        return session

    def drop(self, owner: str, session_id: str) -> None:
        """Forgets a session; a turn of it that still runs goes on and is not kept. Raises as ``get`` does."""
        claim = self._claims.get((owner, session_id))
        if claim is not None:
            claim.is_deleted = True
        if not self._shelf.drop(owner, session_id) and claim is None:
            raise _no_such()

    @contextmanager
    def claim(self, owner: str, session_id: str, *, is_new: bool) -> Generator[Claim]:
        """Keeps other turns of the session out while the block runs.

        Raises as ``get`` does unless ``is_new``, and ``StoreError`` "session-conflict" while another turn runs.
        """
        key = owner, session_id
        if key in self._claims:
            raise StoreError(
                "session-conflict",
                "A turn of this session is still running.",
                hint="Wait for its end, or hang up on it, and send this again.",
                data={"retry_after": 1},
                retryable=True,
            )
        session = None if is_new else self.get(owner, session_id)
        claim = self._claims[key] = Claim(session, lambda held: self._put(owner, held))
        try:
            yield claim
        finally:
            del self._claims[key]

    def _put(self, owner: str, session: Session) -> bool:
        tools = sum(len(tool.description) + estimate_json(dict(tool.parameters)) for tool in session.tools)
        return self._shelf.put(
            owner,
            session.id,
            session,
            messages=(*session.messages, *session.shown),
            extra_bytes=_LEAST_BYTES + tools + session.pinned.size_bytes,
        )


def _no_such() -> RequestError:
    return RequestError(
        "not-found",
        "There is no such session.",
        hint='Sessions end when they were not used for a time. Begin another with "session": "new".',
        data={"field": "session"},
    )
