"""The loop's own seam: whoever answers calls is a ``ToolHost``. Skills, code tools and tests are hosts alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from satchel.chat.messages import Message
from satchel.chat.request import ToolSpec
from satchel.tools.base import Tool, ToolCall, ToolContext, ToolResult, failure


class ToolHost(Protocol):
    """Declares tools and answers calls to them, for one turn."""

    def specs(self) -> Sequence[ToolSpec]:
        """The declarations, constant during the turn and sorted by the host in a fixed order."""
        ...

    def undeclared(self) -> Collection[str]:
        """Further names that are answered though nobody is told of them: habits that models bring along."""
        ...

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Answers one call to a declared tool. Never raises for what a model got wrong."""
        ...

    def holds_answer(self) -> bool:
        """Whether text of the coming round must wait until ``before_answer`` has been asked."""
        ...

    async def before_answer(self, context: ToolContext) -> Sequence[Message]:
        """Messages that the model must see before it may finish; none lets the answer out."""
        ...

    def advise_unknown(self, name: str) -> str:
        """A sentence for a call to a tool that nobody declared, "" when this host has nothing to say of it."""
        ...

    async def aclose(self) -> None:
        """Stops whatever still runs for this turn."""
        ...


def _nothing_to_say(name: str) -> str:
    del name
    return ""


class ToolBox:
    """A host over plain tools. ``advise`` says something useful of a name that no tool has, or "".

    ``habits`` are answered under further names without being declared.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        advise: Callable[[str], str] = _nothing_to_say,
        habits: Mapping[str, Tool] | None = None,
    ) -> None:
        self._declared = {tool.spec.name: tool for tool in tools}
        self._tools = {**(habits or {}), **self._declared}
        self._advise = advise

    def specs(self) -> Sequence[ToolSpec]:
        return tuple(tool.spec for tool in self._declared.values())

    def undeclared(self) -> Collection[str]:
        return self._tools.keys() - self._declared.keys()

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        tool = self._tools.get(call.name)
        if tool is None:
            return failure("unknown-tool", f'there is no tool called "{call.name}".')
        return await tool.run(call, context)

    def holds_answer(self) -> bool:
        return False

    async def before_answer(self, context: ToolContext) -> Sequence[Message]:
        del context
        return ()

    def advise_unknown(self, name: str) -> str:
        return self._advise(name)

    async def aclose(self) -> None:
        return
