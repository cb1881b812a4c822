"""What the frameworks share: whose session a run uses, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from satchel.activation.reply import Activation
from satchel.activation.session import SkillSession
from satchel.chat.messages import Json

Sessions = SkillSession | Callable[[Any], SkillSession]
"""One conversation's session, or a function that finds a run's session in the framework's own context of the run.

With the function, one agent serves many conversations.
"""


def session_of(sessions: Sessions, context: object) -> SkillSession:
    """The session of the run that has this ``context``."""
    return sessions if isinstance(sessions, SkillSession) else sessions(context)


async def listing(session: SkillSession) -> str:
    """The list of skills for the instructions, the same through the whole session; "" without any.

    Raises:
        StoreError: "store-unavailable" when a registry fails.
    """
    await session.discover()
    return str(session.system_message()["content"])


def keep_what_is_there(session: SkillSession, texts: Iterable[str]) -> None:
    """Compares the session with what a model is about to be sent.

    A skill whose block is in none of ``texts`` (a compaction dropped it, or the conversation is a new one) answers its
    next activation with the whole text instead of "already loaded".
    """
    if session.active:
        # As one text: what is looked for is then made once, and no block spans a NUL.
        session.carry_forward(tokens_per_skill=0, tokens_total=0, kept=["\0".join(texts)])


def facts(reply: Activation) -> dict[str, Json]:
    """An activation as data for the host, without the texts: the model's answer holds them already."""
    return {"kind": reply.kind, "name": reply.name, "digest": reply.digest, "at_turn": reply.at_turn}
