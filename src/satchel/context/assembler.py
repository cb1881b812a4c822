"""A conversation put together for one request: prompt, active skill, memory, history and state (seed 004, section 6).

Messages and tools are JSON as some vendor takes them and pass through unchanged; only the system messages and the end
of the last user message are written here. At most one skill is active. Its ``allowed-tools`` say what it expects to use
and decide nothing here.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Self, cast

from satchel.chat.messages import Json
from satchel.errors import SetupError, SkillError, StoreError
from satchel.skills.model import LoadedSkill, Skill, SkillRef
from satchel.skills.oneline import one_line

JsonMessage = dict[str, Json]
Placement = Literal["system", "last_user"]

_PLACEMENTS = ("system", "last_user")
_LISTED = 40
_STATE = "<dynamic_state>\n{}\n</dynamic_state>"
_STATE_NOTE = "The state above is how things stand now. Take it into account in what you do next."


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What a compiled request says of itself. ``active_skill_name`` is None when no skill is active."""

    active_skill_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """``messages`` and ``tools`` for a model, the caller's own to change."""

    messages: list[JsonMessage]
    tools: list[dict[str, Json]]
    meta: Meta = Meta()


class Assembler:
    """What a model is to see, kept in parts, each replaced by its setter. What goes in and what comes out are copies.

    Setters return the assembler. Messages and tools are mappings of plain JSON; SDK objects become that by their
    ``model_dump()`` or ``to_dict()``.

    Raises:
        SetupError: "setting-invalid", from every setter, for what is no plain JSON of the expected form.
    """

    def __init__(self) -> None:
        self._system: list[JsonMessage] = []
        self._memory: list[JsonMessage] = []
        self._history: list[JsonMessage] = []
        self._tools: list[dict[str, Json]] = []
        self._state: dict[str, Json] = {}
        self._placement: Placement = "last_user"
        self._registered: dict[str, LoadedSkill] = {}
        self._active: LoadedSkill | None = None

    # What is always there.

    def set_system_prompt(self, prompt: str | Iterable[Mapping[str, object]]) -> Self:
        """A text, or messages of one's own, in front of everything; "" for none."""
        self._system = _messages(prompt)
        return self

    def set_memory(self, memory: str | Iterable[Mapping[str, object]]) -> Self:
        """What is remembered from elsewhere: a text for a system message, or messages of one's own; "" for none."""
        self._memory = _messages(memory)
        return self

    def set_history(self, history: Iterable[Mapping[str, object]]) -> Self:
        """The conversation, whole or shortened."""
        self._history = _objects(history, "message")
        return self

    def set_dynamic_state(self, state: Mapping[str, object] | None, *, placement: Placement = "last_user") -> Self:
        """What changes from request to request, by name; None or {} for nothing.

        It stands at the end of the last user message, or in a system message of its own behind the history. It is
        written as JSON with sorted names, in which nothing can end the element around it.
        """
        if placement not in _PLACEMENTS:
            hint = 'Known are "last_user" and "system".'
            raise SetupError("setting-invalid", f'State has no placement "{placement}".', hint=hint)
        (copied,) = _objects([state or {}], "state")
        self._state, self._placement = copied, placement
        return self

    def register_tools(self, tools: Iterable[Mapping[str, object]]) -> Self:
        """These declarations instead of those before. A request always has all of them."""
        self._tools = _objects(tools, "tool")
        return self

    def get_all_tools(self) -> list[dict[str, Json]]:
        """The declarations, as registered."""
        return copy.deepcopy(self._tools)

    # Skills.

    def register_skills(self, skills: Iterable[LoadedSkill]) -> Self:
        """These skills instead of those before; an active one stays active.

        Raises:
            SetupError: "setting-invalid" for what is no skill with instructions, or two of one name.
        """
        given = [_skill(item) for item in skills]
        named = {item.name: item for item in given}
        if len(named) < len(given):
            twice = next(item.name for item in given if named[item.name] is not item)
            raise SetupError("setting-invalid", f'Two skills have the name "{one_line(twice)}".')
        self._registered = copy.deepcopy(named)
        return self

    def get_registered_skills(self) -> list[LoadedSkill]:
        """The skills, in the order given."""
        return copy.deepcopy([*self._registered.values()])

    def activate_skill(self, skill: LoadedSkill | str | None) -> Self:
        """Makes this the one active skill: a skill itself, the name of a registered one, or None for none.

        Raises:
            SkillError: "skill-not-found" for a name that is not registered; what was active stays so.
            SetupError: "setting-invalid" for anything else.
        """
        if skill is None:
            self._active = None
        elif isinstance(skill, str):
            found = self._registered.get(skill)
            if found is None:
                raise _unknown(skill, self._registered)
            self._active = found
        else:
            self._active = copy.deepcopy(_skill(skill))
        return self

    def get_active_skill(self) -> LoadedSkill | None:
        """The active skill, None when there is none."""
        return copy.deepcopy(self._active)

    # The request.

    def compile(self) -> Compiled:
        """System prompt, skill, memory, history and state, in this order, and every tool.

        The skill's instructions are a system message of their own; one without instructions has none, and is named in
        ``meta`` all the same. State for the last user message makes one when there is none.
        """
        skill = [] if self._active is None or not self._active.body.strip() else [_system(self._active.body)]
        messages = [*self._system, *skill, *self._memory, *self._history]
        if self._state and self._placement == "system":
            messages.append(_system(self._state_text()))
        messages = copy.deepcopy(messages)
        if self._state and self._placement == "last_user":
            _append_to_last_user(messages, self._state_text())
        name = None if self._active is None else self._active.name
        return Compiled(messages=messages, tools=self.get_all_tools(), meta=Meta(active_skill_name=name))

    def _state_text(self) -> str:
        written = json.dumps(self._state, ensure_ascii=False, sort_keys=True).replace("<", "\\u003c")
        return f"{_STATE.format(written)}\n{_STATE_NOTE}"

    # Going on later.

    def snapshot(self) -> dict[str, Json]:
        """All but the registered skills as plain JSON; of the active one its name and its instructions."""
        state: dict[str, Json] = {
            "system": [*self._system],
            "memory": [*self._memory],
            "history": [*self._history],
            "tools": [*self._tools],
            "dynamic_state": self._state,
            "placement": self._placement,
        }
        if self._active is not None:
            state |= {"active_skill_name": self._active.name, "skill_instructions": self._active.body}
        return copy.deepcopy(state)

    def restore(self, state: Mapping[str, Json]) -> Self:
        """Becomes the assembler of a ``snapshot``; what it does not hold is cleared. One may serve many times.

        The active skill is the registered one of its name, as it is now. When there is none of that name, it is the
        kept instructions under the name, without a description.

        Raises:
            StoreError: "state-invalid" for what is no snapshot; nothing has then changed.
        """
        if not _is_mapping(state):
            raise _invalid()
        placement = state.get("placement", "last_user")
        dynamic = state.get("dynamic_state", {})
        name, instructions = state.get("active_skill_name"), state.get("skill_instructions")
        try:
            parts = {key: _objects(_listed(state, key), key) for key in ("system", "memory", "history", "tools")}
            (copied,) = _objects([cast("Mapping[str, object]", dynamic)], "state")
        except SetupError as error:
            raise _invalid() from error
        if placement not in _PLACEMENTS or not isinstance(name, str | None) or not isinstance(instructions, str | None):
            raise _invalid()
        self._system, self._memory, self._history = parts["system"], parts["memory"], parts["history"]
        self._tools, self._state, self._placement = parts["tools"], copied, placement
        self._active = None
        if name is not None:
            self._active = self._registered.get(name)
            if self._active is None and instructions is not None:
                self._active = _kept(name, instructions)
        return self


def _append_to_last_user(messages: list[JsonMessage], text: str) -> None:
    last = next((item for item in reversed(messages) if item.get("role") == "user"), None)
    if last is None:
        messages.append({"role": "user", "content": text})
        return
    content = last.get("content")
    if isinstance(content, list):
        content.append({"type": "text", "text": text})
    else:
        last["content"] = f"{content}\n\n{text}" if isinstance(content, str) and content else text


def _system(text: str) -> JsonMessage:
    return {"role": "system", "content": text}


def _messages(given: str | Iterable[Mapping[str, object]]) -> list[JsonMessage]:
    if isinstance(given, str):
        return [_system(given)] if given else []
    return _objects(given, "message")


def _objects(given: Iterable[Mapping[str, object]], what: str) -> list[dict[str, Json]]:
    """Copies of JSON objects. What JSON cannot hold would only fail later, in a request or a snapshot."""
    items: list[object] = list(given)
    try:
        if isinstance(given, Mapping) or not all(isinstance(item, Mapping) for item in items):
            raise TypeError(what)  # noqa: TRY301 - told like everything else that is none
        return json.loads(json.dumps([dict(cast("Mapping[str, object]", item)) for item in items], allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        hint = "Give a list of mappings that hold nothing but JSON."
        raise SetupError("setting-invalid", f"This is no {what} in plain JSON.", hint=hint) from error


def _is_mapping(state: object) -> bool:
    return isinstance(state, Mapping)


def _listed(state: Mapping[str, Json], key: str) -> list[Mapping[str, object]]:
    value = state.get(key, [])
    if not isinstance(value, list):
        raise _invalid()
    return cast("list[Mapping[str, object]]", value)


def _skill(given: object) -> LoadedSkill:
    if isinstance(given, LoadedSkill):
        return given
    hint = "Make one with satchel.inline, or load one with satchel.load_skill."
    raise SetupError("setting-invalid", f"A {type(given).__name__} is no skill with instructions.", hint=hint)


def _kept(name: str, instructions: str) -> LoadedSkill:
    skill = Skill(ref=SkillRef(source="snapshot", name=name), description="", summary="")
    return LoadedSkill(skill=skill, body=instructions, manifest_bytes=len(instructions.encode("utf-8", "replace")))


def _unknown(name: str, registered: Iterable[str]) -> SkillError:
    names = [one_line(known) for known in registered]
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    hint = f"Registered are {', '.join(names[:_LISTED])}{more}." if names else "Registered are (none)."
    return SkillError("skill-not-found", f'There is no registered skill called "{one_line(name)[:80]}".', hint=hint)


def _invalid() -> StoreError:
    hint = "Give what snapshot() returned, as it was."
    return StoreError("state-invalid", "This is not the state of an assembler.", hint=hint)
