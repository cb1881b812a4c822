"""Which tools may not be called now (seed 004, section 4).

A gate where a program dispatches a model's calls. It knows nothing of skills, and what a model is told of its tools
stays as it is, so that no cached prefix is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self, cast

from satchel.chat.messages import Json
from satchel.errors import SetupError, StoreError

_KINDS = ("function", "custom")
"""Where OpenAI's calls keep their name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCheck:
    """Whether a call may run; ``reason`` is what to tell the model when it may not."""

    allowed: bool
    reason: str = ""


class Blocklist:
    """The names of tools that are blocked, exactly as written. Nothing is, until it is said.

    Raises:
        SetupError: "setting-invalid" for names that are no texts.
    """

    def __init__(self, names: str | Iterable[str] = ()) -> None:
        self._blocked: dict[str, None] = {}
        self.set_blocked_tools(names)

    def set_blocked_tools(self, names: str | Iterable[str]) -> Self:
        """These names instead of those before; an empty list blocks nothing.

        Raises:
            SetupError: "setting-invalid" for names that are no texts.
        """
        given: list[object] = [names] if isinstance(names, str) else list(names)
        if not all(isinstance(name, str) and name for name in given):
            hint = 'Give a list of texts, such as ["write_file"].'
            raise SetupError("setting-invalid", "The name of a blocked tool must be a text.", hint=hint)
        self._blocked = dict.fromkeys(cast("list[str]", given))
        return self

    def get_blocked_tools(self) -> list[str]:
        """The blocked names in the order given, each once."""
        return list(self._blocked)

    def check_tool_call(self, call: object) -> ToolCheck:
        """Whether the call may run.

        ``call`` has its name in ``name`` or, as OpenAI's calls do, in ``function.name``; an object or a mapping. A
        call without one, or with two, is refused: nobody can say which of them would run.
        """
        names = _names(call)
        if not names or not all(isinstance(name, str) and name.strip() for name in names):
            return ToolCheck(allowed=False, reason="Tool call rejected: missing or empty tool name.")
        first, *others = cast("list[str]", names)
        if any(name != first for name in others):
            return ToolCheck(allowed=False, reason="Tool call rejected: it has more than one tool name.")
        if first in self._blocked:
            return ToolCheck(allowed=False, reason=f'Tool "{first}" is blocked.')
        return ToolCheck(allowed=True)

    def snapshot(self) -> dict[str, Json]:
        """The list as plain JSON."""
        return {"blocked_tools": [*self._blocked]}

    def restore(self, state: Mapping[str, Json]) -> Self:
        """Becomes the list of a ``snapshot``; one that names no tools blocks none. One snapshot may serve many times.

        Raises:
            StoreError: "state-invalid" for anything else in its place.
        """
        given = _kept(state)
        if given is None or not all(isinstance(name, str) and name for name in given):
            hint = "Give what snapshot() returned, as it was."
            raise StoreError("state-invalid", "This is not the state of a blocklist.", hint=hint)
        return self.set_blocked_tools(cast("list[str]", given))


def _kept(state: object) -> list[object] | None:
    """The names in a state, [] without any; None for what is no state."""
    if not isinstance(state, Mapping):
        return None
    names = cast("Mapping[str, object]", state).get("blocked_tools")
    if names is None:
        return []
    return cast("list[object]", names) if isinstance(names, list) else None


def _names(call: object) -> list[object]:
    """Every name that the call has, whatever it is."""
    homes = [call, *(_get(call, kind) for kind in _KINDS)]
    return [name for home in homes if home is not None and (name := _get(home, "name")) is not None]


def _get(item: object, key: str) -> object:
    if isinstance(item, Mapping):
        return cast("Mapping[str, object]", item).get(key)
    return getattr(item, key, None)
