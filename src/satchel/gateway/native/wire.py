"""The bodies of the gateway's own surface: a chat, what its stream says, sessions and models.

Requests are checked only where a field is ours; everything else passes through to the codec and upstream.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from satchel.gateway.extension import NoticeBody, NotKeptBody
from satchel.gateway.fields import MAX_MESSAGES, MAX_TOOLS, SkillFields

NEW = "new"
"""What a request that begins a session says in the place of an id."""

Finish = Literal["stop", "length", "tool_calls", "content_filter"]


class NativeChatBody(SkillFields):
    """``POST /api/chat``."""

    model: str | None = None
    messages: list[dict[str, Any]] = Field(
        min_length=1, max_length=MAX_MESSAGES, description="With a session: only what is new."
    )
    tools: list[dict[str, Any]] | None = Field(default=None, max_length=MAX_TOOLS)
    session: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,256}$")] | None = Field(
        default=None, description='"new" begins a session, an id goes on with one; without it nothing is kept.'
    )
    stream: bool | None = Field(default=None, description="Whether frames are sent as they come; true if absent.")
    max_tokens: int | None = Field(default=None, ge=1)
    web_max_tokens: int | None = Field(default=None, ge=1, alias="maxTokens", description="The same as max_tokens.")
    n: int | None = Field(default=None, ge=1)


class ClientFunctionBody(BaseModel):
    """A called function with its arguments as JSON text."""

    name: str
    arguments: str


class ClientCallBody(BaseModel):
    """A call to one of the client's own tools."""

    id: str
    type: Literal["function"]
    function: ClientFunctionBody


class StepBody(BaseModel):
    """A call that was answered here: the tool, whose call it was, what it was about, and in which round.

    ``files`` were produced and can be had under ``run``, ``not_kept`` cannot; each is absent when there are none.
    """

    skill_step: str
    agent_id: str
    skill: str
    detail: str
    ok: bool
    round: int
    files: list[str] | None = None
    run: str | None = None
    not_kept: list[NotKeptBody] | None = None


class LoadedBody(BaseModel):
    """A skill whose instructions are in front of the model, and how they came there."""

    skill_loaded: str
    how: Literal["selected", "mentioned", "read", "activated", "inlined"]
    bytes: int


class ConfinementBody(BaseModel):
    """What confines programs of a turn: fully when files, network and home are all held. ``gaps`` say what is not."""

    backend: str
    version: str
    writes: bool
    network: bool
    home: bool
    process_tree: bool
    hosts: bool
    gaps: list[str]
    is_full: bool


class TurnBody(BaseModel):
    """The whole answer of a request with ``"stream": false``: what the frames of a stream hold, by the same names.

    ``usage`` is summed over all generations of the turn; its ``rounds`` has one entry a generation. ``confinement`` is
    absent where no program can run. ``files`` were written in the background and are in no step; they can be had under
    ``run``, ``not_kept`` were too and cannot; each is absent when there are none.
    """

    session: str | None
    turn: str
    model: str
    confinement: ConfinementBody | None = None
    text: str
    reasoning: str
    steps: list[StepBody]
    loaded: list[LoadedBody]
    notices: list[NoticeBody]
    tool_calls: list[ClientCallBody]
    usage: dict[str, Any]
    finish: Finish
    continuation: str | None = None
    files: list[str] | None = None
    run: str | None = None
    not_kept: list[NotKeptBody] | None = None


class SessionBody(BaseModel):
    """``GET /api/sessions/{id}``: the conversation as its client knows it. ``created`` is in Unix seconds."""

    session: str
    created: int
    turns: int
    model: str
    skills: list[str]
    skills_discovery: bool
    messages: list[dict[str, Any]]


class DeletedBody(BaseModel):
    """``DELETE /api/sessions/{id}``."""

    deleted: Literal[True] = True
    session: str


class OfferedModelBody(BaseModel):
    """A model that can be asked for. ``created`` is in Unix seconds, 0 when unknown."""

    id: str
    owned_by: str
    created: int
    context_tokens: int | None


class SkillsBlock(BaseModel):
    """What the server does with skills; ``count`` are those of the present catalogue."""

    enabled: Literal[True] = True
    installable: Literal[False] = False
    allowScripts: bool  # noqa: N815 - the published key
    count: int


class OfferedModelsBody(BaseModel):
    """``GET /api/models``. ``skills`` is null when skills are off."""

    models: list[OfferedModelBody]
    skills: SkillsBlock | None
