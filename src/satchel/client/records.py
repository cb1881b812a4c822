"""What is asked of a ``SkillsChatClient``, and what it gives back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from satchel.chat.codec.openai_chat import decode_request
from satchel.chat.events import Finish, Usage
from satchel.chat.messages import Json, Message, ToolUse, message
from satchel.chat.request import ChatRequest, ToolSpec
from satchel.errors import RequestError
from satchel.execution.artifacts import NotKept

Delivery = Literal["server", "local"]
"""Where the loop runs that reads skills: at the server, next to the model, or in this process."""

AnyMessage = Message | Mapping[str, Any]
AnyTool = ToolSpec | Mapping[str, Any]

_HAVE_A_PLACE = frozenset(
    {"messages", "tools", "model", "stream", "stream_options", "n"}
    | {"skills", "skills_discovery", "skills_continuation", "multi_agent"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillsChatRequest:
    """One turn of a conversation.

    Args:
        messages: The conversation, as ``Message`` or as the objects of a Chat Completions body.
        skills: Names of the skills that are selected.
        discovery: Whether skills that were not selected are offered to the model too; None leaves it to the client.
        model: A model's name, "" for the client's default.
        max_tokens: Bound on the tokens of the answer, all rounds together.
        tools: Your own tools, as ``ToolSpec`` or as the objects of a Chat Completions body. They are never executed.
        multi_agent: False turns a server's delegation off for this request.
        extra: Further fields of a Chat Completions body: ``temperature``, ``tool_choice``, ``response_format``.
        continuation: ``SkillsChatResponse.continuation`` of the answer that this request goes on from.
    """

    messages: Sequence[AnyMessage]
    skills: Sequence[str] = ()
    discovery: bool | None = None
    model: str = ""
    max_tokens: int | None = None
    tools: Sequence[AnyTool] = ()
    multi_agent: bool | None = None
    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])
    continuation: str = ""

    @classmethod
    def user(cls, text: str, *skills: str) -> SkillsChatRequest:
        """A conversation of one user message that selects skills by name."""
        return cls(messages=(message("user", text),), skills=skills)

    def then(self, reply: SkillsChatResponse, *more: str | AnyMessage) -> SkillsChatRequest:
        """The request that follows ``reply``: the same with the turn's own messages and ``more`` of yours.

        A text is what the user says next; the result of one of your tools is
        ``{"role": "tool", "tool_call_id": call.call_id, "content": "..."}``.
        """
        added = (message("user", item) if isinstance(item, str) else item for item in more)
        return replace(self, messages=(*self.messages, *reply.transcript, *added), continuation=reply.continuation)

    def chat(self) -> ChatRequest:
        """The conversation in our own shape. Raises ``RequestError`` that names what is wrong."""
        if misplaced := sorted(_HAVE_A_PLACE & self.extra.keys()):
            raise RequestError(
                "invalid-request",
                f"extra may not hold {', '.join(misplaced)}.",
                hint="These are fields of the request itself, or belong to the client.",
                data={"field": "extra"},
            )
        if not self.messages:
            raise RequestError("invalid-request", "A request needs a message.", data={"field": "messages"})
        declared = [tool for tool in self.tools if isinstance(tool, ToolSpec)]
        objects = [dict(tool) for tool in self.tools if not isinstance(tool, ToolSpec)]
        rest = _decoded([{"role": "user", "content": ""}], {**self.extra, **({"tools": objects} if objects else {})})
        return replace(
            rest,
            model=self.model,
            messages=tuple(one for item in self.messages for one in _message(item)),
            tools=(*rest.tools, *declared),
            max_tokens=rest.max_tokens if self.max_tokens is None else self.max_tokens,
        )


def _message(item: AnyMessage) -> Iterable[Message]:
    return (item,) if isinstance(item, Message) else _decoded([dict(item)], {}).messages


def _decoded(messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> ChatRequest:
    return decode_request(cast("dict[str, Json]", {**fields, "messages": list(messages)}))


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillToolInvocation:
    """A call to one of the skill tools: in which ``round`` (from 1), by which ``agent`` ("/root" is the one you asked).

    ``code`` says why it failed, "" when ``ok``. ``files`` are those that it made and that are kept as ``run``, "" where
    nothing is kept; ``not_kept`` were made, too, each with the reason. ``SkillsChatClient.save`` copies them.
    """

    round: int
    agent: str
    tool: str
    skill: str
    path: str
    ok: bool
    code: str = ""
    files: tuple[str, ...] = ()
    run: str = ""
    not_kept: tuple[NotKept, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillsChatResponse:
    """A whole answer.

    Attributes:
        content: The text; prose of several rounds is parted by a blank line.
        reasoning: What the model thought aloud, "" when the server shows none.
        tool_calls: Calls to your own tools, for you to answer (``SkillsChatRequest.then``).
        skill_invocations: The skill tools that were called, in the order they ended.
        skills: Names of the skills whose instructions the model had before it.
        rounds: Generations that it took; 1 when nothing was read.
        usage: Tokens of all rounds together; ``usage_by_round`` has one entry a round.
        transcript: The messages that the turn added, ready to be sent back.
        finish: Why the answer ended: "stop", "length", "tool_calls" or "content_filter".
        delivery: Who ran the loop.
        continuation: For ``SkillsChatRequest.continuation``; "" when the transcript says it all.
        files: What programs in the background made and no invocation names, kept as ``run``; ``not_kept`` were made so,
            too, each with the reason.
    """

    content: str
    reasoning: str
    tool_calls: tuple[ToolUse, ...]
    skill_invocations: tuple[SkillToolInvocation, ...]
    skills: tuple[str, ...]
    rounds: int
    usage: Usage
    usage_by_round: tuple[Usage, ...]
    transcript: tuple[Message, ...]
    finish: Finish
    delivery: Delivery
    continuation: str = ""
    files: tuple[str, ...] = ()
    run: str = ""
    not_kept: tuple[NotKept, ...] = ()
