"""Conversations that the server holds for its clients: in memory, bounded, and nobody's but the asker's.

Where programs may run, each has a workbench from its first turn on, which is gone with it, however it ends.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from satchel.chat.messages import Message
from satchel.chat.request import ToolSpec
from satchel.engine.continuation import Shelf, estimate_json
from satchel.engine.events import TurnDone
from satchel.engine.pinned import PinnedSkills
from satchel.engine.request import SkillSelection, TurnRequest
from satchel.errors import RequestError, StoreError
from satchel.execution.lease import unhindered
from satchel.execution.workbench import Workbench

_LEAST_BYTES = 16 * 1024
"""What a session counts for beside its messages, so that the bound on bytes bounds their number too."""
_BENCH_BYTES = 256 * 1024
"""What a workbench counts for beside that: what is on disk is bounded by their number."""


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
    """The right to the next turn of one session. ``session`` is None for one that this turn begins.

    ``bench`` is what its programs run on, None until a turn has put one there: it is the session's from then on, and
    is closed with the claim when there is no such session then.
    """

    def __init__(
        self, session: Session | None, bench: Workbench | None, put: Callable[[Session, Workbench | None], bool]
    ) -> None:
        self.session = session
        self.bench = bench
        self.is_deleted = False
        self._put = put

    def keep(self, session: Session) -> bool:
        """Puts the session in the place of what it was. False when it was deleted meanwhile, or is too large."""
        return not self.is_deleted and self._put(session, self.bench)


class Sessions:
    """Sessions by owner and id, for ``idle_s`` seconds after their last use and in ``max_bytes`` together.

    When there are more, those that were not used for the longest time go first. What they leave behind is removed by
    whatever is asked of this next, ``sweep`` at the latest. ``clock`` gives monotonic seconds.
    """

    def __init__(
        self, *, idle_s: float, max_bytes: int = 64 * 1024 * 1024, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._shelf: Shelf[Session] = Shelf(max_bytes=max_bytes, ttl_s=idle_s, clock=clock)
        self._claims: dict[tuple[str, str], Claim] = {}
        self._benches: dict[tuple[str, str], Workbench] = {}
        """Of the sessions on the shelf that no turn runs of."""
        self._is_over = False

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

    async def drop(self, owner: str, session_id: str) -> None:
        """Forgets a session; a turn of it that still runs goes on and is not kept. Raises as ``get`` does.

        What it ran on is gone when this returns, or when that turn is over, and with it the files that it made.
        """
        key = owner, session_id
        claim = self._claims.get(key)
        if claim is not None:
            claim.is_deleted = True
        if not self._shelf.drop(owner, session_id) and claim is None:
            raise _no_such()
        bench = claim.bench if claim else self._benches.get(key)
        try:
            await self.sweep()
        finally:
            if bench is not None:
                await unhindered(bench.forget())

    async def sweep(self) -> None:
        """Forgets what was not used in time, and removes what sessions that are gone have left behind."""
        gone = [key for key in self._benches if self._is_over or key not in self._shelf]
        await _closed([self._benches.pop(key) for key in gone])

    async def aclose(self) -> None:
        """Ends all sessions. A turn that still runs removes what it runs on when it ends."""
        self._is_over = True
        await self.sweep()

    @asynccontextmanager
    async def claim(self, owner: str, session_id: str, *, is_new: bool) -> AsyncGenerator[Claim]:
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
        bench = self._benches.pop(key, None)
        claim = self._claims[key] = Claim(session, bench, lambda held, bench: self._put(owner, held, bench))
        try:
            yield claim
        finally:
            if claim.bench is not None:
                self._benches[key] = claim.bench
            del self._claims[key]
            try:
                await self.sweep()
            finally:
                if claim.is_deleted and claim.bench is not None:
                    await unhindered(claim.bench.forget())

    def _put(self, owner: str, session: Session, bench: Workbench | None) -> bool:
        tools = sum(len(tool.description) + estimate_json(dict(tool.parameters)) for tool in session.tools)
        return self._shelf.put(
            owner,
            session.id,
            session,
            messages=(*session.messages, *session.shown),
            extra_bytes=_LEAST_BYTES + tools + session.pinned.size_bytes + (_BENCH_BYTES if bench else 0),
        )


async def _closed(benches: Sequence[Workbench]) -> None:
    async def close() -> None:
        await asyncio.gather(*(bench.aclose() for bench in benches))

    if benches:
        await unhindered(close())


def _no_such() -> RequestError:
    return RequestError(
        "not-found",
        "There is no such session.",
        hint='Sessions end when they were not used for a time. Begin another with "session": "new".',
        data={"field": "session"},
    )
