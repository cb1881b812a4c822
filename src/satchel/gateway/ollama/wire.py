"""The bodies of Ollama's API, as far as the gateway itself reads or writes them.

Requests are checked only where a field is ours or is acted upon here; everything else passes through to the codec and
upstream. Times are RFC 3339 text, durations are nanoseconds.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from satchel.gateway.extension import NoticeBody, ProducedBody
from satchel.gateway.fields import MAX_MESSAGES, MAX_PARTS, MAX_TOOLS, SkillFields


class AskBody(SkillFields):
    """What both kinds of request have in common. ``stream`` is true unless it is false."""

    model: str | None = None
    stream: bool | None = None
    options: dict[str, Any] | None = Field(
        default=None,
        description="num_predict, temperature, top_p, seed and stop mean the same everywhere; others reach an Ollama.",
    )
    format: Any = Field(default=None, description='"json", or the JSON schema that the answer must follow.')
    think: Any = Field(
        default=None, description="false keeps reasoning out of the answer; true or a level asks for it."
    )
    keep_alive: Any = Field(default=None, description="How long an Ollama upstream keeps the model loaded.")


class ChatBody(AskBody):
    """``POST /api/chat``. Without messages nothing is generated: Ollama's clients load a model that way."""

    messages: list[dict[str, Any]] | None = Field(default=None, max_length=MAX_MESSAGES)
    tools: list[dict[str, Any]] | None = Field(default=None, max_length=MAX_TOOLS)


class GenerateBody(AskBody):
    """``POST /api/generate``: one prompt, asked as a conversation of one message."""

    prompt: str | None = None
    system: str | None = None
    images: list[str] | None = Field(default=None, max_length=MAX_PARTS, description="Pictures in base64.")
    raw: bool | None = Field(default=None, description="Only false: a prompt cannot pass by the chat template here.")
    template: str | None = Field(default=None, description="Only empty: the chat template is the model server's.")
    suffix: str | None = Field(default=None, description="Only empty: text cannot be filled into a gap here.")
    context: list[int] | None = Field(default=None, description="Only empty: send the conversation to /api/chat.")


class ShowBody(BaseModel):
    """``POST /api/show``. ``name`` is the older spelling of ``model``."""

    model: str | None = None
    name: str | None = None


class FunctionBody(BaseModel):
    """A called function; its arguments are an object here, not JSON text."""

    index: int
    name: str
    arguments: dict[str, Any]


class ToolCallBody(BaseModel):
    """A call to one of the client's own tools."""

    id: str
    function: FunctionBody


class MessageBody(BaseModel):
    """The assistant's message, or a piece of it."""

    role: Literal["assistant"]
    content: str
    thinking: str | None = None
    tool_calls: list[ToolCallBody] | None = None


class RoundBody(BaseModel):
    """The counts of one generation."""

    prompt_eval_count: int
    eval_count: int


class SatchelBody(BaseModel):
    """Our extension: the counts of each generation, the skills that the model was given or read, and notices."""

    rounds: list[RoundBody]
    skills: list[str]
    notices: list[NoticeBody] | None = None
    continuation: str | None = None
    artifacts: list[ProducedBody] | None = None


class EndBody(BaseModel):
    """What the last line of an answer says; an answer that is not streamed is one such line.

    Counts are sums over all generations of the request. Durations leave out the time in which tools ran, except the
    total.
    """

    model: str
    created_at: str
    done: bool
    done_reason: str | None = None
    total_duration: int | None = None
    load_duration: int | None = None
    prompt_eval_count: int | None = None
    prompt_eval_duration: int | None = None
    eval_count: int | None = None
    eval_duration: int | None = None
    satchel: SatchelBody | None = None


class ChatAnswerBody(EndBody):
    """An answer to ``/api/chat``."""

    message: MessageBody


class GenerateAnswerBody(EndBody):
    """An answer to ``/api/generate``."""

    response: str
    thinking: str | None = None


class DetailsBody(BaseModel):
    """Facts about a model's file; the gateway has no file, so all of them are empty."""

    parent_model: str = ""
    format: str = ""
    family: str = ""
    families: list[str] = []
    parameter_size: str = ""
    quantization_level: str = ""


class TagBody(BaseModel):
    """A model that can be asked for. ``modified_at`` is 1970 when it is unknown; size and digest always are."""

    name: str
    model: str
    modified_at: str
    size: int = 0
    digest: str = ""
    details: DetailsBody = DetailsBody()


class TagsBody(BaseModel):
    """``GET /api/tags``."""

    models: list[TagBody]


class LoadedBody(BaseModel):
    """``GET /api/ps``. The gateway is not told which models a server has loaded, so none is listed."""

    models: list[TagBody] = []


class ShownBody(BaseModel):
    """``POST /api/show``.

    ``model_info`` has ``unknown.context_length`` where the size of the context window is known: clients look it up
    under the architecture, which is "unknown".
    """

    license: str = ""
    modelfile: str = ""
    parameters: str = ""
    template: str = ""
    system: str = ""
    details: DetailsBody = DetailsBody()
    model_info: dict[str, Any]
    capabilities: list[str]
    modified_at: str


class VersionBody(BaseModel):
    """``GET /api/version``: the Ollama whose API is spoken, which clients compare, and our own version."""

    version: str
    satchel: str


class OllamaErrorBody(BaseModel):
    """Every failure, as an answer or as the last line of a stream."""

    error: str
