"""A Responses body as it is asked of the engine, and the fields of it that the answer repeats."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from satchel.chat.codec.openai_responses import decode_request
from satchel.chat.messages import Format, Json, Message, Opaque, Part
from satchel.chat.request import Caller, ChatRequest
from satchel.engine.request import SkillSelection, TurnRequest
from satchel.errors import RequestError
from satchel.gateway.extension import NoticeBody
from satchel.gateway.fields import MAX_MESSAGES, OURS, check_parts, read_fields, refused
from satchel.gateway.openai_responses.shell import Bundle, read_tools
from satchel.gateway.openai_responses.wire import ResponsesBody
from satchel.library.inline import InlineSkill

Object = dict[str, Json]

_ENDS_HERE = OURS | {"stream", "stream_options", "background", "conversation", "previous_response_id"}
"""How we stream and what we keep is between us and the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseCall:
    """What a body asks for. ``chat`` is without the conversation that ``previous`` (an id or "") stands for.

    ``bundles`` are archives with skills. ``inputs`` are the items of this request, ``echo`` the fields that the
    answer repeats, ``notices`` what it says of the request.
    """

    chat: ChatRequest
    skills: SkillSelection
    continuation: str
    bundles: tuple[Bundle, ...]
    previous: str
    is_streamed: bool
    is_kept: bool
    inputs: tuple[Object, ...]
    echo: Object
    notices: tuple[NoticeBody, ...]

    @property
    def asked(self) -> tuple[Message, ...]:
        """The messages of this request that go on counting: a request's instructions hold for it alone."""
        return self.chat.messages[1:] if self.echo["instructions"] else self.chat.messages

    def turn(self, before: tuple[Message, ...], *, inline: tuple[InlineSkill, ...]) -> TurnRequest:
        """The turn after the conversation ``before``."""
        asked = self.asked
        lead = self.chat.messages[: len(self.chat.messages) - len(asked)]
        return TurnRequest(
            chat=replace(self.chat, messages=(*lead, *before, *asked)),
            skills=replace(self.skills, inline=inline),
            continuation=self.continuation,
        )


def read_call(body: Mapping[str, Json], caller: Caller) -> ResponseCall:
    """Raises ``RequestError`` "invalid-request", whose ``data["field"]`` names the field."""
    known = read_fields(ResponsesBody, body)
    if known.background:
        raise refused("background", "Answers are made while their request is open; leave this out.")
    if known.conversation is not None:
        raise refused("conversation", "Conversations are not kept here; go on from an answer by previous_response_id.")
    if isinstance(known.input, list):
        _check_input(cast("list[Json]", known.input))
    tools = read_tools(known.tools or [])
    choice = body.get("tool_choice")
    if tools.has_taken and isinstance(choice, dict) and choice.get("type") == "shell":
        raise refused("tool_choice", "The shell tool does not run here, so it cannot be chosen.")
    sent = {key: value for key, value in body.items() if key not in _ENDS_HERE}
    if tools.has_taken:
        del sent["tools"]
        if tools.others:
            sent["tools"] = cast("list[Json]", tools.others)
    chat = decode_request(sent)
    extra: dict[Format, Mapping[str, Json]] = {**_elsewhere(known), **chat.extra}
    notice = NoticeBody(
        code="shell-not-run", message="The shell tool only selected skills: it does not run here and was not offered."
    )
    return ResponseCall(
        chat=replace(chat, caller=caller, extra=extra),
        skills=known.selection(tools.names),
        continuation=known.skills_continuation or "",
        bundles=tuple(tools.bundles),
        previous=known.previous_response_id or "",
        is_streamed=known.stream is True,
        is_kept=known.store is not False,
        inputs=tuple(_input_items(body.get("input"))),
        echo=_echo(known, body, tools.shown),
        notices=(notice,) if tools.has_taken else (),
    )


def _check_input(items: list[Json]) -> None:
    if len(items) > MAX_MESSAGES:
        raise refused("input", f"List should have at most {MAX_MESSAGES} items after validation.")
    fields = [item if isinstance(item, dict) else {} for item in items]
    for field in ("content", "output"):
        check_parts(fields, field, name="input")


def _elsewhere(known: ResponsesBody) -> dict[Format, Mapping[str, Json]]:
    """What the request's own fields are called in other formats, for a model server of such a format."""
    chat: Object = {}
    ollama: Object = {}
    effort = (known.reasoning or {}).get("effort")
    if isinstance(effort, str):
        chat["reasoning_effort"] = effort
    if "message.output_text.logprobs" in (known.include or ()):
        chat |= {"logprobs": True, "top_logprobs": known.top_logprobs or 0}
    form: Json = (known.text or {}).get("format")
    match form:
        case {"type": "json_schema", "schema": dict()}:
            named = {key: form[key] for key in _SCHEMA_FIELDS if form.get(key) is not None}
            chat["response_format"] = {"type": "json_schema", "json_schema": named}
            ollama["format"] = form["schema"]
        case {"type": "json_object"}:
            chat["response_format"] = {"type": "json_object"}
            ollama["format"] = "json"
        case _:
            pass
    made: dict[Format, Mapping[str, Json]] = {"openai-chat": chat, "ollama": ollama}
    return {name: fields for name, fields in made.items() if fields}


_SCHEMA_FIELDS = ("name", "description", "strict", "schema")


def _echo(known: ResponsesBody, body: Mapping[str, Json], tools: Sequence[Object]) -> Object:
    """The request's fields as the answer repeats them, with the vendor's defaults."""
    plain: Json = {"type": "text"}
    return {
        "background": False,
        "instructions": known.instructions or None,
        "max_output_tokens": known.max_output_tokens,
        "max_tool_calls": known.max_tool_calls,
        "metadata": cast("Json", known.metadata or {}),
        "parallel_tool_calls": known.parallel_tool_calls is not False,
        "previous_response_id": known.previous_response_id,
        "prompt_cache_key": known.prompt_cache_key,
        "reasoning": {"effort": None, "summary": None} | (known.reasoning or {}),
        "safety_identifier": known.safety_identifier,
        "service_tier": known.service_tier or "auto",
        "store": known.store is not False,
        "temperature": body.get("temperature", 1.0),
        "text": {"format": plain} | (known.text or {}),
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": list[Json](map(_shown_tool, tools)),
        "top_logprobs": known.top_logprobs or 0,
        "top_p": body.get("top_p", 1.0),
        "truncation": known.truncation or "disabled",
        "user": known.user,
    }


def _shown_tool(tool: Object) -> Json:
    if tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": True} | tool


def _input_items(given: Json) -> list[Object]:
    """The items of a request in their full form, each with an id."""
    token = uuid.uuid4().hex
    items: list[Json] = [{"role": "user", "content": given}] if isinstance(given, str) else []
    if isinstance(given, list):
        items = given
    return [_full_item(item, f"{token}{number:04x}") for number, item in enumerate(items) if isinstance(item, dict)]


def _full_item(item: Object, token: str) -> Object:
    if item.get("type", "message") != "message":
        return {"id": f"item_{token}", "status": "completed", **item}
    content = item.get("content")
    if isinstance(content, str):
        is_answer = item.get("role") == "assistant"
        text: Object = {"type": "output_text" if is_answer else "input_text", "text": content}
        content = [{**text, "annotations": []} if is_answer else text]
    return {"id": f"msg_{token}", "type": "message", "status": "completed", **item, "content": cast("Json", content)}


def resolve_references(chat: ChatRequest, find: Callable[[], Mapping[str, Object]]) -> ChatRequest:
    """The request with every ``item_reference`` replaced by the output item of that id.

    ``find`` is asked once, and only when there is one. Raises ``RequestError`` "not-found".
    """
    if not any(_reference(part) for message in chat.messages for part in message.parts):
        return chat
    known = find()

    def resolved(part: Part) -> tuple[Part, ...]:
        wanted = _reference(part)
        if not wanted:
            return (part,)
        item = known.get(wanted)
        if item is None:
            raise RequestError(
                "not-found",
                f"Item with id '{wanted}' not found.",
                hint="Send the item itself, or the answer's id as previous_response_id.",
                data={"field": "input"},
            )
        return decode_request({"input": [item]}).messages[0].parts

    return replace(
        chat,
        messages=tuple(
            replace(message, parts=tuple(found for part in message.parts for found in resolved(part)))
            for message in chat.messages
        ),
    )


def _reference(part: Part) -> str:
    """The id that an ``item_reference`` names, else ""."""
    if isinstance(part, Opaque) and isinstance(part.raw, dict) and part.raw.get("type") == "item_reference":
        return str(part.raw.get("id") or "")
    return ""
