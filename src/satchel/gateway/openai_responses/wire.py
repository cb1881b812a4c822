"""The bodies of OpenAI Responses, as far as the gateway itself reads or writes them.

Requests are checked only where a field is ours or comes back in the answer; everything else passes through to the
codec and upstream.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from satchel.gateway.extension import NoticeBody, ProducedBody
from satchel.gateway.fields import MAX_TOOLS, SkillFields

_INPUT: dict[str, Any] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}, "minItems": 1}],
    "description": "A user's message, or items.",
}
_Id = Annotated[str, StringConstraints(max_length=256)]


class ResponsesBody(SkillFields):
    """``POST /v1/responses``."""

    model: str | None = None
    input: Any = Field(default=None, json_schema_extra=_INPUT)
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = Field(default=None, max_length=MAX_TOOLS)
    stream: bool | None = None
    stream_options: dict[str, Any] | None = Field(default=None, description="Read by nobody.")
    store: bool | None = Field(default=None, description="Whether the answer can be asked for again; true if absent.")
    previous_response_id: _Id | None = Field(default=None, description="The answer that this request goes on from.")
    conversation: Any = Field(default=None, description="Refused: conversations are not kept here.")
    background: bool | None = Field(default=None, description="true is refused: an answer lives with its request.")
    max_output_tokens: int | None = Field(default=None, ge=1)
    max_tool_calls: int | None = None
    metadata: dict[str, str] | None = None
    parallel_tool_calls: bool | None = None
    prompt_cache_key: str | None = None
    reasoning: dict[str, Any] | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    text: dict[str, Any] | None = None
    top_logprobs: int | None = None
    truncation: str | None = None
    user: str | None = None
    include: list[str] | None = None


class InputDetails(BaseModel):
    """Tokens of the input that a cache gave or took."""

    cached_tokens: int
    cache_write_tokens: int


class OutputDetails(BaseModel):
    """Tokens of the output that were reasoning."""

    reasoning_tokens: int


class UsageBody(BaseModel):
    """Tokens, summed over all generations of the request."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class SatchelBody(BaseModel):
    """Our extension: the usage of each generation, the skills that the model was given or read, and notices."""

    rounds: list[UsageBody]
    skills: list[str]
    notices: list[NoticeBody] | None = None
    continuation: str | None = None
    artifacts: list[ProducedBody] | None = None


class ReasonBody(BaseModel):
    """Why an answer is incomplete."""

    reason: Literal["max_output_tokens", "content_filter"]


class FailureBody(BaseModel):
    """Why an answer failed: the vendor's word, and ours as ``type``."""

    code: Literal["server_error", "rate_limit_exceeded", "invalid_prompt"]
    message: str
    type: str


class ResponseBody(BaseModel):
    """An answer. Items of ``output`` are messages, reasoning and calls to the client's own functions."""

    model_config = ConfigDict(extra="allow")

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    completed_at: int | None
    error: FailureBody | None
    incomplete_details: ReasonBody | None
    model: str
    output: list[dict[str, Any]]
    previous_response_id: str | None
    store: bool
    usage: UsageBody | None
    satchel: SatchelBody | None = None


class DeletedBody(BaseModel):
    """``DELETE /v1/responses/{id}``."""

    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


class ItemListBody(BaseModel):
    """``GET /v1/responses/{id}/input_items``: what this one request brought, not what it went on from."""

    object: Literal["list"] = "list"
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool
