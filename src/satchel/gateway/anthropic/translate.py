"""Anthropic Messages: a body into a turn's request, a turn's events into stream events or into one message.

A stream begins before any count is known, so ``message_start`` says 0 tokens. The API's counts in ``message_delta`` are
cumulative and replace those of the start, which is how clients read them: the true sums stand there.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from satchel.chat.arguments import to_json
from satchel.chat.capabilities import ModelInfo
from satchel.chat.codec.anthropic import FORMAT, decode_request, encode_answer, encode_usage
from satchel.chat.events import ModelDone
from satchel.chat.messages import Json, Media, Message, Opaque, Part, Reasoning, Text, ToolOutput, ToolUse
from satchel.chat.request import Caller, ChatRequest
from satchel.context.budget import tokens
from satchel.engine.events import (
    CallDelta,
    ProseJoiner,
    ReasoningDelta,
    TextDelta,
    TurnDone,
    TurnEvent,
    TurnStarted,
)
from satchel.engine.request import TurnRequest
from satchel.errors import SatchelError
from satchel.gateway.anthropic.blocks import BlockReader, BlockWriter, Event
from satchel.gateway.anthropic.wire import (
    Container,
    ContainerField,
    ContainerSkill,
    MessagesBody,
    ModelBody,
    ModelListBody,
    PromptBody,
)
from satchel.gateway.body import encode_json
from satchel.gateway.extension import Extension, NoticeBody
from satchel.gateway.failures import anthropic_error
from satchel.gateway.fields import OURS, check_parts, read_fields, refused

_ENDS_HERE = OURS | {"stream"}
"""How we stream is between us and the model server."""
_CONTAINER_ID = "container_satchel_"
_LATEST = "latest"
_CODE_TOOL = "code_execution_"
_REPLACED = NoticeBody(
    code="container-replaced",
    message="The container's skills are those of this gateway; no container and no code execution tool was sent on.",
)
_HEAD_FIELDS = frozenset({"id", "type", "role", "model", "content", "usage"})
_MEDIA_TOKENS = 1600
_MESSAGE_TOKENS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesCall:
    """What a body asks for. ``container`` holds the skills that it selects through its container."""

    turn: TurnRequest
    is_streamed: bool
    shows_thinking: bool
    container: tuple[ContainerSkill, ...]


def read_call(body: Mapping[str, Json], caller: Caller, *, has_skills: bool) -> MessagesCall:
    """Raises ``RequestError`` "invalid-request", whose ``data["field"]`` names the field.

    Without skills here (``has_skills``), a container is between the client and the model server.
    """
    known = read_fields(MessagesBody, body)
    return _call(known, body, caller, has_skills=has_skills, is_streamed=known.stream is True)


def read_prompt(body: Mapping[str, Json], caller: Caller, *, has_skills: bool) -> MessagesCall:
    """A body that is only to be counted: it needs no ``max_tokens``. Raises as ``read_call``."""
    known = read_fields(PromptBody, body)
    return _call(known, {**body, "max_tokens": 1}, caller, has_skills=has_skills, is_streamed=False)


def _call(
    known: PromptBody, body: Mapping[str, Json], caller: Caller, *, has_skills: bool, is_streamed: bool
) -> MessagesCall:
    check_parts(known.messages, "content")
    container = _container(known)
    chosen = tuple(container.skills or ()) if has_skills else ()
    fields = {key: value for key, value in body.items() if key not in _ENDS_HERE}
    if chosen or (container.id or "").startswith(_CONTAINER_ID):
        del fields["container"]
        tools = [tool for tool in known.tools or () if not str(tool.get("type", "")).startswith(_CODE_TOOL)]
        if known.tools and not tools:
            del fields["tools"]
        elif tools:
            fields["tools"] = [*tools]
    return MessagesCall(
        turn=TurnRequest(
            chat=replace(decode_request(fields), caller=caller),
            skills=known.selection(skill.skill_id for skill in chosen),
            continuation=known.skills_continuation or "",
        ),
        is_streamed=is_streamed,
        shows_thinking=_shows_thinking(known.thinking),
        container=chosen,
    )


def _container(known: PromptBody) -> Container:
    if known.container is None or isinstance(known.container, str):
        return Container(id=known.container)
    container = read_fields(ContainerField, {"container": known.container}).container
    for position, skill in enumerate(container.skills or ()):
        if skill.version not in (None, _LATEST):
            raise refused(
                f"container.skills[{position}].version",
                f'There is no version "{skill.version}" of "{skill.skill_id}" here: leave it out, or send "{_LATEST}".',
            )
    return container


def _shows_thinking(thinking: Mapping[str, object] | None) -> bool:
    """Who did not ask for thinking reads the first block as the text, as the API's own examples do."""
    asked = thinking or {"type": "disabled"}
    return asked.get("type") != "disabled" and asked.get("display") != "omitted"


def estimated_tokens(chat: ChatRequest) -> int:
    """About how many tokens a prompt has: a quarter of its bytes, and a flat amount for a picture or a document."""
    parts = [part for message in chat.messages for part in message.parts]
    tools = [to_json([tool.name, tool.description, {**tool.parameters}]) for tool in chat.tools]
    foreign = chat.extra.get(FORMAT, {}).get("tools")
    return (
        sum(_part_tokens(part) for part in parts)
        + _MESSAGE_TOKENS * len(chat.messages)
        + sum(tokens(tool) for tool in tools)
        + (tokens(to_json(foreign)) if foreign else 0)
    )


def _part_tokens(part: Part) -> int:
    match part:
        case Text() | Reasoning() | ToolOutput():
            return tokens(part.text)
        case ToolUse():
            return tokens(part.name) + tokens(part.arguments)
        case Media():
            return _MEDIA_TOKENS
        case Opaque():
            return tokens(to_json(part.raw))


def model_list(models: Iterable[ModelInfo]) -> ModelListBody:
    """All models, as one page."""
    data = [model_body(info) for info in models]
    return ModelListBody(data=data, first_id=data[0].id if data else None, last_id=data[-1].id if data else None)


def model_body(info: ModelInfo) -> ModelBody:
    """One entry of the model list."""
    return ModelBody(
        id=info.id,
        display_name=info.id,
        created_at=_time(datetime.fromtimestamp(info.created, UTC)),
        max_input_tokens=info.context_tokens,
    )


class _Answer:
    """What both forms of an answer share: one id, one model name, and the blocks."""

    def __init__(self, call: MessagesCall) -> None:
        self._agent = call.turn.agent
        self._container = call.container
        self._id = f"msg_{uuid.uuid4().hex}"
        self._model = ""
        self._joiner = ProseJoiner()
        self._writer = BlockWriter(shows_thinking=call.shows_thinking)
        self._extension = Extension([_REPLACED] if call.container else [])

    def _blocks(self, event: TurnEvent) -> list[Event]:
        """What an event adds to the blocks."""
        self._extension.note(event)
        if event.agent != self._agent:
            return []
        match event:
            case TurnStarted():
                self._model = event.model
            case TextDelta():
                citation = event.extra.get(FORMAT, {}).get("citation")
                cited = self._writer.citation(citation) if isinstance(citation, dict) else []
                return [*self._writer.text(self._joiner.feed(event)), *cited]
            case ReasoningDelta():
                return self._writer.reasoning(event)
            case CallDelta():
                return self._writer.call(event)
            case TurnDone():
                foreign = [event for block in _foreign_blocks(event) for event in self._writer.whole(block)]
                return [*foreign, *self._writer.end()]
            case _:
                pass
        return []

    def _message(self, done: TurnDone) -> dict[str, object]:
        """The message without its blocks."""
        end = ModelDone(
            finish=done.finish,
            message=Message(role="assistant", parts=done.client_calls),
            usage=done.usage,
            extra=done.extra,
        )
        message: dict[str, object] = {**encode_answer(end, model=self._model, id=self._id, created=0), "content": []}
        if self._container:
            message["container"] = {
                "id": f"{_CONTAINER_ID}{self._id.removeprefix('msg_')}",
                "expires_at": _time(datetime.now(UTC)),
                "skills": [
                    {"type": skill.type, "skill_id": skill.skill_id, "version": _LATEST} for skill in self._container
                ],
            }
        return message

    def _extra(self, done: TurnDone) -> dict[str, object]:
        return self._extension.field(done, encode_usage)


class EventEncoder(_Answer):
    """Server-sent events, each named by its type: a start, the blocks, ``message_delta``, ``message_stop``."""

    is_streamed = True
    media_type = "text/event-stream; charset=utf-8"
    heartbeat = b'event: ping\ndata: {"type":"ping"}\n\n'

    def feed(self, event: TurnEvent) -> bytes:
        pieces = [_encoded(block) for block in self._blocks(event)]
        if event.agent == self._agent:
            if isinstance(event, TurnStarted):
                pieces.append(_encoded(self._start()))
            elif isinstance(event, TurnDone):
                pieces.append(_encoded(self._delta(event)))
        return b"".join(pieces)

    def finish(self) -> bytes:
        return _encoded({"type": "message_stop"})

    def error(self, failure: SatchelError) -> bytes:
        return _encoded(anthropic_error(failure))

    def _start(self) -> dict[str, object]:
        message: dict[str, object] = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        return {"type": "message_start", "message": message}

    def _delta(self, done: TurnDone) -> dict[str, object]:
        message = self._message(done)
        delta = {key: value for key, value in message.items() if key not in _HEAD_FIELDS}
        return {"type": "message_delta", "delta": delta, "usage": message["usage"], **self._extra(done)}


class MessageEncoder(_Answer):
    """One message with the blocks that a stream would have carried."""

    is_streamed = False
    media_type = "application/json"
    heartbeat = b""

    def __init__(self, call: MessagesCall) -> None:
        super().__init__(call)
        self._reader = BlockReader()

    def feed(self, event: TurnEvent) -> bytes:
        self._reader.feed(self._blocks(event))
        if not isinstance(event, TurnDone) or event.agent != self._agent:
            return b""
        content = self._reader.content(event.client_calls)
        return encode_json({**self._message(event), "content": content, **self._extra(event)})

    def finish(self) -> bytes:
        return b""

    def error(self, failure: SatchelError) -> bytes:
        return encode_json(anthropic_error(failure))


def _foreign_blocks(done: TurnDone) -> Iterable[Mapping[str, Json]]:
    """Blocks that only this format knows, such as a search that the model server ran. They come at the end alone."""
    said = (part for message in done.transcript if message.role == "assistant" for part in message.parts)
    for part in said:
        match part:
            case Opaque(format="anthropic", raw=dict() as raw):
                yield raw
            case _:
                continue


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _encoded(event: Mapping[str, object]) -> bytes:
    return f"event: {event['type']}\ndata: ".encode() + encode_json(event) + b"\n\n"
