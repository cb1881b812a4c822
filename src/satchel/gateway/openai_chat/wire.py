"""The bodies of OpenAI Chat Completions, as far as the gateway itself reads or writes them.

Requests are checked only where a field is ours; everything else passes through to the codec and upstream.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from satchel.gateway.extension import NoticeBody, NotKeptBody, ProducedBody
from satchel.gateway.fields import MAX_MESSAGES, MAX_TOOLS, SkillFields


class ChatBody(SkillFields):
    """``POST /v1/chat/completions``."""

    model: str | None = None
    messages: list[dict[str, Any]] = Field(min_length=1, max_length=MAX_MESSAGES)
    tools: list[dict[str, Any]] | None = Field(default=None, max_length=MAX_TOOLS)
    stream: bool | None = None
    stream_options: dict[str, Any] | None = Field(
        default=None,
        description='Of these, "include_usage" is read, and "include_steps": chunks without choices then say under '
        '"satchel.step" which skills are loaded, which lookups begin and end, and which round is over.',
    )
    n: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)


class PromptDetails(BaseModel):
    """Tokens of the prompt that came from the model server's cache."""

    cached_tokens: int


class CompletionDetails(BaseModel):
    """Tokens of the answer that were reasoning."""

    reasoning_tokens: int


class UsageBody(BaseModel):
    """Tokens, summed over all generations of the request."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None


class InvocationBody(BaseModel):
    """A tool call that was answered here: in which generation, by which agent, and how it went.

    ``files`` were produced and can be had under ``run``; both are absent when there are none. So is ``not_kept``: what
    was produced and cannot be had.
    """

    round: int
    agent: str
    call_id: str
    tool: str
    skill: str
    path: str
    ok: bool
    code: str
    files: list[str] | None = None
    run: str | None = None
    not_kept: list[NotKeptBody] | None = None


class SatchelBody(BaseModel):
    """Our extension: the usage of each generation, the skills that the model was given or read, lookups and notices.

    ``continuation``, sent back as ``skills_continuation`` with the next request of the conversation, gives the model
    back what it read for this answer. Absent when it read nothing. A stream has it all in its last chunk.
    """

    rounds: list[UsageBody]
    skills: list[str]
    invocations: list[InvocationBody]
    notices: list[NoticeBody] | None = None
    continuation: str | None = None
    artifacts: list[ProducedBody] | None = None


class FunctionBody(BaseModel):
    """A called function with its arguments as JSON text."""

    name: str
    arguments: str


class ToolCallBody(BaseModel):
    """A call to one of the client's own tools."""

    id: str
    type: Literal["function"]
    function: FunctionBody


class AnswerBody(BaseModel):
    """The assistant's message. Calls to tools that are no functions come as the model server made them."""

    role: Literal["assistant"]
    content: str | None
    reasoning_content: str | None = None
    tool_calls: list[ToolCallBody | dict[str, object]] | None = None
    refusal: str | None = None


class ChoiceBody(BaseModel):
    """The one choice."""

    index: int
    message: AnswerBody
    logprobs: dict[str, Any] | None = None
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"]


class CompletionBody(BaseModel):
    """The whole answer of a request that was not streamed."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChoiceBody]
    usage: UsageBody
    satchel: SatchelBody


class ModelBody(BaseModel):
    """A model that can be asked for. ``created`` is in Unix seconds, 0 when unknown."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelListBody(BaseModel):
    """``GET /v1/models``."""

    object: Literal["list"] = "list"
    data: list[ModelBody]
