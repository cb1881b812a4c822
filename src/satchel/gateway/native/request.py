"""A body into what it asks for, and a turn of a session into a turn's request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from satchel.chat.codec.openai_chat import decode_request
from satchel.chat.messages import Json, Message, ToolOutput
from satchel.chat.request import Caller, ChatRequest
from satchel.engine.request import Principal, SkillSelection, TurnRequest
from satchel.gateway.fields import OURS, check_parts, read_fields, refused
from satchel.gateway.native.wire import NEW, NativeChatBody
from satchel.gateway.sessions import Session

_ENDS_HERE = OURS | {"session", "stream", "stream_options", "maxTokens"}
_OF_A_LATER_TURN = {"user", "tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """What a body asks for. ``session`` is "" when nothing is kept, "new", or an id.

    ``names`` and ``discovery`` are what the body says of skills, None for nothing. ``has_tools``: whether it declares
    tools, if only none.
    """

    chat: ChatRequest
    owner: str
    session: str
    names: tuple[str, ...] | None
    discovery: bool | None
    has_tools: bool
    is_streamed: bool
    continuation: str

    @property
    def skills(self) -> SkillSelection:
        """What the body opens when no session has decided that before."""
        return SkillSelection(names=self.names or (), discovery=self.discovery is not False)

    def turn(self) -> TurnRequest:
        """The turn of a request that leaves nothing behind."""
        return TurnRequest(
            chat=self.chat,
            skills=self.skills,
            principal=Principal(id=self.owner),
            continuation=self.continuation,
        )

    def turn_of(self, session: Session) -> TurnRequest:
        """The next turn of a session. Raises ``RequestError`` "invalid-request" for what does not go on with it."""
        if session.turns:
            _check_skills(self, session.skills)
            _check_messages(self.chat.messages, set(session.open_calls))
        return TurnRequest(
            chat=replace(
                self.chat,
                messages=(*session.messages, *self.chat.messages),
                model=self.chat.model or session.model,
                tools=self.chat.tools if self.has_tools else session.tools,
            ),
            skills=session.skills,
            principal=Principal(id=self.owner),
            pinned=session.pinned,
        )


def read_call(body: Mapping[str, Json], caller: Caller, owner: str) -> ChatCall:
    """Raises ``RequestError`` "invalid-request", whose ``data["field"]`` names the field."""
    known = read_fields(NativeChatBody, body)
    for field in ("content", "tool_calls"):
        check_parts(known.messages, field)
    if known.n is not None and known.n > 1:
        raise refused("n", "Only one answer can be made: the rounds of a skill belong to one answer.")
    if known.session is not None and known.skills_continuation is not None:
        raise refused("skills_continuation", "A session holds what a continuation would bring back.")
    if known.max_tokens is not None and known.web_max_tokens is not None:
        raise refused("maxTokens", "It is the same as max_tokens; send one of them.")
    chat = decode_request({key: value for key, value in body.items() if key not in _ENDS_HERE})
    return ChatCall(
        chat=replace(chat, caller=caller, max_tokens=known.max_tokens or known.web_max_tokens),
        owner=owner,
        session=known.session or "",
        names=None if known.skills is None else tuple(dict.fromkeys(known.skills)),
        discovery=known.skills_discovery,
        has_tools=known.tools is not None,
        is_streamed=known.stream is not False,
        continuation=known.skills_continuation or "",
    )


def _check_skills(call: ChatCall, kept: SkillSelection) -> None:
    if call.names is not None and set(call.names) != set(kept.names):
        raise _began_with("skills")
    if call.discovery is not None and call.discovery != kept.discovery:
        raise _began_with("skills_discovery")


def _began_with(field: str) -> Exception:
    return refused(field, f'A session keeps the skills that it began with. Leave this out, or begin a "{NEW}" session.')


def _check_messages(messages: tuple[Message, ...], unanswered: set[str]) -> None:
    """A later turn answers the calls of the one before and goes on as the user; the server has all the rest."""
    for position, item in enumerate(messages):
        place = f"messages[{position}]"
        if item.role not in _OF_A_LATER_TURN:
            raise refused(
                f"{place}.role",
                "The session holds the conversation: send only what is new, messages of the user and answers of tools.",
            )
        if item.role == "user" and unanswered:
            raise _unanswered(place, unanswered)
        for part in item.parts:
            if not isinstance(part, ToolOutput):
                continue
            if part.call_id not in unanswered:
                raise refused(f"{place}.tool_call_id", "No call of this id waits for an answer.")
            unanswered.remove(part.call_id)
    if unanswered:
        raise _unanswered("messages", unanswered)


def _unanswered(place: str, unanswered: set[str]) -> Exception:
    waiting = ", ".join(sorted(unanswered))
    return refused(place, f"The calls {waiting} wait for answers: send their messages of role tool first.")
