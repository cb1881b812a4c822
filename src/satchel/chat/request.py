"""What is asked of a model server: one generation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from satchel.chat.messages import Extra, Json, Message


def _no_extra() -> Extra:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One sensible set of arguments for a tool: ``label`` tells a model what it is for.

    ``open`` maps the arguments that the model still has to write, from the conversation, to their JSON Schemas: such a
    call does something with the user's own values, all others read.
    """

    arguments: Mapping[str, str]
    label: str = ""
    open: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool declaration. ``parameters`` is a JSON Schema object.

    ``choices`` lists the argument sets that make sense now. They are never sent over the wire: only an upstream
    whose model must be guided (``ModelCapabilities.tools == "guided"``) reads them.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Json] = field(default_factory=dict[str, Json])
    choices: tuple[Choice, ...] = ()
    extra: Extra = field(default_factory=_no_extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy:
    """Which tool the model must, may or must not call. ``name`` is set exactly when ``mode`` is "named"."""

    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Sampling settings; None leaves a setting to the model server.

    ``is_code``: the answer may be code, which repeats itself rightly, so a server's penalty on that is not wanted.
    """

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    is_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What a client's request says of the client, for a model server that is configured to be told.

    ``key`` is the client's own key: sent upstream only where none is configured, never logged. ``betas`` are the beta
    features that an Anthropic client names in its headers.
    """

    key: str = field(default="", repr=False)
    betas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One generation: ``model`` is a name that the model client knows, "" its default.

    ``one_call`` asks for at most one call in it. ``extra`` holds request fields of one wire format that have no place
    here; they are replayed to that format.
    """

    model: str = ""
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolPolicy | None = None
    one_call: bool = False
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    caller: Caller = Caller()
    extra: Extra = field(default_factory=_no_extra)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of all tools that are declared, also of those that only one wire format knows."""
        foreign = (name for fields in self.extra.values() for name in _names_in(fields.get("tools")))
        return tuple(dict.fromkeys((*(tool.name for tool in self.tools), *foreign)))


def _names_in(kept: Json) -> Iterator[str]:
    """Names in declarations of a kind that has no place in ``ToolSpec``, kept as ``[position, raw]`` pairs."""
    for pair in kept if isinstance(kept, list) else ():
        match pair:
            case [int(), dict(raw)]:
                yield from _names_of(raw)
            case _:
                continue


def _names_of(raw: Mapping[str, Json]) -> Iterator[str]:
    inner = raw.get("custom")
    held = raw.get("tools")
    declared = [raw, inner, *(held if isinstance(held, list) else ())]
    for each in declared:
        name = each.get("name") if isinstance(each, dict) else None
        if isinstance(name, str) and name:
            yield name
