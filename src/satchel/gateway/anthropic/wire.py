"""The bodies of Anthropic Messages, as far as the gateway itself reads or writes them.

Requests are checked only where a field is ours or is acted upon here; everything else passes through to the codec and
upstream.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from satchel.gateway.extension import NoticeBody, ProducedBody
from satchel.gateway.fields import MAX_MESSAGES, MAX_SKILLS, MAX_TOOLS, SkillFields


class ContainerSkill(BaseModel):
    """A skill of a container, by its name here. ``version`` may only be "latest"."""

    type: Literal["anthropic", "custom"]
    skill_id: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    version: str | None = None


class Container(BaseModel):
    """``container`` when it is an object."""

    id: str | None = None
    skills: list[ContainerSkill] | None = Field(default=None, max_length=MAX_SKILLS)


class ContainerField(BaseModel):
    """Reads the field alone, so that a complaint names its place in the body."""

    model_config = ConfigDict(strict=True)

    container: Container


class PromptBody(SkillFields):
    """What a request to answer and a request to count have in common."""

    model: str | None = None
    messages: list[dict[str, Any]] = Field(min_length=1, max_length=MAX_MESSAGES)
    tools: list[dict[str, Any]] | None = Field(default=None, max_length=MAX_TOOLS)
    thinking: dict[str, Any] | None = Field(
        default=None, description="Reasoning that is not signed is sent only when this asks for it."
    )
    container: Any = Field(
        default=None,
        description="`skills` in it select skills of the gateway by name; the container and a code execution tool are "
        "then not sent on. Without skills it passes through.",
    )


class MessagesBody(PromptBody):
    """``POST /v1/messages``."""

    max_tokens: int = Field(ge=1)
    stream: bool | None = None


class CountBody(BaseModel):
    """``POST /v1/messages/count_tokens``: an estimate, not the count of the model's own tokenizer."""

    input_tokens: int = Field(description="Estimated: four bytes of text a token, a flat amount for a picture.")


class UsageBody(BaseModel):
    """Tokens, summed over all generations of the request. ``input_tokens`` are those that no cache had."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class SatchelBody(BaseModel):
    """Our extension: the usage of each generation, the skills that the model was given or read, and notices."""

    rounds: list[UsageBody]
    skills: list[str]
    notices: list[NoticeBody] | None = None
    continuation: str | None = None
    artifacts: list[ProducedBody] | None = None


class UsedContainer(BaseModel):
    """What became of a request's ``container.skills``. Nothing outlives the answer, so it expires with it."""

    id: str
    expires_at: str
    skills: list[ContainerSkill]


class MessageBody(BaseModel):
    """The whole answer of a request that was not streamed."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[dict[str, Any]] = Field(description="text, thinking, redacted_thinking and tool_use blocks.")
    stop_reason: str
    stop_sequence: str | None
    usage: UsageBody
    container: UsedContainer | None = None
    satchel: SatchelBody


class ModelBody(BaseModel):
    """A model that can be asked for. ``created_at`` is 1970 when it is unknown."""

    type: Literal["model"] = "model"
    id: str
    display_name: str
    created_at: str
    lifecycle: Literal["active"] = "active"
    max_input_tokens: int | None = None


class ModelListBody(BaseModel):
    """``GET /v1/models`` for a client that sends ``anthropic-version``: all models on one page."""

    data: list[ModelBody]
    has_more: Literal[False] = False
    first_id: str | None
    last_id: str | None


class ErrorDetail(BaseModel):
    """What went wrong, and for whom."""

    type: str
    message: str


class AnthropicErrorBody(BaseModel):
    """The vendor's error shape."""

    type: Literal["error"] = "error"
    error: ErrorDetail
